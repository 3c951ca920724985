"""A mirror set back: the commit that shows an earlier version of it once more, however old.

Belongs here: which files come and which go, and that commit. Does not: which version, and what is
said of it (`pipeline.recovery`).

Delta's RESTORE asks for both versions' files, compares them and counts what it found in a dozen
queries, seconds of processor time for a table of one row (`python -m benchmarks small`). Where the
log near by lists the files of both, they are compared here, and Delta's own transaction commits the
difference. What RESTORE does beyond that, for identity columns, row ids, domains and protocols,
stays its own.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError

from resources.lake.altering import USER_METADATA
from resources.lake.checksums import file_key, files_listed, lists_files
from resources.lake.direct import takes_files
from resources.lake.java_classes import java_class
from resources.lake.paths import LakePath
from resources.lake.pin import Head
from resources.lake.sessions import stamped
from resources.lake.statement import quoted
from resources.lake.storage import delta_table, missing_files
from resources.lake.transaction import now, transaction
from resources.lake.versions import BY_AGE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MOST: Final = 1_000
"""So many files are told to Delta one by one; of more it asks itself."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """What of a table's files a commit changes, each as the protocol spells an `add`."""

    come: Sequence[Mapping[str, Any]]
    go: Sequence[Mapping[str, Any]]


def restore(
    session: SparkSession, table: LakePath, version: int, said: str, head: Head, *, java: bool
) -> None:
    """Make the commit behind `head`. Files are looked for, not the version's age: Delta's error
    where one is gone. `java`: Spark's Java can be spoken to."""
    with stamped(session, {**head.pin(), USER_METADATA: said, BY_AGE: "false"}):
        change = _change(table, version, head) if java else None
        if change is None:
            session.sql(f"RESTORE TABLE delta.{quoted(str(table))} TO VERSION AS OF {version}")
        else:
            _commit(session, table, version, head, change)


def _change(table: LakePath, version: int, head: Head) -> FileChange | None:
    """None where Delta is to find out by itself, and to say what stands in the way."""
    try:
        if not _is_plain(delta_table(table, version), delta_table(table, head.version)):
            return None
        then, there = (files_listed(table, at) for at in (version, head.version))
        if then is None or there is None:
            return None
        come, go = _beyond(then, there), _beyond(there, then)
        gone = missing_files(table, [str(file["path"]) for file in come])
    except (DeltaError, OSError):
        return None
    return None if gone or len(come) + len(go) > MOST else FileChange(come, go)


def _is_plain(then: DeltaTable, there: DeltaTable) -> bool:
    """Whether files and columns are all that differs, and the protocol is one that takes them."""
    before, after = then.protocol(), there.protocol()
    return (
        takes_files(then)
        and takes_files(there)
        and set(before.reader_features or []) <= set(after.reader_features or [])
        and set(before.writer_features or []) <= set(after.writer_features or [])
    )


def _beyond(
    files: Sequence[Mapping[str, Any]], others: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    known = {file_key(file) for file in others}
    return [file for file in files if file_key(file) not in known]


def _commit(
    session: SparkSession, table: LakePath, version: int, head: Head, change: FileChange
) -> None:
    with transaction(session, table, told=not lists_files(table, head.version)) as held:
        then = held.log.getSnapshotAt(version, held.none, held.none, False)
        held.begun.updateMetadata(then.metadata(), False)
        moment = now()
        come = [held.action({"add": {**file, "dataChange": True}}) for file in change.come]
        go = [held.action({"add": file}).removeWithTimestamp(moment, True) for file in change.go]
        number = java_class(held.jvm, "java.util.OptionalLong").of(version)
        options = java_class(held.jvm, "scala.jdk.javaapi.OptionConverters")
        held.commit([*come, *go], held.operation("Restore", options.toScala(number), held.none))
