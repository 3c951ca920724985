"""Captured tables: the state of each, what happens to it, what a person orders.

Not here: its structures (`schema.history`), writes to its mirror (`pipeline.intent`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from pipeline.errors import Remedy, TableError
from pipeline.position import Coordinates
from pipeline.schema.model import TableSchema
from pipeline.segment import SegmentFile
from pipeline.table import TableName


class TableCondition(StrEnum):
    """Active and loading tables are captured; active and dropped ones are merged."""

    ACTIVE = "active"
    LOADING = "loading"
    """Its rows are read from the source; what the log has of it meanwhile waits for them."""
    QUARANTINED = "quarantined"
    """Quarantined by the system."""
    PAUSED = "paused"
    """Quarantined by a person."""
    DROPPED = "dropped"
    """The source's table is gone; one that is made anew under its name is active again."""


GOING: Final = (TableCondition.ACTIVE, TableCondition.LOADING, TableCondition.DROPPED)
"""What may be quarantined: the others are."""

STOPPED: Final = (TableCondition.QUARANTINED, TableCondition.PAUSED)
"""What nothing is captured of, and nothing merged, until it comes back."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """How far a table was captured: up to `at`, a place of the log that batch `batch` read
    or ended at. Reading on from there catches it up."""

    batch: int
    at: Coordinates


@dataclass(frozen=True, slots=True)
class Quarantine:
    """Why a table was quarantined: one sentence, the place in the log, the cure in words and
    as a value.

    `at`: the exact place that a capture stopped the table at; its start without one.
    Outside a capture the table stopped where the captures are.
    """

    json_keys: ClassVar = ("table", "reason", "hint", "position")

    table: TableName
    reason: str
    hint: str
    position: str
    at: Coordinates | None = None
    remedy: Remedy = Remedy.CATCH_UP

    @classmethod
    def of(
        cls, table: TableName, error: TableError, position: str, at: Coordinates | None = None
    ) -> Quarantine:
        return cls(table, error.reason, error.hint, position, at, error.remedy)


@dataclass(frozen=True, slots=True)
class TableState:
    """A captured table as the ledger knows it.

    `generation` counts the lives of its lake tables (part of every application id);
    `changelog_generation` those of the changelog within, and `mirror_generation` those of the
    mirror, which is lost at times. `mirror` and `changelog` are paths
    relative to the lake's folder. `mirror_version`: the schema version that the mirror
    shows, None before its first write; only settled writes move it, and a new generation
    begins without one. `stopped`: where it was quarantined, paused or dropped (a capture that
    tells no place: at its end); None where it is active, and where it was quarantined before
    Lockstep kept this. `behind`: the oldest
    batch that the mirror lacks although the others have gone on; once the table is active
    again it is pending from there. `adopted`: the Delta version that the mirror had when a ledger
    that was made from the lake went on with it, in this generation; else None. `remedy`: of a table
    that is quarantined.
    """

    table: TableName
    condition: TableCondition
    generation: int
    mirror: str
    changelog: str
    reason: str | None = None
    hint: str | None = None
    position: str | None = None
    mirror_version: int | None = None
    changelog_generation: int = 1
    stopped: Stopped | None = None
    behind: int | None = None
    adopted: int | None = None
    remedy: Remedy | None = None
    mirror_generation: int = 1

    @property
    def mirror_ended(self) -> bool:
        """Whether the table is gone, and its mirror with it."""
        ended = self.generation > 1 and self.mirror_version is None
        return ended and self.condition is TableCondition.DROPPED


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of its table a mirror can have: what was changed behind `begins`, because rows
    were there already that the log does not tell of; None for all of it.

    `empty`: a place, or one before it, at which the table was seen without a row: whoever
    reads to there has all of it.
    """

    json_keys: ClassVar = ("table", "begins", "hint")

    table: TableName
    begins: Coordinates | None
    empty: Coordinates | None = None

    @property
    def sentence(self) -> str:
        return f"partial: begins at {self.begins}, and older rows are missing unless they changed"

    @property
    def hint(self) -> str:
        return (
            f"`lockstep verify {self.table}` shows whether any are missing; `lockstep reload "
            f"{self.table} --reason …` reads them from the source"
        )


