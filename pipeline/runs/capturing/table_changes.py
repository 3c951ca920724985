"""What becomes of the tables of one capture: by statements, at places they wait for, by rows that
nobody can decode.

Tables that are read from the source are joined with the log while it is read. Tables that come back
through the log count from their own places on: what lies before was captured before they
stopped, rows, and statements that begin there. A structure that a person gave holds from that place
on, or, where a statement stands there, from behind it: that statement is the one that could not be
followed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final

import numpy as np

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import Integers, TransactionGroup
from pipeline.changes.merging import FromChangelog
from pipeline.errors import Need, StructureUnknown, TableError, ValueLeftOut
from pipeline.load import LoadFollowed, LoadJoined
from pipeline.policies import ForeignKeys
from pipeline.ports.ledger import Ledger
from pipeline.position import Coordinates
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.cascade_watch import LostRows
from pipeline.runs.capturing.renames import Copies, with_supplies
from pipeline.runs.capturing.table_extents import Extents
from pipeline.runs.cures import Reread, engine_hint, in_vain, owed, resume_hint, versioning_hint
from pipeline.schema.consequences import (
    ENGINE_REFUSED,
    GOES_ON,
    NOT_FOLLOWED,
    PER_ROW,
    RENAMED,
    VERSIONED,
    Action,
    Consequence,
    PoliciesOf,
    consequences,
)
from pipeline.schema.evolving.effects import Dirty, UnknownTable
from pipeline.schema.history import History, Knowledge, SchemaVersion
from pipeline.schema.logged import FollowedStatement, LoggedStatement
from pipeline.schema.model import TableSchema
from pipeline.schema.model_json import schema_fingerprint
from pipeline.schema.rows import row_structure
from pipeline.schema.statements.changes import EXCHANGE
from pipeline.schema.table_effects import columns_from, may_rename_columns, why_unclear
from pipeline.schema.tracker import ColumnsFrom, SchemaTracker
from pipeline.segment import ChangeType
from pipeline.shape.shaping import Shaping, consent_hint, hidden_of, redacted
from pipeline.snapshot.progress import LoadProgress
from pipeline.supply.plan import FromMirror
from pipeline.table import TableName
from pipeline.table_state import Quarantine, SnapshotPart, TableEventKind, TableOrder


@dataclass(frozen=True, slots=True)
class ReadPassed:
    """A table that is read from the source, at a place that it waited for. `version`: of the
    structure that was read; None of a table that is gone, or that could not be read; where only
    columns were read, that of the log. `begins`: from here on the log counts. `whole`: all was
    read, and nothing of it lies behind the place."""

    reread: Reread
    version: SchemaVersion | None
    begins: bool = True
    whole: bool = True


class Joining:
    """The tables of `rereads` that still wait for their place in the log."""

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
        """What was read of the tables that are whole now."""
        self._told: Coordinates | None = None

    def waits(self, table: TableName) -> bool:
        """Whether the log tells nothing of the table yet."""
        return table in self._lows and self._lows[table].columns is None

    def is_read(self, table: TableName) -> bool:
        """Whether the place is between those at which its chunks were read, or are to be."""
        return table in self._partial

    def passed(self, at: Coordinates | None) -> Iterator[ReadPassed]:
        """Places up to `at` that were waited for (None: the log is over). A high is passed once
        all changes before it are numbered: they are up to the `at` of before."""
        for table, reread in list(self._lows.items()):
            if at is None or reread.low <= at:
                del self._lows[table]
                yield self._low(reread)
        for table, reread in list(self._highs.items()):
            if at is None or (self._told is not None and reread.high <= self._told):
                del self._highs[table]
                self._partial.discard(table)
                yield ReadPassed(reread, self._structures.version(table), begins=False)
        self._told = at

    def _low(self, reread: Reread) -> ReadPassed:
        if reread.columns is not None:
            return ReadPassed(reread, self._structures.version(reread.table))
        if reread.error is not None or reread.schema is None:
            return ReadPassed(reread, None)
        not_shown = self._structures.not_shown(reread.table)
        if not_shown is not None and not_shown.need is Need.CONSENT:
            # It was ordered before anybody was told what it would show.
            return ReadPassed(replace(reread, error=not_shown), None)
        version = self._structures.adopt(reread.schema, reread.low)
        if reread.complete and reread.low == reread.high:
            return ReadPassed(reread, version)
        self._partial.add(reread.table)
        if reread.complete:
            self._highs[reread.table] = reread
        return ReadPassed(reread, version, whole=False)

    def begin(self, reread: Reread, version: int, sequence: int) -> None:
        """The log of the table counts behind the change of that number."""
        if reread.load is not None:
            self.followed.append(LoadFollowed(reread.load.id, reread.table, sequence, version))

    def record(self, reread: Reread, version: int, sequence: int) -> None:
        """The table's rows belong behind the change of that number."""
        if reread.load is not None:
            self.joined.append(LoadJoined(reread.load.id, reread.table))
            self.loaded.append(reread.load.progress)
        part = SnapshotPart(reread.table, version, sequence, reread.files, reread.columns)
        self.snapshots.append(part)

    def place(self, reread: Reread) -> tuple[int, int]:
        """Behind which change, of which version, the rows of a load belong."""
        assert reread.load is not None, "only loads are read in several places"
        if reread.load.followed is not None:
            return reread.load.followed.sequence, reread.load.followed.version
        (begun,) = (begun for begun in self.followed if begun.load == reread.load.id)
        return begun.sequence, begun.version


