"""The life of tables during one capture: statements alter them, stopped tables come
back, rows that were read from the source join their changes in the log, and errors stop
tables.

A table joins the capture when the log reaches a certain place. For rows that were read
from the source, this is the place as of which they were read (their low watermark). A
stopped table comes back at the place where it stopped, because everything before it was
captured earlier. If a person gave the table's structure, it holds from that place on. If
a statement begins exactly there, it is the one that stopped the table, and the given
structure is the one after this statement.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.mirror.merging import ChangelogOrigin
from lockstep.pipeline.model.load import FollowedLoad, JoinedLoad, SourceReading
from lockstep.pipeline.model.table_state import SnapshotFiles, TableEventKind
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.captured_tables import CapturedTable, CapturedTables
from lockstep.pipeline.run.dump.cascade_watch import UnloggedCascade
from lockstep.pipeline.run.dump.renames import DecideCopies, with_copy_decisions
from lockstep.pipeline.run.dump.table_extents import PartialTables
from lockstep.pipeline.run.stop_errors import (
    quarantine_error,
    reread_error,
    resume_hint,
    unreadable_error,
)
from lockstep.pipeline.schema.consequences import (
    NEW_COLUMN_RULE,
    NOT_FOLLOWED_RULE,
    RENAMED_RULE,
    ROW_KEEPING_ACTIONS,
    Action,
    Consequence,
    consequences,
)
from lockstep.pipeline.schema.effects import (
    FollowedStatement,
    LoggedStatement,
    NotFollowed,
    UnknownTable,
    UnloggedChange,
)
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.schema.statements.changes import EXCHANGE
from lockstep.pipeline.schema.table_effects import (
    match_columns,
    may_rename_columns,
    reason_given_shape_changed,
    reason_unclear,
)
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.shape.shaping import Shaping, consent_hint
from lockstep.pipeline.supply import FromMirror
from lockstep.pipeline.values.errors import (
    Need,
    StoppedBy,
    StructureMoved,
    StructureUnknown,
    TableBusy,
    TableError,
    ValueLeftOut,
)
from lockstep.pipeline.values.policies import ForeignKeys
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.table import TableName

_EVENT_KINDS: Final = {
    Action.CREATE: TableEventKind.CREATED,
    Action.FOLLOW: TableEventKind.CHANGED,
    Action.EMPTY: TableEventKind.TRUNCATED,
    Action.DROP: TableEventKind.DROPPED,
}
_ACTIONS_ON_KNOWN_TABLES: Final = (Action.FOLLOW, Action.EMPTY, Action.DROP)
"""Actions that do nothing to a table without a state (`CapturedTable.is_known`)."""

DROPPED_BEFORE_READ: Final = "it was dropped at the source before it could be read"
"""Reason of the DROPPED event of a table that was dropped before it could be read."""

_ALTERED_WHILE_READ: Final = "it was altered while its rows were read from the source"
"""Reason to read a table again."""


def _is_reached(place: Coordinates | None, at: Coordinates | None) -> bool:
    """Return whether the log was read up to `place`; a `place` of None is reached only
    at the log's end. `at`: the place up to which the log was read; None for its end."""
    return at is None or (place is not None and place <= at)


def _same_rows(schema: TableSchema | None, other: TableSchema | None) -> bool:
    return bool(schema and other and row_structure(schema) == row_structure(other))


def _concerns(table: CapturedTable, consequence: Consequence) -> bool:
    """Return whether the consequence does anything to the table."""
    return table.is_known or consequence.action not in _ACTIONS_ON_KNOWN_TABLES


