"""The stream of bytes → the ring: the loop that every event of the log goes through.

Belongs here: the loop, and what the events are to the rules that make up nearly all of a
log: GTIDs, BEGIN, table maps, rows, statements' texts, commits. Whatever else comes is
checked and handed to Python (`EVENT`), one at a time, as is what has to be decided there.
Does not: the loop's steps (`next_event`, `transactions`, `row_events`, `text_buffer`), that
part (`buffer`), or what a row holds (`rows`).

Formats: MySQL manual, "Binary Log Event Header"; `Gtid_log_event` in `sql/log_event.h` of
MariaDB's source.
"""

from __future__ import annotations

from typing import Final

from pipeline.binlog.arrays.array_access import Bytes, crc32, i64, u8, u16, u32
from pipeline.binlog.arrays.compiled import kernel, part
from pipeline.binlog.arrays.outcomes import EMITTED, EVENT, FULL, NONE, STOPPED
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.next_event import check_event, find_event, is_artificial
from pipeline.binlog.stream.registers import (
    ALONE,
    AT,
    CHECKSUM,
    EVENT_AT,
    EVENT_CRC,
    EVENT_SIZE,
    NEXT,
    OFFSET,
    PHASE,
    SEQUENCE,
    STATEMENT,
    TRANSACTIONS,
)
from pipeline.binlog.stream.ring import Integers
from pipeline.binlog.stream.row_events import keep
from pipeline.binlog.stream.rules import BufferAction, EventRole, Phase
from pipeline.binlog.stream.text_buffer import keep_text
from pipeline.binlog.stream.transaction_index import (
    begin_transaction,
    emit,
    open_transaction,
    stops,
)
from pipeline.binlog.stream.wire_format import (
    ANNOTATE,
    ANONYMOUS_GTID,
    CHECKSUM_BYTES,
    DELETE_ROWS,
    DELETE_ROWS_V1,
    DESCRIPTION,
    GTID,
    HEADER,
    HEARTBEAT,
    HEARTBEAT_V2,
    MARIADB_GTID,
    NESTED,
    PARTIAL_UPDATE,
    QUERY,
    ROTATE,
    ROWS_QUERY,
    STATEMENT_END,
    TABLE_MAP,
    WIRE,
    WRITE_ROWS,
    WRITE_ROWS_V1,
    XID,
)

_QUERY_HEAD: Final = 13
_STANDALONE, _XA_FLAGS = 0x01, 0xC0
_BEGIN: Final = int.from_bytes(b"BEGI", "little")
_COMM: Final = int.from_bytes(b"COMM", "little")

_PYTHON: Final = -2


@kernel
def scan(
    wire: Bytes,
    stop: int,
    mode: int,
    state: Integers,
    ring: Bytes,
    events: Integers,
    transactions: Integers,
    ids: Integers,
    maps: Bytes,
    map_places: Integers,
    rules: Integers,
    texts: Bytes,
    text_index: Integers,
) -> int:
    """Take events of `wire` from `state[AT]` up to `stop`; why it ended.

    `ids` is a hash table of (table id, its map's number, statement); `map_places` has for
    each map its place and length in `maps` and whether its rows are wanted; `text_index` has for
    each statement's text its transaction, its place and its length in `texts`.
    """
    while True:
        found = find_event(wire, stop, mode, state)
        if found != NONE:
            return found
        event, size = state[EVENT_AT], state[EVENT_SIZE]
        code = u8(wire, event + 4)
        if code == DESCRIPTION or code == ROTATE or (mode != NESTED and state[CHECKSUM] < 0):
            return EVENT
        found = check_event(wire, event, size, code, mode, state)
        if found != NONE:
            return found
        end = event + size - (CHECKSUM_BYTES if mode != NESTED and state[CHECKSUM] == 1 else 0)
        what = _classify(wire, event, end, code)
        if what < 0 or (mode == NESTED and state[PHASE] == Phase.BETWEEN):
            return EVENT
        action, phase = rules[state[PHASE], what, 0], rules[state[PHASE], what, 1]
        if action == BufferAction.BEGIN:
            if state[TRANSACTIONS] + 1 >= len(transactions):
                return FULL
            begin_transaction(wire, event, end, code, state, transactions)
        elif action == BufferAction.KEEP:
            if what == EventRole.CHANGE:
                found = keep(wire, event, end, code, state, ring, events, ids, maps, map_places)
                if found != NONE:
                    return found
            elif what == EventRole.NOTE:
                number = state[TRANSACTIONS]
                one = transactions[number]
                found = keep_text(wire, event, end, code, state, number, one, texts, text_index)
                if found != NONE:
                    return found
        elif action != BufferAction.PASS and action != BufferAction.EMIT:
            return EVENT
        _advance(wire, event, size, code, mode, state, transactions)
        state[PHASE] = phase
        if action == BufferAction.EMIT:
            if mode != NESTED and state[CHECKSUM] == 0:
                state[EVENT_CRC] = crc32(wire, event, size)
            emit(state, transactions, u32(wire, event), size if mode != NESTED else 0)
            if state[ALONE]:
                return EMITTED
            if mode != NESTED and stops(state):
                return STOPPED


