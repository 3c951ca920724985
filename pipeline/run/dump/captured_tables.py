"""The tables of one capture: which of their changes are taken, their states, their events, and
their rows, which wait in memory until they are worth a row group of a file."""

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
from lockstep.pipeline.model.load import LoadFollowed, LoadJoined
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
from lockstep.pipeline.run.stop_errors import Reread, mirror_collides, refusal
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

HELD_BYTES = 128 << 20
"""Largest size of the rows in memory, over all tables; beyond it the largest tables are written."""


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


@dataclass(slots=True)
class TableSegment:
    """The segment of a table under one version: rows in memory, a writer, and totals.

    `first` and `last`: sequence numbers of its changes. `place` and `rows_there`: the place in the
    log of its last event and the number of rows up to there, from which `_row` counts on if the
    next event has the same place. `extra_columns`: columns that its files have after those of the
    changelog, because some images left columns out (`file_schema`). `before`: its totals before
    the transaction that is being captured in parts.
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
    """The number of a table's complete files, and its totals, to which `take_back` returns."""

    files: int
    counts: RowCounts
    first: int
    last: int


@dataclass(slots=True)
class CapturedTable:
    """One table of a capture: which of its changes are taken, its state, and its segments.

    - `captured`: the capture is about this table at all.
    - `state`: its state after the last change so far; None if it is new. `touched`: the capture
      changed the state. `stopped`: why and where the table stopped in this capture.
    - `unread`: its rows are still to be read from the source, and its log does not count before.
    - `begins`: the place from which its log counts, if not from the batch's start.
    - `reading`: its rows or columns that were read from the source, until the log reaches the place
      where they were read. `load`: its rows that are being read in chunks, while its log is
      captured.
    - `resumes`: the version of its structure that was recorded at `begins`, until the log gets
      there. `given`: an order with a structure that holds from there on. `stopped_by`: what the
      statement that begins there means for the table.
    - `doubt`: its earlier rows may have changed in an unknown way, for this reason, so that they
      have to be read from the source.
    - `completed`: what the log lacks of it is read from the source after the capture.
    - `busy`: its rows are being read, or its mirror is written again.
    - `defined`: this batch determines all of its rows: it was created or emptied in the batch, or
      got the rows of another table. `read`: all of its rows were read from the source, or copied.
    - `undecodable`: it stopped because of rows that could not be decoded.
    - `segments`: by the number of the version.
    """

    name: TableName
    captured: bool = True
    state: TableState | None = None
    touched: bool = False
    stopped: StoppedTable | None = None
    unread: bool = False
    begins: Coordinates | None = None
    reading: Reread | None = None
    load: Reread | None = None
    resumes: SchemaVersion | None = None
    given: TableOrder | None = None
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
        """True if the table's changes are taken, from here on or from a later place on."""
        if not self.captured or self.stopped is not None or self.unread:
            return False
        return self.state is None or not self.state.has_stopped

    def takes(self, at: Coordinates) -> bool:
        """Return whether a change of the table that begins at this place is taken."""
        return self.wanted and (self.begins is None or self.begins <= at)

    def taken(self, group: TransactionGroup, events: Integers) -> Integers | slice:
        """Return which of the table's events are of transactions whose changes are taken, as an
        index of the array."""
        if not self.wanted:
            return slice(0)
        if self.begins is None:
            return slice(None)
        rows = group.transactions[events[:, columns.TRANSACTION]]
        ends = rows[:, columns.END_OFFSET]
        numbers = np.array([file.number for file in group.files])[rows[:, columns.FILE]]
        file, offset = self.begins.file.number, self.begins.offset
        return np.flatnonzero((numbers > file) | ((numbers == file) & (ends > offset)))

    @property
    def is_known(self) -> bool:
        """True if the table is in the lake, or on its way there."""
        return self.state is not None

    @property
    def loading(self) -> bool:
        """True if the table's rows are being read from the source while its log is captured."""
        return self.state is not None and self.state.loading and self.wanted


