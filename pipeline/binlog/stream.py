"""The stream of bytes → the ring: the loop that every event of the log goes through.

Belongs here: packet and event headers, checksums, counted offsets, and the rules for the
events that make up nearly all of a log: GTIDs, BEGIN, table maps, rows, commits. Whatever
else comes is checked and handed to Python (`EVENT`), one at a time, as is what has to be
decided there. Does not: that part (`buffer`), or what a row holds (`rows`).

Formats: MySQL manual, "Protocol::Packet", "Binlog Network Stream", "Binary Log Event
Header"; `Gtid_event` and `Rows_event` in `libs/mysql/binlog/event` of MySQL's source;
`Gtid_log_event` in `sql/log_event.h` of MariaDB's.
"""

from __future__ import annotations

from typing import Final

from pipeline.binlog import ring as columns
from pipeline.binlog.compiled import kernel, part
from pipeline.binlog.loads import Bytes, b64, copy, crc32, i64, u8, u16, u32
from pipeline.binlog.ring import Integers
from pipeline.binlog.rules import Action, Input, Phase

# What the loop knows from call to call: the places of `state`.
(
    AT,
    NEXT,
    EVENT_AT,
    EVENT_SIZE,
    EVENT_CRC,
    PHASE,
    CHECKSUM,
    SEQUENCE,
    FILE,
    OFFSET,
    STATEMENT,
    PUT,
    GET,
    ACK,
    EVENTS,
    COMPLETE_EVENTS,
    TRANSACTIONS,
    ALL_TRANSACTIONS,
    ALL_BYTES,
    STOP_OFFSET,
    STOP_TRANSACTIONS,
    STOP_BYTES,
    ALONE,
) = range(23)
STATE_SIZE: Final = 23
"""AT: the next unread byte of the input; NEXT: the one behind the event at hand, which
begins at EVENT_AT and has EVENT_SIZE bytes (checksum included). CHECKSUM: 1 if the log has
CRC32, 0 if none, -1 before its format description. SEQUENCE: number of the next packet.
FILE, OFFSET: the place in the log of the event at AT. STATEMENT: number of the statement
whose table maps are in force. PUT, GET, ACK: the ring's sequences. EVENTS, TRANSACTIONS: rows
of the indexes, complete ones first. STOP_…: stop at the first end of a transaction at or
beyond it. ALONE: 1 if the open transaction comes out by itself, because part of it is in a
file."""

# How the input lies in memory.
WIRE, WHOLE, NESTED = range(3)
"""WIRE: MySQL packets; WHOLE: events of the log put together from several packets; NESTED:
events of a payload, which have neither a checksum nor a place of their own."""

# What a call ends with.
MORE, EVENT, FULL, STOPPED, PACKET, LARGE, NEW_MAP, EMITTED, HUGE = range(9)
"""MORE: the input is used up, or ends within an event. EVENT: one for Python. FULL: the
ring or an index is. STOPPED: a STOP_… is reached. PACKET: one that holds no event. LARGE:
the first of several packets that hold one event. NEW_MAP: a table map not seen before.
EMITTED: a transaction that is ALONE is complete. HUGE: a row event larger than the ring; the
next row of the index tells of it, its AT the place in the input."""

# … and what it may find wrong.
NO_HEADER, WRONG_SIZE, WRONG_CHECKSUM, WRONG_OFFSET, WRONG_PACKET, NO_MAP, SHORT = range(10, 17)

HEADER: Final = 19
CHECKSUM_BYTES: Final = 4
PACKET_HEAD: Final = 5
"""Length 3, number 1, and the byte that says that an event follows."""

PACKET_LIMIT: Final = 0xFFFFFF
ARTIFICIAL: Final = 0x20
STATEMENT_END: Final = 0x1
DUMMY_TABLE: Final = 0xFFFFFF

