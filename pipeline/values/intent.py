"""Writes to mirrors as the ledger keeps them: intents, settled writes, and version
sets.

A mirror is the Delta table with the current rows of one source table. A run records an
intent before it writes a mirror, and settles it once it has read back the commit. If
the run is killed in between, the next one can find out from the intent whether the
commit was made.

Not here: the data that is written (`ports.mirror_writes`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from lockstep.pipeline.values.table import TableName

REPLAY: Final = "replay"
"""The value of `Intent.step` for a write that corrects a mirror after a replay. Such a
write adds no batch to the mirror."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A write to one mirror, which is recorded before it is tried.

    The write merges the captured batches from `first_batch` to `last_batch`; a repeated
    try merges the same batches. The write of a replay merges none: both are the batch
    that the mirror shows. `step`: "merge", `REPLAY`, or "copy" for a table as it was at
    an earlier place. `app_id` and `txn_version` are those of Delta's `txn` action;
    versions of one application ascend. The ledger gives `id` and `txn_version`; until
    then they are 0. The table has no other write until this one is settled.
    `copied_write_id`: set if the write first copies rows from an earlier version of the
    mirror: the id of the settled write that made that version. `may_have_kept_rows`:
    after the write the mirror may have rows that the source no longer has, without a
    mark.
    """

    id: int
    table: TableName
    app_id: str
    txn_version: int
    first_batch: int
    last_batch: int
    step: str
    copied_write_id: int | None = None
    may_have_kept_rows: bool = False

    @property
    def is_recorded(self) -> bool:
        return self.id > 0


@dataclass(frozen=True, slots=True)
class SettledWrite:
    """An intent whose commit is in the Delta log. `delta_version`: the version of that
    commit. `settled_at`: when the commit was read back. `reason`: why this way of
    writing was chosen, or None if unknown."""

    intent: Intent
    delta_version: int
    intended_at: datetime
    settled_at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class MirrorVersion:
    """A version of the mirror at the path `mirror`, with all changes up to the batch
    `last_batch`. `write_id`: the settled write that made it, or None if this ledger did
    not write it. `table_id`: the `metaData.id` of the Delta table, or None if unknown.
    `may_have_kept_rows`: as in `Intent`."""

    write_id: int | None
    table: TableName
    mirror: str
    delta_version: int
    last_batch: int
    table_id: str | None = None
    may_have_kept_rows: bool = False

    def __str__(self) -> str:
        return f"version {self.delta_version} of {self.mirror}"


@dataclass(frozen=True, slots=True)
class NewestWrites:
    """The newest writes of an application id. `settled_write`: the newest settled one,
    or None. `last_txn_version`: the highest `txn_version` that an intent ever had, or
    0."""

    settled_write: SettledWrite | None
    last_txn_version: int

    @property
    def settled_intent(self) -> Intent | None:
        return None if self.settled_write is None else self.settled_write.intent


@dataclass(frozen=True, slots=True)
class VersionSetEntry:
    """The version of the mirror at the path `mirror` that shows its table as of a batch.

    `table_id`: the `metaData.id` of the Delta table, or None if unknown. If another
    Delta table is in that folder later, its version of the same number shows something
    else.
    """

    table: TableName
    mirror: str
    delta_version: int
    table_id: str | None = None


class MissingReason(StrEnum):
    """The reason for which a table of the source cannot be read as of a batch."""

    TOGETHER = "together"
    """One write merged the table's changes of this batch together with those of a later
    one."""
    RESUMED_LATER = "later"
    """The table was stopped, and resumed with a batch after this one."""
    READING = "reading"
    """The table's rows are still being read from the source."""
    STOPPED = "stopped"
    """The table is stopped: it is not captured, and its mirror does not follow."""
    BEHIND = "behind"
    """The table is followed again, but its mirror lacks batches that the other mirrors
    have."""
    UNWRITTEN = "unwritten"
    """Nothing of the table was merged yet."""


@dataclass(frozen=True, slots=True)
class MissingTable:
    """A table that a version set lacks. `last_batch`: for TOGETHER, the later batch,
    whose version set has the table."""

    table: TableName
    reason: MissingReason
    last_batch: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedVersionSet:
    """A version set in the ledger: the versions of mirrors that together show the
    source as of the end of an acknowledged batch. `entries`: for each table, the
    version of its newest settled write up to that batch. `missing_tables`: the tables
    that cannot be shown as of that batch. Both are sorted by table name, and empty if
    the batch is not acknowledged."""

    entries: Sequence[VersionSetEntry]
    missing_tables: Sequence[MissingTable]
