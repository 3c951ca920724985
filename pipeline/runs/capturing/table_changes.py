"""What becomes of the tables of one capture: by statements, at places they wait for, by rows
that nobody can decode.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final

from pipeline.changes.extents import Extents
from pipeline.errors import Remedy, StructureUnknown, TableError, ValueLeftOut
from pipeline.policies import ForeignKeys, LakePolicies
from pipeline.position import Coordinates
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.cascade_watch import LostRows
from pipeline.runs.capturing.catch_up_tables import Comeback, ComingBack
from pipeline.runs.capturing.rename_handover import HandingOver
from pipeline.runs.capturing.snapshot_join import Joining, PlaceMeaning
from pipeline.runs.cures import Reread, engine_hint, in_vain, owed, release_hint, versioning_hint
from pipeline.schema.consequences import (
    ENGINE_REFUSED,
    PER_ROW,
    VERSIONED,
    Action,
    Consequence,
    consequences,
)
from pipeline.schema.evolving.effects import UnknownTable
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.schema.logged import FollowedStatement, LoggedStatement
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import row_structure
from pipeline.schema.tracker import SchemaTracker
from pipeline.segment import ChangeType
from pipeline.table import TableName
from pipeline.table_state import Quarantine, TableEventKind

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
    """What a capture goes by: the moment, the tables it may take, policies, who is told, and what
    the source says of a table whose structure is not known."""

    clock: Callable[[], datetime]
    captured: Callable[[TableName], bool]
    policies: LakePolicies
    on_quarantine: Callable[[Quarantine], None]
    why_unknown: Callable[[TableName, StructureUnknown], TableError] = lambda _, error: error


@dataclass(frozen=True, slots=True)
class TakenUp:
    """Tables that a capture takes up again: read from the source, or behind a place of their
    own. `completed`: those whose new columns are read from the source behind it."""

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
        handing_over: HandingOver | None = None,
        extents: Extents | None = None,
    ) -> None:
        self._tables = tables
        self._structures = structures
        self._rules = rules
        self._wants_changed = wants_changed
        self._handing_over = handing_over
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
        policies = self._rules.policies
        found = consequences(followed, policies, logged)
        actions = self._handed_over(followed)
        for table, consequence in found.items():
            if table in actions:
                continue
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
                self._follow(table, consequence, logged, unknown=unknown)
        for comeback, version in self.coming_back.behind(logged):
            self._take_word(comeback, version)
        return actions

    def reach(self, at: Coordinates | None) -> None:
        """Tables that waited for a place before `at` (None: the log is over)."""
        for back, given in self.coming_back.reached(at):
            self._take_word(back, given)
        for reread, place, version in self.joining.passed(at):
            if reread.error is not None:
                self.quarantine(reread.table, reread.low, in_vain(reread.error, reread.columns))
            elif reread.columns is not None:
                self._completed(reread, version)
            elif place is PlaceMeaning.HIGH:
                self._loaded(reread, version)
            elif version is None:
                self._gone(reread)
            else:
                self._counts_from(reread, version, place)

    def rebuild(self, table: TableName, why: str) -> None:
        """Its mirror is written anew from its changelog. One that was quarantined or dropped
        meanwhile has no use for that."""
        version = self._structures.version(table)
        if version is not None and version.schema is not None and self.wanted(table):
            self._tables.happened(TableEventKind.REBUILT, version, why)

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
            if self._rules.policies.foreign_keys is ForeignKeys.RESNAPSHOT:
                self._reread(table, loss.at, owed(loss.reason))
            else:
                error = TableError(
                    loss.reason, hint=release_hint(table), remedy=Remedy.RELEASED_RESNAPSHOT
                )
                self.quarantine(table, loss.at, error)

    def _handed_over(self, followed: FollowedStatement) -> dict[TableName, Consequence]:
        """What followed for tables whose mirrors went with their names."""
        if self._handing_over is None:
            return {}
        taken = self._handing_over.taken(followed.effects, busy=self._busy)
        if not taken:
            return {}
        self._tables.hand_over(taken)
        actions = {}
        for table, one in taken.items():
            reason = f"it was called {one.origin}"
            self._tables.happened(TableEventKind.CHANGED, one.version, reason)
            actions[table] = Consequence(table, Action.TAKE_OVER, "renamed", reason)
        for table in {one.origin for one in taken.values()} - taken.keys():
            actions[table] = Consequence(table, Action.DROP, "dropped", "another name has it now")
        self._wants_changed()
        return actions

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
            hint = _REFUSED.get(consequence.rule, release_hint)(table)
            kind_of_error = StructureUnknown if unknown else TableError
            self.quarantine(table, logged.begin, kind_of_error(consequence.reason, hint=hint))
        elif consequence.action is Action.REREAD:
            remedy = Remedy.BACKFILL if consequence.rule == PER_ROW else Remedy.RESNAPSHOT
            self._reread(table, logged.end, owed(consequence.reason, remedy))
        elif kind is TableEventKind.CHANGED and self.joining.is_read(table):
            self._reread(table, logged.end, owed(ALTERED))
        elif kind is not None and version is not None:
            if consequence.action in _OF_KNOWN and not self._tables.known(table):
                return
            if kind is TableEventKind.TRUNCATED and version.schema is not None:
                self._tables.mark(
                    ChangeType.TRUNCATE,
                    version,
                    logged.begin,
                    logged.gtid,
                    logged.committed_at,
                    logged.executed_at,
                )
                self._emptied = (*self._emptied, self._tables.last)
            self._tables.happened(kind, version, consequence.reason)

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
        self._tables.happened(TableEventKind.CHANGED, version, reason)

    def _counts_from(self, reread: Reread, version: SchemaVersion, what: PlaceMeaning) -> None:
        """The log of a table counts again, over rows that are read, or are being read."""
        if what is PlaceMeaning.LOW:
            self._tables.load_begins(version)
        else:
            self._tables.loaded(reread.table)
        now = self._rules.clock()
        self._tables.mark(ChangeType.RESNAPSHOT, version, reread.low, "", now, now)
        self.joining.begin(reread, version.version, self._tables.last)
        if what is PlaceMeaning.BOTH:
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
