"""The changes that the tables of one capture go through: statements alter them, they join the
capture at the places of the log for which they wait, and rows that cannot be decoded stop them.

The rows that are read from the source are joined with the log while the log is read. A
table that comes back through the log is captured from the place on where it stopped;
rows and statements before that place were captured earlier. A structure that a person
gave holds from that place on. If a statement begins exactly there, it is the one that
could not be followed, and the structure holds after it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.ring import Integers, TransactionGroup
from lockstep.pipeline.mirror.merging import ChangelogOrigin
from lockstep.pipeline.model.load import LoadFollowed, LoadJoined
from lockstep.pipeline.model.table_state import (
    SnapshotPart,
    StoppedTable,
    TableEventKind,
    TableOrder,
)
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.dump.captured_tables import CapturedTables
from lockstep.pipeline.run.dump.cascade_watch import UnloggedLoss
from lockstep.pipeline.run.dump.renames import DecideCopies, with_copies
from lockstep.pipeline.run.dump.table_extents import PartialTables
from lockstep.pipeline.run.stop_errors import (
    Reread,
    engine_hint,
    not_readable,
    read_by_next_run,
    resume_hint,
    versioning_hint,
)
from lockstep.pipeline.schema.consequences import (
    ENGINE_REFUSED,
    KEEPS_ROWS,
    NEW_COLUMN_UNKNOWN,
    NOT_FOLLOWED,
    RENAMED,
    VERSIONED,
    Action,
    Consequence,
    PoliciesOf,
    consequences,
)
from lockstep.pipeline.schema.effects import (
    FollowedStatement,
    LoggedStatement,
    UnknownTable,
    UnloggedChange,
)
from lockstep.pipeline.schema.history import History, Knowledge, SchemaVersion
from lockstep.pipeline.schema.model import TableSchema, schema_fingerprint
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.statements.changes import EXCHANGE
from lockstep.pipeline.schema.table_effects import columns_from, may_rename_columns, why_unclear
from lockstep.pipeline.schema.tracker import ColumnsFrom, SchemaTracker
from lockstep.pipeline.shape.shaping import Shaping, consent_hint, redacted
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.supply.plan import FromMirror
from lockstep.pipeline.values.errors import Need, StructureUnknown, TableError, ValueLeftOut
from lockstep.pipeline.values.policies import ForeignKeys
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class ReadPassed:
    """A table that is read from the source, at a place of the log for which it waited.

    `version`: the version of the structure that was read; if only columns were read, of
    the structure that the log has here; None if the table was dropped or could not be
    read. `begins`: the table's log counts from here on, which means that its changes
    are captured. `whole`: all rows were read as they were at this place."""

    reread: Reread
    version: SchemaVersion | None
    begins: bool = True
    whole: bool = True


class Joining:
    """The tables of `rereads` that wait for a place in the log. The rows of a load are
    read in chunks between a low and a high watermark: the table's log counts from the
    low on, and the load is complete at the high."""

    def __init__(self, rereads: Sequence[Reread], structures: SchemaTracker) -> None:
        followed = [
            reread for reread in rereads if reread.load is not None and reread.load.followed
        ]
        self._lows = {reread.table: reread for reread in rereads if reread not in followed}
        self._highs = {reread.table: reread for reread in followed if reread.complete}
        self._partial = {reread.table for reread in followed}
        self._structures = structures
        self.snapshots: list[SnapshotPart] = []
        self.followed: list[LoadFollowed] = []
        self.joined: list[LoadJoined] = []
        self.loaded: list[LoadProgress] = []
        """The progress of the loads that ended."""
        self._at: Coordinates | None = None

    def waits(self, table: TableName) -> bool:
        """Return whether the table's log does not count yet."""
        return table in self._lows and self._lows[table].columns is None

    def is_read(self, table: TableName) -> bool:
        """Return whether the table's rows are being read in chunks at this place of the log."""
        return table in self._partial

    def passed(self, at: Coordinates | None) -> Iterator[ReadPassed]:
        """Yield the tables whose places are at or before `at` (None: the log ended)."""
        for table, reread in list(self._lows.items()):
            if at is None or reread.low <= at:
                del self._lows[table]
                yield self._low(reread)
        # A high is passed only once all changes before it are numbered: so far these
        # are the changes up to the `at` of the previous call.
        for table, reread in list(self._highs.items()):
            if at is None or (self._at is not None and reread.high <= self._at):
                del self._highs[table]
                self._partial.discard(table)
                yield ReadPassed(reread, self._structures.version(table), begins=False)
        self._at = at

    def _low(self, reread: Reread) -> ReadPassed:
        if reread.columns is not None:
            return ReadPassed(reread, self._structures.version(reread.table))
        if reread.error is not None or reread.schema is None:
            return ReadPassed(reread, None)
        not_shown = self._structures.not_shown(reread.table)
        if not_shown is not None and not_shown.need is Need.CONSENT:
            # The read was ordered before the person knew what the mirror would show.
            return ReadPassed(replace(reread, error=not_shown), None)
        version = self._structures.record_read(reread.schema, reread.low)
        if reread.complete and reread.low == reread.high:
            return ReadPassed(reread, version)
        self._partial.add(reread.table)
        if reread.complete:
            self._highs[reread.table] = reread
        return ReadPassed(reread, version, whole=False)

    def begin(self, reread: Reread, version: int, sequence: int) -> None:
        """Record that the table's log counts after the change `sequence`."""
        if reread.load is not None:
            self.followed.append(LoadFollowed(reread.load.id, reread.table, sequence, version))

    def record(self, reread: Reread, version: int, sequence: int) -> None:
        """Record that the rows that were read come after the change `sequence`."""
        if reread.load is not None:
            self.joined.append(LoadJoined(reread.load.id, reread.table))
            self.loaded.append(reread.load.progress)
        part = SnapshotPart(reread.table, version, sequence, reread.files, reread.columns)
        self.snapshots.append(part)

    def place(self, reread: Reread) -> tuple[int, int]:
        """Return the number of the change that the rows of a load follow, and the
        version of their structure."""
        assert reread.load is not None, "only loads are read in several places"
        followed = reread.load.followed
        if followed is not None:
            return followed.sequence, followed.version
        (begin,) = (begin for begin in self.followed if begin.load == reread.load.id)
        return begin.sequence, begin.version


