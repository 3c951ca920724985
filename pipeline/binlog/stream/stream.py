"""The stream of bytes → the ring: the loop that every event of the log goes through.

Belongs here: the loop: finding the next event and proving it to be what its headers say, what it
is to the rules that make up nearly all of a log (GTIDs, BEGIN, table maps, rows, statements'
texts, commits), and table maps and row events put into the ring. Whatever else comes is
checked and handed to Python (`EVENT`), one at a time, as is what has to be decided there.
Does not: that part (`transactions`), table maps not seen before (`maps`), or what a row holds
(`rows`).

Formats: MySQL manual, "Binary Log Event Header"; `Rows_event` in `libs/mysql/binlog/event` of
MySQL's source; `Gtid_log_event` in `sql/log_event.h` of MariaDB's source.
"""

from __future__ import annotations

from typing import Final

from pipeline.binlog.arrays.array_access import Bytes, copy, crc32, i64, u8, u16, u32
from pipeline.binlog.arrays.compiled import kernel, part
from pipeline.binlog.arrays.outcomes import (
    EMITTED,
    EVENT,
    FULL,
    HUGE,
    LARGE,
    MORE,
    NEW_MAP,
    NO_HEADER,
    NO_MAP,
    NONE,
    PACKET,
    SHORT,
    STOPPED,
    WRONG_CHECKSUM,
    WRONG_OFFSET,
    WRONG_PACKET,
    WRONG_SIZE,
)
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.registers import (
    ACK,
    ALONE,
    AT,
    CHECKSUM,
    EVENT_AT,
    EVENT_CRC,
    EVENT_SIZE,
    EVENTS,
    GET,
    NEXT,
    OFFSET,
    PHASE,
    PUT,
    SEQUENCE,
    STATEMENT,
    TRANSACTIONS,
)
from pipeline.binlog.stream.ring import Integers
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
    ARTIFICIAL,
    CHECKSUM_BYTES,
    DELETE_ROWS,
    DELETE_ROWS_V1,
    DESCRIPTION,
    DUMMY_TABLE,
    ENCRYPTION,
    GTID,
    HEADER,
    HEARTBEAT,
    HEARTBEAT_V2,
    MARIADB_GTID,
    NESTED,
    PACKET_HEAD,
    PACKET_LIMIT,
    PARTIAL_UPDATE,
    QUERY,
    ROTATE,
    ROWS_QUERY,
    STATEMENT_END,
    TABLE_MAP,
    TAKEN,
    TOLD,
    WHOLE,
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
def find_event(wire: Bytes, stop: int, mode: int, state: Integers) -> int:
    """The next event's place and size, or why there is none."""
    at = state[AT]
    if mode == WIRE:
        if stop - at < PACKET_HEAD:
            return MORE
        length = u16(wire, at) | u8(wire, at + 2) << 16
        if u8(wire, at + 3) != state[SEQUENCE] & 0xFF:
            return WRONG_PACKET
        if length == PACKET_LIMIT:
            return LARGE
        if stop - at < 4 + length:
            return MORE
        state[NEXT] = at + 4 + length
        if length == 0 or u8(wire, at + 4) != 0:
            return PACKET
        state[EVENT_AT], size = at + PACKET_HEAD, length - 1
        if size < HEADER:
            return NO_HEADER
        if u32(wire, at + PACKET_HEAD + 9) != size:
            return WRONG_SIZE
    else:
        if stop - at < HEADER:
            return MORE
        size = u32(wire, at + 9)
        if size < HEADER:
            return WRONG_SIZE
        if stop - at < size:
            return MORE
        if mode == WHOLE and stop - at > size:
            return WRONG_SIZE
        state[EVENT_AT], state[NEXT] = at, at + size
    state[EVENT_SIZE] = size
    return NONE


