"""Spark's and Delta's errors by name: one first line, never a stack trace or a value.

A race becomes `CommitConflict`; what storage or the machine cannot do, and a Spark that is
stopped, `LakeUnavailable`; whatever else Spark says of one table's plan, rows or files
`MirrorRefused`. Of an analysis, which looks at names alone, the first line is told; of
anything that met rows, Spark's name of the error alone.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pipeline.errors import (
    CommitConflict,
    LakeUnavailable,
    LockstepError,
    MirrorRefused,
    TableError,
)
from resources.lake.paths import LakePath, ObjectPath
from resources.lake.storage import first_line, unavailable
from resources.lake.store_answers import refusal

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject
    from pyspark.errors import PySparkException

_CONFLICTS = (
    "ConcurrentAppendException",
    "ConcurrentDeleteDeleteException",
    "ConcurrentDeleteReadException",
    "ConcurrentTransactionException",
    "ConcurrentWriteException",
    "MetadataChangedException",
    "PinnedLogStore$CommitRefused",
    "ProtocolChangedException",
)
_STORAGE = {
    "No space left on device": errno.ENOSPC,
    "Disk quota exceeded": errno.EDQUOT,
    "Read-only file system": errno.EROFS,
    "Permission denied": errno.EACCES,
}
_MACHINE = (
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
"""Words of a Spark that is being stopped, or of a machine without room for it."""

_MACHINES = ("CANNOT_ACQUIRE_MEMORY", "SPARK_JOB_CANCELLED", "UNABLE_TO_ACQUIRE_MEMORY")
"""Conditions of the same kind."""

_STOPPED = (
    "CancellationException",
    "ClosedByInterruptException",
    "InterruptedException",
    "TimeoutException",
    "ClassNotFoundException",
    "NoClassDefFoundError",
    "NoSuchMethodError",
    "UnsatisfiedLinkError",
)
"""Errors of a Spark that is being stopped, and of one whose jars do not fit."""

_FILES = ("DELTA_", "FAILED_READ_FILE")
"""Conditions that are about a mirror's files, whatever is below them."""

_TABLES = (
    "java.lang.",
    "java.time.",
    "java.util.",
    "java.io.FileNotFoundException",
    "java.io.EOFException",
    "java.nio.file.",
    "com.fasterxml.jackson.",
    "org.apache.parquet.",
    "org.apache.spark.",
    "org.apache.spark.sql.",
    "io.delta.",
)
"""Packages whose errors come of one table's plan, rows or files."""

_MEMORY = 'give Spark more memory ("spark.driver.memory" under [spark]), then run again'


@dataclass(frozen=True, slots=True)
class JavaError:
    """One exception of a Java chain of causes. `condition` is Spark's name of the error
    ("error class"), which holds no values."""

    name: str
    message: str
    condition: str | None = None


def named(path: LakePath, chain: Sequence[JavaError]) -> LockstepError | TableError:
    """What a chain of Java exceptions, outermost first, means for the write at `path`."""
    for error in chain:
        if error.name.rpartition(".")[2] in _CONFLICTS:
            return conflict(path)
    store = refusal(" ".join(error.message for error in chain))
    if isinstance(path, ObjectPath) and store is not None:
        state, cure = store
        return LakeUnavailable(f"The lake's storage at {path} {state}", hint=cure)
    for error in chain:
        for words, number in _STORAGE.items():
            if words in error.message:
                return unavailable(path, number, words)
        if error.name.endswith("OutOfMemoryError"):
            return LakeUnavailable(f"Spark ran out of memory writing {path}", hint=_MEMORY)
    last = chain[-1] if chain else JavaError("an unknown error", "")
    said = last.condition or first_line(last.message) or last.name
    files = any((error.condition or "").startswith(_FILES) for error in chain)
    tables = files or last.name.startswith(_TABLES)
    if not tables or any(_of_the_machine(error) for error in chain):
        return LakeUnavailable(f"Spark could not write {path}: {said}", hint="run again")
    told = _of_the_table(chain)
    return MirrorRefused(f"Spark refused its mirror: {told}", hint="rewrite the mirror")


