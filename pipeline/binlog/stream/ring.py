"""The ring of event bytes, and the two indexes that say what lies in it.

Three sequences count bytes that were ever put: `put ≥ get ≥ ack`. Bytes from `ack` to
`get` belong to complete transactions and may be read, bytes from `get` to `put` to the
transaction that is still open, and what lies before `ack` may be written over. A byte's
place is its sequence masked by the ring's size, a power of two. An event never wraps:
one that would is put at the ring's beginning, and the rest of the round is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.binlog.stream.control import Query
from pipeline.binlog.stream.texts import Texts
from pipeline.position import Coordinates, LogFile
from pipeline.table import TableName

Integers = npt.NDArray[np.int64]

# Columns of the index of events, one row each.
AT, SIZE, MAP, TYPE, TIMESTAMP, SERVER_ID, OFFSET, TRANSACTION, FLAGS = range(9)
EVENT_COLUMNS: Final = 9
"""AT: place in the data; SIZE: header and body in bytes, no checksum; MAP: number of its
table map; OFFSET: where its file shows it (for an event inside a payload, the payload);
TRANSACTION: row in the index of transactions."""

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
    COMMITTED_AT,
    LAST_OFFSET,
    LAST_SIZE,
    LAST_CRC,
    LAST_TIMESTAMP,
    LOG_BYTES,
    SERVER,
    TEXT_BYTES,
    TIME,
) = range(18)
TRANSACTION_COLUMNS: Final = 18
"""FILE: index into a group's `files`. GTID_HIGH and GTID_LOW: the UUID's halves, or MariaDB's
domain and server, or an index into a group's `sources` and nothing. COMMITTED_AT: when it was
committed first, on whichever server, in microseconds since the epoch, 0 where the log does not say;
a session can set it. TIME: the commit time that counts in this log (`commit_times`), or 0. LAST_…:
its last event. LOG_BYTES: its length there. SERVER: the id of the server that ran it first.
TEXT_BYTES: what its statements' texts count, more than `texts.MOST_BYTES` where not all of them are
kept."""

TAKEN, TOLD = 1, 2
"""What is done about a table's rows, if they are not passed over: they are taken, or Python is told
of each event."""

ANONYMOUS, MYSQL, TAGGED, MARIADB = range(4)
"""What GTID_KIND counts in."""


@dataclass(frozen=True, slots=True)
class Block:
    """Row events, one after the other: their bytes and their index (n x EVENT_COLUMNS).

    Whoever made the bytes, here they are read only: numba compiles a function once more for
    bytes that may be written, and a file's and a payload's never may.
    """

    data: npt.NDArray[np.uint8]
    events: Integers

    def __post_init__(self) -> None:
        if self.data.flags.writeable:
            data = self.data.view()
            data.flags.writeable = False
            object.__setattr__(self, "data", data)


@dataclass(frozen=True, slots=True)
class RowsElsewhere:
    """Rows of a table may be rows of others, of which the log has only the table maps."""

    table: TableName
    others: frozenset[TableName]


@dataclass(frozen=True, slots=True)
class TransactionGroup:
    """Complete transactions, in the order of the log.

    `transactions`: n x TRANSACTION_COLUMNS. `sources`: the `uuid:tag` of tagged GTIDs.
    `statements`: QUERYs that may change a structure, or that stand for rows, each with its
    transaction's row.
    `blocks`: their row events; to be read once, and before the next `ack`; more than one
    block only where a single transaction comes out of a file (`from_file`). `texts`: of the
    statements that made the rows, where the server logs them. `elsewhere`: which rows may be those
    of other tables, each with its transaction's row.
    """

    transactions: Integers
    files: Sequence[LogFile]
    sources: Sequence[str]
    statements: tuple[tuple[int, Query], ...]
    blocks: Iterator[Block]
    texts: Texts
    from_file: bool = False
    elsewhere: tuple[tuple[int, RowsElsewhere], ...] = ()

    def begin(self, number: int) -> Coordinates:
        return place_of(self.transactions[number], BEGIN_OFFSET, self.files)

    def end(self, number: int) -> Coordinates:
        return place_of(self.transactions[number], END_OFFSET, self.files)


def place_of(transaction: Integers, column: int, files: Sequence[LogFile]) -> Coordinates:
    return Coordinates(files[transaction[FILE]], int(transaction[column]))


@dataclass(frozen=True, slots=True)
class Ring:
    """`data` has a power of two of bytes; each index has room for so many rows."""

    data: npt.NDArray[np.uint8]
    events: Integers
    transactions: Integers

    @classmethod
    def of(cls, size: int, *, events: int, transactions: int) -> Ring:
        """A ring of `size` bytes, which must be a power of two, for so many events and
        transactions, of which one more than the complete ones is always open."""
        if size <= 0 or size & size - 1:
            raise ValueError(f"{size} is not a power of two")
        if events < 1 or transactions < 2:
            raise ValueError(f"no room for an event ({events}) and a transaction ({transactions})")
        ring = cls(
            np.empty(size, np.uint8),
            np.empty((events, EVENT_COLUMNS), np.int64),
            np.empty((transactions, TRANSACTION_COLUMNS), np.int64),
        )
        # A row is cleared when its transaction is opened (`open_transaction`); events may come
        # before the first one.
        ring.transactions[0] = 0
        return ring

    def block(self, first: int, end: int) -> Block:
        return Block(self.data, self.events[first:end])


def packed(block: Block) -> Block:
    """The same events, their bytes copied together without gaps."""
    sizes = block.events[:, SIZE]
    ends = np.cumsum(sizes)
    events = block.events.copy()
    events[:, AT] = ends - sizes
    # Events lie one behind the other but for the ring's end: two pieces at the most.
    breaks = np.flatnonzero(np.diff(block.events[:, AT]) != sizes[:-1]) + 1
    starts = [0, *breaks.tolist()]
    stops = [*breaks.tolist(), len(events)]
    pieces = [
        block.data[block.events[a, AT] : block.events[b - 1, AT] + sizes[b - 1]]
        for a, b in zip(starts, stops, strict=True)
        if b > a
    ]
    data = np.concatenate(pieces) if pieces else np.empty(0, np.uint8)
    return Block(data, events)