@dataclass(frozen=True, slots=True)
class Handover:
    """A mirror that a ledger made from the lake goes on with: from this generation on it is
    `mirror`, found at Delta version `delta_version` and showing schema version `shows`. `before`:
    the table's state until then."""

    table: TableName
    generation: int
    mirror: str
    delta_version: int
    shows: int
    before: TableState

    def adopted(self) -> TableState:
        """The table's state behind a batch that does nothing but take over its mirror and its
        changelog as they are."""
        return replace(
            self.before,
            generation=self.generation,
            mirror=self.mirror,
            mirror_version=self.shows,
            adopted=self.delta_version,
        )


class OrderKind(StrEnum):
    """What a person says of a table."""

    PAUSE = "pause"
    """any → paused, at once; an order that is open then is none any more."""
    RESUME = "resume"
    """paused, quarantined → active, by the capture that catches the table up."""
    RELOAD = "reload"
    """active → paused, at once; paused, quarantined → active, by the capture after which its
    mirror is written again."""


class Supplier(StrEnum):
    """Where the rows of a mirror come from that is written again."""

    CHANGELOG = "changelog"
    SOURCE = "source"
    LOG = "log"
    """Of a table that is not in the lake yet: the changes that the log has, then the source."""


@dataclass(frozen=True, slots=True)
class TableOrder:
    """A person's order about one table; open until a batch that is not abandoned carried
    it out.

    `stopped`: where to begin catching up; None if nothing was captured before it stopped.
    `schema`: the structure the table has from there on, given with it, and `renames` which
    of its columns were called what before. `supplier`: of a reload; None for the changelog if it is
    complete, else the source. A table's newest order counts; a pause is never open.
    """

    id: int
    table: TableName
    kind: OrderKind
    author: str
    reason: str
    ordered_at: datetime
    stopped: Stopped | None
    schema: TableSchema | None = None
    renames: tuple[tuple[str, str], ...] = ()
    supplier: Supplier | None = None


class TableEventKind(StrEnum):
    """What happens to a table between its changes."""

    CREATED = "created"
    """It is new, and empty, whatever the mirror held under its name."""
    CHANGED = "changed"
    """Its structure is `version` from here on."""
    TRUNCATED = "truncated"
    DROPPED = "dropped"
    COPIED = "copied"
    """It has the rows that another table had before a RENAME gave them to it."""
    REREAD = "reread"
    """What the log cannot tell was read from the source: see the batch's snapshots."""
    REFRESHED = "refreshed"
    """Some of its rows were read from the source: its changelog has them, marked as derived."""
    REBUILT = "rebuilt"
    """Its mirror is written again, from its changelog, which may begin with an earlier version of
    the mirror."""


@dataclass(frozen=True, slots=True)
class TableEvent:
    """Something that happens to a table behind all changes with `_sequence` <= `sequence`.

    `version`: the table's schema version from here on. `place`: behind the statement.
    `reason`: a sentence, for COPIED, REREAD, REFRESHED and REBUILT. `origin`: for COPIED, the table
    whose rows they were, as of that change and before that place; for REBUILT, the table itself if
    it begins with an earlier version of its mirror.
    """

    table: TableName
    kind: TableEventKind
    sequence: int
    version: int
    place: Coordinates
    reason: str | None = None
    origin: TableName | None = None


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A table's rows as one consistent read found them, in durable files.

    `version`: the schema version of the rows. Changes with `_sequence` > `low_sequence` lie
    behind the read's low watermark: they win over its rows. `columns`: those that were read
    beside the key, as `version` names them; None where all were, which a REREAD tells of.
    """

    table: TableName
    version: int
    low_sequence: int
    files: tuple[SegmentFile, ...]
    columns: tuple[str, ...] | None = None


def paused(table: TableName, order: str, author: str) -> tuple[str, str]:
    """Reason and hint of a table that a person paused; `order` is the person's reason."""
    why = f": {order}" if order else ""
    return f"{author} paused it{why}", f"`lockstep resume {table}` brings it back"


def reloading(table: TableName, order: str, author: str) -> tuple[str, str]:
    """The same of a table that stopped only to have its mirror written anew."""
    return (
        f"{author} has it reloaded: {order}",
        f"the next run reloads it; `lockstep resume {table}` takes that back",
    )
