"""The tables of one capture: their states, their events, and their rows, which wait in memory
until they are worth a row group of a file."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

import pyarrow as pa

from lockstep.pipeline.mirror.layout import (
    captured_schema,
    changelog_path,
    free_place,
    new_table,
    no_place,
)
from lockstep.pipeline.mirror.marks import changelog_rows, file_schema
from lockstep.pipeline.model.table_state import (
    StoppedTable,
    TableCondition,
    TableEvent,
    TableEventKind,
    TableState,
)
from lockstep.pipeline.ports.segments import SegmentStore, SegmentWriter
from lockstep.pipeline.run.stop_errors import mirror_collides, refusal
from lockstep.pipeline.schema.history import Knowledge, SchemaVersion
from lockstep.pipeline.values.errors import Need, TableError
from lockstep.pipeline.values.mirror_names import MirrorNames
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.row_groups import RowBuffer
from lockstep.pipeline.values.segment import ChangeType, RowCounts, Segment
from lockstep.pipeline.values.table import PastRange, TableName, hole

HELD_BYTES = 128 << 20
"""Largest size of the rows in memory, over all tables; beyond it the largest tables are written."""


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


class TableFiles:
    """The rows of a capture on their way to files. `updated`: returns whether the updates of a
    table record which columns changed."""

    def __init__(
        self, store: SegmentStore, *, batch: int, updated: Callable[[TableName], bool]
    ) -> None:
        self.updated = updated
        self._store = store
        self._batch = batch
        self._open: dict[tuple[TableName, int], TableSegment] = {}
        self._unwritten_bytes = 0

    def get(self, version: SchemaVersion) -> TableSegment | None:
        """Return the table under that version, or None if it has no rows yet."""
        return self._open.get((version.table, version.version))

    @property
    def tables(self) -> set[TableName]:
        """The tables that have rows, under any version."""
        return {name for name, _ in self._open}

    def begin(self, version: SchemaVersion, folder: str, schema: pa.Schema) -> TableSegment:
        """Begin a segment whose rows have these columns, in that folder of the lake."""
        table = TableSegment(version, folder, schema)
        self._open[version.table, version.version] = table
        return table

    def add(self, table: TableSegment, rows: pa.RecordBatch) -> None:
        """Keep rows until they are worth a row group, or all tables together fill the memory."""
        table.unwritten.add(rows)
        self._unwritten_bytes += rows.nbytes
        if table.unwritten.is_full:
            self._write(table)
        if self._unwritten_bytes >= HELD_BYTES:
            by_size = sorted(self._open.values(), key=lambda other: -other.unwritten.bytes)
            for largest in by_size:
                if self._unwritten_bytes < HELD_BYTES // 2:
                    break
                self._write(largest)

    # -- transactions that come in parts ----------------------------------------------

    def begin_part(self, table: TableSegment) -> None:
        """Note the table's totals, so that `take_back` can remove the rows added from here on."""
        if table.before is None:
            self._write(table)
            files = table.writer.cut() if table.writer is not None else 0
            table.before = _Totals(files, table.counts, table.first, table.last)

    @property
    def rows_in_parts(self) -> int:
        """The number of rows of the current transaction, without those taken back."""
        parts = ((table.counts, table.before) for table in self._open.values())
        return sum(now.total - before.counts.total for now, before in parts if before is not None)

    def end_parts(self) -> None:
        """Note that the transaction is complete: its rows are no longer taken back."""
        for table in self._open.values():
            table.before = None

    def take_back(self, table: TableName) -> None:
        """Remove the table's rows of the current transaction, written or not."""
        for (name, _), segment in self._open.items():
            if name == table and (before := segment.before) is not None:
                self._clear(segment)
                if segment.writer is not None:
                    segment.writer.drop(before.files)
                segment.counts, segment.first, segment.last = (
                    before.counts,
                    before.first,
                    before.last,
                )
                segment.before = None

    # -- files ------------------------------------------------------------------------

    def drop(self) -> None:
        """Discard all rows, written or not."""
        for table in self._open.values():
            self._clear(table)
            if table.writer is not None:
                table.writer.drop(0)

    def finish(self) -> tuple[Segment, ...]:
        """Write and close every file, which makes it durable, and return the segments."""
        segments = []
        for (name, version), table in self._open.items():
            self._write(table)
            files = table.writer.close() if table.writer is not None else ()
            if files:
                segments.append(
                    Segment(name, version, files, table.counts, table.first, table.last)
                )
        return tuple(segments)

    def _write(self, table: TableSegment) -> None:
        if not table.unwritten.batches:
            return
        if table.writer is None:
            table.writer = self._store.open(
                table.folder,
                batch=self._batch,
                schema_version=table.version.version,
                schema=table.schema,
                updated=self.updated(table.version.table),
            )
        table.writer.write(_unwritten_rows(table))
        self._clear(table)

    def _clear(self, table: TableSegment) -> None:
        self._unwritten_bytes -= table.unwritten.bytes
        table.unwritten.clear()


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


