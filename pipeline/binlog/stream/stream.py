"""The stream of bytes → the ring: the loop that every event of the log goes through.

Belongs here: the loop: finding the next event and proving it to be what its headers say, what it
is to the rules that make up nearly all of a log (GTIDs, BEGIN, table maps, rows, statements'
texts, commits), table maps and row events put into the ring, and the index of transactions.
Whatever else comes is checked and handed to Python (`EVENT`), one at a time, as is what has to be
decided there. Does not: that part (`transactions`), table maps not seen before (`maps`), or what a
row holds (`rows`).

Formats: MySQL manual, "Binary Log Event Header"; `Rows_event` and `Gtid_event` in
`libs/mysql/binlog/event` of MySQL's source; `Gtid_log_event` in `sql/log_event.h` of MariaDB's
source.
"""

from __future__ import annotations

from typing import Final

from pipeline.binlog.arrays.array_access import Bytes, b64, copy, crc32, i64, same, u8, u16, u32
from pipeline.binlog.arrays.compiled import kernel, part
from pipeline.binlog.stream import framing, outcomes
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.framing import (
    CHECKSUM_BYTES,
    HEADER_BYTES,
    NESTED,
    PACKET_LIMIT,
    STATEMENT_END,
    WHOLE,
    WIRE,
    EventType,
)
from pipeline.binlog.stream.registers import (
    ACK,
    ALL_BYTES,
    ALL_TRANSACTIONS,
    ALONE,
    AT,
    CHECKSUM,
    COMPLETE_EVENTS,
    EVENT_AT,
    EVENT_CRC,
    EVENT_SIZE,
    EVENTS,
    FILE,
    GET,
    NEXT,
    OFFSET,
    PHASE,
    PUT,
    SEQUENCE,
    SERVER_ID,
    STATEMENT,
    STOP_BYTES,
    STOP_OFFSET,
    STOP_TRANSACTIONS,
    TRANSACTIONS,
)
from pipeline.binlog.stream.ring import Integers
from pipeline.binlog.stream.rules import BufferAction, EventRole, Phase
from pipeline.binlog.stream.text_buffer import keep_text

_PACKET_HEAD: Final = 5
"""Length 3, number 1, and the byte that says that an event follows."""

_QUERY_HEAD: Final = 13
_MAP_HEAD: Final = 8
"""Table id 6, flags 2: a map is known by what stands behind (`maps`)."""

_DUMMY_TABLE: Final = 0xFFFFFF
_STANDALONE, _XA_FLAGS = 0x01, 0xC0
_LOGICAL_CLOCK: Final = 2
_55_BITS: Final = (1 << 55) - 1
_BEGIN: Final = int.from_bytes(b"BEGI", "little")
_COMM: Final = int.from_bytes(b"COMM", "little")

_PYTHON: Final = -2

_is_artificial: Final = part(framing.is_artificial)


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
        found = _find_event(wire, stop, mode, state)
        if found != outcomes.NONE:
            return found
        event, size = state[EVENT_AT], state[EVENT_SIZE]
        code = u8(wire, event + 4)
        if code == EventType.FORMAT_DESCRIPTION or code == EventType.ROTATE:
            return outcomes.EVENT
        if mode != NESTED and state[CHECKSUM] < 0:
            return outcomes.EVENT
        found = _check_event(wire, event, size, code, mode, state)
        if found != outcomes.NONE:
            return found
        end = event + size - (CHECKSUM_BYTES if mode != NESTED and state[CHECKSUM] == 1 else 0)
        what = _classify(wire, event, end, code)
        if what < 0 or (mode == NESTED and state[PHASE] == Phase.BETWEEN):
            return outcomes.EVENT
        action, phase = rules[state[PHASE], what, 0], rules[state[PHASE], what, 1]
        if action == BufferAction.BEGIN:
            if state[TRANSACTIONS] + 1 >= len(transactions):
                return outcomes.FULL
            _begin_transaction(wire, event, end, code, state, transactions)
        elif action == BufferAction.KEEP:
            if what == EventRole.CHANGE:
                found = _keep(wire, event, end, code, state, ring, events, ids, maps, map_places)
                if found != outcomes.NONE:
                    return found
            elif what == EventRole.NOTE:
                number = state[TRANSACTIONS]
                one = transactions[number]
                found = keep_text(wire, event, end, code, state, number, one, texts, text_index)
                if found != outcomes.NONE:
                    return found
        elif action != BufferAction.PASS and action != BufferAction.EMIT:
            return outcomes.EVENT
        _advance(wire, event, size, code, mode, state, transactions)
        state[PHASE] = phase
        if action == BufferAction.EMIT:
            if mode != NESTED and state[CHECKSUM] == 0:
                state[EVENT_CRC] = crc32(wire, event, size)
            _emit(state, transactions, u32(wire, event), size if mode != NESTED else 0)
            if state[ALONE]:
                return outcomes.EMITTED
            if mode != NESTED and _stops(state):
                return outcomes.STOPPED


