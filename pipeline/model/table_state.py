"""Captured tables: the state of each, what happens to it, what a person orders.

Not here: its structures (`schema.history`), writes to its mirror (`pipeline.values.intent`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.table import TableName


class TableCondition(StrEnum):
    """Followed tables are captured, and merged unless their rows are still being read; what was
    captured of dropped ones is still merged."""

    FOLLOWING = "following"
    STOPPED = "stopped"
    """Nothing of it is captured or merged until it starts again."""
    DROPPED = "dropped"
    """The table was dropped at the source; one that is created under its name is followed again."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """How far a table was captured: up to `at`, a place of the log that batch `batch` read
    or ended at. Reading on from there catches it up."""

    batch: int
    at: Coordinates


@dataclass(frozen=True, slots=True)
class StoppedTable:
    """Why a table was stopped: one sentence, the place in the log, the cure in words, what the
    table lacks besides the log, and who stopped it.

    `at`: the exact place that a capture stopped the table at; the capture's start without one.
    Outside a capture the table stopped where the captures are.
    """

    json_keys: ClassVar = ("table", "reason", "hint", "position", "by")

    table: TableName
    reason: str
    hint: str
    position: str
    at: Coordinates | None = None
    need: Need | None = None
    by: StoppedBy = StoppedBy.SYSTEM

    @classmethod
    def of(
        cls, table: TableName, error: TableError, position: str, at: Coordinates | None = None
    ) -> StoppedTable:
        return cls(table, error.reason, error.hint, position, at, error.need, error.by)

    @property
    def by_itself(self) -> bool:
        """Whether the next run starts the table without a person's word."""
        return self.by is StoppedBy.RUN


@dataclass(frozen=True, slots=True)
class TableState:
    """A captured table as the ledger knows it.

    `generation` counts the lives of its lake tables (part of every application id);
    `changelog_generation` those of the changelog within, and `mirror_generation` those of the
    mirror, which may be lost. `mirror` and `changelog` are paths relative to the lake's folder.
    `mirror_version`: the schema version that the mirror shows, None before its first write; only
    settled writes move it, and a new generation begins without one. `adopted`: the Delta version
    that the mirror had when a ledger that was made from the lake continued it, in this generation.

    `stopped_by`, `reason`, `hint` and `position`: only of a stopped table. `stopped`: how far a
    stopped or dropped table was captured; None if nothing was. `need`: what it lacks besides the
    log; ROWS of a followed table whose rows are being read from the source. `behind`: the oldest
    batch that the mirror lacks although the others went on; once the table is followed again, it
    is pending from there.
    """

    table: TableName
    condition: TableCondition
    generation: int
    mirror: str
    changelog: str
    reason: str | None = None
    hint: str | None = None
    position: str | None = None
    stopped_by: StoppedBy | None = None
    mirror_version: int | None = None
    changelog_generation: int = 1
    stopped: Stopped | None = None
    behind: int | None = None
    adopted: int | None = None
    need: Need | None = None
    mirror_generation: int = 1

    @property
    def loading(self) -> bool:
        """Whether it is followed and its rows are being read from the source; what the log has
        of it meanwhile is not merged before them."""
        return self.condition is TableCondition.FOLLOWING and self.need is not None

    @property
    def complete(self) -> bool:
        """Whether it is followed and lacks nothing but what the log has."""
        return self.condition is TableCondition.FOLLOWING and self.need is None

    @property
    def has_stopped(self) -> bool:
        return self.condition is TableCondition.STOPPED

    def started(self, condition: TableCondition = TableCondition.FOLLOWING) -> TableState:
        """Return the state in which nothing is left of what stopped it, or of what it lacked."""
        going = replace(self, condition=condition, stopped_by=None, reason=None, hint=None)
        return replace(going, position=None, stopped=None, need=None)

    @property
    def mirror_ended(self) -> bool:
        """Whether the table is gone, and its mirror with it."""
        ended = self.generation > 1 and self.mirror_version is None
        return ended and self.condition is TableCondition.DROPPED

    @property
    def place(self) -> str:
        """Where in the log it was stopped or dropped, for people; empty while it is followed."""
        return self.position or ("" if self.stopped is None else str(self.stopped.at))

    @property
    def in_words(self) -> str:
        """The state, as people read it."""
        if self.stopped_by is not None:
            return f"stopped by {STOPPED_BY[self.stopped_by]}"
        return "following, reading rows" if self.loading else self.condition.value