def behind(group: TransactionGroup, events: Integers, low: Coordinates) -> Integers:
    """Which events belong to transactions that end behind a place."""
    rows = group.transactions[events[:, columns.TRANSACTION]]
    ends = rows[:, columns.END_OFFSET]
    numbers = np.array([file.number for file in group.files])[rows[:, columns.FILE]]
    later = (numbers > low.file.number) | ((numbers == low.file.number) & (ends > low.offset))
    return np.flatnonzero(later)


@dataclass(frozen=True, slots=True)
class Comeback:
    """A table, the order that brings it back, and the place it stopped at. `version`: what held for
    it there; None where nothing was recorded."""

    order: TableOrder
    low: Coordinates
    version: SchemaVersion | None = None

    @property
    def table(self) -> TableName:
        return self.order.table


class ComingBack:
    """The tables of one capture that come back."""

    def __init__(self, comebacks: Sequence[Comeback], structures: SchemaTracker) -> None:
        self.lows = {comeback.table: comeback.low for comeback in comebacks}
        self._structures = structures
        self._held = [comeback for comeback in comebacks if comeback.version is not None]
        self._waiting = {
            comeback.table: comeback for comeback in comebacks if comeback.order.schema is not None
        }
        self._stopped_by: dict[TableName, Consequence] = {}
        self.doubts: dict[TableName, str] = {}
        """Tables whose rows of before may have changed in a way that no log tells."""

    def passes(self, table: TableName, logged: LoggedStatement, consequence: Consequence) -> bool:
        """Whether nothing follows from a statement for the table: it was followed before, or
        a person says what came of it. What a statement that is followed does to rows no
        structure tells: then it is read from the source."""
        low = self.lows.get(table)
        if low is None:
            return False
        given = table in self._waiting and logged.begin == low
        if given:
            self._stopped_by[table] = consequence
        return logged.begin < low or given

    def behind(self, logged: LoggedStatement) -> Iterator[tuple[Comeback, SchemaVersion]]:
        """Structures that a person gave and that hold behind this statement."""
        for comeback in list(self._waiting.values()):
            if comeback.low == logged.begin:
                yield self._adopted(comeback, logged.end, logged)

    def reached(self, at: Coordinates | None) -> Iterator[tuple[Comeback, SchemaVersion]]:
        """Structures that hold before `at` and that a person gave (None: the log is over)."""
        for one in self._held:
            if one.version is not None and (at is None or one.low <= at):
                self._structures.resume(one.version)
        self._held = [comeback for comeback in self._held if at is not None and at < comeback.low]
        for one in list(self._waiting.values()):
            if at is None or one.low < at:
                yield self._adopted(one, one.low)

    def _adopted(
        self, comeback: Comeback, at: Coordinates, logged: LoggedStatement | None = None
    ) -> tuple[Comeback, SchemaVersion]:
        del self._waiting[comeback.table]
        given, renames = comeback.order.schema, comeback.order.renames
        assert given is not None, "only tables with a structure wait"
        before, renaming, doubt = self._structures.last_known(comeback.table), False, None
        stopped_by = self._stopped_by.get(comeback.table)
        if stopped_by is not None and stopped_by.rule != NOT_FOLLOWED:
            # Its columns have the names that the statement left.
            renames, doubt = (), None if stopped_by.action in GOES_ON else stopped_by.reason
        elif stopped_by is not None and logged is not None:
            renaming = may_rename_columns(logged.text, logged.context)
        origins = None
        if before is not None:
            doubt = doubt or why_unclear(before, given, renames, renaming=renaming)
            origins = columns_from(before, given, renames)
        if doubt is not None:
            self.doubts[comeback.table] = doubt
        return comeback, self._structures.take_word(given, at, origins)