@part
def _find_event(wire: Bytes, stop: int, mode: int, state: Integers) -> int:
    """The next event's place and size, or why there is none."""
    at = state[AT]
    if mode == WIRE:
        if stop - at < _PACKET_HEAD:
            return outcomes.MORE
        length = u16(wire, at) | u8(wire, at + 2) << 16
        if u8(wire, at + 3) != state[SEQUENCE] & 0xFF:
            return outcomes.WRONG_PACKET
        if length == PACKET_LIMIT:
            return outcomes.LARGE
        if stop - at < 4 + length:
            return outcomes.MORE
        state[NEXT] = at + 4 + length
        if length == 0 or u8(wire, at + 4) != 0:
            return outcomes.PACKET
        state[EVENT_AT], size = at + _PACKET_HEAD, length - 1
        if size < HEADER_BYTES:
            return outcomes.NO_HEADER
        if u32(wire, at + _PACKET_HEAD + 9) != size:
            return outcomes.WRONG_SIZE
    else:
        if stop - at < HEADER_BYTES:
            return outcomes.MORE
        size = u32(wire, at + 9)
        if size < HEADER_BYTES:
            return outcomes.WRONG_SIZE
        if stop - at < size:
            return outcomes.MORE
        if mode == WHOLE and stop - at > size:
            return outcomes.WRONG_SIZE
        state[EVENT_AT], state[NEXT] = at, at + size
    state[EVENT_SIZE] = size
    return outcomes.NONE


@part
def _check_event(wire: Bytes, event: int, size: int, code: int, mode: int, state: Integers) -> int:
    if mode == NESTED:
        return outcomes.NONE
    if state[CHECKSUM] == 1:
        if size < HEADER_BYTES + CHECKSUM_BYTES:
            return outcomes.NO_HEADER
        crc = crc32(wire, event, size - CHECKSUM_BYTES)
        if crc != u32(wire, event + size - CHECKSUM_BYTES):
            return outcomes.WRONG_CHECKSUM
        state[EVENT_CRC] = crc
    log_pos = u32(wire, event + 13)
    # MariaDB 11 leaves it 0 for what went through a transaction's cache.
    wrong = log_pos != 0 and log_pos != (state[OFFSET] + size) & 0xFFFFFFFF
    if wrong and not _is_artificial(code, log_pos, u16(wire, event + 17)):
        return outcomes.WRONG_OFFSET
    return outcomes.NONE


@part
def _classify(wire: Bytes, event: int, end: int, code: int) -> int:
    """The rules' input that an event is, or _PYTHON where that takes more than a look."""
    body = event + HEADER_BYTES
    if code == EventType.QUERY:
        if end - body < _QUERY_HEAD:
            return _PYTHON
        text = body + _QUERY_HEAD + u16(wire, body + 11) + u8(wire, body + 8) + 1
        if end - text == 5 and u32(wire, text) == _BEGIN and u8(wire, text + 4) == 0x4E:
            return EventRole.BEGIN.value
        if end - text == 6 and u32(wire, text) == _COMM and u16(wire, text + 4) == 0x5449:
            return EventRole.COMMIT.value
        return _PYTHON
    rows = EventType.WRITE_ROWS <= code <= EventType.DELETE_ROWS
    rows_v1 = EventType.WRITE_ROWS_V1 <= code <= EventType.DELETE_ROWS_V1
    if code == EventType.TABLE_MAP or rows or rows_v1 or code == EventType.PARTIAL_UPDATE_ROWS:
        return EventRole.CHANGE.value
    if code == EventType.XID:
        return EventRole.COMMIT.value
    if code == EventType.GTID or code == EventType.ANONYMOUS_GTID:
        return EventRole.GTID.value if end - body >= 25 else _PYTHON
    if code == EventType.MARIADB_GTID:
        if end - body < 13 or u8(wire, body + 12) & _XA_FLAGS or i64(wire, body) < 0:
            return _PYTHON
        return EventRole.GTID.value if u8(wire, body + 12) & _STANDALONE else EventRole.GROUP.value
    if code == EventType.ROWS_QUERY or code == EventType.MARIADB_ANNOTATE_ROWS:
        return EventRole.NOTE.value
    if code == EventType.HEARTBEAT or code == EventType.HEARTBEAT_V2:
        return EventRole.HEARTBEAT.value
    return _PYTHON


