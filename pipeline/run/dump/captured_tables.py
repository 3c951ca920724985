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
    free_place,
    new_table,
    no_place,
    scratch_path,
)
from lockstep.pipeline.mirror.marks import changelog_rows, file_schema
from lockstep.pipeline.model.load import LoadFollowed, LoadJoined, SourceReading
from lockstep.pipeline.model.table_state import (
    SnapshotPart,
    StoppedTable,
    TableCondition,
    TableEvent,
    TableEventKind,
    TableOrder,
    TableState,
)
from lockstep.pipeline.ports.segments import SegmentStore, SegmentWriter
from lockstep.pipeline.run.stop_errors import collision_error, unsupported_error
from lockstep.pipeline.schema.consequences import Consequence, PoliciesOf
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.values.errors import Need, TableError
from lockstep.pipeline.values.mirror_names import MirrorNames
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.row_groups import RowBuffer
from lockstep.pipeline.values.segment import ChangeType, RowCounts, Segment
from lockstep.pipeline.values.table import PastRange, TableName, hole

MOST_UNWRITTEN_BYTES = 128 << 20
"""Largest size in bytes of the rows in memory, over all tables. Once it is reached, the
tables with the most rows in memory are written to their files."""


@dataclass(frozen=True, slots=True)
class ReturningTable:
    """A stopped table that a person ordered to be followed again. `low`: the place in
    the log where it stopped. `version`: the version of its structure there; None if
    none was recorded."""

    order: TableOrder
    low: Coordinates
    version: SchemaVersion | None = None

    @property
    def table(self) -> TableName:
        return self.order.table


@dataclass(slots=True)
class TableSegment:
    """The segment of a table under one version: rows in memory, a writer, and totals.

    - `folder`: the folder of its files, which is that of the changelog, except in a replay.
    - `schema`: the schema of the changelog.
    - `first`, `last`: sequence numbers of its first and last change; 0 if it has none.
    - `place`, `rows_there`: file and offset of its last event, and the number of rows that events
      at this offset have so far. If the next event has the same offset, its `_row` begins there.
    - `extra_columns`: number of columns that the files have after those of the changelog, because
      some row images leave columns out (see `file_schema`).
    - `before`: its totals before the current transaction, if that is captured in parts.
    """

    version: SchemaVersion
    folder: str
    schema: pa.Schema
    unwritten: RowBuffer = field(default_factory=RowBuffer)
    writer: SegmentWriter | None = None
    counts: RowCounts = field(default_factory=RowCounts)
    first: int = 0
    last: int = 0
    place: tuple[str, int] = ("", 0)
    rows_there: int = 0
    before: _Totals | None = None
    extra_columns: int = 0


@dataclass(frozen=True, slots=True)
class _Totals:
    """A segment before a transaction that is captured in parts: its number of complete
    files and its totals. If the table stops inside the transaction, the segment is set
    back to this."""

    files: int
    counts: RowCounts
    first: int
    last: int