def _of_the_machine(error: JavaError) -> bool:
    return (
        error.name.endswith(_STOPPED)
        or (error.condition or "").startswith(_MACHINES)
        or any(words in error.message for words in _MACHINE)
    )


def _of_the_table(chain: Sequence[JavaError]) -> str:
    """In Spark's words, without a row's value."""
    for error in chain:
        if error.name.endswith("AnalysisException"):
            return first_line(error.message) or error.name
    named_ = [error.condition for error in chain if error.condition is not None]
    return ": ".join(dict.fromkeys([*named_, chain[-1].name.rpartition(".")[2]]))


def conflict(path: LakePath) -> CommitConflict:
    return CommitConflict(
        f"Somebody else committed to {path} first",
        hint="run again; if it happens every time, stop the other writer",
    )


def leave_telling_to_us() -> None:
    """PySpark prints each refusal with Java's stack, and its client for Spark Connect logs it,
    where the error that is raised tells it. The client has that switched off unless somebody asks
    for it; a host's own configuration of logging, as Dagster's, switches it on. py4j logs to the
    root logger, with a traceback, that a Java is gone."""
    from pyspark.logger import PySparkLogger

    logging.getLogger().addFilter(_is_not_py4js)

    for name in ("DataFrameQueryContextLogger", "SQLQueryContextLogger"):
        PySparkLogger.getLogger(name).setLevel(logging.CRITICAL + 1)
    if "SPARK_CONNECT_LOG_LEVEL" not in os.environ:
        logging.getLogger("pyspark.sql.connect.logging").setLevel(logging.CRITICAL + 1)


def _is_not_py4js(record: logging.LogRecord) -> bool:
    return record.module != "java_gateway"


@contextmanager
def spark_errors(path: LakePath) -> Iterator[None]:
    """Whatever Spark raises inside becomes an error of ours about `path`."""
    from py4j.protocol import Py4JError, Py4JJavaError
    from pyspark.errors import PySparkException
    from pyspark.errors.exceptions.captured import CapturedException

    try:
        yield
    except Py4JJavaError as error:
        raise named(path, _chain(error.java_exception)) from error
    except CapturedException as error:
        raise named(path, _chain(error._origin)) from error
    except PySparkException as error:
        raise named(path, _told(error)) from error
    except (Py4JError, OSError) as error:
        raise LakeUnavailable(f"Spark stopped while writing {path}", hint=_MEMORY) from error


def _told(error: PySparkException) -> list[JavaError]:
    """What a server's exceptions were; of one that did not answer, PySpark's own."""
    condition = error.getCondition()
    trace = getattr(error, "getStackTrace", lambda: None)()
    if not trace:
        return [JavaError(type(error).__name__, str(error), condition)]
    outermost, *causes = [line for line in trace.splitlines() if line and line[0] != "\t"]
    chain = [JavaError(outermost, str(error).partition("\n\nJVM stacktrace:")[0], condition)]
    for line in causes:
        if line.startswith(_CAUSED):
            name, _, message = line.removeprefix(_CAUSED).partition(": ")
            told = _CONDITION.match(message)
            chain.append(JavaError(name, message, told[1] if told else None))
    return chain


_CAUSED = "Caused by: "
_CONDITION = re.compile(r"\[([A-Z][A-Z0-9_.]+)\] ")
"""Spark puts it in front of its sentence."""


def _chain(outermost: JavaObject | None) -> list[JavaError]:
    from py4j.protocol import Py4JError

    chain: list[JavaError] = []
    cause = outermost
    while cause is not None and len(chain) < 20:
        condition = None
        name = str(cause.getClass().getName())
        if name.startswith(("org.apache.spark", "io.delta")):
            # Not every Spark exception has conditions, and Java objects here claim any method.
            with suppress(Py4JError):
                condition = str(cause.getCondition())
        chain.append(JavaError(name, str(cause.getMessage() or ""), condition))
        cause = cause.getCause()
    return chain