def events_after(group: TransactionGroup, events: Integers, low: Coordinates) -> Integers:
    """Return the indexes of events whose transactions end after a place."""
    rows = group.transactions[events[:, columns.TRANSACTION]]
    ends = rows[:, columns.END_OFFSET]
    numbers = np.array([file.number for file in group.files])[rows[:, columns.FILE]]
    later = (numbers > low.file.number) | ((numbers == low.file.number) & (ends > low.offset))
    return np.flatnonzero(later)


@dataclass(frozen=True, slots=True)
class ReturningTable:
    """A table that comes back: a person's order, and the place at which the table
    stopped. `version`: the version of its structure there, None if none was recorded."""

    order: TableOrder
    low: Coordinates
    version: SchemaVersion | None = None

    @property
    def table(self) -> TableName:
        return self.order.table


class ReturningTables:
    """The tables of one capture that come back, with the structures that hold where they begin."""

    def __init__(self, comebacks: Sequence[ReturningTable], structures: SchemaTracker) -> None:
        self.lows = {comeback.table: comeback.low for comeback in comebacks}
        self._structures = structures
        self._recorded = [comeback for comeback in comebacks if comeback.version is not None]
        self._waiting = {
            comeback.table: comeback for comeback in comebacks if comeback.order.schema is not None
        }
        self._stopped_by: dict[TableName, Consequence] = {}
        self.doubts: dict[TableName, str] = {}
        """Tables whose earlier rows may have changed in an unknown way, each with the reason; they
        have to be read from the source."""

    def passes(self, table: TableName, logged: LoggedStatement, consequence: Consequence) -> bool:
        """Return whether a statement has no consequence for the table: it was followed before
        the table stopped, or a person gave the structure that the table has after it."""
        low = self.lows.get(table)
        if low is None:
            return False
        is_given = table in self._waiting and logged.begin == low
        if is_given:
            self._stopped_by[table] = consequence
        return logged.begin < low or is_given

    def given_after(
        self, logged: LoggedStatement
    ) -> Iterator[tuple[ReturningTable, SchemaVersion]]:
        """Yield the structures that a person gave and that hold after this statement."""
        for comeback in list(self._waiting.values()):
            if comeback.low == logged.begin:
                yield self._adopted(comeback, logged.end, logged)

    def reached(self, at: Coordinates | None) -> Iterator[tuple[ReturningTable, SchemaVersion]]:
        """Resume recorded versions that hold at `at`; then yield the structures that a person gave
        and that hold before `at` (None: the log ended)."""
        for comeback in self._recorded:
            if comeback.version is not None and (at is None or comeback.low <= at):
                self._structures.resume(comeback.version)
        self._recorded = [
            comeback for comeback in self._recorded if at is not None and at < comeback.low
        ]
        for comeback in list(self._waiting.values()):
            if at is None or comeback.low < at:
                yield self._adopted(comeback, comeback.low)

    def _adopted(
        self, comeback: ReturningTable, at: Coordinates, logged: LoggedStatement | None = None
    ) -> tuple[ReturningTable, SchemaVersion]:
        del self._waiting[comeback.table]
        given, renames = comeback.order.schema, comeback.order.renames
        assert given is not None, "only tables with a structure wait"
        before, renaming, doubt = self._structures.last_known(comeback.table), False, None
        stopped_by = self._stopped_by.get(comeback.table)
        if stopped_by is not None and stopped_by.rule != NOT_FOLLOWED:
            # The statement was understood, so the column names after it are known.
            renames, doubt = (), None if stopped_by.action in KEEPS_ROWS else stopped_by.reason
        elif stopped_by is not None and logged is not None:
            renaming = may_rename_columns(logged.text, logged.context)
        origins = None
        if before is not None:
            doubt = doubt or why_unclear(before, given, renames, renaming=renaming)
            origins = columns_from(before, given, renames)
        if doubt is not None:
            self.doubts[comeback.table] = doubt
        return comeback, self._structures.record_given(given, at, origins)


