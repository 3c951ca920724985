"""Values about captured tables: their states, the events between their changes, and
persons' orders about them.

A table has a changelog (a Delta table with all its changes) and a mirror (one with its
current rows). Not here: its structures (`schema.history`), writes to its mirror
(`pipeline.values.intent`).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, Final

from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import SegmentFile
from lockstep.pipeline.values.table import TableName

_STARTING_COMMAND: Final = re.compile(r"`lockstep (?:resume|reload) ")


class TableCondition(StrEnum):
    """The condition of a captured table."""

    FOLLOWING = "following"
    """Its changes are captured, and merged once all its rows have been read."""
    STOPPED = "stopped"
    """Nothing of it is captured or merged until it starts again."""
    DROPPED = "dropped"
    """It was dropped at the source. Its captured changes are still merged; a table that
    is created under its name is followed."""


@dataclass(frozen=True, slots=True)
class StopPlace:
    """The place up to which a table was captured: `at`, within or at the end of the
    batch `batch`. A table catches up by reading on from there."""

    batch: int
    at: Coordinates


@dataclass(frozen=True, slots=True)
class StoppedTable:
    """A table that was stopped, and why. `reason`: one sentence; `hint`: the cure in
    words; `position`: the place in the log, for people; `need`: the data that the table
    lacks, apart from changes that the log has; `by`: who stopped it.

    `at`: the exact place at which a capture stopped the table. If it is None, the table
    stopped at the start of the capture or, outside a capture, at the end of the newest
    one.
    """

    json_keys: ClassVar = ("table", "reason", "hint", "position as place", "by as stopped_by")

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
        """Return the table, stopped by the error. A hint for a person ends with the
        command that starts the table again."""
        hint = error.hint
        if error.by is StoppedBy.SYSTEM and not _STARTING_COMMAND.search(hint):
            hint += f"; then `lockstep resume {table.word} --reason …` brings it back"
        return cls(table, error.reason, hint, position, at, error.need, error.by)

    @property
    def starts_by_itself(self) -> bool:
        """True if the next run starts the table without a person's order."""
        return self.by is StoppedBy.RUN