# -- structures that are recorded already --------------------------------------------------


class RecordedBefore:
    """The versions of batches from `since` on. Once a table is told otherwise
    than then, nothing that was recorded of it counts any more."""

    def __init__(self, ledger: Ledger, source: str, since: int) -> None:
        self._ledger, self._source, self._since = ledger, source, since
        self._known: dict[TableName, list[SchemaVersion]] = {}
        self._others: set[TableName] = set()

    def __call__(
        self,
        table: TableName,
        since: Coordinates,
        schema: TableSchema | None,
        reason: str | None,
        word: ColumnsFrom | None = None,
    ) -> SchemaVersion | None:
        if table in self._others:
            return None
        if table not in self._known:
            self._known[table] = self._ledger.schema_versions(self._source, table)
        gone = Knowledge.DROPPED if reason is None else Knowledge.UNKNOWN
        for version in reversed(self._known[table]):
            told = gone.value
            if schema is not None:
                told = schema_fingerprint(redacted(schema, hidden_of(version)))
            same = version.since == since and version.fingerprint == told
            if version.batch >= self._since and same and word in (None, version.columns_from):
                return version
        self._others.add(table)
        return None


def history_of(history: History, tables: Mapping[TableName, object]) -> History:
    """What was learnt of these tables, and the statements that say so."""
    versions = [version for version in history.versions if version.table in tables]
    told = sorted({version.statement for version in versions if version.statement is not None})
    numbers = {statement: number for number, statement in enumerate(told)}
    return History(
        tuple(history.statements[number] for number in told),
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
_OF_KNOWN: Final = (Action.FOLLOW, Action.EMPTY, Action.DROP)
"""What is done only about a table that the lake has, or that is on its way there."""

_REFUSED: Final = {ENGINE_REFUSED: engine_hint, VERSIONED: versioning_hint}
"""Rules of tables that no reading from the source can bring back, each with its cure."""

GONE: Final = "the source has it not"
"""Why a table ends that was to be read from the source."""

ALTERED: Final = "it was altered while its rows were read from the source"


@dataclass(frozen=True, slots=True)
class Rules:
    """What a capture goes by: the moment, the tables it may take, policies, who is told, what the
    source says of a table whose structure is not known, and how the lake shows tables."""

    clock: Callable[[], datetime]
    captured: Callable[[TableName], bool]
    policies_of: PoliciesOf
    on_quarantine: Callable[[Quarantine], None]
    why_unknown: Callable[[TableName, StructureUnknown], TableError] = lambda _, error: error
    shaping: Shaping = field(default_factory=Shaping)


@dataclass(frozen=True, slots=True)
class TakenUp:
    """Tables that a capture takes up again: read from the source, or behind a place of their
    own. `completed`: tables whose rows or columns are read from the server after the log was
    captured, so that values which no log has stop none of them."""

    rereads: Sequence[Reread] = ()
    comebacks: Sequence[Comeback] = ()
    completed: Collection[TableName] = ()


def _same_rows(read: TableSchema | None, now: TableSchema | None) -> bool:
    return bool(read and now and row_structure(read) == row_structure(now))


class Following:
    """The tables of one capture. `wants_changed` is called when other tables' rows are wanted
    than before."""

    def __init__(
        self,
        tables: CapturedTables,
        structures: SchemaTracker,
        rules: Rules,
        taken_up: TakenUp,
        *,
        wants_changed: Callable[[], None],
        copies: Copies | None = None,
        extents: Extents | None = None,
    ) -> None:
        self._tables = tables
        self._structures = structures
        self._rules = rules
        self._wants_changed = wants_changed
        self._copies = copies
        self._extents = Extents() if extents is None else extents
        self._emptied: tuple[int, ...] = ()
        self._completed_later = taken_up.completed
        self.joining = Joining(taken_up.rereads, structures)
        self.coming_back = ComingBack(taken_up.comebacks, structures)
        whole = [reread for reread in taken_up.rereads if reread.columns is None]
        self._busy = {reread.table for reread in taken_up.rereads} | self.coming_back.lows.keys()
        self.lows = {reread.table: reread.low for reread in whole} | self.coming_back.lows
        """Where the rows of tables begin to count that are read from a place of their own."""

    def wanted(self, table: TableName) -> bool:
        return self._rules.captured(table) and self._tables.wanted(table)

    def take_emptied(self) -> tuple[int, ...]:
        """Numbers of the marks that statements left since this was asked last."""
        emptied, self._emptied = self._emptied, ()
        return emptied

    def changed(
        self, logged: LoggedStatement, followed: FollowedStatement
    ) -> Mapping[TableName, Consequence]:
        """A statement changed structures: what followed for each table that is captured."""
        self._extents.followed(followed.effects)
        rules = self._rules
        found = consequences(followed, rules.policies_of, logged, rules.shaping.treated)
        supplies = {} if self._copies is None else self._copies(followed.effects, self._busy)
        found = with_supplies(found, supplies)
        actions: dict[TableName, Consequence] = {}
        marked: list[SchemaVersion] = []
        for table, consequence in found.items():
            supply = supplies.get(table)
            if consequence.rule == PER_ROW and table in self._completed_later:
                consequence = replace(consequence, action=Action.FOLLOW)
            waits = self.joining.waits(table) or self.coming_back.passes(table, logged, consequence)
            if self.wanted(table) and not waits:
                if self._tables.known(table) or consequence.action not in _OF_KNOWN:
                    actions[table] = consequence
                unknown = any(
                    isinstance(effect, UnknownTable) and effect.table == table
                    for effect in followed.effects
                )
                not_shown = self._why_not_shown(table, consequence, followed)
                if not_shown is not None:
                    self.quarantine(table, logged.begin, not_shown)
                elif isinstance(supply, FromMirror) and consequence.action is Action.COPY:
                    marked += self._copy(table, supply.origin, logged, consequence.reason)
                else:
                    self._follow(table, consequence, logged, unknown=unknown)
        for version in marked:
            self._mark(ChangeType.RESNAPSHOT, version, logged)
        for comeback, version in self.coming_back.behind(logged):
            self._take_word(comeback, version)
        return actions

    def reach(self, at: Coordinates | None) -> None:
        """Tables that waited for a place before `at` (None: the log is over)."""
        for back, given in self.coming_back.reached(at):
            self._take_word(back, given)
        for passed in self.joining.passed(at):
            reread, version = passed.reread, passed.version
            if reread.error is not None:
                self.quarantine(reread.table, reread.low, in_vain(reread.error, reread.columns))
            elif reread.columns is not None:
                self._completed(reread, version)
            elif not passed.begins:
                self._loaded(reread, version)
            elif version is None:
                self._gone(reread)
            else:
                self._counts_from(reread, version, whole=passed.whole)

    def begin_load(self, reread: Reread) -> None:
        """Begin to read all rows of a table whose log was captured up to `reread.low`. The changes
        after that place count together with the rows."""
        version = self._structures.version(reread.table)
        assert version is not None, "its structure is known"
        self._counts_from(reread, version, whole=False)

    def rewrite(self, table: TableName, origin: FromChangelog) -> None:
        """Record that a table's mirror is written again from its changelog. One that was
        quarantined or dropped meanwhile has no use for that."""
        version = self._structures.version(table)
        if version is not None and version.schema is not None and self.wanted(table):
            itself = None if origin.base is None else table
            self._tables.happened(TableEventKind.REBUILT, version, origin.told, itself)

    def quarantine(self, table: TableName, at: Coordinates, error: TableError) -> None:
        """The table goes no further than `at`; where its rows are whole at the source alone, the
        next run reads it there."""
        if isinstance(error, ValueLeftOut):
            self._reread(table, at, owed(error.reason))
            return
        if isinstance(error, StructureUnknown):
            error = self._rules.why_unknown(table, error)
        self._rules.on_quarantine(self._tables.quarantine(table, at, error))
        self._wants_changed()

    def lose(self, table: TableName, at: Coordinates, reason: str) -> None:
        """The source alone knows the table's rows behind `at`: the next run reads them there, but
        for a table that is read from the source behind it anyway."""
        version, low = self._structures.version(table), self.lows.get(table)
        there = version is not None and version.knowledge is not Knowledge.DROPPED
        if there and self.wanted(table) and (low is None or low <= at):
            self._reread(table, at, owed(reason))

    def end_at(self, lost: Mapping[TableName, LostRows]) -> None:
        """Tables that lost rows which no log tells go no further, or are read anew."""
        for table, loss in lost.items():
            if not self._tables.wanted(table):
                continue
            if self._rules.policies_of(table).foreign_keys is ForeignKeys.RESNAPSHOT:
                self._reread(table, loss.at, owed(loss.reason))
            else:
                error = TableError(loss.reason, hint=resume_hint(table), need=Need.ROWS)
                self.quarantine(table, loss.at, error)

    def _why_not_shown(
        self, table: TableName, consequence: Consequence, followed: FollowedStatement
    ) -> TableError | None:
        """Why nothing but a person may bring the table back: it may have rows from here on of which
        the settings of another name hide more, and would be read as its own say."""
        refused = self._structures.not_shown(table)
        if refused is not None or not self._rules.shaping.hides:
            return refused
        why, version = None, self._structures.version(table)
        effects = followed.effects
        exchanged = {e.table for e in effects if isinstance(e, Dirty) and e.reason == EXCHANGE}
        if table in exchanged and any(map(self._rules.shaping.rules_of, exchanged)):
            others = ", ".join(sorted(str(one) for one in exchanged - {table}))
            why = f"it has rows of {others}, and the settings of one of them hide something"
        elif consequence.rule == RENAMED and version and version.knowledge is Knowledge.UNKNOWN:
            why = f"{consequence.reason}, and what the settings hid of that is not known"
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
        """`unknown`: the statement met a table whose structure was not known."""
        version, kind = self._structures.version(table), _EVENTS.get(consequence.action)
        quarantined = consequence.action is Action.QUARANTINED
        if quarantined and consequence.rule not in _REFUSED and self.joining.is_read(table):
            # Its structure may have been read behind the statement, and is read again.
            self._reread(table, logged.end, owed(consequence.reason))
        elif quarantined:
            hint = _REFUSED.get(consequence.rule, resume_hint)(table)
            kind_of_error = StructureUnknown if unknown else TableError
            self.quarantine(table, logged.begin, kind_of_error(consequence.reason, hint=hint))
        elif consequence.action is Action.REREAD:
            need = Need.COLUMNS if consequence.rule == PER_ROW else Need.ROWS
            self._reread(table, logged.end, owed(consequence.reason, need))
        elif kind is TableEventKind.CHANGED and self.joining.is_read(table):
            self._reread(table, logged.end, owed(ALTERED))
        elif kind is not None and version is not None:
            if consequence.action in _OF_KNOWN and not self._tables.known(table):
                return
            if (met := self._tables.met(table)) is not None:
                self.quarantine(table, logged.begin, met)
                return
            if kind is TableEventKind.TRUNCATED and version.schema is not None:
                try:
                    self._mark(ChangeType.TRUNCATE, version, logged)
                except TableError as error:
                    self.quarantine(table, logged.begin, error)
                    return
            self._tables.happened(kind, version, consequence.reason)

    def _copy(
        self, table: TableName, origin: TableName, logged: LoggedStatement, reason: str
    ) -> Iterator[SchemaVersion]:
        """The rows of another name are this table's from here on. Yields the version that the row
        in its changelog has which says so: it comes behind all that the statement did."""
        version = self._structures.version(table)
        assert version is not None, "it is known, or nothing is copied"
        try:
            self._tables.copied(version, logged.begin, origin, reason)
        except TableError as error:
            self.quarantine(table, logged.begin, error)
            return
        self._wants_changed()
        yield version

    def _mark(self, kind: ChangeType, version: SchemaVersion, logged: LoggedStatement) -> None:
        """The statement is a change of all rows of a table."""
        at, gtid = logged.begin, logged.gtid
        self._tables.mark(kind, version, at, gtid, logged.committed_at, logged.executed_at)
        self._emptied = (*self._emptied, self._tables.last)

    def _completed(self, reread: Reread, version: SchemaVersion | None) -> None:
        """Columns were read of a table that goes on. One that was stopped before its place, or
        dropped, has no use for them."""
        if version is not None and version.schema is not None and self.wanted(reread.table):
            self._tables.happened(TableEventKind.CHANGED, version, reread.why)
        self.joining.record(reread, reread.version, self._tables.last)

    def _reread(self, table: TableName, at: Coordinates, error: TableError) -> None:
        self._rules.on_quarantine(self._tables.quarantine(table, at, error))
        self._wants_changed()

    def _take_word(self, comeback: Comeback, version: SchemaVersion) -> None:
        reason = f"{comeback.order.author} gave its structure"
        not_shown = self._structures.not_shown(comeback.table)
        if not_shown is not None:
            self.quarantine(comeback.table, comeback.low, not_shown)
            return
        self._tables.happened(TableEventKind.CHANGED, version, reason)

    def _counts_from(self, reread: Reread, version: SchemaVersion, *, whole: bool) -> None:
        """The log of a table counts again, over rows that are read, or are being read."""
        if whole:
            self._tables.loaded(reread.table)
        else:
            self._tables.load_begins(version)
        now = self._rules.clock()
        self._tables.mark(ChangeType.RESNAPSHOT, version, reread.low, "", now, now)
        self.joining.begin(reread, version.version, self._tables.last)
        if whole:
            self._tables.happened(TableEventKind.REREAD, version, reread.why)
            self.joining.record(reread, version.version, self._tables.last)
        self._wants_changed()

    def _loaded(self, reread: Reread, version: SchemaVersion | None) -> None:
        """All chunks of a table are read, and the log behind the last of them. One that was
        stopped, or dropped, meanwhile has no use for them."""
        if version is None or not self._tables.loading(reread.table):
            return
        sequence, read = self.joining.place(reread)
        # What changes rows, or how they are told, has ended the load at its statement.
        if version.version != read and not _same_rows(reread.schema, version.schema):
            self._reread(reread.table, reread.high, owed(ALTERED))
            return
        self._tables.loaded(reread.table)
        self._tables.happened(TableEventKind.REREAD, version, reread.why)
        self.joining.record(reread, read, sequence)

    def _gone(self, reread: Reread) -> None:
        version = self._structures.version(reread.table)
        if version is not None:
            self._tables.happened(TableEventKind.DROPPED, version, GONE)