STOPPED_BY: Final = {
    StoppedBy.RUN: "the last run",
    StoppedBy.SYSTEM: "Lockstep",
    StoppedBy.PERSON: "a person",
}


@dataclass(frozen=True, slots=True)
class Extent:
    """How much of its table a mirror can have: only rows that changed after `begins`, because the
    table already had rows that are not in the log; None for all of it.

    `empty`: the table had no row at this place, or at one before it: a mirror that was read up to
    there has all of it.
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
    """A mirror that a ledger made from the lake continues: from this generation on it is
    `mirror`, found at Delta version `delta_version` and showing schema version `shows`. `before`:
    the table's state until then."""

    table: TableName
    generation: int
    mirror: str
    delta_version: int
    shows: int
    before: TableState

    def adopted(self) -> TableState:
        """Return the table's state after a batch that only takes over its mirror and changelog."""
        return replace(
            self.before,
            generation=self.generation,
            mirror=self.mirror,
            mirror_version=self.shows,
            adopted=self.delta_version,
        )


class OrderKind(StrEnum):
    """What a person orders of a table."""

    PAUSE = "pause"
    """any → stopped, at once; it withdraws an open order."""
    RESUME = "resume"
    """stopped → following, by the capture that catches the table up."""
    RELOAD = "reload"
    """following → stopped, at once; stopped → following, by the capture after which its mirror is
    written again."""


class Supplier(StrEnum):
    """Where the rows of a mirror come from that is written again."""

    CHANGELOG = "changelog"
    SOURCE = "source"
    LOG = "log"
    """Of a table that is not in the lake yet: the changes that the log has, then the source."""


@dataclass(frozen=True, slots=True)
class TableOrder:
    """A person's order about one table, or a run's for a table that a run stopped. It is open until
    a batch that is not abandoned carries it out.

    `stopped`: where catching up begins; None if nothing was captured before the table stopped.
    `schema`: the given structure that the table has from there on, and `renames` the old and the
    new names of columns. `supplier`: of a reload; None for the changelog if it is complete, else
    the source. A table's newest order counts; a pause is never open."""

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
    """Kinds of events between a table's changes."""

    CREATED = "created"
    """It is new and empty, whatever the mirror has under its name."""
    CHANGED = "changed"
    """Its structure is `version` from here on."""
    TRUNCATED = "truncated"
    DROPPED = "dropped"
    COPIED = "copied"
    """It has the rows that another table had until a RENAME."""
    REREAD = "reread"
    """Rows that the log does not have were read from the source: see the batch's snapshots."""
    REFRESHED = "refreshed"
    """Some of its rows were read from the source; its changelog has them, marked as derived."""
    REBUILT = "rebuilt"
    """Its mirror is written again, from its changelog, which may begin with an earlier version of
    the mirror."""


@dataclass(frozen=True, slots=True)
class TableEvent:
    """An event after all changes of a table with `_sequence` <= `sequence`.

    `version`: the table's schema version from here on. `place`: the end of the statement.
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
    """A table's rows of one consistent read, in durable files.

    `version`: the schema version of the rows. Changes with `_sequence` > `low_sequence` are
    after the read's low watermark: they win over its rows. `columns`: those that were read
    besides the key, as `version` names them; None for all, which have a REREAD.
    """

    table: TableName
    version: int
    low_sequence: int
    files: tuple[SegmentFile, ...]
    columns: tuple[str, ...] | None = None


def paused(table: TableName, order: str, author: str) -> tuple[str, str]:
    """Return reason and hint of a table that a person paused; `order` is the person's reason."""
    why = f": {order}" if order else ""
    return f"{author} paused it{why}", f"`lockstep resume {table}` brings it back"


def reloading(table: TableName, order: str, author: str) -> tuple[str, str]:
    """Return the same of a table that stopped only to have its mirror written again."""
    return (
        f"{author} has it reloaded: {order}",
        f"the next run reloads it; `lockstep resume {table}` takes that back",
    )