# -- structures that earlier batches recorded ----------------------------------------------


class RecordedBefore:
    """Finds the version that a batch from `since` on recorded for the same structure at the same
    place. Once a table differs from what was recorded, its later records do not count either."""

    def __init__(self, ledger: Ledger, source: str, since: int) -> None:
        self._ledger, self._source, self._since = ledger, source, since
        self._versions: dict[TableName, list[SchemaVersion]] = {}
        self._differing: set[TableName] = set()

    def __call__(
        self,
        table: TableName,
        since: Coordinates,
        schema: TableSchema | None,
        reason: str | None,
        word: ColumnsFrom | None = None,
    ) -> SchemaVersion | None:
        if table in self._differing:
            return None
        if table not in self._versions:
            self._versions[table] = self._ledger.schema_versions(self._source, table)
        without_schema = Knowledge.DROPPED if reason is None else Knowledge.UNKNOWN
        for version in reversed(self._versions[table]):
            fingerprint = without_schema.value
            if schema is not None:
                fingerprint = schema_fingerprint(redacted(schema, version.hidden))
            same = version.since == since and version.fingerprint == fingerprint
            if version.batch >= self._since and same and word in (None, version.columns_from):
                return version
        self._differing.add(table)
        return None


def history_of(history: History, tables: Mapping[TableName, object]) -> History:
    """Return the part of the history that is about these tables, with its statements numbered
    again from 0."""
    versions = [version for version in history.versions if version.table in tables]
    kept = sorted({version.statement for version in versions if version.statement is not None})
    numbers = {statement: number for number, statement in enumerate(kept)}
    return History(
        tuple(history.statements[number] for number in kept),
        tuple(
            replace(
                version, statement=None if version.statement is None else numbers[version.statement]
            )
            for version in versions
        ),
    )


_EVENTS: Final = {
    Action.CREATE: TableEventKind.CREATED,
    Action.FOLLOW: TableEventKind.CHANGED,
    Action.EMPTY: TableEventKind.TRUNCATED,
    Action.DROP: TableEventKind.DROPPED,
}
_NEEDS_TABLE: Final = (Action.FOLLOW, Action.EMPTY, Action.DROP)
"""Actions that only concern a table that is in the lake, or on its way there."""

_REFUSED: Final = {ENGINE_REFUSED: engine_hint, VERSIONED: versioning_hint}
"""Rules that stop a table and also rule out reading it from the source, each with the
function that returns its hint."""

DROPPED_BEFORE_READ: Final = "it was dropped at the source before it could be read"
"""The reason for a DROPPED event of a table that waited to be read from the source."""

ALTERED: Final = "it was altered while its rows were read from the source"


