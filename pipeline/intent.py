"""Writes to mirrors, as the ledger keeps them: intended, settled, read together.

Not here: what is written (`ports.mirror_writes`).
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Final

from pipeline.table import TableName

REPLAY: Final = "replay"
"""The step of a write that heals a mirror: it brings nothing that the mirror lacks by the books."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A write to one mirror that the ledger committed to before it was tried.

    `batches` are the captured batches it merges, never regrouped; `txn_version` is
    unique per application id and ascends. Until settled, it is the table's next write. `copies`:
    the settled write of another table's mirror whose version has rows that this one begins with.
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
    """A settled intent: the Delta version that its commit made, when it was intended and when
    the commit was read back. `reason`: why it was written the way it was; None where that is not
    known."""

    intent: Intent
    delta_version: int
    intended_at: datetime
    settled_at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class PinnedVersion:
    """A version of a table's mirror that another one's rows are copied from: what the settled write
    `write` made, with all changes up to the batch `last_batch`. `mirror`: its folder; `table_id`:
    the id of its Delta table."""

    write: int
    table: TableName
    mirror: str
    delta_version: int
    last_batch: int
    table_id: str | None = None


@dataclass(frozen=True, slots=True)
class NewestWrites:
    """Of an application id: the newest write that was settled, None before the first, and the
    highest transaction that was ever intended, 0 for none."""

    settled: SettledWrite | None
    intended: int


@dataclass(frozen=True, slots=True)
class VersionSetEntry:
    """Read `mirror` (a path in the lake) at `delta_version` for the batch's position.

    `table_id`: the `metaData.id` of the Delta table that was written: a version of another one
    in that folder shows something else. None if the lake did not tell it.
    """

    table: TableName
    mirror: str
    delta_version: int
    table_id: str | None = None


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """The first acknowledged batch whose end a version shows; so it does until the next one's."""

    batch: int
    entry: VersionSetEntry


class Missing(StrEnum):
    """Why a table of the source cannot be read as of a batch."""

    TOGETHER = "together"
    """Its changes were merged together with those of a later batch."""
    LATER = "later"
    """It came back with a later batch, which was captured before this one was done."""
    LOADING = "loading"
    QUARANTINED = "quarantined"
    PAUSED = "paused"
    BEHIND = "behind"
    """It is active again, and its mirror lacks batches that the others have."""
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
    """What to read together to see the source as it was at an acknowledged batch's end: of each
    table that can be read so, the newest settled write up to it; and the tables that cannot, but
    for those that the source did not have any more. Both by name; nothing for any other batch."""

    shown: list[VersionSetEntry]
    missing: list[MissingTable]
