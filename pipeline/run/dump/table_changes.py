"""The changes that the tables of one capture go through: statements alter them, they join the
capture at the places of the log for which they wait, and rows that cannot be decoded stop them.

The rows that are read from the source are joined with the log while the log is read. A
table that comes back through the log is captured from the place on where it stopped;
rows and statements before that place were captured earlier. A structure that a person
gave holds from that place on. If a statement begins exactly there, it is the one that
could not be followed, and the structure holds after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.mirror.merging import ChangelogOrigin
from lockstep.pipeline.model.load import LoadFollowed, LoadJoined
from lockstep.pipeline.model.table_state import SnapshotPart, TableEventKind
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.dump.captured_tables import CapturedTable, CapturedTables
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
    consequences,
)
from lockstep.pipeline.schema.effects import (
    FollowedStatement,
    LoggedStatement,
    UnknownTable,
    UnloggedChange,
)
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.statements.changes import EXCHANGE
from lockstep.pipeline.schema.table_effects import columns_from, may_rename_columns, why_unclear
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.shape.shaping import Shaping, consent_hint
from lockstep.pipeline.supply.plan import FromMirror
from lockstep.pipeline.values.errors import (
    Need,
    StructureMoved,
    StructureUnknown,
    TableError,
    ValueLeftOut,
)
from lockstep.pipeline.values.policies import ForeignKeys
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.table import TableName

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


def _is_reached(place: Coordinates | None, at: Coordinates | None) -> bool:
    """Return whether the log was read up to a place. `at`: so far; None: to its end."""
    return at is None or (place is not None and place <= at)


def _same_rows(schema: TableSchema | None, other: TableSchema | None) -> bool:
    return bool(schema and other and row_structure(schema) == row_structure(other))


class TableChanges:
    """What statements and places of the log do to the tables of one capture. `work`: where a
    person is told of tables that stop; None if the log is only read again."""

    def __init__(
        self,
        tables: CapturedTables,
        structures: SchemaTracker,
        shaping: Shaping,
        work: Workplace | None = None,
        *,
        copies: DecideCopies | None = None,
        extents: PartialTables | None = None,
    ) -> None:
        self._tables = tables
        self._structures = structures
        self._shaping = shaping
        self._work = work
        self._copies = copies
        self._extents = PartialTables() if extents is None else extents
        self._emptied: tuple[int, ...] = ()
        self._at: Coordinates | None = None
        """The place that the capture reached before the changes that it takes now."""

    def follow(self, buffer: TransactionBuffer) -> None:
        self._maps = buffer.maps

    def _ask_again(self) -> None:
        """Let the buffer ask again which tables are wanted."""
        self._maps.update_wanted()

    def take_emptied(self) -> tuple[int, ...]:
        """Return the numbers of the marks that statements added since the last call."""
        emptied, self._emptied = self._emptied, ()
        return emptied

    # -- statements --------------------------------------------------------------------

    def changed(
        self, logged: LoggedStatement, followed: FollowedStatement
    ) -> Mapping[TableName, Consequence]:
        """Follow a statement that changed structures; return its consequence for each captured
        table."""
        self._extents.followed(followed.effects)
        supplies = {} if self._copies is None else self._copies(followed.effects)
        by_table = with_copies(
            consequences(followed, self._tables.policies_of, logged, self._shaping.treated),
            supplies,
        )
        actions: dict[TableName, Consequence] = {}
        copied: list[SchemaVersion] = []
        for name, consequence in by_table.items():
            table, supply = self._tables[name], supplies.get(name)
            if consequence.rule == NEW_COLUMN_UNKNOWN and table.completed:
                consequence = replace(consequence, action=Action.FOLLOW)
            if table.given is not None and logged.begin == table.begins:
                # A person gave the structure that the table has after this statement.
                table.stopped_by = consequence
                continue
            if not table.takes(logged.begin):
                continue
            if table.is_known or consequence.action not in _NEEDS_TABLE:
                actions[name] = consequence
            unknown = any(
                isinstance(effect, UnknownTable) and effect.table == name
                for effect in followed.effects
            )
            not_shown = self._why_not_shown(name, consequence, followed)
            if not_shown is not None:
                self.stop(name, logged.begin, not_shown)
            elif isinstance(supply, FromMirror) and consequence.action is Action.COPY:
                copied += self._copy(name, supply.origin, logged, consequence.reason)
            else:
                self._follow(table, consequence, logged, unknown=unknown)
        # The marks of copied tables come after everything else that the statement did.
        for version in copied:
            self._mark(ChangeType.RESNAPSHOT, version, logged)
        for table in self._tables.taken_up.values():
            if table.given is not None and table.begins == logged.begin:
                self._take_given(table, logged.end, logged)
        return actions

    def _why_not_shown(
        self, table: TableName, consequence: Consequence, followed: FollowedStatement
    ) -> TableError | None:
        """Return why only a person may bring the table back: from here on it may have
        the rows of another table whose settings hide more than its own, and reading it
        would show what those hide."""
        refused = self._structures.not_shown(table)
        if refused is not None or not self._shaping.hides:
            return refused
        why, version = None, self._structures.version(table)
        effects = followed.effects
        exchanged = {
            e.table for e in effects if isinstance(e, UnloggedChange) and e.reason == EXCHANGE
        }
        if table in exchanged and any(map(self._shaping.rules_of, exchanged)):
            others = ", ".join(sorted(map(str, exchanged - {table})))
            why = f"it has rows of {others}, and the settings of one of them hide something"
        elif consequence.rule == RENAMED and version and version.knowledge is Knowledge.UNKNOWN:
            why = f"{consequence.reason}, and it is not known what the settings hid of those rows"
        hint = consent_hint(table)
        return None if why is None else TableError(why, hint=hint, need=Need.CONSENT)

    def _follow(
        self,
        table: CapturedTable,
        consequence: Consequence,
        logged: LoggedStatement,
        *,
        unknown: bool,
    ) -> None:
        """Carry out the consequence of a statement. `unknown`: the table's structure before the
        statement was not known."""
        name, kind = table.name, _EVENTS.get(consequence.action)
        version, is_read = self._structures.version(name), table.load is not None
        quarantined = consequence.action is Action.QUARANTINED
        if quarantined and consequence.rule not in _REFUSED and is_read:
            # The load may have read the structure from after the statement: read the table again.
            self._stop(name, logged.end, read_by_next_run(consequence.reason))
        elif quarantined:
            hint = _REFUSED.get(consequence.rule, resume_hint)(name)
            kind_of_error = StructureUnknown if unknown else TableError
            self.stop(name, logged.begin, kind_of_error(consequence.reason, hint=hint))
        elif consequence.action is Action.REREAD:
            need = Need.COLUMNS if consequence.rule == NEW_COLUMN_UNKNOWN else Need.ROWS
            self._stop(name, logged.end, read_by_next_run(consequence.reason, need))
        elif kind is TableEventKind.CHANGED and is_read:
            self._stop(name, logged.end, read_by_next_run(ALTERED))
        elif kind is not None and version is not None:
            if consequence.action in _NEEDS_TABLE and not table.is_known:
                return
            if (conflict := self._tables.name_conflict(name)) is not None:
                self.stop(name, logged.begin, conflict)
                return
            if kind is TableEventKind.TRUNCATED and version.schema is not None:
                try:
                    self._mark(ChangeType.TRUNCATE, version, logged)
                except TableError as error:
                    self.stop(name, logged.begin, error)
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
            self.stop(table, logged.begin, error)
            return []
        return [version]

    def _mark(self, kind: ChangeType, version: SchemaVersion, logged: LoggedStatement) -> None:
        """Add the mark of a statement that changed all rows of a table."""
        at, gtid = logged.begin, logged.gtid
        self._tables.mark(kind, version, at, gtid, logged.committed_at, logged.executed_at)
        self._emptied = (*self._emptied, self._tables.last)

    # -- places that tables wait for ---------------------------------------------------

    def reach(self, at: Coordinates | None) -> None:
        """Take up the tables that wait for a place at or before `at` (None: the log ended)."""
        waiting = self._tables.taken_up.values()
        for table in waiting:
            if table.resumes is not None and _is_reached(table.begins, at):
                self._structures.resume(table.resumes)
                table.resumes = None
        for table in waiting:
            # A statement that begins at the place is the one that could not be followed.
            begins = table.begins
            if table.given is not None and begins != at and _is_reached(begins, at):
                assert begins is not None, "it comes back at a place"
                self._take_given(table, begins)
        for table in waiting:
            reading = table.reading
            if reading is not None and _is_reached(reading.low, at):
                table.reading = None
                self._join(table, reading)
        for table in waiting:
            # A high is passed only once all changes before it are numbered: so far these are the
            # changes up to the place that was reached before.
            load = table.load
            passed = at is None or (self._at is not None and load and load.high <= self._at)
            if load is not None and load.complete and passed:
                table.load = None
                self._end_load(load)
        self._at = at

    def _take_given(
        self, table: CapturedTable, at: Coordinates, logged: LoggedStatement | None = None
    ) -> None:
        """Record the structure that a person gave, which holds from `at` on, the end of the
        statement `logged` if one could not be followed."""
        assert table.given is not None and table.given.schema is not None, "it has a structure"
        order, given, renames = table.given, table.given.schema, table.given.renames
        before, renaming, doubt = self._structures.last_known(table.name), False, None
        stopped_by, table.given = table.stopped_by, None
        if stopped_by is not None and stopped_by.rule != NOT_FOLLOWED:
            # The statement was understood, so the column names after it are known.
            renames, doubt = (), None if stopped_by.action in KEEPS_ROWS else stopped_by.reason
        elif stopped_by is not None and logged is not None:
            renaming = may_rename_columns(logged.text, logged.context)
        origins = None
        if before is not None:
            doubt = doubt or why_unclear(before, given, renames, renaming=renaming)
            origins = columns_from(before, given, renames)
        table.doubt = doubt
        version = self._structures.record_given(given, at, origins)
        not_shown = self._structures.not_shown(table.name)
        if not_shown is not None:
            assert table.begins is not None, "it comes back at a place"
            self.stop(table.name, table.begins, not_shown)
            return
        reason = f"{order.author} gave its structure"
        self._tables.record_event(TableEventKind.CHANGED, version, reason)

    def _join(self, table: CapturedTable, reading: Reread) -> None:
        """Take up a table at the place as of which its rows, or its columns, were read. The rows of
        a load are read in chunks between a low and a high watermark: the table's log counts from
        the low on, and the load is complete at the high."""
        error, schema, version = reading.error, reading.schema, self._structures.version(table.name)
        not_shown = self._structures.not_shown(table.name)
        reads_rows = reading.columns is None and schema is not None
        if reads_rows and not_shown is not None and not_shown.need is Need.CONSENT:
            # The read was ordered before the person knew what the mirror would show.
            error = error or not_shown
        if error is not None:
            self.stop(table.name, reading.low, not_readable(error, reading.columns))
        elif reading.columns is not None:
            if version is not None and version.schema is not None and table.wanted:
                self._tables.record_event(TableEventKind.CHANGED, version, reading.why)
            self._record(reading, reading.version, self._tables.last)
        elif schema is not None:
            version = self._structures.record_read(schema, reading.low)
            is_whole = reading.complete and reading.low == reading.high
            table.load = None if is_whole else reading
            self._counts_from(reading, version, whole=is_whole)
        elif version is not None:
            self._tables.record_event(TableEventKind.DROPPED, version, DROPPED_BEFORE_READ)

    def begin_load(self, reading: Reread) -> None:
        """Begin to read all rows of a table whose log was captured up to `reading.low`.
        The rows are joined with the changes after that place."""
        version = self._structures.version(reading.table)
        assert version is not None, "its structure is known"
        self._counts_from(reading, version, whole=False)

    def _counts_from(self, reading: Reread, version: SchemaVersion, *, whole: bool) -> None:
        """Record that the table's log counts from here on, after rows that were read (`whole`) or
        are being read."""
        if whole:
            self._tables.load_ends(reading.table)
        else:
            self._tables.load_begins(version)
        assert self._work is not None, "rows are read from the source by runs alone"
        now = self._work.clock()
        self._tables.mark(ChangeType.RESNAPSHOT, version, reading.low, "", now, now)
        number, sequence = version.version, self._tables.last
        if reading.load is not None:
            self._tables.followed.append(
                LoadFollowed(reading.load.id, reading.table, sequence, number)
            )
        if whole:
            self._tables.record_event(TableEventKind.REREAD, version, reading.why)
            self._record(reading, number, sequence)
        self._ask_again()

    def _end_load(self, reading: Reread) -> None:
        """Record that all chunks of a table were read and that the log was captured up
        to the last of them, unless the table was stopped or dropped meanwhile."""
        version, load = self._structures.version(reading.table), reading.load
        assert load is not None, "only loads are read in several places"
        if version is None or not self._tables[reading.table].loading:
            return
        began = load.followed or next(
            begin for begin in self._tables.followed if begin.load == load.id
        )
        # A new version does not matter as long as its rows have the same structure.
        if version.version != began.version and not _same_rows(reading.schema, version.schema):
            self._stop(reading.table, reading.high, read_by_next_run(ALTERED))
            return
        self._tables.load_ends(reading.table)
        self._tables.record_event(TableEventKind.REREAD, version, reading.why)
        self._record(reading, began.version, began.sequence)

    def _record(self, reading: Reread, version: int, sequence: int) -> None:
        """Record that the rows that were read come after the change `sequence`."""
        if reading.load is not None:
            self._tables.joined.append(LoadJoined(reading.load.id, reading.table))
            self._tables.loaded.append(reading.load.progress)
        part = SnapshotPart(reading.table, version, sequence, reading.files, reading.columns)
        self._tables.snapshots.append(part)

    def rewrite(self, table: TableName, origin: ChangelogOrigin) -> None:
        """Record that a table's mirror is written again from its changelog, unless the table was
        stopped or dropped meanwhile."""
        version = self._structures.version(table)
        if version is not None and version.schema is not None and self._tables.wanted(table):
            itself = None if origin.base is None else table
            self._tables.record_event(TableEventKind.REBUILT, version, origin.told, itself)
            self._tables[table].busy = True

    # -- tables that stop --------------------------------------------------------------

    def stop(self, table: TableName, at: Coordinates, error: TableError) -> None:
        """Stop the table at `at`. If only the source has its values (`ValueLeftOut`), the next run
        reads it there."""
        if isinstance(error, ValueLeftOut):
            error = read_by_next_run(error.reason)
        elif isinstance(error, StructureUnknown) and self._work is not None:
            error = _why_unknown(self._work, table, error)
        self._stop(table, at, error)

    def _stop(self, table: TableName, at: Coordinates, error: TableError) -> None:
        stopped = self._tables.stop(table, at, error)
        if self._work is not None:
            self._work.quarantine(stopped)
        self._ask_again()

    def lose(self, table: TableName, at: Coordinates, reason: str) -> None:
        """Note that only the source has the table's rows after `at`: the next run reads them there,
        unless the table is being read from the source at a later place anyway."""
        version = self._structures.version(table)
        exists = version is not None and version.knowledge is not Knowledge.DROPPED
        if exists and self._tables[table].takes(at):
            self._stop(table, at, read_by_next_run(reason))

    def end_at(self, lost: Mapping[TableName, UnloggedLoss]) -> None:
        """Stop the tables in which foreign keys changed rows that are not logged. If
        the `foreign_keys` policy says so, the next run reads them again; otherwise they
        wait for a person."""
        for table, loss in lost.items():
            if not self._tables.wanted(table):
                continue
            if self._tables.policies_of(table).foreign_keys is ForeignKeys.RESNAPSHOT:
                self._stop(table, loss.at, read_by_next_run(loss.reason))
            else:
                error = TableError(loss.reason, hint=resume_hint(table), need=Need.ROWS)
                self.stop(table, loss.at, error)


def _why_unknown(work: Workplace, table: TableName, error: StructureUnknown) -> TableError:
    """Return the error of a table whose structure is not known: the server's own error if it
    refuses to show the table's structure to the account, otherwise `error`."""
    try:
        work.server.baseline([table])
    except TableError as refused:
        return TableError(refused.reason, hint=f"{refused.hint}; {resume_hint(table)}")
    except StructureMoved:
        pass
    return error