@dataclass(slots=True)
class CapturedTable:
    """One table of a capture: which of its changes are taken, its state, and its
    segments.

    - `captured`: the patterns of the capture match the table.
    - `state`: its state after the last change so far; None if the table is new. `touched`: the
      capture changed the state. `stopped`: why and where the table stopped in this capture.
    - `unread`: its rows have yet to be read from the source (MySQL); until that reading begins,
      none of its changes are taken.
    - `begins`: the place in the log from which its changes are taken; None for the batch's start.
    - `reading`: rows or columns of it that were read from the source. It is None again once the log
      reaches the place where they were read.
    - `load`: its rows are being read in chunks while its log is captured.
    - `resumed_version`: the version of its structure that was recorded at `begins`. It is None
      again once the log reaches that place.
    - `structure_order`: a person's order that gives the table's structure from `begins` on.
      `stopped_by`: the consequence for the table of the statement at `begins`.
    - `doubt`: why its earlier rows may have changed without being logged, so that they have to be
      read from the source; None if they are certain.
    - `completed`: values that the log lacks are read from the source after the capture.
    - `busy`: its rows are being read, or its mirror is being rewritten.
    - `defined`: this batch determines all of its rows: it was created or emptied in the batch, or
      got the rows of another table. `read`: all of its rows were read from the source, or copied.
    - `undecodable`: it stopped because its rows could not be decoded.
    - `segments`: by the number of the version of its structure.
    """

    name: TableName
    captured: bool = True
    state: TableState | None = None
    touched: bool = False
    stopped: StoppedTable | None = None
    unread: bool = False
    begins: Coordinates | None = None
    reading: SourceReading | None = None
    load: SourceReading | None = None
    resumed_version: SchemaVersion | None = None
    structure_order: TableOrder | None = None
    stopped_by: Consequence | None = None
    doubt: str | None = None
    completed: bool = False
    busy: bool = False
    defined: bool = False
    read: bool = False
    undecodable: bool = False
    segments: dict[int, TableSegment] = field(default_factory=dict)

    @property
    def wanted(self) -> bool:
        """True if changes of the table are taken, now or from a later place in the log
        on."""
        if not self.captured or self.stopped is not None or self.unread:
            return False
        return self.state is None or not self.state.has_stopped

    def takes(self, at: Coordinates) -> bool:
        """Return whether a change at this place in the log is taken."""
        return self.wanted and (self.begins is None or self.begins <= at)

    def taken(self, group: TransactionGroup, events: Integers) -> Integers | slice:
        """Return an index that selects the events whose changes are taken. `events`:
        the table's events in `group`, one row each."""
        if not self.wanted:
            return slice(0)
        if self.begins is None:
            return slice(None)
        rows = group.transactions[events[:, columns.TRANSACTION]]
        ends = rows[:, columns.END_OFFSET]
        numbers = np.array([file.number for file in group.files])[rows[:, columns.FILE]]
        # `begins` is a boundary: a transaction that ends after it begins there or
        # later.
        file, offset = self.begins.file.number, self.begins.offset
        return np.flatnonzero((numbers > file) | ((numbers == file) & (ends > offset)))

    @property
    def is_known(self) -> bool:
        """True if the ledger or this capture has a state of the table, so that rows of
        it may be in the lake."""
        return self.state is not None

    @property
    def loading(self) -> bool:
        """True if the table's rows are being read from the source and its changes are
        taken."""
        return self.state is not None and self.state.is_loading and self.wanted


