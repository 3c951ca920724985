"""Spark's and Delta's errors by name: one first line, never a stack trace or a value.

What belongs to one table's data becomes `TableError`; a race becomes `CommitConflict`;
everything else, storage first of all, is `LakeUnavailable`.
"""

from __future__ import annotations

import errno
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from pipeline.errors import CommitConflict, LakeUnavailable, LockstepError, TableError
from resources.lake.storage import first_line, unavailable

if TYPE_CHECKING:
    from py4j.java_gateway import JavaObject

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
_DATA = ("ArithmeticException",)

_MEMORY = 'give Spark more memory ("spark.driver.memory" under [spark]), then run again'


@dataclass(frozen=True, slots=True)
class JavaError:
    """One exception of a Java chain of causes. `condition` is Spark's name of the error
    ("error class"), which holds no values."""

    name: str
    message: str
    condition: str | None = None


def named(path: Path, chain: Sequence[JavaError]) -> LockstepError | TableError:
    """What a chain of Java exceptions, outermost first, means for the write at `path`."""
    for error in chain:
        if error.name.rpartition(".")[2] in _CONFLICTS:
            return conflict(path)
    for error in chain:
        for words, number in _STORAGE.items():
            if words in error.message:
                return unavailable(path, number, words)
        if error.name.endswith("OutOfMemoryError"):
            return LakeUnavailable(f"Spark ran out of memory writing {path}", hint=_MEMORY)
    for error in chain:
        if error.name.endswith(_DATA):
            return TableError(
                f"Spark refused the write: {error.condition or error.name}",
                hint="compare the table's structure with its mirror's",
            )
    told = chain[-1] if chain else JavaError("an unknown error", "")
    said = told.condition or first_line(told.message) or told.name
    return LakeUnavailable(f"Spark could not write {path}: {said}", hint="run again")


def conflict(path: Path) -> CommitConflict:
    return CommitConflict(
        f"Somebody else committed to {path} first",
        hint="run again; if it happens every time, stop the other writer",
    )


@contextmanager
def spark_errors(path: Path) -> Iterator[None]:
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
        condition = error.getCondition()
        raise named(path, [JavaError(type(error).__name__, str(error), condition)]) from error
    except (Py4JError, OSError) as error:
        raise LakeUnavailable(f"Spark stopped while writing {path}", hint=_MEMORY) from error


def _chain(outermost: JavaObject | None) -> list[JavaError]:
    chain: list[JavaError] = []
    cause = outermost
    while cause is not None and len(chain) < 20:
        condition = None
        name = str(cause.getClass().getName())
        if hasattr(cause, "getCondition") and name.startswith(("org.apache.spark", "io.delta")):
            condition = _condition(cause)
        chain.append(JavaError(name, str(cause.getMessage() or ""), condition))
        cause = cause.getCause()
    return chain


def _condition(cause: JavaObject) -> str | None:
    from py4j.protocol import Py4JError

    try:
        return str(cause.getCondition())
    except Py4JError:
        # Not every Spark exception has conditions, and Java objects here claim any method.
        return None