class CapturedTables:
    """The tables of one capture, each made when it is asked for.

    - `captured`: returns whether the capture is about a table.
    - `base`: the number before the batch's first change.
    - `states`: the tables' states in the ledger; a table without one is new.
    - `past`: the ranges that earlier runs read, with their patterns.
    - `recorded`: returns the versions of a table that earlier batches recorded.
    - `policies_of`: returns a table's policies.
    - `loading`: tables whose rows are read from the source, each with whether an earlier batch
      already captured its log from the begin of that reading on.
    - `scratch`: files are written to the folder of replays, not to changelogs.
    - `names`: the names of mirrors. If two mirrors would have the same folder, the table that
      comes earlier in `first` gets it.
    - `old`: folders that mirrors had before.
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
        """Number of row images and marks so far."""
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
        """Tables that begin, end or wait for something at a place of the log."""
        self._segments: list[TableSegment] = []
        """In the order in which they began."""
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
            unread = followed is False if state is None else state.loading and not followed
            self._tables[name] = CapturedTable(name, self._captured(name), state, unread=unread)
        return self._tables[name]

    def __iter__(self) -> Iterator[CapturedTable]:
        return iter(self._tables.values())

    def wanted(self, table: TableName) -> bool:
        return self[table].wanted

    def take_up(
        self,
        rereads: Sequence[Reread] = (),
        returning: Sequence[ReturningTable] = (),
        completed: Collection[TableName] = (),
    ) -> None:
        """Take up tables again: `rereads` from the source, `returning` from their own places of the
        log on. `completed`: tables whose rows or columns are read from the server after the log was
        captured, so that values which the log lacks do not stop them."""
        for reread in rereads:
            table = self.taken_up[reread.table] = self[reread.table]
            table.busy = True
            table.begins = reread.low if reread.columns is None else None
            if reread.load is not None and reread.load.followed is not None:
                table.load = reread
            else:
                table.reading = reread
        for comeback in returning:
            table = self.taken_up[comeback.table] = self[comeback.table]
            table.busy, table.begins, table.resumes = True, comeback.low, comeback.version
            table.given = None if comeback.order.schema is None else comeback.order
        for name in completed:
            self[name].completed = True

    @property
    def last(self) -> int:
        """The number of the last change so far."""
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
        """Note that the table's log is captured from here on, and merged only once it is loaded."""
        table = self[version.table]
        table.unread, table.read = False, True
        self._touch(version, need=Need.ROWS)

    def load_ends(self, name: TableName) -> None:
        """Note that all rows of the table were read from the source."""
        table = self[name]
        table.unread, table.read = False, True
        if table.state is not None and not table.state.complete:
            table.state, table.touched = table.state.started(), True

    def copy(self, version: SchemaVersion, origin: TableName, why: str) -> None:
        """Record that a RENAME gave the table the rows of `origin`, after the last change so far.
        TableError if the table may not be captured as it is."""
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
        """Stop the table at `at`: its rows of the current transaction are removed."""
        table = self[name]
        table.stopped = stopped = StoppedTable.of(name, error, str(at), at)
        table.state, table.touched = table.state or self._new(name), True
        for segment in table.segments.values():
            self._take_back(segment)
        return stopped

    def missed(self, table: TableName) -> str | None:
        """Return the end of the last part of the log in which the table's changes were not read.
        None if there is none, or if something determined all of its rows since then."""
        ever, captured = hole(table, None, self._past), self[table]
        if ever is None or captured.read or captured.defined:
            return None
        return hole(table, self._first_batch(table), self._past) if captured.is_known else ever

    def _first_batch(self, table: TableName) -> int | None:
        """Return the batch in which the table's present rows began, None if nothing was recorded.
        Rows outlive an ALTER, whose version has `columns_from`."""
        batch = None
        for version in self._recorded(table):
            if version.knowledge is Knowledge.KNOWN and version.columns_from is None:
                batch = version.batch
        return batch

    def name_conflict(self, table: TableName) -> TableError | None:
        """Return the error of a new table whose mirror would have the folder of another mirror."""
        if self[table].is_known:
            return None
        other = self._holders.get(self._names.folded(table))
        if other in (None, table) or not self._names.meet(table, other):
            return None
        return mirror_collides(table, other, self._names.of(table), known=False)

    # -- rows on their way to files ---------------------------------------------------------

    def segment(self, version: SchemaVersion) -> TableSegment:
        """Return the table under that version, begun now if it has no rows yet. TableError if it
        may not be captured as it is."""
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
        """Add a change that stands for all rows of the table: the transaction that begins at `at`
        emptied it, or its rows were replaced there by rows from elsewhere."""
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
        """Keep rows until they are worth a row group, or all tables together fill the memory."""
        table.unwritten.add(rows)
        self._unwritten_bytes += rows.nbytes
        if table.unwritten.is_full:
            self._write(table)
        if self._unwritten_bytes >= HELD_BYTES:
            by_size = sorted(self._segments, key=lambda other: -other.unwritten.bytes)
            for largest in by_size:
                if self._unwritten_bytes < HELD_BYTES // 2:
                    break
                self._write(largest)

    def begin_part(self, table: TableSegment) -> None:
        """Note the table's totals, so that `take_back` can remove the rows added from here on."""
        if table.before is None:
            self._write(table)
            files = table.writer.cut() if table.writer is not None else 0
            table.before = _Totals(files, table.counts, table.first, table.last)

    @property
    def rows_in_parts(self) -> int:
        """The number of rows of the current transaction, without those taken back."""
        parts = ((table.counts, table.before) for table in self._segments)
        return sum(now.total - before.counts.total for now, before in parts if before is not None)

    def end_parts(self) -> None:
        """Note that the transaction is complete: its rows are no longer taken back."""
        for table in self._segments:
            table.before = None

    def _take_back(self, segment: TableSegment) -> None:
        """Remove the segment's rows of the current transaction, written or not."""
        if (before := segment.before) is None:
            return
        self._clear(segment)
        if segment.writer is not None:
            segment.writer.drop(before.files)
        segment.counts, segment.first, segment.last = before.counts, before.first, before.last
        segment.before = None

    def drop(self) -> None:
        """Discard all rows, written or not."""
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
        # captured_schema raises TableError for a column type that cannot be read.
        policies = self.policies_of(version.table)
        schema = captured_schema(version.shown_structure, updated=policies.updated_columns)
        self._require_no_hole(version)
        if (conflict := self.name_conflict(version.table)) is not None:
            raise conflict
        if version.schema is not None and (refused := refusal(version.schema)) is not None:
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
        """Update the table's state. `need`: what the table lacks from here on; a table that is
        loading keeps its need."""
        table, before = self[version.table], self[version.table].state
        if before is not None and before.loading and condition is TableCondition.FOLLOWING:
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
        # A folder that no other table has or had.
        name, fold = self._names.of(table), self._names.given(table)
        mirror = free_place(self._source, name, 1, self._folders, fold=fold)
        self._folders.add(mirror)
        return new_table(self._source, table, mirror)

    def _require_no_hole(self, version: SchemaVersion) -> None:
        table = version.table
        if (missed := self.missed(table)) is not None:
            raise TableError(
                f"the patterns of earlier runs left it out, so that its changes up to {missed} "
                "were not read",
                hint=f"`lockstep resume {table} --reason …` reads it from the source",
                need=Need.ROWS,
            )


def _unwritten_rows(table: TableSegment) -> pa.Table:
    """Return the rows in memory. From the first image that leaves a column out, all files of the
    table also record which columns each image has."""
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
