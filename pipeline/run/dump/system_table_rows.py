"""Rows of the system tables, which list the transactions and the DDL statements of a
batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pyarrow as pa

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.ring import MOST_TEXT_BYTES, Integers, TransactionGroup
from lockstep.pipeline.mirror.marks import TransactionMarks
from lockstep.pipeline.mirror.system_tables import (
    SYSTEM_TABLE_SCHEMAS,
    PlacedStatement,
    statement_rows,
    system_table_path,
    transaction_rows,
)
from lockstep.pipeline.ports.segments import SegmentStore, SegmentWriter
from lockstep.pipeline.schema.consequences import Consequence
from lockstep.pipeline.schema.effects import FollowedStatement, LoggedStatement
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.values.row_groups import RowBuffer
from lockstep.pipeline.values.segment import SystemTable, SystemTableSegment
from lockstep.pipeline.values.table import TableName

_VERSION: Final = 1
"""Version of the structure of the system tables. Their structure never changed."""


class TransactionCounts:
    """The numbers of rows and images of each transaction of a group, counted block by
    block. `last_before`: sequence number of the last change before the group.
    `mark_sequences`: sequence numbers of marks that belong to the group's first
    transaction (a mark stands for all rows of a table, for example at a TRUNCATE)."""

    def __init__(
        self, group: TransactionGroup, last_before: int, mark_sequences: tuple[int, ...] = ()
    ) -> None:
        self._last_before, self._mark_sequences = last_before, mark_sequences
        self.row_counts: Integers = np.zeros(len(group.transactions), np.int64)
        self._image_counts: Integers = np.zeros(len(group.transactions), np.int64)

    def add(self, events: Integers, rows: Integers, images: Integers) -> None:
        """Add the numbers of rows and images of a block's events."""
        indexes, count = events[:, columns.TRANSACTION], len(self.row_counts)
        # bincount returns doubles, which are exact for any possible number of rows.
        self.row_counts += np.bincount(indexes, rows, count).astype(np.int64)
        self._image_counts += np.bincount(indexes, images, count).astype(np.int64)

    @property
    def sequence_ranges(self) -> tuple[Integers, Integers]:
        """The sequence numbers of each transaction's first and last change; 0 if it has
        none."""
        has_images = self._image_counts > 0
        ends = self._last_before + np.cumsum(self._image_counts)
        firsts = np.where(has_images, ends - self._image_counts + 1, 0)
        lasts = np.where(has_images, ends, 0)
        if self._mark_sequences:
            firsts[0] = self._mark_sequences[0]
            lasts[0] = max(self._mark_sequences[-1], lasts[0])
        return firsts, lasts


class SystemTableRows:
    """The rows that one capture adds to the system tables. `hides_values`: the settings
    hide values of some table. Then no transaction shows its statements, whose text may
    contain such values."""

    def __init__(
        self, store: SegmentStore, *, source: str, batch_id: int, hides_values: bool = False
    ) -> None:
        self._store = store
        self._source, self._batch_id, self._hides_values = source, batch_id, hides_values
        self._writer: SegmentWriter | None = None
        self._unwritten = RowBuffer()
        self._statements: list[PlacedStatement] = []

    @property
    def statement_count(self) -> int:
        """The number of DDL statements so far."""
        return len(self._statements)

    def add_statement(
        self,
        statement: LoggedStatement,
        followed: FollowedStatement,
        actions: Mapping[TableName, Consequence],
        sequence: int,
    ) -> None:
        """Add a statement that the history records. `actions`: its consequence for each
        table. `sequence`: the sequence number of the last change before it."""
        self._statements.append(PlacedStatement(statement, followed, dict(actions), sequence))

    def add_transactions(
        self,
        group: TransactionGroup,
        transaction_marks: TransactionMarks,
        counts: TransactionCounts,
    ) -> None:
        """Add the transactions of a group."""
        texts = group.texts.lists_by_transaction(len(group.transactions))
        rows = transaction_rows(
            transaction_marks,
            begin=group.transactions[:, columns.BEGIN_OFFSET],
            end=group.transactions[:, columns.END_OFFSET],
            server_id=group.transactions[:, columns.ORIGIN_SERVER],
            rows=counts.row_counts,
            numbers=counts.sequence_ranges,
            statements=pa.nulls(len(texts), texts.type) if self._hides_values else texts,
            cut=group.transactions[:, columns.TEXT_BYTES] > MOST_TEXT_BYTES,
            batch=self._batch_id,
        )
        self._unwritten.add(rows)
        if self._unwritten.is_full:
            self._write()

    def finish(self, history: BatchHistory) -> tuple[SystemTableSegment, ...]:
        """Write and close all files, which makes them durable. `history`: the versions
        of table structures, and the statements, that this capture records."""
        self._write()
        segments = []
        if self._statements:
            writer = self._open(SystemTable.DDL)
            writer.write(statement_rows(history, self._statements, batch=self._batch_id))
            segments.append(SystemTableSegment(SystemTable.DDL, writer.close()))
        if self._writer is not None:
            segments.append(SystemTableSegment(SystemTable.TRANSACTIONS, self._writer.close()))
        return tuple(segments)

    def drop(self) -> None:
        """Discard the rows in memory and in files."""
        self._unwritten.clear()
        if self._writer is not None:
            self._writer.drop(0)

    def _write(self) -> None:
        if not self._unwritten.batches:
            return
        if self._writer is None:
            self._writer = self._open(SystemTable.TRANSACTIONS)
        self._writer.write(pa.Table.from_batches(self._unwritten.batches))
        self._unwritten.clear()

    def _open(self, table: SystemTable) -> SegmentWriter:
        return self._store.open(
            system_table_path(self._source, table),
            batch=self._batch_id,
            schema_version=_VERSION,
            schema=SYSTEM_TABLE_SCHEMAS[table],
        )