_QUERY, _ROTATE, _DESCRIPTION, _XID, _TABLE_MAP, _HEARTBEAT = 2, 4, 15, 16, 19, 27
_ROWS_QUERY, _GTID, _ANONYMOUS_GTID, _PARTIAL_UPDATE, _HEARTBEAT_V2 = 29, 33, 34, 39, 41
_ANNOTATE, _MARIADB_GTID, _ENCRYPTION = 160, 162, 164
_QUERY_HEAD: Final = 13
_MAP_ID_BYTES: Final = 6
_STANDALONE, _XA_FLAGS = 0x01, 0xC0
_LOGICAL_CLOCK: Final = 2
_55_BITS: Final = (1 << 55) - 1
_BEGIN: Final = int.from_bytes(b"BEGI", "little")
_COMM: Final = int.from_bytes(b"COMM", "little")

_NONE: Final = -1
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
) -> int:
    """Take events of `wire` from `state[AT]` up to `stop`; why it ended.

    `ids` is a hash table of (table id, its map's number, statement); `map_places` has for
    each map its place and length in `maps` and whether its rows are wanted.
    """
    while True:
        found = _find(wire, stop, mode, state)
        if found != _NONE:
            return found
        event, size = state[EVENT_AT], state[EVENT_SIZE]
        code = u8(wire, event + 4)
        if code == _DESCRIPTION or code == _ROTATE or (mode != NESTED and state[CHECKSUM] < 0):
            return EVENT
        found = _check(wire, event, size, code, mode, state)
        if found != _NONE:
            return found
        end = event + size - (CHECKSUM_BYTES if mode != NESTED and state[CHECKSUM] == 1 else 0)
        what = _classify(wire, event, end, code)
        if what < 0 or (mode == NESTED and state[PHASE] == Phase.BETWEEN):
            return EVENT
        action, phase = rules[state[PHASE], what, 0], rules[state[PHASE], what, 1]
        if action == Action.BEGIN:
            if state[TRANSACTIONS] + 1 >= len(transactions):
                return FULL
            _begin(wire, event, end, code, state, transactions)
        elif action == Action.KEEP:
            if what == Input.CHANGE:
                found = _keep(wire, event, end, code, state, ring, events, ids, maps, map_places)
                if found != _NONE:
                    return found
        elif action != Action.PASS and action != Action.EMIT:
            return EVENT
        _advance(wire, event, size, code, mode, state, transactions)
        state[PHASE] = phase
        if action == Action.EMIT:
            if mode != NESTED and state[CHECKSUM] == 0:
                state[EVENT_CRC] = crc32(wire, event, size)
            emit(state, transactions, u32(wire, event), size if mode != NESTED else 0)
            if state[ALONE]:
                return EMITTED
            if mode != NESTED and stops(state):
                return STOPPED


@part
def _find(wire: Bytes, stop: int, mode: int, state: Integers) -> int:
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
    return _NONE


@part
def _check(wire: Bytes, event: int, size: int, code: int, mode: int, state: Integers) -> int:
    """Whether the event is what its header and its checksum say."""
    if mode == NESTED:
        return _NONE
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
    if wrong and not _artificial(wire, event, code):
        return WRONG_OFFSET
    return _NONE


@part
def _artificial(wire: Bytes, event: int, code: int) -> bool:
    """Made up by the server for this dump: it takes no place in the file."""
    if u16(wire, event + 17) & ARTIFICIAL or code == _HEARTBEAT or code == _HEARTBEAT_V2:
        return True
    files = code == _ROTATE or code == _DESCRIPTION or code == _ENCRYPTION
    return files and u32(wire, event + 13) == 0


