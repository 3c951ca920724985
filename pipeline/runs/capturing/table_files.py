"""Rows of a capture's tables on their way to files."""

from __future__ import annotations

from dataclasses import dataclass, field

import pyarrow as pa

from pipeline.changes.marks import file_schema
from pipeline.ports.segments import SegmentStore, SegmentWriter
from pipeline.row_groups import HeldRows
from pipeline.schema.history import SchemaVersion
from pipeline.segment import RowCounts, Segment
from pipeline.table import TableName

HELD_BYTES = 128 << 20
"""Images of all tables are held up to this size; then the largest are written."""


@dataclass(slots=True)
class CapturedTable:
    """A table under one version: the Arrow batches held, its writer and totals.

    `place` and `rows_there`: the last place in the log that rows of it were found at, and
    how many, so that `_row` goes on where several events share a place. `more`: columns that
    its files have behind the changelog's, since images of it left columns out (`file_schema`).
    """

    version: SchemaVersion
    folder: str
    schema: pa.Schema
    held: HeldRows = field(default_factory=HeldRows)
    writer: SegmentWriter | None = None
    counts: RowCounts = field(default_factory=RowCounts)
    first: int = 0
    last: int = 0
    place: tuple[str, int] = ("", 0)
    rows_there: int = 0
    before: _Before | None = None
    more: int = 0


@dataclass(frozen=True, slots=True)
class _Before:
    """What a table had before a transaction that comes in parts."""

    files: int
    counts: RowCounts
    first: int
    last: int


class TableFiles:
    """`updated`: updates say which columns changed."""

    def __init__(self, store: SegmentStore, *, batch: int, updated: bool) -> None:
        self.updated = updated
        self._store = store
        self._batch = batch
        self._open: dict[tuple[TableName, int], CapturedTable] = {}
        self._held_bytes = 0

    def of(self, version: SchemaVersion) -> CapturedTable | None:
        """The table under that version, if it began."""
        return self._open.get((version.table, version.version))

    @property
    def tables(self) -> set[TableName]:
        """Those that began under any version."""
        return {name for name, _ in self._open}

    def has(self, table: TableName) -> bool:
        """Whether it began under any version."""
        return any(name == table for name, _ in self._open)

    def begin(self, version: SchemaVersion, folder: str, schema: pa.Schema) -> CapturedTable:
        """Rows with these columns go into that folder of the lake."""
        table = CapturedTable(version, folder, schema)
        self._open[version.table, version.version] = table
        return table

    def hold(self, one: CapturedTable, rows: pa.RecordBatch) -> None:
        """Keep rows until they are worth a row group, or memory runs short."""
        one.held.add(rows)
        self._held_bytes += rows.nbytes
        if one.held.enough:
            self._write(one)
        if self._held_bytes >= HELD_BYTES:
            for other in sorted(self._open.values(), key=lambda table: -table.held.bytes):
                if self._held_bytes < HELD_BYTES // 2:
                    break
                self._write(other)

    # -- transactions that come in parts ----------------------------------------------

    def begin_part(self, table: CapturedTable) -> None:
        """What is held next may have to be taken back."""
        if table.before is None:
            self._write(table)
            files = table.writer.cut() if table.writer is not None else 0
            table.before = _Before(files, table.counts, table.first, table.last)

    @property
    def rows_in_parts(self) -> int:
        """Rows of the transaction so far, without what was taken back."""
        parts = ((table.counts, table.before) for table in self._open.values())
        return sum(all_.total - before.counts.total for all_, before in parts if before is not None)

    def end_parts(self) -> None:
        """The transaction is whole: nothing of it is taken back any more."""
        for table in self._open.values():
            table.before = None

    def take_back(self, table: TableName) -> None:
        """What the table wrote of it is not written."""
        for (name, _), one in self._open.items():
            if name == table and one.before is not None:
                self._take_back(one, one.before)

    def _take_back(self, table: CapturedTable, before: _Before) -> None:
        self._let_go(table)
        if table.writer is not None:
            table.writer.drop(before.files)
        table.counts, table.first, table.last = before.counts, before.first, before.last
        table.before = None

    # -- files ------------------------------------------------------------------------

    def drop(self) -> None:
        """Nothing that was written counts."""
        for table in self._open.values():
            self._let_go(table)
            if table.writer is not None:
                table.writer.drop(0)

    def finish(self) -> tuple[Segment, ...]:
        """Write and close every file (durable), and name the segments."""
        segments = []
        for (name, version), table in self._open.items():
            self._write(table)
            files = table.writer.close() if table.writer is not None else ()
            if files:
                segments.append(
                    Segment(name, version, files, table.counts, table.first, table.last)
                )
        return tuple(segments)

    def _write(self, table: CapturedTable) -> None:
        if not table.held.batches:
            return
        if table.writer is None:
            table.writer = self._store.open(
                table.folder,
                batch=self._batch,
                schema_version=table.version.version,
                schema=table.schema,
                updated=self.updated,
            )
        table.writer.write(_together(table))
        self._let_go(table)

    def _let_go(self, table: CapturedTable) -> None:
        self._held_bytes -= table.held.bytes
        table.held.clear()


def _together(table: CapturedTable) -> pa.Table:
    """The rows held; from the first image that leaves a column out, with what each has."""
    count = len(table.schema)
    table.more = max([table.more, *(len(batch.schema) - count for batch in table.held.batches)])
    if not table.more:
        return pa.Table.from_batches(table.held.batches, schema=table.schema)
    names = [column.name for column in table.version.structure.columns]
    schema = file_schema(table.schema, names, table.more)
    batches = []
    for batch in table.held.batches:
        lacking = [pa.nulls(batch.num_rows, kind) for kind in schema.types[len(batch.schema) :]]
        batches.append(pa.RecordBatch.from_arrays([*batch.columns, *lacking], schema=schema))
    return pa.Table.from_batches(batches)
