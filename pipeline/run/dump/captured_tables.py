"""The tables of one capture (the reading of one part of the binlog): which of their
changes are taken, their states and events, and their rows.

Rows wait in memory until they fill a row group of a Parquet file. The files of a table
under one version of its structure are its segment of the batch; a merge later applies
them to the mirror (the Delta table with the current rows).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

import numpy as np
import pyarrow as pa

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.ring import Integers, TransactionGroup
from lockstep.pipeline.mirror.layout import (
    captured_schema,
    changelog_path,
    free_mirror_path,
    new_table,
    no_mirror_path,
    scratch_path,
)
from lockstep.pipeline.mirror.marks import changelog_rows, file_schema
from lockstep.pipeline.model.load import FollowedLoad, JoinedLoad, SourceReading
from lockstep.pipeline.model.table_state import (
    SnapshotFiles,
    StoppedTable,
    TableCondition,
    TableEvent,
    TableEventKind,
    TableOrder,
    TableState,
)
from lockstep.pipeline.ports.segments import SegmentStore, SegmentWriter
from lockstep.pipeline.run.left_out import hole_sentence
from lockstep.pipeline.run.stop_errors import (
    collision_error,
    resume_reads_hint,
    unsupported_error,
)
from lockstep.pipeline.schema.consequences import Consequence, PoliciesOf
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.values.errors import Need, TableError
from lockstep.pipeline.values.mirror_names import MirrorNames
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.row_groups import RowBuffer
from lockstep.pipeline.values.segment import ChangeType, RowCounts, Segment
from lockstep.pipeline.values.table import CapturedRange, TableName, end_of_hole

MOST_UNWRITTEN_BYTES = 128 << 20
"""Largest size in bytes of the rows in memory, over all tables. Once it is reached, the
tables with the most rows in memory are written to their files."""


@dataclass(frozen=True, slots=True)
class ReturningTable:
    """A stopped table that a person ordered to be followed again. `begin`: the place in
    the log where it stopped, from which its changes are taken again. `version`: the
    version of its structure there; None if none was recorded."""

    order: TableOrder
    begin: Coordinates
    version: SchemaVersion | None = None

    @property
    def table(self) -> TableName:
        return self.order.table


@dataclass(slots=True)
class TableSegment:
    """The segment of a table under one version: rows in memory, a writer, and totals.

    - `folder`: the folder of its files, which is that of the changelog, except in a
      replay.
    - `schema`: the schema of the changelog.
    - `first_sequence`, `last_sequence`: sequence numbers of its first and last change;
      0 if it has none.
    - `last_place`, `rows_at_last_place`: file and offset of its last event, and the
      number of rows that events at this offset have so far. The `_row` of a next event
      at the same offset continues from this number.
    - `extra_columns`: number of columns that the files have after those of the
      changelog, because some row images leave columns out (see `file_schema`).
    - `totals_before`: its totals before the current transaction, if that is captured in
      parts.
    """

    version: SchemaVersion
    folder: str
    schema: pa.Schema
    unwritten_rows: RowBuffer = field(default_factory=RowBuffer)
    writer: SegmentWriter | None = None
    counts: RowCounts = field(default_factory=RowCounts)
    first_sequence: int = 0
    last_sequence: int = 0
    last_place: tuple[str, int] = ("", 0)
    rows_at_last_place: int = 0
    totals_before: _Totals | None = None
    extra_columns: int = 0


@dataclass(frozen=True, slots=True)
class _Totals:
    """A segment before a transaction that is captured in parts: its number of complete
    files and its totals. If the table stops inside the transaction, the segment is set
    back to this."""

    file_count: int
    counts: RowCounts
    first_sequence: int
    last_sequence: int


@dataclass(slots=True)
class CapturedTable:
    """One table of a capture: which of its changes are taken, its state, and its
    segments.

    - `is_captured`: the patterns of the capture match the table.
    - `state`: its state after the last change so far; None if the table is new.
    - `is_state_changed`: the capture changed the state.
    - `quarantine`: why and where the table stopped in this capture.
    - `is_unread`: its rows have yet to be read from the source (MySQL); until that
      reading begins, none of its changes are taken.
    - `begin`: the place in the log from which its changes are taken; None for the
      batch's start.
    - `pending_reading`: rows or columns of it that were read from the source. It is
      None again once the log reaches the place where they were read.
    - `open_load`: its rows are being read in chunks while its log is captured.
    - `resumed_version`: the version of its structure that was recorded at `begin`. It
      is None again once the log reaches that place.
    - `structure_order`: a person's order that gives the table's structure from `begin`
      on. `stop_consequence`: what the statement at `begin` means for the table.
    - `doubt_reason`: why its earlier rows may have changed without being logged, so
      that they have to be read from the source; None if they are certain.
    - `consent_error`: a statement gave it rows that the settings may show while they
      were hidden before; it is to be read from the source as of a later place.
    - `is_completed_later`: values that the log lacks are read from the source after the
      capture.
    - `is_busy`: its rows are being read, or its mirror is being rewritten.
    - `has_determined_rows`: this batch determines all of its rows: it was created or
      emptied in the batch, or got the rows of another table.
    - `has_all_rows`: all of its rows were or are being read from the source, or were
      copied.
    - `is_undecodable`: it stopped because its rows could not be decoded.
    - `segments`: by the number of the version of its structure.
    """

    name: TableName
    is_captured: bool = True
    state: TableState | None = None
    is_state_changed: bool = False
    quarantine: StoppedTable | None = None
    is_unread: bool = False
    begin: Coordinates | None = None
    pending_reading: SourceReading | None = None
    open_load: SourceReading | None = None
    resumed_version: SchemaVersion | None = None
    structure_order: TableOrder | None = None
    stop_consequence: Consequence | None = None
    doubt_reason: str | None = None
    consent_error: TableError | None = None
    is_completed_later: bool = False
    is_busy: bool = False
    has_determined_rows: bool = False
    has_all_rows: bool = False
    is_undecodable: bool = False
    segments: dict[int, TableSegment] = field(default_factory=dict)

    @property
    def is_wanted(self) -> bool:
        """True if changes of the table are taken, now or from a later place in the log
        on."""
        if not self.is_captured or self.quarantine is not None or self.is_unread:
            return False
        return self.state is None or not self.state.has_stopped

    def takes(self, at: Coordinates) -> bool:
        """Return whether a change at this place in the log is taken."""
        return self.is_wanted and (self.begin is None or self.begin <= at)

    def taken_events(self, group: TransactionGroup, events: Integers) -> Integers | slice:
        """Return an index that selects the events whose changes are taken. `events`:
        the table's events in `group`, one row each."""
        if not self.is_wanted:
            return slice(0)
        if self.begin is None:
            return slice(None)
        transactions = group.transactions[events[:, columns.TRANSACTION]]
        ends = transactions[:, columns.END_OFFSET]
        file_numbers = np.array([file.number for file in group.files])[
            transactions[:, columns.FILE]
        ]
        # `begin` lies between two transactions, so whichever ends after it also begins
        # there or later.
        file, offset = self.begin.file.number, self.begin.offset
        return np.flatnonzero((file_numbers > file) | ((file_numbers == file) & (ends > offset)))

    @property
    def stopped_at(self) -> Coordinates | None:
        """The place at which the table stopped, in this capture or before it. None if
        it did not stop at a known place, or if the capture brings it back."""
        if self.quarantine is not None:
            return self.quarantine.at
        state = self.state
        if not self.is_captured or state is None or state.stopped_by is None:
            return None
        return None if state.stopped is None else state.stopped.at

    @property
    def is_known(self) -> bool:
        """True if the ledger or this capture has a state of the table, so that rows of
        it may be in the lake."""
        return self.state is not None

    @property
    def is_loading(self) -> bool:
        """True if the table's rows are being read from the source and its changes are
        taken."""
        return self.state is not None and self.state.is_loading and self.is_wanted