@part
def _classify(wire: Bytes, event: int, end: int, code: int) -> int:
    """The rules' input that an event is, or _PYTHON where that takes more than a look."""
    body = event + HEADER
    if code == QUERY:
        if end - body < _QUERY_HEAD:
            return _PYTHON
        text = body + _QUERY_HEAD + u16(wire, body + 11) + u8(wire, body + 8) + 1
        if end - text == 5 and u32(wire, text) == _BEGIN and u8(wire, text + 4) == 0x4E:
            return EventRole.BEGIN.value
        if end - text == 6 and u32(wire, text) == _COMM and u16(wire, text + 4) == 0x5449:
            return EventRole.COMMIT.value
        return _PYTHON
    rows = WRITE_ROWS <= code <= DELETE_ROWS or WRITE_ROWS_V1 <= code <= DELETE_ROWS_V1
    if code == TABLE_MAP or rows or code == PARTIAL_UPDATE:
        return EventRole.CHANGE.value
    if code == XID:
        return EventRole.COMMIT.value
    if code == GTID or code == ANONYMOUS_GTID:
        return EventRole.GTID.value if end - body >= 25 else _PYTHON
    if code == MARIADB_GTID:
        if end - body < 13 or u8(wire, body + 12) & _XA_FLAGS or i64(wire, body) < 0:
            return _PYTHON
        return EventRole.GTID.value if u8(wire, body + 12) & _STANDALONE else EventRole.GROUP.value
    if code == ROWS_QUERY or code == ANNOTATE:
        return EventRole.NOTE.value
    if code == HEARTBEAT or code == HEARTBEAT_V2:
        return EventRole.HEARTBEAT.value
    return _PYTHON


@part
def _advance(
    wire: Bytes,
    event: int,
    size: int,
    code: int,
    mode: int,
    state: Integers,
    transactions: Integers,
) -> None:
    """The input stands behind the event, and so does the log if the event is of it."""
    state[AT] = state[NEXT]
    if mode == WIRE:
        state[SEQUENCE] += 1
    if mode != NESTED and not is_artificial(wire, event, code):
        state[OFFSET] += size
        transactions[state[TRANSACTIONS], columns.LOG_BYTES] += size


@kernel
def advance(wire: Bytes, mode: int, state: Integers, transactions: Integers) -> None:
    """Step over the event at hand, which Python took."""
    event, size = state[EVENT_AT], state[EVENT_SIZE]
    _advance(wire, event, size, u8(wire, event + 4), mode, state, transactions)


@kernel
def pass_rows(wire: Bytes, mode: int, state: Integers, transactions: Integers) -> None:
    """Step over a row event that Python put elsewhere."""
    event, size = state[EVENT_AT], state[EVENT_SIZE]
    if u16(wire, event + HEADER + 6) & STATEMENT_END:
        state[STATEMENT] += 1
    _advance(wire, event, size, u8(wire, event + 4), mode, state, transactions)


@kernel
def begin(state: Integers, transactions: Integers) -> None:
    """Open a transaction whose identity Python reads."""
    open_transaction(state, transactions[state[TRANSACTIONS]])


@kernel
def finish(state: Integers, transactions: Integers, timestamp: int, size: int) -> bool:
    """The open transaction is complete; whether reading is to stop behind it."""
    emit(state, transactions, timestamp, size)
    return stops(state)