@part
def _keep(
    wire: Bytes,
    event: int,
    end: int,
    code: int,
    state: Integers,
    ring: Bytes,
    events: Integers,
    ids: Integers,
    maps: Bytes,
    map_places: Integers,
) -> int:
    """Note a table map, or put a wanted row event into the ring."""
    body = event + HEADER_BYTES
    if end - body < 8:
        return outcomes.SHORT
    table = u32(wire, body) | u16(wire, body + 4) << 32
    if code != EventType.TABLE_MAP and table == _DUMMY_TABLE:
        if u16(wire, body + 6) & STATEMENT_END:
            state[STATEMENT] += 1
        return outcomes.NONE
    entry = table & len(ids) - 1
    while ids[entry, 0] != table:
        if ids[entry, 0] < 0:
            return outcomes.NEW_MAP if code == EventType.TABLE_MAP else outcomes.NO_MAP
        entry = entry + 1 & len(ids) - 1
    number = ids[entry, 1]
    if code == EventType.TABLE_MAP:
        place = body + _MAP_HEAD
        if end - place != map_places[number, 1]:
            return outcomes.NEW_MAP
        if not same(wire, place, maps, map_places[number, 0], end - place):
            return outcomes.NEW_MAP
        ids[entry, 2] = state[STATEMENT]
        return outcomes.NONE
    if ids[entry, 2] != state[STATEMENT]:
        return outcomes.NO_MAP
    if map_places[number, 2] == columns.TOLD:
        return outcomes.EVENT
    if map_places[number, 2] == columns.TAKEN:
        found = _put(wire, event, end - event, number, state, ring, events)
        if found != outcomes.NONE:
            return found
    if u16(wire, body + 6) & STATEMENT_END:
        state[STATEMENT] += 1
    return outcomes.NONE


@part
def _index_event(
    one: Integers, wire: Bytes, event: int, size: int, number: int, state: Integers
) -> None:
    one[columns.SIZE] = size
    one[columns.MAP] = number
    one[columns.TYPE] = u8(wire, event + 4)
    one[columns.TIMESTAMP] = u32(wire, event)
    one[columns.SERVER_ID] = u32(wire, event + 5)
    one[columns.OFFSET] = state[OFFSET]
    one[columns.TRANSACTION] = state[TRANSACTIONS]
    one[columns.FLAGS] = u16(wire, event + HEADER_BYTES + 6)


@part
def _put(
    wire: Bytes,
    event: int,
    size: int,
    number: int,
    state: Integers,
    ring: Bytes,
    events: Integers,
) -> int:
    """Copy an event into the ring and index it; FULL if either has no room."""
    if state[EVENTS] == len(events):
        return outcomes.FULL
    if size > len(ring):
        events[state[EVENTS], columns.AT] = event
        _index_event(events[state[EVENTS]], wire, event, size, number, state)
        return outcomes.HUGE
    place = state[PUT] & len(ring) - 1
    skipped = len(ring) - place if place + size > len(ring) else 0
    if skipped and state[PUT] == state[ACK]:
        # Nothing is in the ring: the rest of its round need not be kept free.
        state[PUT] += skipped
        state[GET] = state[ACK] = state[PUT]
        skipped = place = 0
    if state[PUT] + skipped + size - state[ACK] > len(ring):
        return outcomes.FULL
    if skipped:
        place = 0
    copy(ring, place, wire, event, size)
    one = events[state[EVENTS]]
    one[columns.AT] = place
    _index_event(one, wire, event, size, number, state)
    state[PUT] += skipped + size
    state[EVENTS] += 1
    return outcomes.NONE


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
    if mode != NESTED and not _is_artificial(code, u32(wire, event + 13), u16(wire, event + 17)):
        state[OFFSET] += size
        transactions[state[TRANSACTIONS], columns.LOG_BYTES] += size


@part
def _begin_transaction(
    wire: Bytes, event: int, end: int, code: int, state: Integers, transactions: Integers
) -> None:
    one = transactions[state[TRANSACTIONS]]
    _open_transaction(state, one)
    one[columns.SERVER] = u32(wire, event + 5)
    body = event + HEADER_BYTES
    if code == EventType.MARIADB_GTID:
        one[columns.GTID_KIND] = columns.MARIADB
        one[columns.GTID_HIGH] = u32(wire, body + 8)
        one[columns.GTID_LOW] = u32(wire, event + 5)
        one[columns.GTID_NUMBER] = i64(wire, body)
        return
    one[columns.GTID_KIND] = columns.MYSQL if code == EventType.GTID else columns.ANONYMOUS
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


def open_transaction(state: Integers, one: Integers) -> None:
    """Set an index row to a transaction that begins where the log stands."""
    one[:] = 0
    one[columns.FIRST_EVENT] = state[EVENTS]
    one[columns.FILE] = state[FILE]
    one[columns.BEGIN_OFFSET] = state[OFFSET]


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


_open_transaction: Final = part(open_transaction)
_emit: Final = part(emit)
_stops: Final = part(is_at_stop)