@dataclass(frozen=True, slots=True)
class StatementDecider:
    """Decides what a statement does to captured tables. A capture carries it out, and a
    plan foresees it."""

    tables: CapturedTables
    structures: SchemaTracker
    shaping: Shaping

    def consequences(
        self,
        statement: LoggedStatement,
        followed: FollowedStatement,
        supplies: Mapping[TableName, FromMirror | str],
    ) -> dict[TableName, Consequence]:
        """Return the consequence of a statement for each table. `supplies`: for each
        renamed table, the mirror from which its rows are copied, or the reason to read
        them from MySQL (`DecideCopies`)."""
        by_table = consequences(
            followed, self.tables.policies_of, statement, self.shaping.column_uses
        )
        return with_copy_decisions(by_table, supplies)

    def stop_error(
        self, table: CapturedTable, consequence: Consequence, followed: FollowedStatement
    ) -> TableError | None:
        """Return the error with which the statement that was just followed stops a
        table; None if the table goes on. If the error is by `StoppedBy.RUN`, this run
        or the next reads the table from the source."""
        name, action = table.name, consequence.action
        hidden_rows_error = self.hidden_rows_error(name, consequence, followed)
        if hidden_rows_error is not None:
            return hidden_rows_error
        is_loading = table.open_load is not None
        if action is Action.QUARANTINE:
            error = quarantine_error(name, consequence)
            # With a need, the error waits for a person: reading would not help now.
            if error.need is None and is_loading:
                # Some chunks may have been read with the structure after the statement,
                # others before.
                return reread_error(consequence.reason)
            structure_was_unknown = any(
                isinstance(effect, UnknownTable) and effect.table == name
                for effect in followed.effects
            )
            if error.need is None and structure_was_unknown:
                return StructureUnknown(error.reason, hint=error.hint)
            return error
        if action is Action.REREAD:
            need = Need.COLUMNS if consequence.rule_name == NEW_COLUMN_RULE else Need.ROWS
            return reread_error(consequence.reason, need)
        if action is Action.FOLLOW and is_loading:
            return reread_error(_ALTERED_WHILE_READ)
        if action in _EVENT_KINDS and _concerns(table, consequence):
            version = self.structures.version(name)
            return None if version is None else self.tables.name_conflict(name)
        return None

    def hidden_rows_error(
        self, table: TableName, consequence: Consequence, followed: FollowedStatement
    ) -> TableError | None:
        """Return an error if the settings cannot be applied to the table's new
        structure, or if the table may now have rows of another table whose settings
        hide more. Reading it would show these hidden values, so only a person may bring
        it back."""
        shape_error = self.structures.shape_error(table)
        if shape_error is not None or not self.shaping.has_rules:
            return shape_error
        reason = None
        version = self.structures.version(table)
        exchanged_tables = {
            effect.table
            for effect in followed.effects
            if isinstance(effect, UnloggedChange) and effect.reason == EXCHANGE
        }
        tables_like_unknown = {
            effect.table
            for effect in followed.effects
            if isinstance(effect, NotFollowed) and effect.copies_unknown
        }
        if table in exchanged_tables and any(map(self.shaping.rules_of, exchanged_tables)):
            other_tables = ", ".join(sorted(map(str, exchanged_tables - {table})))
            reason = f"it has rows of {other_tables}, and the settings hide values of one of them"
        elif (
            version is not None
            and version.knowledge is Knowledge.UNKNOWN
            and (consequence.rule_name == RENAMED_RULE or table in tables_like_unknown)
        ):
            reason = (
                f"{consequence.reason}, and it is not known what the settings hid of those rows"
            )
        if reason is None:
            return None
        return TableError(reason, hint=consent_hint(table), need=Need.CONSENT)


