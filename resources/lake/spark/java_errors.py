"""Translation of Spark's and Delta's exceptions to our errors, whose messages are one
line without a stack trace or a row's value.

If another writer committed first, the error becomes `CommitConflict`. If the storage or
the machine fails, or Spark is stopped, it becomes `LakeUnavailable`; `DiskFull` if
temporary files have no room. An error about the plan, rows or files of one table
becomes `MirrorRefused`; it is recognized by its error condition or by the class of its
innermost cause. Any other error becomes `LakeUnavailable`, too.

The message of a `MirrorRefused` repeats the message of an analysis error, which
contains only names. Other errors about a table can contain rows, so our message has
only Spark's error condition and the exception's class.
"""

from __future__ import annotations

import errno
import logging
import os
import re
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from lockstep.pipeline.values.errors import (
    CommitConflict,
    DiskFull,
    LakeUnavailable,
    LockstepError,
    MirrorRefused,
    TableError,
)
from lockstep.resources.full_disk import FULL_CURE, is_full
from lockstep.resources.lake.store.answers import explanation_of
from lockstep.resources.lake.store.paths import LakePath, ObjectPath
from lockstep.resources.lake.store.storage import first_line, unavailable_error

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.errors import PySparkException

_CONFLICT_CLASSES = (
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "PinnedLogStore$CommitRefused",
    "ProtocolChangedException",
)
_STORAGE_ERRNOS = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
    "Permission denied": errno.EACCES,
    "Operation not permitted": errno.EPERM,
    "Operation not supported": errno.EOPNOTSUPP,
    "Function not implemented": errno.ENOSYS,
}
_FULL_DISK_WORDS = ("No space left on device", "Disk quota exceeded")
_LINKAGE_CLASSES = ("UnsatisfiedLinkError", "NoClassDefFoundError", "ExceptionInInitializerError")

_MACHINE_WORDS = (
    "Block manager",
    "BlockManager",
    "Broken pipe",
    "Cannot run program",
    "Connection refused",
    "Connection reset",
    "ExecutorLostFailure",
    "Input/output error",
    "SparkContext",
    "Too many open files",
    "cancelled",
    "interrupted",
    "shut down",
    "shutdown",
    "unable to create native thread",
)
"""Words in error messages of a Spark that is being stopped, or of a machine that fails."""

_NAMES = re.compile(r"\S*/\S*/\S*|`[^`]*`")
"""Matches the paths and the quoted identifiers in a message, which can contain any of
`_MACHINE_WORDS`."""

_MACHINE_CONDITIONS = (
    "CANNOT_ACQUIRE_MEMORY",
    "CANNOT_MODIFY_CONFIG",
    "SPARK_JOB_CANCELLED",
    "UNABLE_TO_ACQUIRE_MEMORY",
)
"""Spark's error conditions of a Spark that is being stopped or of a machine that fails;
and CANNOT_MODIFY_CONFIG, which can be raised while Spark loads Delta's settings."""

_MACHINE_CLASSES = (
    "CancellationException",
    "ClosedByInterruptException",
    "InterruptedException",
    "TimeoutException",
    "ClassNotFoundException",
    "NoClassDefFoundError",
    "NoSuchMethodError",
    "UnsatisfiedLinkError",
)
"""Classes of exceptions of a Spark that is being stopped, or whose jars do not match."""

_FILE_CONDITIONS = ("DELTA_", "FAILED_READ_FILE")
"""Beginnings of error conditions that concern a table's files, even if the cause is an
exception of another package."""

_TABLE_PACKAGES = (
    "java.lang.",
    "java.time.",
    "java.util.",
    "java.io.FileNotFoundException",
    "java.io.EOFException",
    "java.nio.file.",
    "com.fasterxml.jackson.",
    "org.apache.parquet.",
    "org.apache.spark.",
    "io.delta.",
)
"""Packages, and single classes of other packages, whose exceptions are about one
table's plan, rows or files."""

_MEMORY_HINT = 'give Spark more memory ("spark.driver.memory" under [spark]), then run again'


@dataclass(frozen=True, slots=True)
class JavaError:
    """An exception in a Java chain of causes. `condition`: Spark's name for the kind of
    error ("error condition"), which contains no values."""

    class_name: str
    message: str
    condition: str | None = None


def error_of(path: LakePath, chain: Sequence[JavaError]) -> LockstepError | TableError:
    """Return our error about `path` for a chain of Java exceptions, outermost first."""
    for error in chain:
        if error.class_name.rpartition(".")[2] in _CONFLICT_CLASSES:
            return commit_conflict(path)
    if _lacks_temporary_space(path, chain):
        return DiskFull(
            f"No space left on {tempfile.gettempdir()}, for Spark's temporary files.",
            hint=FULL_CURE,
        )
    explanation = explanation_of(" ".join(error.message for error in chain))
    if isinstance(path, ObjectPath) and explanation is not None:
        state, cure = explanation
        return LakeUnavailable(f"The lake's storage at {path} {state}", hint=cure)
    for error in chain:
        for words, error_number in _STORAGE_ERRNOS.items():
            if words in error.message:
                return unavailable_error(path, error_number, words)
        if error.class_name.endswith("OutOfMemoryError"):
            return LakeUnavailable(f"Spark ran out of memory writing {path}", hint=_MEMORY_HINT)
    innermost = chain[-1] if chain else JavaError("an unknown error", "")
    reason = innermost.condition or first_line(innermost.message) or innermost.class_name
    is_about_files = any((error.condition or "").startswith(_FILE_CONDITIONS) for error in chain)
    is_about_table = is_about_files or innermost.class_name.startswith(_TABLE_PACKAGES)
    if not is_about_table or any(_is_machine_failure(error) for error in chain):
        return LakeUnavailable(f"Spark could not write {path}: {reason}", hint="run again")
    return MirrorRefused(
        f"Spark refused its mirror: {_reason_in_spark_words(chain)}", hint="rewrite the mirror"
    )