@dataclass(frozen=True, slots=True)
class CaptureRules:
    """The rules of a capture: the clock, the tables to capture, policies, the callback for a table
    that stops, the source's own reason for a table whose structure is not known, and how the lake
    shows tables."""

    clock: Callable[[], datetime]
    captured: Callable[[TableName], bool]
    policies_of: PoliciesOf
    on_quarantine: Callable[[StoppedTable], None]
    why_unknown: Callable[[TableName, StructureUnknown], TableError] = lambda _, error: error
    shaping: Shaping = field(default_factory=Shaping)


@dataclass(frozen=True, slots=True)
class ResumedTables:
    """Tables that a capture takes up again: `rereads` from the source, `comebacks` from their own
    places of the log on. `completed`: tables whose rows or columns are read from the server after
    the log was captured, so that values which the log lacks do not stop them."""

    rereads: Sequence[Reread] = ()
    comebacks: Sequence[ReturningTable] = ()
    completed: Collection[TableName] = ()


def _same_rows(schema: TableSchema | None, other: TableSchema | None) -> bool:
    return bool(schema and other and row_structure(schema) == row_structure(other))


class FollowedTables:
    """Follows the tables of one capture. `wants_changed` is called when the set of tables whose
    rows are captured has changed."""

    def __init__(
        self,
        tables: CapturedTables,
        structures: SchemaTracker,
        rules: CaptureRules,
        taken_up: ResumedTables,
        *,
        wants_changed: Callable[[], None],
        copies: DecideCopies | None = None,
        extents: PartialTables | None = None,
    ) -> None:
        self._tables = tables
        self._structures = structures
        self._rules = rules
        self._wants_changed = wants_changed
        self._copies = copies
        self._extents = PartialTables() if extents is None else extents
        self._emptied: tuple[int, ...] = ()
        self._completed_later = taken_up.completed
        self.joining = Joining(taken_up.rereads, structures)
        self.returning = ReturningTables(taken_up.comebacks, structures)
        whole = [reread for reread in taken_up.rereads if reread.columns is None]
        self._busy = {reread.table for reread in taken_up.rereads} | self.returning.lows.keys()
        self.lows = {reread.table: reread.low for reread in whole} | self.returning.lows
        """Places from which the log of a table counts, if not from the batch's start."""

    def wanted(self, table: TableName) -> bool:
        return self._rules.captured(table) and self._tables.wanted(table)

    def take_emptied(self) -> tuple[int, ...]:
        """Return the numbers of the marks that statements added since the last call."""
        emptied, self._emptied = self._emptied, ()
        return emptied

    def changed(
        self, logged: LoggedStatement, followed: FollowedStatement
    ) -> Mapping[TableName, Consequence]:
        """Follow a statement that changed structures; return its consequence for each captured
        table."""
        self._extents.followed(followed.effects)
        rules = self._rules
        supplies = {} if self._copies is None else self._copies(followed.effects, self._busy)
        by_table = with_copies(
            consequences(followed, rules.policies_of, logged, rules.shaping.treated), supplies
        )
        actions: dict[TableName, Consequence] = {}
        copied: list[SchemaVersion] = []
        for table, consequence in by_table.items():
            supply = supplies.get(table)
            if consequence.rule == NEW_COLUMN_UNKNOWN and table in self._completed_later:
                consequence = replace(consequence, action=Action.FOLLOW)
            waits = self.joining.waits(table) or self.returning.passes(table, logged, consequence)
            if waits or not self.wanted(table):
                continue
            if self._tables.is_known(table) or consequence.action not in _NEEDS_TABLE:
                actions[table] = consequence
            unknown = any(
                isinstance(effect, UnknownTable) and effect.table == table
                for effect in followed.effects
            )
            not_shown = self._why_not_shown(table, consequence, followed)
            if not_shown is not None:
                self.quarantine(table, logged.begin, not_shown)
            elif isinstance(supply, FromMirror) and consequence.action is Action.COPY:
                copied += self._copy(table, supply.origin, logged, consequence.reason)
            else:
                self._follow(table, consequence, logged, unknown=unknown)
        # The marks of copied tables come after everything else that the statement did.
        for version in copied:
            self._mark(ChangeType.RESNAPSHOT, version, logged)
        for comeback, version in self.returning.given_after(logged):
            self._take_given(comeback, version)
        return actions

    def reach(self, at: Coordinates | None) -> None:
        """Take up the tables that waited for a place before `at` (None: the log ended)."""
        for comeback, given in self.returning.reached(at):
            self._take_given(comeback, given)
        for passed in self.joining.passed(at):
            reread, version = passed.reread, passed.version
            if reread.error is not None:
                self.quarantine(
                    reread.table, reread.low, not_readable(reread.error, reread.columns)
                )
            elif reread.columns is not None:
                self._complete_columns(reread, version)
            elif not passed.begins:
                self._end_load(reread, version)
            elif version is None:
                dropped = self._structures.version(reread.table)
                if dropped is not None:
                    self._tables.record_event(TableEventKind.DROPPED, dropped, DROPPED_BEFORE_READ)
            else:
                self._counts_from(reread, version, whole=passed.whole)

    def begin_load(self, reread: Reread) -> None:
        """Begin to read all rows of a table whose log was captured up to `reread.low`.
        The rows are joined with the changes after that place."""
        version = self._structures.version(reread.table)
        assert version is not None, "its structure is known"
        self._counts_from(reread, version, whole=False)

    def rewrite(self, table: TableName, origin: ChangelogOrigin) -> None:
        """Record that a table's mirror is written again from its changelog, unless the table was
        stopped or dropped meanwhile."""
        version = self._structures.version(table)
        if version is not None and version.schema is not None and self.wanted(table):
            itself = None if origin.base is None else table
            self._tables.record_event(TableEventKind.REBUILT, version, origin.told, itself)
            self._busy.add(table)

    def quarantine(self, table: TableName, at: Coordinates, error: TableError) -> None:
        """Stop the table at `at`. If only the source has its values (`ValueLeftOut`), the next run
        reads it there."""
        if isinstance(error, ValueLeftOut):
            error = read_by_next_run(error.reason)
        elif isinstance(error, StructureUnknown):
            error = self._rules.why_unknown(table, error)
        self._stop(table, at, error)

    def lose(self, table: TableName, at: Coordinates, reason: str) -> None:
        """Note that only the source has the table's rows after `at`: the next run reads them there,
        unless the table is being read from the source at a later place anyway."""
        version, low = self._structures.version(table), self.lows.get(table)
        exists = version is not None and version.knowledge is not Knowledge.DROPPED
        if exists and self.wanted(table) and (low is None or low <= at):
            self._stop(table, at, read_by_next_run(reason))

    def end_at(self, lost: Mapping[TableName, UnloggedLoss]) -> None:
        """Stop the tables in which foreign keys changed rows that are not logged. If
        the `foreign_keys` policy says so, the next run reads them again; otherwise they
        wait for a person."""
        for table, loss in lost.items():
            if not self._tables.wanted(table):
                continue
            if self._rules.policies_of(table).foreign_keys is ForeignKeys.RESNAPSHOT:
                self._stop(table, loss.at, read_by_next_run(loss.reason))
            else:
                error = TableError(loss.reason, hint=resume_hint(table), need=Need.ROWS)
                self.quarantine(table, loss.at, error)

    def _why_not_shown(
        self, table: TableName, consequence: Consequence, followed: FollowedStatement
    ) -> TableError | None:
        """Return why only a person may bring the table back: from here on it may have
        the rows of another table whose settings hide more than its own, and reading it
        would show what those hide."""
        refused = self._structures.not_shown(table)
        if refused is not None or not self._rules.shaping.hides:
            return refused
        why, version = None, self._structures.version(table)
        effects = followed.effects
        exchanged = {
            e.table for e in effects if isinstance(e, UnloggedChange) and e.reason == EXCHANGE
        }
        if table in exchanged and any(map(self._rules.shaping.rules_of, exchanged)):
            others = ", ".join(sorted(map(str, exchanged - {table})))
            why = f"it has rows of {others}, and the settings of one of them hide something"
        elif consequence.rule == RENAMED and version and version.knowledge is Knowledge.UNKNOWN:
            why = f"{consequence.reason}, and it is not known what the settings hid of those rows"
        hint = consent_hint(table)
        return None if why is None else TableError(why, hint=hint, need=Need.CONSENT)

    def _follow(
        self,
        table: TableName,
        consequence: Consequence,
        logged: LoggedStatement,
        *,
        unknown: bool,
    ) -> None:
        """Carry out the consequence of a statement. `unknown`: the table's structure before the
        statement was not known."""
        version, kind = self._structures.version(table), _EVENTS.get(consequence.action)
        quarantined = consequence.action is Action.QUARANTINED
        if quarantined and consequence.rule not in _REFUSED and self.joining.is_read(table):
            # The load may have read the structure from after the statement: read the table again.
            self._stop(table, logged.end, read_by_next_run(consequence.reason))
        elif quarantined:
            hint = _REFUSED.get(consequence.rule, resume_hint)(table)
            kind_of_error = StructureUnknown if unknown else TableError
            self.quarantine(table, logged.begin, kind_of_error(consequence.reason, hint=hint))
        elif consequence.action is Action.REREAD:
            need = Need.COLUMNS if consequence.rule == NEW_COLUMN_UNKNOWN else Need.ROWS
            self._stop(table, logged.end, read_by_next_run(consequence.reason, need))
        elif kind is TableEventKind.CHANGED and self.joining.is_read(table):
            self._stop(table, logged.end, read_by_next_run(ALTERED))
        elif kind is not None and version is not None:
            if consequence.action in _NEEDS_TABLE and not self._tables.is_known(table):
                return
            if (conflict := self._tables.name_conflict(table)) is not None:
                self.quarantine(table, logged.begin, conflict)
                return
            if kind is TableEventKind.TRUNCATED and version.schema is not None:
                try:
                    self._mark(ChangeType.TRUNCATE, version, logged)
                except TableError as error:
                    self.quarantine(table, logged.begin, error)
                    return
            self._tables.record_event(kind, version, consequence.reason)

    def _copy(
        self, table: TableName, origin: TableName, logged: LoggedStatement, reason: str
    ) -> list[SchemaVersion]:
        """Record that the table has the rows of `origin` from here on. Return its version, for the
        mark in its changelog; nothing if the table had to be stopped."""
        version = self._structures.version(table)
        assert version is not None, "only tables with a known structure are copied"
        try:
            self._tables.copy(version, origin, reason)
        except TableError as error:
            self.quarantine(table, logged.begin, error)
            return []
        self._wants_changed()
        return [version]

    def _mark(self, kind: ChangeType, version: SchemaVersion, logged: LoggedStatement) -> None:
        """Add the mark of a statement that changed all rows of a table."""
        at, gtid = logged.begin, logged.gtid
        self._tables.mark(kind, version, at, gtid, logged.committed_at, logged.executed_at)
        self._emptied = (*self._emptied, self._tables.last)

    def _complete_columns(self, reread: Reread, version: SchemaVersion | None) -> None:
        """Record that columns of a table were read, unless it was stopped or dropped before."""
        if version is not None and version.schema is not None and self.wanted(reread.table):
            self._tables.record_event(TableEventKind.CHANGED, version, reread.why)
        self.joining.record(reread, reread.version, self._tables.last)

    def _stop(self, table: TableName, at: Coordinates, error: TableError) -> None:
        self._rules.on_quarantine(self._tables.quarantine(table, at, error))
        self._wants_changed()

    def _take_given(self, comeback: ReturningTable, version: SchemaVersion) -> None:
        """Record the structure that a person gave."""
        reason = f"{comeback.order.author} gave its structure"
        not_shown = self._structures.not_shown(comeback.table)
        if not_shown is not None:
            self.quarantine(comeback.table, comeback.low, not_shown)
            return
        self._tables.record_event(TableEventKind.CHANGED, version, reason)

    def _counts_from(self, reread: Reread, version: SchemaVersion, *, whole: bool) -> None:
        """Record that the table's log counts from here on, after rows that were read (`whole`) or
        are being read."""
        if whole:
            self._tables.loaded(reread.table)
        else:
            self._tables.load_begins(version)
        now = self._rules.clock()
        self._tables.mark(ChangeType.RESNAPSHOT, version, reread.low, "", now, now)
        self.joining.begin(reread, version.version, self._tables.last)
        if whole:
            self._tables.record_event(TableEventKind.REREAD, version, reread.why)
            self.joining.record(reread, version.version, self._tables.last)
        self._wants_changed()

    def _end_load(self, reread: Reread, version: SchemaVersion | None) -> None:
        """Record that all chunks of a table were read and that the log was captured up
        to the last of them, unless the table was stopped or dropped meanwhile."""
        if version is None or not self._tables.loading(reread.table):
            return
        sequence, number = self.joining.place(reread)
        # A new version does not matter as long as its rows have the same structure.
        if version.version != number and not _same_rows(reread.schema, version.schema):
            self._stop(reread.table, reread.high, read_by_next_run(ALTERED))
            return
        self._tables.loaded(reread.table)
        self._tables.record_event(TableEventKind.REREAD, version, reread.why)
        self.joining.record(reread, number, sequence)