class TableChanges:
    """Applies statements, and places that the log reaches, to the tables of one
    capture.

    - `ports`: the run's ports; None in a replay, which reads a part of the log again,
      reads no rows from the source, and reports no stopped tables.
    - `decide_copies`: decides whether the rows of a renamed table are copied from the
      mirror (the Delta table with the current rows) of its former name; None if none
      are.
    - `extents`: the tables that existed before the log that was read, so that the lake
      may lack rows of them.
    """

    def __init__(
        self,
        tables: CapturedTables,
        structures: SchemaTracker,
        shaping: Shaping,
        ports: RunPorts | None = None,
        *,
        decide_copies: DecideCopies | None = None,
        extents: PartialTables | None = None,
    ) -> None:
        self._tables = tables
        self._structures = structures
        self._decider = StatementDecider(tables, structures, shaping)
        self._ports = ports
        self._decide_copies = decide_copies
        self._extents = PartialTables() if extents is None else extents
        self._new_mark_sequences: tuple[int, ...] = ()
        self._last_reached: Coordinates | None = None
        """The place of the last call of `reach`: all changes before it have numbers."""

    def use_buffer(self, buffer: TransactionBuffer) -> None:
        """Use the buffer of the reading. This method is called once, before all others
        (`LogTaker`)."""
        self._table_maps = buffer.maps

    def _update_wanted(self) -> None:
        """Tell the buffer that the set of tables with wanted changes may have changed."""
        self._table_maps.update_captured()

    def take_mark_sequences(self) -> tuple[int, ...]:
        """Return the sequence numbers of the marks that were added after the last call.
        A mark stands for all rows of a table, such as a TRUNCATE."""
        sequences, self._new_mark_sequences = self._new_mark_sequences, ()
        return sequences

    # -- statements --------------------------------------------------------------------

    def apply_statement(
        self, statement: LoggedStatement, followed: FollowedStatement
    ) -> Mapping[TableName, Consequence]:
        """Carry out a statement that changed structures, and return its consequence for
        each captured table."""
        self._extents.apply_effects(followed.effects)
        supplies = {} if self._decide_copies is None else self._decide_copies(followed.effects)
        by_table = self._decider.consequences(statement, followed, supplies)
        applied: dict[TableName, Consequence] = {}
        copied_versions: list[SchemaVersion] = []
        for name, consequence in by_table.items():
            table, supply = self._tables[name], supplies.get(name)
            if consequence.rule_name == NEW_COLUMN_RULE and table.is_completed_later:
                # The values of the new column are read from the source after the
                # capture.
                consequence = replace(consequence, action=Action.FOLLOW)
            if table.structure_order is not None and statement.begin == table.begin:
                # The structure that a person gave is the one after this statement.
                table.stop_consequence = consequence
                continue
            if not table.takes(statement.begin):
                self._wait_for_consent(table, consequence, followed)
                continue
            if _concerns(table, consequence):
                applied[name] = consequence
            error = self._decider.stop_error(table, consequence, followed)
            if error is not None and error.by is StoppedBy.RUN:
                # A run reads the rows as of a place after the statement. A stop that
                # waits for a person lies before it: a structure that the person gives
                # is recognised there as the one after the statement.
                self._record_stop(name, statement.end, error)
            elif error is not None:
                self.stop(name, statement.begin, error)
            elif isinstance(supply, FromMirror) and consequence.action is Action.COPY:
                version = self._record_copy(name, supply.origin, statement, consequence.reason)
                if version is not None:
                    copied_versions.append(version)
            else:
                self._record_consequence(table, consequence, statement)
        # The mark of a copied table comes after all other changes by the statement: the
        # copy has the state after the whole statement.
        for version in copied_versions:
            self._add_mark(ChangeType.RESNAPSHOT, version, statement)
        for table in self._tables.waiting_tables.values():
            if table.structure_order is not None and table.begin == statement.begin:
                self._take_given_structure(table, statement.end, statement)
        return applied

    def _wait_for_consent(
        self, table: CapturedTable, consequence: Consequence, followed: FollowedStatement
    ) -> None:
        """Let a stopped table wait for a person's consent, if the lake would
        show more of the rows or columns that the statement gave it than before."""
        is_waiting, at = table.name in self._tables.waiting_tables, table.stopped_at
        if at is None and not is_waiting:
            return
        error = self._decider.hidden_rows_error(table.name, consequence, followed)
        if error is None or error.need is not Need.CONSENT:
            return
        if is_waiting:
            table.consent_error = error  # `_join_reading` stops the table.
        elif at is not None:
            self._record_stop(table.name, at, error)

    def _record_consequence(
        self, table: CapturedTable, consequence: Consequence, statement: LoggedStatement
    ) -> None:
        """Record the event of a table that a statement does not stop."""
        name, event_kind = table.name, _EVENT_KINDS.get(consequence.action)
        version = self._structures.version(name)
        if event_kind is None or version is None or not _concerns(table, consequence):
            return
        if event_kind is TableEventKind.TRUNCATED and version.schema is not None:
            try:
                self._add_mark(ChangeType.TRUNCATE, version, statement)
            except TableError as error:
                self.stop(name, statement.begin, error)
                return
        self._tables.record_event(event_kind, version, consequence.reason)

    def _record_copy(
        self, table: TableName, origin: TableName, statement: LoggedStatement, reason: str
    ) -> SchemaVersion | None:
        """Record that the table has the rows of `origin` from here on. Return the
        version of its structure, for the mark in its changelog; None if the table had
        to be stopped."""
        version = self._structures.version(table)
        assert version is not None, "only tables with a known structure are copied"
        try:
            self._tables.record_copy(version, origin, reason)
        except TableError as error:
            self.stop(table, statement.begin, error)
            return None
        return version

    def _add_mark(
        self, kind: ChangeType, version: SchemaVersion, statement: LoggedStatement
    ) -> None:
        """Add the mark of a statement that changed all rows of a table."""
        at, gtid = statement.begin, statement.gtid
        self._tables.add_mark(
            kind, version, at, gtid, statement.committed_at, statement.executed_at
        )
        self._new_mark_sequences = (*self._new_mark_sequences, self._tables.last_sequence)

    # -- places that tables wait for ---------------------------------------------------

    def reach(self, at: Coordinates | None) -> None:
        """Let the tables that wait for `at`, or for an earlier place, join the capture,
        and end the loads that are complete there. None is the end of the log."""
        tables = self._tables.waiting_tables.values()
        for table in tables:
            if table.resumed_version is not None and _is_reached(table.begin, at):
                self._structures.continue_with(table.resumed_version)
                table.resumed_version = None
        for table in tables:
            # If a statement begins at `begin` itself, the given structure holds after
            # it, and `apply_statement` records it.
            begin = table.begin
            if table.structure_order is not None and begin != at and _is_reached(begin, at):
                assert begin is not None, "a person's structure has a place"
                self._take_given_structure(table, begin)
        for table in tables:
            reading = table.pending_reading
            if reading is not None and _is_reached(reading.low, at):
                table.pending_reading = None
                self._join_reading(table, reading)
        for table in tables:
            # A load ends once all changes before its high watermark have numbers. Those
            # after the previous call of `reach` do not have them yet.
            reading = table.open_load
            if reading is None or not reading.is_complete:
                continue
            last = self._last_reached
            if at is None or (last is not None and reading.high <= last):
                table.open_load = None
                self._end_load(reading)
        self._last_reached = at

    def _take_given_structure(
        self, table: CapturedTable, at: Coordinates, statement: LoggedStatement | None = None
    ) -> None:
        """Record the structure that a person gave, from `at` on. `statement`: the
        statement before `at` that stopped the table; None if no statement did."""
        order = table.structure_order
        assert order is not None and order.schema is not None, "a person gave a structure"
        given_schema, renames = order.schema, order.renames
        last_known = self._structures.last_known_schema(table.name)
        stop_consequence = table.stop_consequence
        table.structure_order = None
        may_rename, doubt_reason = False, None
        if stop_consequence is not None and stop_consequence.rule_name != NOT_FOLLOWED_RULE:
            # The statement was understood, so the column names after it are known.
            renames = ()
            if stop_consequence.action not in ROW_KEEPING_ACTIONS:
                doubt_reason = stop_consequence.reason
        elif stop_consequence is not None and statement is not None:
            may_rename = may_rename_columns(statement.text, statement.context)
        origins = None
        if last_known is not None:
            column_uses_of = self._decider.shaping.column_uses
            doubt_reason = (
                doubt_reason
                or reason_unclear(last_known, given_schema, renames, may_rename=may_rename)
                or reason_given_shape_changed(last_known, given_schema, renames, column_uses_of)
            )
            origins = match_columns(last_known, given_schema, renames)
        table.doubt_reason = doubt_reason
        version = self._structures.record_persons_schema(given_schema, at, origins)
        shape_error = self._structures.shape_error(table.name)
        if shape_error is not None:
            assert table.begin is not None, "a person's structure has a place"
            self.stop(table.name, table.begin, shape_error)
            return
        reason = f"{order.author} gave its structure"
        self._tables.record_event(TableEventKind.CHANGED, version, reason)

    def _join_reading(self, table: CapturedTable, reading: SourceReading) -> None:
        """Let rows or columns that were read from the source join the log. A load reads
        rows in chunks between a low and a high watermark: the table's changes are taken
        from the low watermark on, and the load is complete at the high watermark."""
        error, schema = reading.error, reading.schema
        version = self._structures.version(table.name)
        shape_error = self._structures.shape_error(table.name) or table.consent_error
        is_busy = isinstance(error, TableBusy)
        reads_rows = reading.columns is None and (schema is not None or is_busy)
        if reads_rows and shape_error is not None and shape_error.need is Need.CONSENT:
            # The person who ordered the read could not know that the mirror would show
            # hidden values: a consent is needed first.
            error = shape_error if is_busy else error or shape_error
        if error is not None:
            self.stop(table.name, reading.low, unreadable_error(error, reading.columns))
        elif reading.columns is not None:
            if version is not None and version.schema is not None and table.is_wanted:
                self._tables.record_event(TableEventKind.CHANGED, version, reading.reason)
            self._record_rows(reading, reading.version, self._tables.last_sequence)
        elif schema is not None:
            version = self._structures.record_server_schema(schema, reading.low)
            ends_here = reading.is_complete and reading.low == reading.high
            table.open_load = None if ends_here else reading
            self._take_changes_from(reading, version, is_complete=ends_here)
        elif version is not None:  # the server did not have the table
            self._tables.record_event(TableEventKind.DROPPED, version, DROPPED_BEFORE_READ)
        else:
            unknown = StructureUnknown("its structure is not known", hint=resume_hint(table.name))
            self.stop(table.name, reading.low, unknown)

    def begin_load(self, reading: SourceReading) -> None:
        """Begin to read all rows of a table whose changes were captured up to
        `reading.low`. The rows join the changes after that place."""
        version = self._structures.version(reading.table)
        assert version is not None, "its structure is known"
        self._take_changes_from(reading, version, is_complete=False)

    def _take_changes_from(
        self, reading: SourceReading, version: SchemaVersion, *, is_complete: bool
    ) -> None:
        """Record that the table's changes are taken from here on. `is_complete`: all of
        its rows were read as of here; otherwise they are being read in chunks."""
        if is_complete:
            self._tables.note_load_end(reading.table)
        else:
            self._tables.note_load_begin(version)
        assert self._ports is not None, "rows are read from the source by runs alone"
        moment = self._ports.clock()
        self._tables.add_mark(ChangeType.RESNAPSHOT, version, reading.low, "", moment, moment)
        version_number, sequence = version.version, self._tables.last_sequence
        if reading.load is not None:
            self._tables.followed_loads.append(
                FollowedLoad(reading.load.id, reading.table, sequence, version_number)
            )
        if is_complete:
            self._tables.record_event(TableEventKind.REREAD, version, reading.reason)
            self._record_rows(reading, version_number, sequence)
        self._update_wanted()

    def _end_load(self, reading: SourceReading) -> None:
        """Record that a load is complete: all chunks were read, and the log was
        captured up to the last of them. Do nothing if the table was stopped or dropped
        meanwhile."""
        load = reading.load
        version = self._structures.version(reading.table)
        assert load is not None, "only loads are read in several places"
        if version is None or not self._tables[reading.table].is_loading:
            return
        followed = load.followed_from or next(
            followed for followed in self._tables.followed_loads if followed.load_id == load.id
        )
        # The rows are the same if the versions differ in other things, such as an index.
        if version.version != followed.version and not _same_rows(reading.schema, version.schema):
            self._record_stop(reading.table, reading.high, reread_error(_ALTERED_WHILE_READ))
            return
        self._tables.note_load_end(reading.table)
        self._tables.record_event(TableEventKind.REREAD, version, reading.reason)
        self._record_rows(reading, followed.version, followed.sequence)

    def _record_rows(self, reading: SourceReading, version_number: int, sequence: int) -> None:
        """Record the files with the read rows. They apply after the change number
        `sequence`."""
        if reading.load is not None:
            self._tables.joined_loads.append(JoinedLoad(reading.load.id, reading.table))
            self._tables.finished_loads.append(reading.load.progress)
        snapshot = SnapshotFiles(
            reading.table, version_number, sequence, reading.files, reading.columns
        )
        self._tables.snapshots.append(snapshot)

    def rewrite(self, table: TableName, origin: ChangelogOrigin) -> None:
        """Record that a table's mirror is rewritten from its changelog, unless the
        table was stopped or dropped meanwhile."""
        version = self._structures.version(table)
        if version is not None and version.schema is not None and self._tables.is_wanted(table):
            base_table = None if origin.base is None else table
            self._tables.record_event(TableEventKind.REBUILT, version, origin.clause, base_table)
            self._tables[table].is_busy = True

    # -- tables that stop --------------------------------------------------------------

    def stop(self, table: TableName, at: Coordinates, error: TableError) -> None:
        """Stop the table at `at`. If the log lacks a value (`ValueLeftOut`), the next
        run reads the table from the source. If the structure is not known, a run asks
        the server for a better reason."""
        if isinstance(error, ValueLeftOut):
            error = reread_error(error.reason)
        elif isinstance(error, StructureUnknown) and self._ports is not None:
            error = _with_server_error(self._ports, table, error)
        self._record_stop(table, at, error)

    def _record_stop(self, table: TableName, at: Coordinates, error: TableError) -> None:
        stopped = self._tables.stop(table, at, error)
        if self._ports is not None:
            self._ports.report_stop(stopped)
        self._update_wanted()

    def stop_with_lost_rows(self, table: TableName, at: Coordinates, reason: str) -> None:
        """Stop the table, because the log does not have all of its rows after `at`. The
        next run reads them from the source. Do nothing if rows as of a later place were
        read anyway."""
        version = self._structures.version(table)
        exists = version is not None and version.knowledge is not Knowledge.DROPPED
        if exists and self._tables[table].takes(at):
            self._record_stop(table, at, reread_error(reason))

    def stop_cascaded_tables(self, cascades: Mapping[TableName, UnloggedCascade]) -> None:
        """Stop the tables with rows that foreign keys changed and MySQL did not log.
        The policy `foreign_keys` decides whether the next run reads a table again, or a
        person has to."""
        for table, cascade in cascades.items():
            if not self._tables.is_wanted(table):
                continue
            if self._tables.policies_of(table).foreign_keys is ForeignKeys.RESNAPSHOT:
                self._record_stop(table, cascade.at, reread_error(cascade.reason))
            else:
                error = TableError(cascade.reason, hint=resume_hint(table), need=Need.ROWS)
                self.stop(table, cascade.at, error)


def _with_server_error(ports: RunPorts, table: TableName, error: StructureUnknown) -> TableError:
    """Return the error of a table whose structure is not known: the server's error if
    it does not show the structure to the account, or if the settings cannot be applied
    to it; an error with another hint if it has no such table, and `error` otherwise.
    MariaDB also logs rows of sequences, which are not among its tables."""
    try:
        baseline = ports.server.baseline([table])
        if table not in baseline.names:
            hint = f"exclude it if it is a sequence, else {resume_hint(table)}"
            return TableError(f"{error.reason}, and the source has no such table", hint=hint)
        for schema in baseline.tables:
            ports.shaping.shape_fingerprint(schema)
    except TableError as table_error:
        return TableError(table_error.reason, hint=f"{table_error.hint}; {resume_hint(table)}")
    except StructureMoved:
        pass
    return error
