"""The index of transactions: a row opened by a GTID, and closed by an end.

Belongs here: what compiled code writes there. Does not: when it does (`stream`).

Formats: `Gtid_event` in `libs/mysql/binlog/event` of MySQL's source; `Gtid_log_event` in
`sql/log_event.h` of MariaDB's.
"""

from __future__ import annotations

from typing import Final

from pipeline.binlog.arrays.array_access import Bytes, b64, i64, u8, u16, u32
from pipeline.binlog.arrays.compiled import part
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.registers import (
    ALL_BYTES,
    ALL_TRANSACTIONS,
    COMPLETE_EVENTS,
    EVENT_CRC,
    EVENTS,
    FILE,
    GET,
    OFFSET,
    PUT,
    SERVER_ID,
    STOP_BYTES,
    STOP_OFFSET,
    STOP_TRANSACTIONS,
    TRANSACTIONS,
)
from pipeline.binlog.stream.ring import Integers
from pipeline.binlog.stream.wire_format import GTID, HEADER, MARIADB_GTID

_LOGICAL_CLOCK: Final = 2
_55_BITS: Final = (1 << 55) - 1


@part
def begin_transaction(
    wire: Bytes, event: int, end: int, code: int, state: Integers, transactions: Integers
) -> None:
    """Open a transaction with the identity that its GTID event gives it."""
    one = transactions[state[TRANSACTIONS]]
    open_transaction(state, one)
    one[columns.SERVER] = u32(wire, event + 5)
    body = event + HEADER
    if code == MARIADB_GTID:
        one[columns.GTID_KIND] = columns.MARIADB
        one[columns.GTID_HIGH] = u32(wire, body + 8)
        one[columns.GTID_LOW] = u32(wire, event + 5)
        one[columns.GTID_NUMBER] = i64(wire, body)
        return
    one[columns.GTID_KIND] = columns.MYSQL if code == GTID else columns.ANONYMOUS
    one[columns.GTID_HIGH] = b64(wire, body + 1)
    one[columns.GTID_LOW] = b64(wire, body + 9)
    one[columns.GTID_NUMBER] = i64(wire, body + 17)
    # Since 5.7 a logical clock of 1 + 16 bytes, since 8.0 commit times of 7 bytes each.
    if end - body >= 49 and u8(wire, body + 25) == _LOGICAL_CLOCK:
        moment = _seven(wire, body + 42)
        here = first = moment & _55_BITS
        if moment >> 55 and end - body >= 56:
            first = _seven(wire, body + 49) & _55_BITS
        one[columns.COMMITTED_AT] = first
        own = u32(wire, event + 5) == state[SERVER_ID]
        one[columns.TIME] = here if own or first > here else first


@part
def _seven(wire: Bytes, at: int) -> int:
    return u32(wire, at) | u16(wire, at + 4) << 32 | u8(wire, at + 6) << 48


@part
def open_transaction(state: Integers, one: Integers) -> None:
    """Set an index row to a transaction that begins where the log stands."""
    one[:] = 0
    one[columns.FIRST_EVENT] = state[EVENTS]
    one[columns.FILE] = state[FILE]
    one[columns.BEGIN_OFFSET] = state[OFFSET]


@part
def emit(state: Integers, transactions: Integers, timestamp: int, size: int) -> None:
    """The open transaction is complete; its last event had so many bytes in the log."""
    one = transactions[state[TRANSACTIONS]]
    one[columns.END_EVENT] = state[EVENTS]
    one[columns.END_OFFSET] = state[OFFSET]
    one[columns.LAST_TIMESTAMP] = timestamp
    if size:
        one[columns.LAST_OFFSET] = state[OFFSET] - size
        one[columns.LAST_SIZE] = size
        one[columns.LAST_CRC] = state[EVENT_CRC]
    state[TRANSACTIONS] += 1
    state[COMPLETE_EVENTS] = state[EVENTS]
    state[GET] = state[PUT]
    if size:
        state[ALL_TRANSACTIONS] += 1
        state[ALL_BYTES] += one[columns.LOG_BYTES]


def is_at_stop(state: Integers) -> bool:
    """Whether reading is to stop, given that the log stands between transactions."""
    return bool(
        state[OFFSET] >= state[STOP_OFFSET]
        or state[ALL_TRANSACTIONS] >= state[STOP_TRANSACTIONS]
        or state[ALL_BYTES] >= state[STOP_BYTES]
    )


stops: Final = part(is_at_stop)
"""The same for compiled code."""
