"""Rows of `_transactions` and `_ddl` while a capture goes on, on their way to files."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.ring import Integers, TransactionGroup
from pipeline.binlog.stream.texts import MOST_BYTES
from pipeline.changes.marks import TransactionMarks
from pipeline.changes.source_tables import (
    SCHEMAS,
    PlacedStatement,
    source_table_path,
    statement_rows,
    transaction_rows,
)
from pipeline.ports.segments import SegmentStore, SegmentWriter
from pipeline.row_groups import HeldRows
from pipeline.schema.consequences import Consequence
from pipeline.schema.history import History
from pipeline.schema.logged import FollowedStatement, LoggedStatement
from pipeline.segment import SourcePart, SourceTable
from pipeline.table import TableName

_VERSION = 1
"""These tables have one structure."""


class CountedTransactions:
    """What a run's transactions changed, counted block by block; `before`: the number of the
    last change before the run, `marks`: of those that stand for its first transaction."""

    def __init__(self, group: TransactionGroup, before: int, marks: tuple[int, ...] = ()) -> None:
        self._before, self._marks = before, marks
        self.rows: Integers = np.zeros(len(group.transactions), np.int64)
        self._images: Integers = np.zeros(len(group.transactions), np.int64)

    def add(self, events: Integers, rows: Integers, images: Integers) -> None:
        """Rows and images of each event of a block."""
        of, number = events[:, columns.TRANSACTION], len(self.rows)
        # Counts of rows fit a double exactly.
        self.rows += np.bincount(of, rows, number).astype(np.int64)
        self._images += np.bincount(of, images, number).astype(np.int64)

    @property
    def numbers(self) -> tuple[Integers, Integers]:
        """Of each transaction's first and last change; both 0 where there is none."""
        some = self._images > 0
        ends = self._before + np.cumsum(self._images)
        first = np.where(some, ends - self._images + 1, 0)
        last = np.where(some, ends, 0)
        if self._marks:
            first[0], last[0] = self._marks[0], max(self._marks[-1], int(last[0]))
        return first, last


class SourceRows:
    """What one capture adds to its source's own tables."""

    def __init__(self, store: SegmentStore, *, source: str, batch: int) -> None:
        self._store = store
        self._source, self._batch = source, batch
        self._writer: SegmentWriter | None = None
        self._held = HeldRows()
        self._statements: list[PlacedStatement] = []

    @property
    def statements(self) -> int:
        """How many statements were told so far."""
        return len(self._statements)

    def statement(
        self,
        logged: LoggedStatement,
        followed: FollowedStatement,
        actions: Mapping[TableName, Consequence],
        sequence: int,
    ) -> None:
        """A statement that the history has; `sequence`: the last change before it."""
        self._statements.append(PlacedStatement(logged, followed, dict(actions), sequence))

    def transactions(
        self, group: TransactionGroup, marks: TransactionMarks, counted: CountedTransactions
    ) -> None:
        """All of a run's."""
        rows = transaction_rows(
            marks,
            begin=group.transactions[:, columns.BEGIN_OFFSET],
            end=group.transactions[:, columns.END_OFFSET],
            server_id=group.transactions[:, columns.SERVER],
            rows=counted.rows,
            numbers=counted.numbers,
            statements=group.texts.lists(len(group.transactions)),
            cut=group.transactions[:, columns.TEXT_BYTES] > MOST_BYTES,
            batch=self._batch,
        )
        self._held.add(rows)
        if self._held.enough:
            self._write()

    def finish(self, history: History) -> tuple[SourcePart, ...]:
        """Write and close every file (durable); `history`: what this capture adds to it."""
        self._write()
        parts = []
        if self._statements:
            writer = self._open(SourceTable.DDL)
            writer.write(statement_rows(history, self._statements, batch=self._batch))
            parts.append(SourcePart(SourceTable.DDL, writer.close()))
        if self._writer is not None:
            parts.append(SourcePart(SourceTable.TRANSACTIONS, self._writer.close()))
        return tuple(parts)

    def drop(self) -> None:
        """Nothing that was written counts."""
        self._held.clear()
        if self._writer is not None:
            self._writer.drop(0)

    def _write(self) -> None:
        if not self._held.batches:
            return
        if self._writer is None:
            self._writer = self._open(SourceTable.TRANSACTIONS)
        self._writer.write(pa.Table.from_batches(self._held.batches))
        self._held.clear()

    def _open(self, table: SourceTable) -> SegmentWriter:
        return self._store.open(
            source_table_path(self._source, table),
            batch=self._batch,
            schema_version=_VERSION,
            schema=SCHEMAS[table],
        )
