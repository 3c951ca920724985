"""The ring buffer of row events, its two indexes (events and transactions), and the
groups of whole transactions that are handed out, with the texts of their statements.

Each byte has a sequence number: the number of bytes that were put before it. Bytes
before `ack` may be overwritten. Bytes from `ack` to `get` belong to complete
transactions and may be read. Bytes from `get` to `put` belong to the open transaction.
A byte's offset is its sequence number modulo the ring's size, a power of two. An event
never wraps: if it does not fit before the ring's end, it is put at the ring's
beginning, and the bytes before the end stay unused.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.stream.control import Query
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName

Integers = npt.NDArray[np.int64]

# Columns of the index of events, one row each.
AT, SIZE, MAP, TYPE, TIMESTAMP, SERVER_ID, OFFSET, TRANSACTION, FLAGS = range(9)
EVENT_COLUMNS: Final = 9
"""AT: offset in the data. SIZE: bytes of header and body, without checksum. MAP: number
of the event's table map (`maps`). TYPE, TIMESTAMP (seconds), SERVER_ID: from the
header. OFFSET: offset in the log file; for an event inside a payload, the payload's
offset. TRANSACTION: row in the index of transactions. FLAGS: those of the row event."""

# Columns of the index of transactions.
(
    FIRST_EVENT,
    END_EVENT,
    FILE,
    BEGIN_OFFSET,
    END_OFFSET,
    GTID_KIND,
    GTID_HIGH,
    GTID_LOW,
    GTID_NUMBER,
    ORIGINAL_TIME,
    LAST_OFFSET,
    LAST_SIZE,
    LAST_CRC,
    LAST_TIMESTAMP,
    LOG_BYTES,
    ORIGIN_SERVER,
    TEXT_BYTES,
    COMMIT_TIME,
) = range(18)
TRANSACTION_COLUMNS: Final = 18
"""FIRST_EVENT, END_EVENT: the transaction's rows in the index of events, END_EVENT
excluded. FILE: index into a group's `files`. BEGIN_OFFSET, END_OFFSET: offsets in that
file. GTID_HIGH, GTID_LOW: halves of the UUID; for MariaDB, domain and server id; for a
tagged GTID, an index into a group's `gtid_sources`, and 0. ORIGINAL_TIME: commit time
at the first server (`original_commit_timestamp`, which a session can set), in
microseconds since the epoch, or 0. COMMIT_TIME: the commit time in this log
(`commit_times`), in microseconds, or 0. LAST_…: the last event's offset, bytes, CRC32
and seconds. LOG_BYTES: the transaction's bytes in the log. ORIGIN_SERVER: id of the
server that executed it first. TEXT_BYTES: size of its statements' texts, more than
`MOST_TEXT_BYTES` if some were cut off."""

TAKEN, INSPECTED = 1, 2
"""A table's row events are put into the ring (TAKEN), handed to Python one by one
(INSPECTED), or skipped (0)."""

ANONYMOUS, MYSQL, TAGGED, MARIADB = range(4)
"""Values of GTID_KIND."""

MOST_TEXT_BYTES: Final = 64 << 10
"""Most bytes of text that are kept for one transaction. Each text counts one byte more
than it has.
"""

TEXT_OWNER, TEXT_AT, TEXT_SIZE = range(3)
"""Columns of the index of texts: the text's row in the index of transactions, its
offset and bytes.
"""


@dataclass(frozen=True, slots=True)
class Block:
    """Row events in order: their bytes and their index (n x EVENT_COLUMNS).

    The bytes are always read-only, because bytes from a file or payload are: numba
    would compile each function a second time for writable bytes.
    """

    data: npt.NDArray[np.uint8]
    events: Integers

    def __post_init__(self) -> None:
        if self.data.flags.writeable:
            data = self.data.view()
            data.flags.writeable = False
            object.__setattr__(self, "data", data)

    def subset(self, rows: Integers | npt.NDArray[np.bool_] | slice) -> Block:
        """Return a block of the events in these rows of the index."""
        return Block(self.data, self.events[rows])


@dataclass(frozen=True, slots=True)
class Texts:
    """The texts of a group's statements: their bytes, one after another, and their
    index (n x 3) in the order of the log. A text whose transaction was removed from the
    group has the TEXT_OWNER -1.

    A server logs a statement's text before its rows if `binlog_rows_query_log_events`
    (MySQL) or `binlog_annotate_row_events` (MariaDB) is set: the bytes that the client
    sent, without the name of their character set. ROLLBACK and ROLLBACK TO remove texts
    together with the rows."""

    data: npt.NDArray[np.uint8]
    index: Integers

    def select(self, keep: npt.NDArray[np.bool_], new_rows: Integers) -> Texts:
        """Return the texts of the transactions in `keep`, whose rows in the index of
        transactions are now `new_rows`."""
        index, owners = self.index.copy(), self.index[:, TEXT_OWNER]
        index[:, TEXT_OWNER] = np.where(keep[owners], new_rows[owners], -1)
        return replace(self, index=index)

    def lists_by_transaction(self, transaction_count: int) -> pa.ListArray:
        """Return the texts of each transaction, in order; NULL if the log has none.
        Bytes that are not UTF-8 are shown as `\\xff`."""
        list_type = pa.list_(pa.string())
        rows = np.flatnonzero(self.index[:, TEXT_OWNER] >= 0)
        if not len(rows):
            return pa.nulls(transaction_count, list_type)
        counts = np.bincount(self.index[rows, TEXT_OWNER], minlength=transaction_count)
        ends = np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)
        values = self._strings().take(pa.array(rows))
        return pa.ListArray.from_arrays(pa.array(ends), values, mask=pa.array(counts == 0))

    def _strings(self) -> pa.StringArray:
        ends = self.index[:, TEXT_AT] + self.index[:, TEXT_SIZE]
        offsets = np.concatenate([self.index[:1, TEXT_AT], ends]).astype(np.int32)
        buffers = [None, pa.py_buffer(offsets.tobytes()), pa.py_buffer(self.data.tobytes())]
        texts = pa.Array.from_buffers(pa.binary(), len(self.index), buffers)
        try:
            return texts.cast(pa.string())
        except pa.ArrowInvalid:
            escaped = [text.decode("utf-8", "backslashreplace") for text in texts.to_pylist()]
            return pa.array(escaped, pa.string())


@dataclass(frozen=True, slots=True)
class MergeTableRows:
    """A change through a MERGE table. The row events name `table`, but the rows may be
    stored in one of its `underlying_tables`. For these the log has table maps, but no
    row events."""

    table: TableName
    underlying_tables: frozenset[TableName]


@dataclass(frozen=True, slots=True)
class TransactionGroup:
    """Complete transactions, in the order of the log.

    `transactions`: the index, n x TRANSACTION_COLUMNS. `gtid_sources`: the `uuid:tag`
    of tagged GTIDs. `statements`: QUERYs that may change a table's structure, or that
    were logged instead of rows, each with its transaction's row in the index. `blocks`:
    the row events, to be read once, and before the next `ack`. There is more than one
    block only if the group is a single transaction from a file (`is_from_file`).
    `texts`: those of the statements that changed rows, if the server logs them.
    `merge_table_rows`: the changes through MERGE tables, each with its transaction's
    row.
    """

    transactions: Integers
    files: Sequence[LogFile]
    gtid_sources: Sequence[str]
    statements: tuple[tuple[int, Query], ...]
    blocks: Iterator[Block]
    texts: Texts
    is_from_file: bool = False
    merge_table_rows: tuple[tuple[int, MergeTableRows], ...] = ()

    def begin(self, row: int) -> Coordinates:
        return place_of(self.transactions[row], BEGIN_OFFSET, self.files)

    def end(self, row: int) -> Coordinates:
        return place_of(self.transactions[row], END_OFFSET, self.files)


def place_of(transaction: Integers, column: int, files: Sequence[LogFile]) -> Coordinates:
    return Coordinates(files[transaction[FILE]], int(transaction[column]))


@dataclass(frozen=True, slots=True)
class Ring:
    """The ring's bytes, a power of two of them, and its two indexes."""

    data: npt.NDArray[np.uint8]
    events: Integers
    transactions: Integers

    @classmethod
    def of(cls, size: int, *, events: int, transactions: int) -> Ring:
        """Return a ring of `size` bytes, with room for this number of events and of
        transactions, the open one included. ValueError if `size` is no power of two."""
        if size <= 0 or size & size - 1:
            raise ValueError(f"{size} is not a power of two")
        if events < 1 or transactions < 2:
            raise ValueError(f"no room for an event ({events}) and a transaction ({transactions})")
        ring = cls(
            np.empty(size, np.uint8),
            np.empty((events, EVENT_COLUMNS), np.int64),
            np.empty((transactions, TRANSACTION_COLUMNS), np.int64),
        )
        # `open_transaction` clears each row, but events may come before the first
        # transaction.
        ring.transactions[0] = 0
        return ring

    def block(self, first: int, end: int) -> Block:
        return Block(self.data, self.events[first:end])


def pack_block(block: Block) -> Block:
    """Return a copy of the block whose bytes have no gaps."""
    sizes = block.events[:, SIZE]
    ends = np.cumsum(sizes)
    events = block.events.copy()
    events[:, AT] = ends - sizes
    # Events are contiguous except at the ring's end, so there are two pieces at most.
    breaks = np.flatnonzero(np.diff(block.events[:, AT]) != sizes[:-1]) + 1
    borders = [0, *breaks.tolist(), len(events)]
    pieces = [
        block.data[block.events[first, AT] : block.events[end - 1, AT] + sizes[end - 1]]
        for first, end in pairwise(borders)
        if end > first
    ]
    data = np.concatenate(pieces) if pieces else np.empty(0, np.uint8)
    return Block(data, events)