class CapturedTables:
    """The tables of one capture, by name. A table is added when it is first looked up.

    - `is_captured`: returns whether the patterns of the capture match a table.
    - `last_sequence_before`: the sequence number before the batch's first change.
    - `states`: the tables' states in the ledger; a table without one is new.
    - `past_ranges`: the ranges of the log that earlier runs read, with the patterns of
      each.
    - `complete_since`: returns the batch before which the lake lacks no changes of a
      table, as the ledger's method of this name.
    - `policies_of`: returns a table's policies.
    - `loading_tables`: tables whose rows are read from the source, now or later, each
      with True if an earlier batch has begun to capture the table's changes.
    - `in_scratch_folder`: files are written to the folder of replays, not to the
      changelogs.
    - `counted_only`: tables whose changes are counted and not written, because they are
      no longer shown.
    - `names`: the rules for the names of mirrors. If two mirrors would have the same
      folder, the table that comes earlier in `folder_precedence` gets it.
    - `used_folders`: folders that mirrors used before; no new mirror gets one of them.
    """

    def __init__(
        self,
        store: SegmentStore,
        *,
        source: str,
        batch_id: int,
        last_sequence_before: int = 0,
        is_captured: Callable[[TableName], bool] = lambda table: True,
        states: Mapping[TableName, TableState],
        past_ranges: Sequence[CapturedRange] = (),
        complete_since: Callable[[TableName], int | None] = lambda table: None,
        policies_of: PoliciesOf = lambda table: LakePolicies(),
        loading_tables: Mapping[TableName, bool] | None = None,
        in_scratch_folder: bool = False,
        counted_only: Collection[TableName] = (),
        names: MirrorNames | None = None,
        folder_precedence: Sequence[TableName] = (),
        used_folders: Collection[str] = (),
    ) -> None:
        self.batch_id, self._last_sequence_before = batch_id, last_sequence_before
        self.change_count = 0
        """Number of changes so far: row images, and marks that stand for all rows of a
        table."""
        self.policies_of, self.counted_only = policies_of, counted_only
        self.events: list[TableEvent] = []
        self.snapshots: list[SnapshotFiles] = []
        self.followed_loads: list[FollowedLoad] = []
        self.joined_loads: list[JoinedLoad] = []
        self.finished_loads: list[LoadProgress] = []
        """The progress of the loads that ended."""
        self._store, self._source, self._in_scratch_folder = store, source, in_scratch_folder
        self._is_captured, self._states = is_captured, states
        self._loading_tables = loading_tables or {}
        self._tables: dict[TableName, CapturedTable] = {}
        self.waiting_tables: dict[TableName, CapturedTable] = {}
        """The tables that join the capture, or whose load ends, once the log reaches a
        certain place. They stay in this dictionary after that."""
        self._segments: list[TableSegment] = []
        """The segments of all tables, in the order in which they began."""
        self._unwritten_bytes = 0
        self._names = MirrorNames(source) if names is None else names
        self._used_folders = {*used_folders, *(state.mirror for state in states.values())}
        self._folder_owners: dict[tuple[str, TableName], TableName] = {}
        for table in (*folder_precedence, *states):
            self._take_folders(table)
        self._past_ranges, self._complete_since = past_ranges, complete_since

    def __getitem__(self, name: TableName) -> CapturedTable:
        if name not in self._tables:
            state = self._states.get(name)
            is_loading = name in self._loading_tables if state is None else state.is_loading
            is_unread = is_loading and not self._loading_tables.get(name, False)
            self._tables[name] = CapturedTable(
                name, self._is_captured(name), state, is_unread=is_unread
            )
        return self._tables[name]

    def __iter__(self) -> Iterator[CapturedTable]:
        return iter(self._tables.values())

    def is_wanted(self, table: TableName) -> bool:
        return self[table].is_wanted

    def is_followed(self, table: TableName) -> bool:
        """Return whether the table was followed from the batch's start on, before any
        change of the batch."""
        state = self[table].state
        is_following = state is not None and state.condition is TableCondition.FOLLOWING
        return is_following and self.is_wanted(table) and table not in self.waiting_tables

    def add_readings(self, readings: Sequence[SourceReading]) -> None:
        """Register rows or columns that were or are being read from the source."""
        for reading in readings:
            table = self[reading.table]
            self.waiting_tables[table.name] = table
            table.is_busy = True
            table.begin = reading.low if reading.columns is None else None
            if reading.load is not None and reading.load.followed_from is not None:
                table.open_load = reading
            else:
                table.pending_reading = reading

    def add_returning(
        self, returning_tables: Sequence[ReturningTable], completed_later: Collection[TableName]
    ) -> None:
        """Register stopped tables that are followed again. `completed_later`: tables that
        are read from the source after the capture; until then, values that the log
        lacks do not stop them."""
        for returning_table in returning_tables:
            table = self[returning_table.table]
            self.waiting_tables[table.name] = table
            table.is_busy, table.begin = True, returning_table.begin
            table.resumed_version = returning_table.version
            if returning_table.order.schema is not None:
                table.structure_order = returning_table.order
        for name in completed_later:
            self[name].is_completed_later = True

    @property
    def last_sequence(self) -> int:
        """The sequence number of the last change so far."""
        return self._last_sequence_before + self.change_count

    @property
    def quarantines(self) -> dict[TableName, StoppedTable]:
        """The tables that stopped in this capture."""
        return {table.name: table.quarantine for table in self if table.quarantine is not None}

    @property
    def changed_states(self) -> tuple[TableState, ...]:
        """The states that the capture changed."""
        return tuple(
            table.state for table in self if table.is_state_changed and table.state is not None
        )

    # -- what happens to a table ----------------------------------------------------------

    def note_load_begin(self, version: SchemaVersion) -> None:
        """Note that the table's changes are taken from here on. They are merged once
        all of its rows were read."""
        table = self[version.table]
        table.is_unread, table.has_all_rows = False, True
        self._update_state(version, need=Need.ROWS)

    def note_load_end(self, name: TableName) -> None:
        """Note that all rows of the table were read from the source."""
        table = self[name]
        table.is_unread, table.has_all_rows = False, True
        if table.state is not None and not table.state.is_complete:
            table.state, table.is_state_changed = table.state.without_stop(), True

    def record_copy(self, version: SchemaVersion, origin: TableName, reason: str) -> None:
        """Record that a RENAME gave the table the rows of `origin`, after the last
        change so far. Raise TableError if the table cannot be captured. `reason`: the
        reason to record."""
        table = self[version.table]
        table.has_all_rows = True
        self.segment(version)
        self.record_event(TableEventKind.COPIED, version, reason, origin)
        table.has_determined_rows = True

    def record_event(
        self,
        kind: TableEventKind,
        version: SchemaVersion,
        reason: str | None,
        origin: TableName | None = None,
    ) -> None:
        """Record an event of a table after the last change so far."""
        table = version.table
        if kind in (TableEventKind.CREATED, TableEventKind.TRUNCATED):
            self[table].has_determined_rows = True
        is_dropped = kind is TableEventKind.DROPPED
        self._update_state(
            version, TableCondition.DROPPED if is_dropped else TableCondition.FOLLOWING
        )
        self.events.append(
            TableEvent(
                table, kind, self.last_sequence, version.version, version.since, reason, origin
            )
        )

    def stop(self, name: TableName, at: Coordinates, error: TableError) -> StoppedTable:
        """Stop the table at `at`, and remove its rows of the current transaction."""
        table, quarantine = self[name], StoppedTable.of(name, error, str(at), at)
        table.quarantine = quarantine
        table.state, table.is_state_changed = table.state or self._new_state(name), True
        for segment in table.segments.values():
            self._undo_parts(segment)
        return quarantine

    def end_of_missed_log(self, table: TableName) -> str | None:
        """Return the end of the last part of the log in which the table's changes were
        not read. Return None if there is no such part, or if all of the table's rows
        were determined later: by a CREATE or TRUNCATE, a copy, or a reading from the
        source."""
        captured_table = self[table]
        end = end_of_hole(table, None, self._past_ranges)
        if end is None or captured_table.has_all_rows or captured_table.has_determined_rows:
            return None
        if captured_table.is_known:
            return end_of_hole(table, self._complete_since(table), self._past_ranges)
        return end

    def name_conflict(self, table: TableName) -> TableError | None:
        """Return an error if the table is new and its mirror would have the folder of
        another table's mirror; otherwise None."""
        if self[table].is_known:
            return None
        for name in self._names.folder_names(table):
            owner = self._folder_owners.get(name, table)
            if owner != table and self._names.collide(table, owner):
                return collision_error(table, owner, self._names, in_lake=False)
        return None

    def _take_folders(self, table: TableName) -> None:
        for name in self._names.folder_names(table):
            self._folder_owners.setdefault(name, table)

    # -- rows on their way to files ---------------------------------------------------------

    def segment(self, version: SchemaVersion) -> TableSegment:
        """Return the table's segment under this version, a new one if there is none.
        Raise TableError if the table cannot be captured."""
        segment = self[version.table].segments.get(version.version)
        return segment or self._begin_segment(version)

    def add_mark(
        self,
        kind: ChangeType,
        version: SchemaVersion,
        at: Coordinates,
        gtid: str,
        committed_at: datetime,
        executed_at: datetime,
    ) -> None:
        """Add a change that stands for all rows of the table: at `at`, the table was
        emptied, or all of its rows were replaced by rows that the log does not have."""
        self.change_count += 1
        segment = self.segment(version)
        mark_values = {
            "_change_type": kind.value,
            "_sequence": self.last_sequence,
            "_file": str(at.file),
            "_offset": at.offset,
            "_row": 0,
            "_gtid": gtid or None,
            "_committed_at": committed_at,
            "_executed_at": executed_at,
            "_batch": self.batch_id,
            "_schema_version": version.version,
            "_derived": False,
        }
        segment.first_sequence = segment.first_sequence or self.last_sequence
        segment.last_sequence = self.last_sequence
        self.add(segment, changelog_rows(segment.schema, 1, mark_values))

    def add(self, segment: TableSegment, rows: pa.RecordBatch) -> None:
        """Keep rows in memory. Write them if they fill a row group; write the largest
        tables if the rows of all tables reach `MOST_UNWRITTEN_BYTES`. Rows of a table
        in `counted_only` are discarded."""
        if segment.version.table in self.counted_only:
            return
        segment.unwritten_rows.add(rows)
        self._unwritten_bytes += rows.nbytes
        if segment.unwritten_rows.is_full:
            self._write(segment)
        if self._unwritten_bytes >= MOST_UNWRITTEN_BYTES:
            # Write until half of the limit is left. Otherwise each further batch of
            # rows would cause a small row group.
            by_size = sorted(self._segments, key=lambda other: -other.unwritten_rows.bytes)
            for largest in by_size:
                if self._unwritten_bytes < MOST_UNWRITTEN_BYTES // 2:
                    break
                self._write(largest)

    def begin_part(self, segment: TableSegment) -> None:
        """Note the segment's totals before a part of a transaction, so that `stop` can
        remove the rows that are added from here on. A file is closed here, because rows
        of an open file cannot be removed."""
        if segment.totals_before is None:
            self._write(segment)
            file_count = segment.writer.end_file() if segment.writer is not None else 0
            segment.totals_before = _Totals(
                file_count, segment.counts, segment.first_sequence, segment.last_sequence
            )

    @property
    def rows_of_transaction(self) -> int:
        """The number of rows of the current transaction, without those of stopped
        tables."""
        return sum(
            segment.counts.total - segment.totals_before.counts.total
            for segment in self._segments
            if segment.totals_before is not None
        )

    def end_parts(self) -> None:
        """Note that the transaction is complete, so that its rows remain if a table
        stops."""
        for segment in self._segments:
            segment.totals_before = None

    def _undo_parts(self, segment: TableSegment) -> None:
        """Remove the segment's rows of the current transaction from memory and from its
        files."""
        if (totals := segment.totals_before) is None:
            return
        self._clear(segment)
        if segment.writer is not None:
            segment.writer.drop(totals.file_count)
        segment.counts = totals.counts
        segment.first_sequence = totals.first_sequence
        segment.last_sequence = totals.last_sequence
        segment.totals_before = None

    def drop(self) -> None:
        """Discard all rows in memory and all files."""
        for segment in self._segments:
            self._clear(segment)
            if segment.writer is not None:
                segment.writer.drop(0)

    def finish(self) -> tuple[Segment, ...]:
        """Write and close every file, which makes it durable, and return the segments."""
        segments = []
        for segment in self._segments:
            self._write(segment)
            files = segment.writer.close() if segment.writer is not None else ()
            if files:
                segments.append(
                    Segment(
                        segment.version.table,
                        schema_version=segment.version.version,
                        files=files,
                        counts=segment.counts,
                        first_sequence=segment.first_sequence,
                        last_sequence=segment.last_sequence,
                    )
                )
        return tuple(segments)

    def _write(self, segment: TableSegment) -> None:
        if not segment.unwritten_rows.batches:
            return
        if segment.writer is None:
            segment.writer = self._store.open(
                segment.folder,
                batch=self.batch_id,
                schema_version=segment.version.version,
                schema=segment.schema,
                has_updated=self.policies_of(segment.version.table).updated_columns,
            )
        segment.writer.write(_unwritten_rows(segment))
        self._clear(segment)

    def _clear(self, segment: TableSegment) -> None:
        self._unwritten_bytes -= segment.unwritten_rows.bytes
        segment.unwritten_rows.clear()

    # -- tables seen for the first time ---------------------------------------------------

    def _begin_segment(self, version: SchemaVersion) -> TableSegment:
        """Begin the table's segment under this version. Raise TableError if the table
        cannot be captured: it has a column type that cannot be read, earlier runs did
        not read changes of it, its mirror's folder is another table's, or its engine is
        not supported."""
        table = version.table
        updated_columns = self.policies_of(table).updated_columns
        schema = captured_schema(version.shown_structure, updated=updated_columns)
        if (end := self.end_of_missed_log(table)) is not None:
            raise TableError(hole_sentence(end), hint=resume_reads_hint(table), need=Need.ROWS)
        if (conflict := self.name_conflict(table)) is not None:
            raise conflict
        if (
            version.schema is not None
            and (unsupported := unsupported_error(version.schema)) is not None
        ):
            raise unsupported
        state = self._update_state(version)
        folder = state.changelog
        if self._in_scratch_folder:
            folder = scratch_path(self._source, folder)
        segment = TableSegment(version, folder, schema)
        self[table].segments[version.version] = segment
        self._segments.append(segment)
        return segment

    def _update_state(
        self,
        version: SchemaVersion,
        condition: TableCondition = TableCondition.FOLLOWING,
        need: Need | None = None,
    ) -> TableState:
        """Update the table's state and return it. `need`: what the table lacks from
        here on. A table whose rows are being read keeps the need that it has."""
        table = self[version.table]
        state_before = table.state
        if (
            state_before is not None
            and state_before.is_loading
            and condition is TableCondition.FOLLOWING
        ):
            need = state_before.need
        state = replace(
            state_before or self._new_state(version.table),
            condition=condition,
            need=need,
            changelog=changelog_path(self._source, version.table, version.generation),
            changelog_generation=version.generation,
        )
        if state != state_before:
            table.state, table.is_state_changed = state, True
        return state

    def _new_state(self, table: TableName) -> TableState:
        if self.name_conflict(table) is not None:
            return new_table(self._source, table, no_mirror_path(self._source, table))
        self._take_folders(table)
        # A folder that another table has or had is never used: readers of the folder's
        # old versions would see both tables.
        name, is_configured = self._names.of(table), self._names.is_configured(table)
        mirror = free_mirror_path(
            self._source, name, 1, self._used_folders, ignores_case=is_configured
        )
        self._used_folders.add(mirror)
        return new_table(self._source, table, mirror)


def _unwritten_rows(segment: TableSegment) -> pa.Table:
    """Return the segment's rows in memory. Once a row image has left out a column, all
    later rows of the segment also record which columns each image has."""
    column_count, batches = len(segment.schema), segment.unwritten_rows.batches
    segment.extra_columns = max(
        [segment.extra_columns, *(len(batch.schema) - column_count for batch in batches)]
    )
    if not segment.extra_columns:
        return pa.Table.from_batches(batches, schema=segment.schema)
    names = segment.version.shown_structure.names
    schema = file_schema(segment.schema, names, segment.extra_columns)
    full_batches = []
    for batch in batches:
        missing_columns = [
            pa.nulls(batch.num_rows, data_type) for data_type in schema.types[len(batch.schema) :]
        ]
        full_batches.append(
            pa.RecordBatch.from_arrays([*batch.columns, *missing_columns], schema=schema)
        )
    return pa.Table.from_batches(full_batches)
