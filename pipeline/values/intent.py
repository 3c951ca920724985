"""Writes to mirrors as the ledger keeps them: intents, settled writes, and version sets.

Not here: the data that is written (`ports.mirror_writes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from lockstep.pipeline.values.table import TableName

REPLAY: Final = "replay"
"""The step of a write that corrects a mirror after a replay. It adds no batch to the mirror."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A write to one mirror, recorded before it is tried.

    It merges the captured batches from `first_batch` to `last_batch`, which never change.
    `txn_version` is unique per application id and ascends. The table has no other write until this
    one is settled. `copies`: the settled write whose version of a mirror is copied first.
    """

    id: int
    table: TableName
    app_id: str
    txn_version: int
    first_batch: int
    last_batch: int
    step: str
    copies: int | None = None


@dataclass(frozen=True, slots=True)
class SettledWrite:
    """An intent whose commit was made, as `delta_version`, and read back at `settled_at`. `reason`:
    why it was written the way it was, or None if unknown."""

    intent: Intent
    delta_version: int
    intended_at: datetime
    settled_at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class MirrorVersion:
    """A version of a mirror with all changes up to the batch `last_batch`. `write`: the settled
    write that made it, or None if this ledger did not write it. `mirror`: its folder; `table_id`:
    the id of its Delta table."""

    write: int | None
    table: TableName
    mirror: str
    delta_version: int
    last_batch: int
    table_id: str | None = None

    def __str__(self) -> str:
        return f"version {self.delta_version} of {self.mirror}"


@dataclass(frozen=True, slots=True)
class NewestWrites:
    """The newest settled write of an application id, or None, and the highest transaction version
    that was ever intended for it, or 0."""

    settled: SettledWrite | None
    intended: int


@dataclass(frozen=True, slots=True)
class VersionSetEntry:
    """The version of a mirror (a path in the lake) that shows its table as of a batch.

    `table_id`: the `metaData.id` of the Delta table, because the same version of another table in
    that folder would show something else. None if it is unknown.
    """

    table: TableName
    mirror: str
    delta_version: int
    table_id: str | None = None


class Missing(StrEnum):
    """Why a table of the source cannot be read as of a batch."""

    TOGETHER = "together"
    """One write merged its changes of this batch and of a later one."""
    LATER = "later"
    """It was resumed by a later batch, which was captured before this one was merged."""
    READING = "reading"
    """Its rows are still being read from the source."""
    STOPPED = "stopped"
    BEHIND = "behind"
    """It is followed again, but its mirror lacks batches that the others have."""
    UNWRITTEN = "unwritten"
    """Nothing of it was merged yet."""


@dataclass(frozen=True, slots=True)
class MissingTable:
    """A table that a version set lacks. `together`: the batch whose set has it, for TOGETHER."""

    table: TableName
    why: Missing
    together: int | None = None


@dataclass(frozen=True, slots=True)
class VersionSet:
    """The versions that together show the source as of the end of an acknowledged batch: per table
    the newest settled write up to it. `missing`: tables of the source that cannot be read so. Both
    are sorted by name, and empty if the batch is not acknowledged."""

    shown: list[VersionSetEntry]
    missing: list[MissingTable]