@dataclass(frozen=True, slots=True)
class TableState:
    """A captured table as the ledger knows it.

    `generation` rises when changelog and mirror begin again: lake and ledger disagree,
    the mirror of a dropped table was removed, or another ledger takes over.
    `changelog_generation` rises when a structure or setting does not fit the changelog,
    `mirror_generation` when the mirror is replaced. All three are part of application
    ids, so that writes are numbered from one again. `mirror` and `changelog` are paths
    relative to the lake's folder. `mirror_schema_version`: the schema version that the
    mirror shows, or None before the first settled write of a generation.
    `adopted_version`: set if this ledger was made from the lake (`lockstep recover`)
    and continued the mirror in this generation: the Delta version that the mirror had
    then.

    `stopped_by`, `reason`, `hint` and `position` are only set for a stopped table.
    `stopped`: the place up to which a stopped or dropped table was captured; None if it
    was not captured. `need`: the data that it lacks, apart from changes that the log
    has; ROWS for a followed table whose rows are being read from the source.
    `missing_since`: the oldest batch that the mirror lacks although it was captured;
    once the table is followed again, merging continues there.
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
    mirror_schema_version: int | None = None
    changelog_generation: int = 1
    stopped: StopPlace | None = None
    missing_since: int | None = None
    adopted_version: int | None = None
    need: Need | None = None
    mirror_generation: int = 1

    @property
    def is_loading(self) -> bool:
        """True if the table is followed and its rows are being read from the source.
        Changes that are captured meanwhile are merged after these rows."""
        return self.condition is TableCondition.FOLLOWING and self.need is not None

    @property
    def is_complete(self) -> bool:
        """True if the table is followed and lacks nothing except changes in the log."""
        return self.condition is TableCondition.FOLLOWING and self.need is None

    @property
    def has_stopped(self) -> bool:
        return self.condition is TableCondition.STOPPED

    def without_stop(self, condition: TableCondition = TableCondition.FOLLOWING) -> TableState:
        """Return the state with this condition, and without what a stop set: reason,
        hint, places and need."""
        return replace(
            self,
            condition=condition,
            stopped_by=None,
            reason=None,
            hint=None,
            position=None,
            stopped=None,
            need=None,
        )

    @property
    def is_mirror_removed(self) -> bool:
        """True if the table was dropped at the source and its mirror is removed."""
        has_no_mirror = self.generation > 1 and self.mirror_schema_version is None
        return has_no_mirror and self.condition is TableCondition.DROPPED

    @property
    def place_text(self) -> str:
        """The place of the log where the table was stopped or dropped, for people;
        empty while it is followed."""
        return self.position or ("" if self.stopped is None else str(self.stopped.at))

    @property
    def in_words(self) -> str:
        """The state in words for people."""
        if self.stopped_by is not None:
            return f"stopped by {STOPPED_BY_WORDS[self.stopped_by]}"
        return "following, reading rows" if self.is_loading else self.condition.value


STOPPED_BY_WORDS: Final = {
    StoppedBy.RUN: "the last run",
    StoppedBy.SYSTEM: "Lockstep",
    StoppedBy.PERSON: "a person",
}


@dataclass(frozen=True, slots=True)
class Extent:
    """The part of its table that a mirror can have. `begins`: the mirror only has rows
    that changed after this place, because the table already had rows that are not in
    the log; None if the mirror has all rows.

    `empty_at`: the table had no row at this place of the log or at an earlier one,
    after `begins`. So a mirror that has all changes up to this place has all rows.
    """

    json_keys: ClassVar = ("table", "begins", "hint")

    table: TableName
    begins: Coordinates | None
    empty_at: Coordinates | None = None

    @property
    def sentence(self) -> str:
        return f"partial: begins at {self.begins}, and older rows are missing unless they changed"

    @property
    def hint(self) -> str:
        return (
            f"`lockstep verify {self.table.word}` shows whether any are missing; `lockstep reload "
            f"{self.table.word} --reason …` reads them from the source"
        )


@dataclass(frozen=True, slots=True)
class Handover:
    """A mirror that a ledger takes over after the ledger was made from the lake
    (`lockstep recover`). `generation`: the table's generation from now on; `mirror`:
    the mirror's path; `delta_version`: the version at which it was found;
    `shown_version`: the schema version that it shows; `state_before`: the table's state
    before the takeover."""

    table: TableName
    generation: int
    mirror: str
    delta_version: int
    shown_version: int
    state_before: TableState

    def adopted_state(self) -> TableState:
        """Return the table's state after a batch that only takes over its mirror and
        changelog."""
        return replace(
            self.state_before,
            generation=self.generation,
            mirror=self.mirror,
            mirror_schema_version=self.shown_version,
            adopted_version=self.delta_version,
        )


class OrderKind(StrEnum):
    """Kinds of orders about a table."""

    PAUSE = "pause"
    """any → stopped, at once; it withdraws an open order."""
    RESUME = "resume"
    """stopped → following, by the capture that catches the table up."""
    RELOAD = "reload"
    """following → stopped, at once; stopped → following, by the capture after which its
    mirror is written again."""


class Supplier(StrEnum):
    """The origin of the rows with which a mirror is written again."""

    CHANGELOG = "changelog"
    SOURCE = "source"
    LOG = "log"
    """For a table that is not in the lake yet: first the changes that the log still
    has, then the source."""


@dataclass(frozen=True, slots=True)
class TableOrder:
    """A person's order about one table, or a run's for a table that a run stopped. It
    is open until a batch that is not abandoned carries it out.

    `stopped`: the place from which the table catches up; None if nothing was captured
    before it stopped. `schema`: the structure from there on, if the person gave it;
    `renames`: the old and the new names of its columns. `supplier`: for a reload, the
    origin of the rows; None means the changelog if it is complete, else the source. A
    newer order replaces an open one; a pause is carried out at once, so it is never
    open."""

    id: int
    table: TableName
    kind: OrderKind
    author: str
    reason: str
    ordered_at: datetime
    stopped: StopPlace | None
    schema: TableSchema | None = None
    renames: tuple[tuple[str, str], ...] = ()
    supplier: Supplier | None = None


class TableEventKind(StrEnum):
    """Kinds of events between a table's changes."""

    CREATED = "created"
    """The table is new and empty; rows that a mirror has under its name are an earlier
    table's."""
    CHANGED = "changed"
    """Its structure is `version` from here on."""
    TRUNCATED = "truncated"
    DROPPED = "dropped"
    COPIED = "copied"
    """It has the rows that another table had until a RENAME."""
    REREAD = "reread"
    """Rows that the log does not have were read from the source: see the batch's
    snapshots."""
    REFRESHED = "refreshed"
    """Some of its rows were read from the source; its changelog has them, marked as
    derived."""
    REBUILT = "rebuilt"
    """Its mirror is written again, from its changelog, which may begin with an earlier
    version of the mirror."""


@dataclass(frozen=True, slots=True)
class TableEvent:
    """An event that comes after all changes of a table with `_sequence` <= `sequence`.

    `version`: the table's schema version from the event on. `place`: the end of the
    statement in the log. `reason`: a sentence, for COPIED, REREAD, REFRESHED and
    REBUILT. `origin`: for COPIED, the table that had the rows before that place; for
    REBUILT, the table itself if the new mirror begins with an earlier version of the
    old one.
    """

    table: TableName
    kind: TableEventKind
    sequence: int
    version: int
    place: Coordinates
    reason: str | None = None
    origin: TableName | None = None


@dataclass(frozen=True, slots=True)
class SnapshotFiles:
    """A table's rows of one consistent read, in durable files.

    `version`: the schema version of the rows. Changes with `_sequence` > `low_sequence`
    were logged after the read's low watermark, so they replace its rows. `columns`: the
    names of the columns that were read besides the key, after which the table gets a
    REFRESHED event; None if all columns were read, after which it gets a REREAD event.
    """

    table: TableName
    version: int
    low_sequence: int
    files: tuple[SegmentFile, ...]
    columns: tuple[str, ...] | None = None


def pause_texts(table: TableName, reason: str, author: str) -> tuple[str, str]:
    """Return the stopped table's reason and hint for a table that a person paused.
    `reason`: the person's own reason."""
    clause = f": {reason}" if reason else ""
    return f"{author} paused it{clause}", f"`lockstep resume {table.word}` brings it back"


def reload_texts(table: TableName, reason: str, author: str) -> tuple[str, str]:
    """Return the stopped table's reason and hint for a table that stopped only until
    its mirror is written again. `reason`: the person's own reason."""
    return (
        f"{author} has it reloaded: {reason}",
        f"the next run reloads it; `lockstep resume {table.word}` takes that back",
    )