class CapturedTables:
    """The tables of one capture, by name. A table is added when it is first looked up.

    - `captured`: returns whether the patterns of the capture match a table.
    - `base`: the sequence number before the batch's first change.
    - `states`: the tables' states in the ledger; a table without one is new.
    - `past`: the ranges of the log that earlier runs read, with the patterns of each.
    - `recorded`: returns the versions of a table's structure that earlier batches recorded.
    - `policies_of`: returns a table's policies.
    - `loading`: tables whose rows are read from the source. The value is True if an earlier batch
      has begun to capture the table's changes during that reading.
    - `scratch`: files are written to the folder of replays, not to the changelogs.
    - `names`: the rules for the names of mirrors. If two mirrors would have the same folder, the
      table that comes earlier in `first` gets it.
    - `old`: folders that mirrors used before; no new mirror gets one of them.
    """

    def __init__(
        self,
        store: SegmentStore,
        *,
        source: str,
        batch: int,
        base: int = 0,
        captured: Callable[[TableName], bool] = lambda table: True,
        states: Mapping[TableName, TableState],
        past: Sequence[PastRange] = (),
        recorded: Callable[[TableName], Sequence[SchemaVersion]] = lambda table: (),
        policies_of: PoliciesOf = lambda table: LakePolicies(),
        loading: Mapping[TableName, bool] | None = None,
        scratch: bool = False,
        names: MirrorNames | None = None,
        first: Sequence[TableName] = (),
        old: Collection[str] = (),
    ) -> None:
        self.batch, self._base = batch, base
        self.changes = 0
        """Number of changes so far: row images, and marks that stand for all rows of a
        table."""
        self.policies_of = policies_of
        self.events: list[TableEvent] = []
        self.snapshots: list[SnapshotPart] = []
        self.followed: list[LoadFollowed] = []
        self.joined: list[LoadJoined] = []
        self.loaded: list[LoadProgress] = []
        """The progress of the loads that ended."""
        self._store, self._source, self._scratch = store, source, scratch
        self._captured, self._states, self._loading = captured, states, loading or {}
        self._tables: dict[TableName, CapturedTable] = {}
        self.taken_up: dict[TableName, CapturedTable] = {}
        """Tables whose capture, load or read rows begin or end at a place that the log
        has yet to reach."""
        self._segments: list[TableSegment] = []
        """The segments of all tables, in the order in which they began."""
        self._unwritten_bytes = 0
        self._names = MirrorNames(source) if names is None else names
        self._folders = {*old, *(state.mirror for state in states.values())}
        self._holders: dict[TableName, TableName] = {}
        for table in (*first, *states) if self._names.rules else ():
            self._holders.setdefault(self._names.folded(table), table)
        self._past, self._recorded = past, recorded

    def __getitem__(self, name: TableName) -> CapturedTable:
        if name not in self._tables:
            state, followed = self._states.get(name), self._loading.get(name)
            unread = followed is False if state is None else state.is_loading and not followed
            self._tables[name] = CapturedTable(name, self._captured(name), state, unread=unread)
        return self._tables[name]

    def __iter__(self) -> Iterator[CapturedTable]:
        return iter(self._tables.values())

    def wanted(self, table: TableName) -> bool:
        return self[table].wanted

    def take_up(
        self,
        rereads: Sequence[SourceReading] = (),
        returning: Sequence[ReturningTable] = (),
        completed: Collection[TableName] = (),
    ) -> None:
        """Register the tables that do not simply continue with this batch.

        - `rereads`: rows or columns that were or are being read from the source.
        - `returning`: stopped tables that are followed again from the place where they stopped.
        - `completed`: tables that are read from the source after the capture. Values that the log
          lacks do not stop them.
        """
        for reread in rereads:
            table = self.taken_up[reread.table] = self[reread.table]
            table.busy = True
            table.begins = reread.low if reread.columns is None else None
            if reread.load is not None and reread.load.followed_from is not None:
                table.load = reread
            else:
                table.reading = reread
        for stopped in returning:
            table = self.taken_up[stopped.table] = self[stopped.table]
            table.busy, table.begins, table.resumed_version = True, stopped.low, stopped.version
            table.structure_order = None if stopped.order.schema is None else stopped.order
        for name in completed:
            self[name].completed = True

    @property
    def last(self) -> int:
        """The sequence number of the last change so far."""
        return self._base + self.changes

    @property
    def stopped(self) -> dict[TableName, StoppedTable]:
        """The tables that stopped in this capture."""
        return {table.name: table.stopped for table in self if table.stopped is not None}

    @property
    def touched(self) -> tuple[TableState, ...]:
        """The states that the capture changed."""
        return tuple(table.state for table in self if table.touched and table.state is not None)

    # -- what happens to a table ----------------------------------------------------------

    def load_begins(self, version: SchemaVersion) -> None:
        """Note that the table's changes are taken from here on. They are merged once
        all of its rows were read."""
        table = self[version.table]
        table.unread, table.read = False, True
        self._touch(version, need=Need.ROWS)

    def load_ends(self, name: TableName) -> None:
        """Note that all rows of the table were read from the source."""
        table = self[name]
        table.unread, table.read = False, True
        if table.state is not None and not table.state.is_complete:
            table.state, table.touched = table.state.as_started(), True

    def copy(self, version: SchemaVersion, origin: TableName, why: str) -> None:
        """Record that a RENAME gave the table the rows of `origin`, after the last
        change so far. Raise TableError if the table cannot be captured. `why`: the
        reason to record."""
        table = self[version.table]
        table.read = True
        self.segment(version)
        self.record_event(TableEventKind.COPIED, version, why, origin)
        table.defined = True

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
            self[table].defined = True
        dropped = kind is TableEventKind.DROPPED
        self._touch(version, TableCondition.DROPPED if dropped else TableCondition.FOLLOWING)
        self.events.append(
            TableEvent(table, kind, self.last, version.version, version.since, reason, origin)
        )

    def stop(self, name: TableName, at: Coordinates, error: TableError) -> StoppedTable:
        """Stop the table at `at`, and remove its rows of the current transaction."""
        table = self[name]
        table.stopped = stopped = StoppedTable.of(name, error, str(at), at)
        table.state, table.touched = table.state or self._new(name), True
        for segment in table.segments.values():
            self._take_back(segment)
        return stopped

    def missed(self, table: TableName) -> str | None:
        """Return the end of the last part of the log in which the table's changes were
        not read. Return None if there is no such part, or if all of its rows were
        determined later: by a CREATE or TRUNCATE, a copy, or a reading from the
        source."""
        ever, captured = hole(table, None, self._past), self[table]
        if ever is None or captured.read or captured.defined:
            return None
        return hole(table, self._first_batch(table), self._past) if captured.is_known else ever

    def _first_batch(self, table: TableName) -> int | None:
        """Return the batch in which the table was created or first read; None if no
        version of its structure was recorded. A version after an ALTER does not count:
        it has `columns_from`, because the rows of the version before it remain."""
        batch = None
        for version in self._recorded(table):
            if version.knowledge is Knowledge.KNOWN and version.columns_from is None:
                batch = version.batch
        return batch

    def name_conflict(self, table: TableName) -> TableError | None:
        """Return an error if the table is new and its mirror would have the folder of
        another table's mirror; otherwise None."""
        if self[table].is_known:
            return None
        other = self._holders.get(self._names.folded(table))
        if other in (None, table) or not self._names.meet(table, other):
            return None
        return collision_error(table, other, self._names.of(table), in_lake=False)

    # -- rows on their way to files ---------------------------------------------------------

    def segment(self, version: SchemaVersion) -> TableSegment:
        """Return the table's segment under this version, a new one if there is none.
        Raise TableError if the table cannot be captured."""
        segment = self[version.table].segments.get(version.version)
        return segment or self._first_seen(version)

    def mark(
        self,
        kind: ChangeType,
        version: SchemaVersion,
        at: Coordinates,
        gtid: str,
        committed_at: datetime,
        executed_at: datetime,
    ) -> None:
        """Add a change that stands for all rows of the table: at `at`, it was emptied,
        or all of its rows were replaced by rows that the log does not have."""
        self.changes += 1
        table = self.segment(version)
        marks = {
            "_change_type": kind.value,
            "_sequence": self.last,
            "_file": str(at.file),
            "_offset": at.offset,
            "_row": 0,
            "_gtid": gtid or None,
            "_committed_at": committed_at,
            "_executed_at": executed_at,
            "_batch": self.batch,
            "_schema_version": version.version,
            "_derived": False,
        }
        table.first, table.last = table.first or self.last, self.last
        self.add(table, changelog_rows(table.schema, 1, marks))

    def add(self, table: TableSegment, rows: pa.RecordBatch) -> None:
        """Keep rows in memory. Write them if they fill a row group; write the largest
        tables if the rows of all tables reach `MOST_UNWRITTEN_BYTES`."""
        table.unwritten.add(rows)
        self._unwritten_bytes += rows.nbytes
        if table.unwritten.is_full:
            self._write(table)
        if self._unwritten_bytes >= MOST_UNWRITTEN_BYTES:
            # Down to half, so that not every further batch of rows causes a small row
            # group.
            by_size = sorted(self._segments, key=lambda other: -other.unwritten.bytes)
            for largest in by_size:
                if self._unwritten_bytes < MOST_UNWRITTEN_BYTES // 2:
                    break
                self._write(largest)

    def begin_part(self, table: TableSegment) -> None:
        """Note the segment's totals before a part of a transaction, so that `stop` can
        remove the rows that are added from here on. A file is closed here, because rows
        of an open file cannot be removed."""
        if table.before is None:
            self._write(table)
            files = table.writer.cut() if table.writer is not None else 0
            table.before = _Totals(files, table.counts, table.first, table.last)

    @property
    def rows_in_parts(self) -> int:
        """The number of rows of the current transaction, without those of stopped
        tables."""
        parts = ((table.counts, table.before) for table in self._segments)
        return sum(now.total - before.counts.total for now, before in parts if before is not None)

    def end_parts(self) -> None:
        """Note that the transaction is complete, so that its rows remain if a table
        stops."""
        for table in self._segments:
            table.before = None

    def _take_back(self, segment: TableSegment) -> None:
        """Remove the segment's rows of the current transaction from memory and from its
        files."""
        if (before := segment.before) is None:
            return
        self._clear(segment)
        if segment.writer is not None:
            segment.writer.drop(before.files)
        segment.counts, segment.first, segment.last = before.counts, before.first, before.last
        segment.before = None

    def drop(self) -> None:
        """Discard all rows in memory and all files."""
        for segment in self._segments:
            self._clear(segment)
            if segment.writer is not None:
                segment.writer.drop(0)

    def finish(self) -> tuple[Segment, ...]:
        """Write and close every file, which makes it durable, and return the segments."""
        segments = []
        for table in self._segments:
            self._write(table)
            files = table.writer.close() if table.writer is not None else ()
            if files:
                name, number = table.version.table, table.version.version
                segments.append(Segment(name, number, files, table.counts, table.first, table.last))
        return tuple(segments)

    def _write(self, table: TableSegment) -> None:
        if not table.unwritten.batches:
            return
        if table.writer is None:
            table.writer = self._store.open(
                table.folder,
                batch=self.batch,
                schema_version=table.version.version,
                schema=table.schema,
                updated=self.policies_of(table.version.table).updated_columns,
            )
        table.writer.write(_unwritten_rows(table))
        self._clear(table)

    def _clear(self, table: TableSegment) -> None:
        self._unwritten_bytes -= table.unwritten.bytes
        table.unwritten.clear()

    # -- tables seen for the first time ---------------------------------------------------

    def _first_seen(self, version: SchemaVersion) -> TableSegment:
        """Begin the table's segment under this version. Raise TableError if the table
        cannot be captured."""
        # captured_schema raises TableError for a column type that cannot be read.
        policies = self.policies_of(version.table)
        schema = captured_schema(version.shown_structure, updated=policies.updated_columns)
        self._require_no_hole(version)
        if (conflict := self.name_conflict(version.table)) is not None:
            raise conflict
        if (
            version.schema is not None
            and (refused := unsupported_error(version.schema)) is not None
        ):
            raise refused
        state = self._touch(version)
        folder = state.changelog
        if self._scratch:
            folder = scratch_path(self._source, folder)
        segment = TableSegment(version, folder, schema)
        self[version.table].segments[version.version] = segment
        self._segments.append(segment)
        return segment

    def _touch(
        self,
        version: SchemaVersion,
        condition: TableCondition = TableCondition.FOLLOWING,
        need: Need | None = None,
    ) -> TableState:
        """Update the table's state and return it. `need`: what the table lacks from
        here on. A table whose rows are being read keeps the need that it has."""
        table, before = self[version.table], self[version.table].state
        if before is not None and before.is_loading and condition is TableCondition.FOLLOWING:
            need = before.need
        state = replace(
            before or self._new(version.table),
            condition=condition,
            need=need,
            changelog=changelog_path(self._source, version.table, version.generation),
            changelog_generation=version.generation,
        )
        if state != before:
            table.state, table.touched = state, True
        return state

    def _new(self, table: TableName) -> TableState:
        if self.name_conflict(table) is not None:
            return new_table(self._source, table, no_place(self._source, table))
        if self._names.rules:
            self._holders.setdefault(self._names.folded(table), table)
        # Not a folder that another table has or had: readers of its old versions would
        # see both.
        name, fold = self._names.of(table), self._names.is_configured(table)
        mirror = free_place(self._source, name, 1, self._folders, fold=fold)
        self._folders.add(mirror)
        return new_table(self._source, table, mirror)

    def _require_no_hole(self, version: SchemaVersion) -> None:
        """Raise TableError if earlier runs did not read changes of the table."""
        table = version.table
        if (missed := self.missed(table)) is not None:
            raise TableError(
                f"the patterns of earlier runs left it out, so that its changes up to {missed} "
                "were not read",
                hint=f"`lockstep resume {table} --reason …` reads it from the source",
                need=Need.ROWS,
            )


def _unwritten_rows(table: TableSegment) -> pa.Table:
    """Return the segment's rows in memory. Once a row image has left out a column, all
    later rows of the segment also record which columns each image has."""
    count, rows = len(table.schema), table.unwritten.batches
    table.extra_columns = max([table.extra_columns, *(len(batch.schema) - count for batch in rows)])
    if not table.extra_columns:
        return pa.Table.from_batches(rows, schema=table.schema)
    names = [column.name for column in table.version.shown_structure.columns]
    schema = file_schema(table.schema, names, table.extra_columns)
    batches = []
    for batch in rows:
        lacking = [pa.nulls(batch.num_rows, kind) for kind in schema.types[len(batch.schema) :]]
        batches.append(pa.RecordBatch.from_arrays([*batch.columns, *lacking], schema=schema))
    return pa.Table.from_batches(batches)