@part
def _classify(wire: Bytes, event: int, end: int, code: int) -> int:
    """The rules' input that an event is, or _PYTHON where that takes more than a look."""
    body = event + HEADER
    if code == _QUERY:
        if end - body < _QUERY_HEAD:
            return _PYTHON
        text = body + _QUERY_HEAD + u16(wire, body + 11) + u8(wire, body + 8) + 1
        if end - text == 5 and u32(wire, text) == _BEGIN and u8(wire, text + 4) == 0x4E:
            return Input.BEGIN.value
        if end - text == 6 and u32(wire, text) == _COMM and u16(wire, text + 4) == 0x5449:
            return Input.COMMIT.value
        return _PYTHON
    if code == _TABLE_MAP or 23 <= code <= 25 or 30 <= code <= 32 or code == _PARTIAL_UPDATE:
        return Input.CHANGE.value
    if code == _XID:
        return Input.COMMIT.value
    if code == _GTID or code == _ANONYMOUS_GTID:
        return Input.GTID.value if end - body >= 25 else _PYTHON
    if code == _MARIADB_GTID:
        if end - body < 13 or u8(wire, body + 12) & _XA_FLAGS or i64(wire, body) < 0:
            return _PYTHON
        return Input.GTID.value if u8(wire, body + 12) & _STANDALONE else Input.GROUP.value
    if code == _ROWS_QUERY or code == _ANNOTATE:
        return Input.NOTE.value
    if code == _HEARTBEAT or code == _HEARTBEAT_V2:
        return Input.HEARTBEAT.value
    return _PYTHON


@part
def _begin(
    wire: Bytes, event: int, end: int, code: int, state: Integers, transactions: Integers
) -> None:
    """Open a transaction with the identity that its GTID event gives it."""
    one = transactions[state[TRANSACTIONS]]
    open_transaction(state, one)
    body = event + HEADER
    if code == _MARIADB_GTID:
        one[columns.GTID_KIND] = columns.MARIADB
        one[columns.GTID_HIGH] = u32(wire, body + 8)
        one[columns.GTID_LOW] = u32(wire, event + 5)
        one[columns.GTID_NUMBER] = i64(wire, body)
        return
    one[columns.GTID_KIND] = columns.MYSQL if code == _GTID else columns.ANONYMOUS
    one[columns.GTID_HIGH] = b64(wire, body + 1)
    one[columns.GTID_LOW] = b64(wire, body + 9)
    one[columns.GTID_NUMBER] = i64(wire, body + 17)
    # Since 5.7 a logical clock of 1 + 16 bytes, since 8.0 commit times of 7 bytes each.
    if end - body >= 49 and u8(wire, body + 25) == _LOGICAL_CLOCK:
        moment = _seven(wire, body + 42)
        if moment >> 55 and end - body >= 56:
            original = _seven(wire, body + 49)
            moment = original
        one[columns.COMMITTED_AT] = moment & _55_BITS


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
    body = event + HEADER
    if end - body < 8:
        return SHORT
    table = u32(wire, body) | u16(wire, body + 4) << 32
    if code != _TABLE_MAP and table == DUMMY_TABLE:
        if u16(wire, body + 6) & STATEMENT_END:
            state[STATEMENT] += 1
        return _NONE
    entry = table & len(ids) - 1
    while ids[entry, 0] != table:
        if ids[entry, 0] < 0:
            return NEW_MAP if code == _TABLE_MAP else NO_MAP
        entry = entry + 1 & len(ids) - 1
    number = ids[entry, 1]
    if code == _TABLE_MAP:
        place = body + _MAP_ID_BYTES
        if end - place != map_places[number, 1]:
            return NEW_MAP
        if not _same(wire, place, maps, map_places[number, 0], end - place):
            return NEW_MAP
        ids[entry, 2] = state[STATEMENT]
        return _NONE
    if ids[entry, 2] != state[STATEMENT]:
        return NO_MAP
    if map_places[number, 2]:
        found = _put(wire, event, end - event, number, state, ring, events)
        if found != _NONE:
            return found
    if u16(wire, body + 6) & STATEMENT_END:
        state[STATEMENT] += 1
    return _NONE


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
    return _NONE


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
    if mode != NESTED and not _artificial(wire, event, code):
        state[OFFSET] += size
        transactions[state[TRANSACTIONS], columns.LOG_BYTES] += size


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


@part
def stops(state: Integers) -> bool:
    """Whether the log stands at a boundary where reading is to stop."""
    return bool(
        state[OFFSET] >= state[STOP_OFFSET]
        or state[ALL_TRANSACTIONS] >= state[STOP_TRANSACTIONS]
        or state[ALL_BYTES] >= state[STOP_BYTES]
    )


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