@part
def check_event(wire: Bytes, event: int, size: int, code: int, mode: int, state: Integers) -> int:
    """Whether the event is what its header and its checksum say."""
    if mode == NESTED:
        return NONE
    if state[CHECKSUM] == 1:
        if size < HEADER + CHECKSUM_BYTES:
            return NO_HEADER
        crc = crc32(wire, event, size - CHECKSUM_BYTES)
        if crc != u32(wire, event + size - CHECKSUM_BYTES):
            return WRONG_CHECKSUM
        state[EVENT_CRC] = crc
    log_pos = u32(wire, event + 13)
    # MariaDB 11 leaves it 0 for what went through a transaction's cache.
    wrong = log_pos != 0 and log_pos != (state[OFFSET] + size) & 0xFFFFFFFF
    if wrong and not is_artificial(wire, event, code):
        return WRONG_OFFSET
    return NONE


@part
def is_artificial(wire: Bytes, event: int, code: int) -> bool:
    """Made up by the server for this dump: it takes no place in the file."""
    if u16(wire, event + 17) & ARTIFICIAL or code == HEARTBEAT or code == HEARTBEAT_V2:
        return True
    files = code == ROTATE or code == DESCRIPTION or code == ENCRYPTION
    return files and u32(wire, event + 13) == 0


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


_MAP_HEAD_BYTES: Final = 8
"""Table id 6, flags 2: a map is known by what stands behind (`maps`)."""


@part
def keep(
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
    body = event + HEADER
    if end - body < 8:
        return SHORT
    table = u32(wire, body) | u16(wire, body + 4) << 32
    if code != TABLE_MAP and table == DUMMY_TABLE:
        if u16(wire, body + 6) & STATEMENT_END:
            state[STATEMENT] += 1
        return NONE
    entry = table & len(ids) - 1
    while ids[entry, 0] != table:
        if ids[entry, 0] < 0:
            return NEW_MAP if code == TABLE_MAP else NO_MAP
        entry = entry + 1 & len(ids) - 1
    number = ids[entry, 1]
    if code == TABLE_MAP:
        place = body + _MAP_HEAD_BYTES
        if end - place != map_places[number, 1]:
            return NEW_MAP
        if not _same(wire, place, maps, map_places[number, 0], end - place):
            return NEW_MAP
        ids[entry, 2] = state[STATEMENT]
        return NONE
    if ids[entry, 2] != state[STATEMENT]:
        return NO_MAP
    if map_places[number, 2] == TOLD:
        return EVENT
    if map_places[number, 2] == TAKEN:
        found = _put(wire, event, end - event, number, state, ring, events)
        if found != NONE:
            return found
    if u16(wire, body + 6) & STATEMENT_END:
        state[STATEMENT] += 1
    return NONE


@part
def _same(one: Bytes, at: int, other: Bytes, there: int, count: int) -> bool:
    done = 0
    while done + 8 <= count:
        if i64(one, at + done) != i64(other, there + done):
            return False
        done += 8
    while done < count:
        if u8(one, at + done) != u8(other, there + done):
            return False
        done += 1
    return True


@part
def index_event(
    one: Integers, wire: Bytes, event: int, size: int, number: int, state: Integers
) -> None:
    """An event's index row, but for its place."""
    one[columns.SIZE] = size
    one[columns.MAP] = number
    one[columns.TYPE] = u8(wire, event + 4)
    one[columns.TIMESTAMP] = u32(wire, event)
    one[columns.SERVER_ID] = u32(wire, event + 5)
    one[columns.OFFSET] = state[OFFSET]
    one[columns.TRANSACTION] = state[TRANSACTIONS]
    one[columns.FLAGS] = u16(wire, event + HEADER + 6)


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
        return FULL
    if size > len(ring):
        events[state[EVENTS], columns.AT] = event
        index_event(events[state[EVENTS]], wire, event, size, number, state)
        return HUGE
    place = state[PUT] & len(ring) - 1
    skipped = len(ring) - place if place + size > len(ring) else 0
    if skipped and state[PUT] == state[ACK]:
        # Nothing is in the ring: the rest of its round need not be kept free.
        state[PUT] += skipped
        state[GET] = state[ACK] = state[PUT]
        skipped = place = 0
    if state[PUT] + skipped + size - state[ACK] > len(ring):
        return FULL
    if skipped:
        place = 0
    copy(ring, place, wire, event, size)
    one = events[state[EVENTS]]
    one[columns.AT] = place
    index_event(one, wire, event, size, number, state)
    state[PUT] += skipped + size
    state[EVENTS] += 1
    return NONE


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