def _lacks_temporary_space(path: LakePath, chain: Sequence[JavaError]) -> bool:
    """Return whether the disk of the temporary files is full, the lake's is not, and
    that may be the cause: Java names no file whose disk is full, and it does not find a
    native library that it could not unpack there."""
    may_be_cause = any(
        error.class_name.endswith(_LINKAGE_CLASSES)
        or any(words in error.message for words in _FULL_DISK_WORDS)
        for error in chain
    )
    if not may_be_cause or not is_full(Path(tempfile.gettempdir())):
        return False
    return isinstance(path, ObjectPath) or not is_full(
        next(folder for folder in (path, *path.parents) if folder.exists())
    )


def _is_machine_failure(error: JavaError) -> bool:
    message = _NAMES.sub("", error.message)
    return (
        error.class_name.endswith(_MACHINE_CLASSES)
        or (error.condition or "").startswith(_MACHINE_CONDITIONS)
        or any(words in message for words in _MACHINE_WORDS)
    )


def _reason_in_spark_words(chain: Sequence[JavaError]) -> str:
    """Return the reason in Spark's words, without a row's value."""
    for error in chain:
        if error.class_name.endswith("AnalysisException"):
            return first_line(error.message) or error.class_name
    conditions = [error.condition for error in chain if error.condition is not None]
    return ": ".join(dict.fromkeys([*conditions, chain[-1].class_name.rpartition(".")[2]]))


def commit_conflict(path: LakePath) -> CommitConflict:
    """Return the error for a commit that another writer's commit prevented."""
    return CommitConflict(
        f"Another writer committed to {path} first",
        hint="run again; if it happens every time, stop the other writer",
    )


def silence_pyspark() -> None:
    """Switch off the logging of errors that we report ourselves.

    PySpark prints each error with Java's stack trace. If a host such as Dagster
    configures logging, PySpark's client for Spark Connect logs the error, too; this
    stays on if SPARK_CONNECT_LOG_LEVEL is set. When a Java process ends, py4j logs a
    traceback to the root logger.
    """
    from pyspark.logger import PySparkLogger

    logging.getLogger().addFilter(_is_not_from_py4j)
    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    if "SPARK_CONNECT_LOG_LEVEL" not in os.environ:
        logging.getLogger("pyspark.sql.connect.logging").setLevel(logging.CRITICAL + 1)


def _is_not_from_py4j(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


@contextmanager
def spark_errors(path: LakePath) -> Iterator[None]:
    """Turn any error of Spark inside the context into our error about `path`."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.errors.exceptions.captured import CapturedException

    try:
        yield
    except Py4JJavaError as error:
        raise error_of(path, _java_chain(error.java_exception)) from error
    except CapturedException as error:
        raise error_of(path, _java_chain(error._origin)) from error
    except PySparkException as error:
        raise error_of(path, _server_chain(error)) from error
    except (Py4JError, OSError) as error:
        raise LakeUnavailable(f"Spark stopped while writing {path}", hint=_MEMORY_HINT) from error


def _server_chain(error: PySparkException) -> list[JavaError]:
    """Return the chain of exceptions of a Spark Connect server, from its stack trace.
    Without one, for example if the server did not answer, return PySpark's exception
    alone."""
    condition = error.getCondition()
    trace = getattr(error, "getStackTrace", lambda: None)()
    if not trace:
        return [JavaError(type(error).__name__, str(error), condition)]
    # PySpark writes the outermost exception's class without its message.
    class_name, *causes = [line for line in trace.splitlines() if line and line[0] != "\t"]
    chain = [JavaError(class_name, str(error).partition("\n\nJVM stacktrace:")[0], condition)]
    for line in causes:
        if line.startswith(_CAUSE_PREFIX):
            name, _, message = line.removeprefix(_CAUSE_PREFIX).partition(": ")
            match = _CONDITION.match(message)
            chain.append(JavaError(name, message, match[1] if match else None))
    return chain


_CAUSE_PREFIX = "Caused by: "
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ")
"""Matches the error condition at the beginning of a message of Spark."""

_MAX_CAUSES = 20
"""Java allows causes that lead back to an earlier exception of the chain."""


def _java_chain(outermost: JavaObject | None) -> list[JavaError]:
    from py4j.protocol import Py4JError

    chain: list[JavaError] = []
    cause = outermost
    while cause is not None and len(chain) < _MAX_CAUSES:
        condition = None
        name = str(cause.getClass().getName())
        if name.startswith(("org.apache.spark", "io.delta")):
            # Not every class of Spark has the method, and py4j's objects claim any
            # method. It returns null for an exception without a condition.
            with suppress(Py4JError):
                condition = cause.getCondition()
        chain.append(JavaError(name, str(cause.getMessage() or ""), condition))
        cause = cause.getCause()
    return chain