_NONE: Mapping[TableName, bool] = MappingProxyType({})


class CapturedTables:
    """The tables of one capture.

    - `base`: the number before the batch's first change.
    - `states`: the tables' states in the ledger; a table without one is new.
    - `past`: the ranges that earlier runs read, with their patterns.
    - `recorded`: returns the versions of a table that earlier batches recorded.
    - `updated`: returns whether the updates of a table record which columns changed.
    - `loading`: tables whose rows are read from the source, each with whether an earlier batch
      already captured its log from the begin of that reading on.
    - `place`: maps a changelog's folder to the folder in which its files are written.
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
        states: Mapping[TableName, TableState],
        past: Sequence[PastRange] = (),
        recorded: Callable[[TableName], Sequence[SchemaVersion]] = lambda table: (),
        updated: Callable[[TableName], bool] = lambda table: False,
        loading: Mapping[TableName, bool] = _NONE,
        place: Callable[[str], str] = str,
        names: MirrorNames | None = None,
        first: Sequence[TableName] = (),
        old: Collection[str] = (),
    ) -> None:
        self.files = TableFiles(store, batch=batch, updated=updated)
        self.batch, self._base = batch, base
        self.changes = 0
        """Number of row images and marks so far."""
        self._source, self._place = source, place
        self._states = dict(states)
        self._names = MirrorNames(source) if names is None else names
        self._taken = {*old, *(state.mirror for state in states.values())}
        self._holders: dict[TableName, TableName] = {}
        for table in (*first, *states) if self._names.rules else ():
            self._holders.setdefault(self._names.folded(table), table)
        self._past, self._recorded = past, recorded
        self._defined: set[TableName] = set()
        self._read: set[TableName] = set()
        self.events: list[TableEvent] = []
        self.touched: dict[TableName, TableState] = {}
        self.quarantined: dict[TableName, StoppedTable] = {}
        self._waiting = {
            *(table for table, followed in loading.items() if not followed and table not in states),
            *(table for table, state in states.items() if state.loading and not loading.get(table)),
        }

    @property
    def last(self) -> int:
        """The number of the last change so far."""
        return self._base + self.changes

    def wanted(self, table: TableName) -> bool:
        """Return whether a table's rows are captured: it has neither stopped, nor waits for the
        place from which its log counts."""
        if table in self.quarantined or table in self._waiting:
            return False
        state = self._states.get(table)
        return state is None or not state.has_stopped

    @property
    def states(self) -> Mapping[TableName, TableState]:
        """The states of the tables after the last change so far."""
        return self._states

    def is_defined_by_batch(self, table: TableName) -> bool:
        """Return whether this batch determines all rows of the table: it was created or emptied
        in the batch, or got the rows of another table."""
        return table in self._defined

    def note_defined(self, table: TableName) -> None:
        """Note that from here on this batch determines all rows of the table."""
        self._defined.add(table)

    def is_known(self, table: TableName) -> bool:
        """Return whether the table is in the lake, or on its way there."""
        return table in self._states

    def loading(self, table: TableName) -> bool:
        """Return whether the table's rows are being read from the source while its log is
        captured."""
        state = self._states.get(table)
        return state is not None and state.loading and self.wanted(table)

    def load_begins(self, version: SchemaVersion) -> None:
        """Note that the table's log is captured from here on, and merged only once it is loaded."""
        self._waiting.discard(version.table)
        self._read.add(version.table)
        self._touch(version, need=Need.ROWS)

    def loaded(self, table: TableName) -> None:
        """Note that all rows of the table were read from the source."""
        self._waiting.discard(table)
        self._read.add(table)
        state = self._states.get(table)
        if state is not None and not state.complete:
            state = state.started()
            self._states[table] = self.touched[table] = state

    def missed(self, table: TableName) -> str | None:
        """Return the end of the last part of the log in which the table's changes were not read.
        None if there is none, or if something determined all of its rows since then."""
        ever = hole(table, None, self._past)
        if ever is None or table in self._read or table in self._defined:
            return None
        return hole(table, self._first_batch(table), self._past) if table in self._states else ever

    def _first_batch(self, table: TableName) -> int | None:
        """Return the batch in which the table's present rows began, None if nothing was recorded.
        Rows outlive an ALTER, whose version has `columns_from`."""
        batch = None
        for version in self._recorded(table):
            if version.knowledge is Knowledge.KNOWN and version.columns_from is None:
                batch = version.batch
        return batch

    def segment(self, version: SchemaVersion) -> TableSegment:
        """Return the table under that version, begun now if it has no rows yet. TableError if it
        may not be captured as it is."""
        return self.files.get(version) or self._first_seen(version)

    def copy(self, version: SchemaVersion, origin: TableName, why: str) -> None:
        """Record that a RENAME gave the table the rows of `origin`, after the last change so far.
        TableError if the table may not be captured as it is."""
        self._read.add(version.table)
        self.segment(version)
        self.record_event(TableEventKind.COPIED, version, why, origin)
        self.note_defined(version.table)

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
            self.note_defined(table)
        dropped = kind is TableEventKind.DROPPED
        self._touch(version, TableCondition.DROPPED if dropped else TableCondition.FOLLOWING)
        self.events.append(
            TableEvent(table, kind, self.last, version.version, version.since, reason, origin)
        )

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
        self.files.add(table, changelog_rows(table.schema, 1, marks))

    def quarantine(self, table: TableName, at: Coordinates, error: TableError) -> StoppedTable:
        """Stop the table at `at`: its rows of the current transaction are removed."""
        quarantined = StoppedTable.of(table, error, str(at), at)
        self.quarantined[table] = quarantined
        state = self._states.get(table) or self._new(table)
        self._states[table] = self.touched[table] = state
        self.files.take_back(table)
        return quarantined

    # -- tables seen for the first time ---------------------------------------------------

    def _first_seen(self, version: SchemaVersion) -> TableSegment:
        # captured_schema raises TableError for a column type that cannot be read.
        updated = self.files.updated(version.table)
        schema = captured_schema(version.shown_structure, updated=updated)
        self._require_no_hole(version)
        if (conflict := self.name_conflict(version.table)) is not None:
            raise conflict
        if version.schema is not None and (refused := refusal(version.schema)) is not None:
            raise refused
        state = self._touch(version)
        return self.files.begin(version, self._place(state.changelog), schema)

    def _touch(
        self,
        version: SchemaVersion,
        condition: TableCondition = TableCondition.FOLLOWING,
        need: Need | None = None,
    ) -> TableState:
        """Update the table's state. `need`: what the table lacks from here on; a table that is
        loading keeps its need."""

        table = version.table
        before = self._states.get(table)
        if before is not None and before.loading and condition is TableCondition.FOLLOWING:
            need = before.need
        state = replace(
            before or self._new(table),
            condition=condition,
            need=need,
            changelog=changelog_path(self._source, table, version.generation),
            changelog_generation=version.generation,
        )
        if state != before:
            self._states[table] = self.touched[table] = state
        return state

    def name_conflict(self, table: TableName) -> TableError | None:
        """Return the error of a new table whose mirror would have the folder of another mirror."""
        if table in self._states:
            return None
        other = self._holders.get(self._names.folded(table))
        if other in (None, table) or not self._names.meet(table, other):
            return None
        return mirror_collides(table, other, self._names.of(table), known=False)

    def _new(self, table: TableName) -> TableState:
        if self.name_conflict(table) is not None:
            return new_table(self._source, table, no_place(self._source, table))
        if self._names.rules:
            self._holders.setdefault(self._names.folded(table), table)
        return new_table(self._source, table, self._new_folder(table))

    def _new_folder(self, table: TableName) -> str:
        """Return a folder for a new mirror, which no other table has or had."""
        name, fold = self._names.of(table), self._names.given(table)
        mirror = free_place(self._source, name, 1, self._taken, fold=fold)
        self._taken.add(mirror)
        return mirror

    def _require_no_hole(self, version: SchemaVersion) -> None:
        table = version.table
        if (missed := self.missed(table)) is not None:
            raise TableError(
                f"the patterns of earlier runs left it out, so that its changes up to {missed} "
                "were not read",
                hint=f"`lockstep resume {table} --reason …` reads it from the source",
                need=Need.ROWS,
            )
