"""The compiled loop that reads every event of the log.

The loop finds the next event, checks its header and checksum, and applies the rules
(`rules`) to the events that make up nearly all of a log: GTIDs, BEGIN, table maps,
rows, texts of statements and commits. It copies row events into a ring buffer and
indexes events and transactions (`ring`). It returns to Python (`EVENT`) for every other
event, which `transactions` handles, and for a table map that it has not met before
(`maps`). `rows` decodes the rows.

Formats: MySQL manual, "Binary Log Event Header"; `Rows_event` and `Gtid_event` in
`libs/mysql/binlog/event` of MySQL's source; `Gtid_log_event` in `sql/log_event.h` of
MariaDB's source. The texts of statements: `Rows_query_event` in `rows_event.h` of
MySQL's source, the length modulo 256 in 1 byte and the text up to the event's end;
`Annotate_rows_log_event` of MariaDB's, the text alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.arrays.array_access import (
    Bytes,
    b64,
    copy,
    crc32,
    equal_bytes,
    i64,
    u8,
    u16,
    u32,
)
from lockstep.pipeline.binlog.arrays.compiled import kernel, kernel_part
from lockstep.pipeline.binlog.stream import framing
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.commit_times import exact_commit_time
from lockstep.pipeline.binlog.stream.control import COMMIT_TIMESTAMP_MASK, LOGICAL_CLOCK
from lockstep.pipeline.binlog.stream.framing import (
    CHECKSUM_BYTES,
    FIRST_OFFSET,
    HEADER_BYTES,
    NESTED,
    PACKET_LIMIT,
    STATEMENT_END,
    WHOLE,
    WIRE,
    EventType,
    damaged,
)
from lockstep.pipeline.binlog.stream.registers import (
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
    TEXT_PUT,
    TEXTS,
    TRANSACTIONS,
    Registers,
)
from lockstep.pipeline.binlog.stream.ring import MOST_TEXT_BYTES, Integers, Texts
from lockstep.pipeline.binlog.stream.rules import BufferAction, EventRole, Phase
from lockstep.pipeline.values.errors import DamagedEvent
from lockstep.pipeline.values.position import Coordinates

MORE, EVENT, FULL, STOPPED, PACKET, SPLIT_EVENT, NEW_MAP, EMITTED, LARGE_ROWS = range(9)
"""Why the loop returned.

- MORE: the input is used up, or ends within an event.
- EVENT: Python has to handle the event.
- FULL: the ring or an index is full.
- STOPPED: a limit is reached (the registers STOP_…).
- PACKET: a packet without an event.
- SPLIT_EVENT: the first of several packets of one event.
- NEW_MAP: a table map that is new to the loop.
- EMITTED: the transaction that the register ALONE marks is complete.
- LARGE_ROWS: a row event larger than the ring; the next free row of the index of events
  describes it, with AT as its offset in the input."""

# Outcomes for a damaged event, by the kind of damage.
NO_HEADER, WRONG_SIZE, WRONG_CHECKSUM, WRONG_OFFSET, WRONG_PACKET, NO_MAP, SHORT = range(10, 17)

NONE = -1
"""The loop goes on: there is no reason to return."""

TEXT_BUFFER_BYTES: Final = 4 << 20
"""Room for the texts of all transactions that are not handed out yet."""

_MOST_CONTINUATION_BYTES: Final = 3
"""Bytes after the first one in the longest characters of UTF-8."""

_WIRE_PREFIX_BYTES: Final = 5
"""Bytes of a packet before its event: length 3, sequence number 1, and a status byte,
which is 0 before an event."""

_QUERY_HEADER_BYTES: Final = 13
"""Bytes before a QUERY's status variables, its database and its statement."""

_MAP_HEADER_BYTES: Final = 8
"""Table id 6, flags 2. The bytes after these identify a map, because table ids are
reused."""

_DUMMY_TABLE: Final = 0xFFFFFF
"""The table id of a row event without rows, which only ends a statement."""

_STANDALONE, _XA_FLAGS = 0x01, 0xC0
"""Flags of MariaDB's GTID event."""

_BEGI: Final = int.from_bytes(b"BEGI", "little")
_N: Final = ord("N")
_COMM: Final = int.from_bytes(b"COMM", "little")
_IT: Final = int.from_bytes(b"IT", "little")

_PYTHON: Final = -2
"""Returned instead of a role: Python has to classify the event."""

_is_artificial: Final = kernel_part(framing.is_artificial)
_exact_commit_time: Final = kernel_part(exact_commit_time)


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
    map_entries: Integers,
    rules: Integers,
    texts: Bytes,
    text_index: Integers,
) -> int:
    """Process events of `wire` from `state[AT]` up to `stop`; return why it ended
    (`MORE` …).

    `mode`: the form of the input (`framing`). `state`: the registers. `ids`: a hash
    table of (table id, number of its map, number of the statement in which the map is
    valid). `map_entries`: for each map its offset and length in `maps`, and how its rows
    are handled (`ring.TAKEN` …). `rules`: see `compiled_table`. `text_index`: for each
    text its transaction, and its offset and length in `texts`.
    """
    while True:
        outcome = _find_event(wire, stop, mode, state)
        if outcome != NONE:
            return outcome
        event, size = state[EVENT_AT], state[EVENT_SIZE]
        code = u8(wire, event + 4)
        # Python verifies these two, because their checksums have rules of their own
        # (`framing`).
        if code == EventType.FORMAT_DESCRIPTION or code == EventType.ROTATE:
            return EVENT
        if mode != NESTED and state[CHECKSUM] < 0:
            return EVENT
        outcome = _check_event(wire, event, size, code, mode, state)
        if outcome != NONE:
            return outcome
        end = event + size - (CHECKSUM_BYTES if mode != NESTED and state[CHECKSUM] == 1 else 0)
        role = _classify(wire, event, end, code)
        # Python raises the error if a compressed transaction continues after its end.
        if role < 0 or (mode == NESTED and state[PHASE] == Phase.BETWEEN):
            return EVENT
        action, phase = rules[state[PHASE], role, 0], rules[state[PHASE], role, 1]
        if action == BufferAction.BEGIN:
            if state[TRANSACTIONS] + 1 >= len(transactions):
                return FULL
            _begin_transaction(wire, event, end, code, state, transactions)
        elif action == BufferAction.KEEP:
            if role == EventRole.CHANGE:
                outcome = _keep(wire, event, end, code, state, ring, events, ids, maps, map_entries)
                if outcome != NONE:
                    return outcome
            elif role == EventRole.NOTE:
                outcome = _keep_text(wire, event, end, code, state, transactions, texts, text_index)
                if outcome != NONE:
                    return outcome
        elif action != BufferAction.PASS and action != BufferAction.EMIT:
            return EVENT
        _advance(wire, event, size, code, mode, state, transactions)
        state[PHASE] = phase
        if action == BufferAction.EMIT:
            if mode != NESTED and state[CHECKSUM] == 0:
                state[EVENT_CRC] = crc32(wire, event, size)
            _emit(state, transactions, u32(wire, event), size if mode != NESTED else 0)
            if state[ALONE]:
                return EMITTED
            if mode != NESTED and _is_at_stop(state):
                return STOPPED


@kernel_part
def _find_event(wire: Bytes, stop: int, mode: int, state: Integers) -> int:
    """Set the registers EVENT_AT, EVENT_SIZE and NEXT for the next event; return NONE,
    or why there is no whole event."""
    at = state[AT]
    if mode == WIRE:
        if stop - at < _WIRE_PREFIX_BYTES:
            return MORE
        length = u16(wire, at) | u8(wire, at + 2) << 16
        if u8(wire, at + 3) != state[SEQUENCE] & 0xFF:
            return WRONG_PACKET
        if length == PACKET_LIMIT:
            return SPLIT_EVENT
        if stop - at < 4 + length:
            return MORE
        state[NEXT] = at + 4 + length
        if length == 0 or u8(wire, at + 4) != 0:
            return PACKET
        state[EVENT_AT], size = at + _WIRE_PREFIX_BYTES, length - 1
        if size < HEADER_BYTES:
            return NO_HEADER
        if u32(wire, at + _WIRE_PREFIX_BYTES + 9) != size:
            return WRONG_SIZE
    else:
        if stop - at < HEADER_BYTES:
            return MORE
        size = u32(wire, at + 9)
        if size < HEADER_BYTES:
            return WRONG_SIZE
        if stop - at < size:
            return MORE
        if mode == WHOLE and stop - at > size:
            return WRONG_SIZE
        state[EVENT_AT], state[NEXT] = at, at + size
    state[EVENT_SIZE] = size
    return NONE


@kernel_part
def _check_event(wire: Bytes, event: int, size: int, code: int, mode: int, state: Integers) -> int:
    """Check the event's checksum and the end offset in its header; return NONE if both
    fit."""
    if mode == NESTED:
        return NONE
    if state[CHECKSUM] == 1:
        if size < HEADER_BYTES + CHECKSUM_BYTES:
            return NO_HEADER
        crc = crc32(wire, event, size - CHECKSUM_BYTES)
        if crc != u32(wire, event + size - CHECKSUM_BYTES):
            return WRONG_CHECKSUM
        state[EVENT_CRC] = crc
    log_pos = u32(wire, event + 13)
    # Offsets of 32 bits wrap. MariaDB 11 writes 0 for events of a transaction's cache.
    is_wrong = log_pos != 0 and log_pos != (state[OFFSET] + size) & 0xFFFFFFFF
    if is_wrong and not _is_artificial(code, log_pos, u16(wire, event + 17)):
        return WRONG_OFFSET
    return NONE


@kernel_part
def _classify(wire: Bytes, event: int, end: int, code: int) -> int:
    """Return the event's role; _PYTHON if a few of its bytes are not enough to tell."""
    body = event + HEADER_BYTES
    if code == EventType.QUERY:
        if end - body < _QUERY_HEADER_BYTES:
            return _PYTHON
        text = body + _QUERY_HEADER_BYTES + u16(wire, body + 11) + u8(wire, body + 8) + 1
        if end - text == 5 and u32(wire, text) == _BEGI and u8(wire, text + 4) == _N:
            return EventRole.BEGIN.value
        if end - text == 6 and u32(wire, text) == _COMM and u16(wire, text + 4) == _IT:
            return EventRole.COMMIT.value
        return _PYTHON
    is_rows = EventType.WRITE_ROWS <= code <= EventType.DELETE_ROWS
    is_rows_v1 = EventType.WRITE_ROWS_V1 <= code <= EventType.DELETE_ROWS_V1
    if (
        code == EventType.TABLE_MAP
        or is_rows
        or is_rows_v1
        or code == EventType.PARTIAL_UPDATE_ROWS
    ):
        return EventRole.CHANGE.value
    if code == EventType.XID:
        return EventRole.COMMIT.value
    if code == EventType.GTID or code == EventType.ANONYMOUS_GTID:
        return EventRole.GTID.value if end - body >= 25 else _PYTHON
    if code == EventType.MARIADB_GTID:
        if end - body < 13 or u8(wire, body + 12) & _XA_FLAGS or i64(wire, body) < 0:
            return _PYTHON
        is_standalone = u8(wire, body + 12) & _STANDALONE
        return EventRole.GTID.value if is_standalone else EventRole.GTID_BEGIN.value
    if code == EventType.ROWS_QUERY or code == EventType.MARIADB_ANNOTATE_ROWS:
        return EventRole.NOTE.value
    if code == EventType.HEARTBEAT or code == EventType.HEARTBEAT_V2:
        return EventRole.HEARTBEAT.value
    return _PYTHON


@kernel_part
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
    map_entries: Integers,
) -> int:
    """Register a table map for the current statement, or put a row event into the ring
    if its table is captured. Return NONE, or why the loop has to stop."""
    body = event + HEADER_BYTES
    if end - body < 8:
        return SHORT
    table_id = u32(wire, body) | u16(wire, body + 4) << 32
    if code != EventType.TABLE_MAP and table_id == _DUMMY_TABLE:
        if u16(wire, body + 6) & STATEMENT_END:
            state[STATEMENT] += 1
        return NONE
    slot = table_id & len(ids) - 1
    while ids[slot, 0] != table_id:
        if ids[slot, 0] < 0:
            return NEW_MAP if code == EventType.TABLE_MAP else NO_MAP
        slot = slot + 1 & len(ids) - 1
    map_number = ids[slot, 1]
    if code == EventType.TABLE_MAP:
        content = body + _MAP_HEADER_BYTES
        if end - content != map_entries[map_number, 1]:
            return NEW_MAP
        if not equal_bytes(wire, content, maps, map_entries[map_number, 0], end - content):
            return NEW_MAP
        ids[slot, 2] = state[STATEMENT]
        return NONE
    if ids[slot, 2] != state[STATEMENT]:
        return NO_MAP
    if map_entries[map_number, 2] == columns.INSPECTED:
        return EVENT
    if map_entries[map_number, 2] == columns.TAKEN:
        outcome = _put(wire, event, end - event, map_number, state, ring, events)
        if outcome != NONE:
            return outcome
    if u16(wire, body + 6) & STATEMENT_END:
        state[STATEMENT] += 1
    return NONE


@kernel_part
def _index_event(
    row: Integers, wire: Bytes, event: int, size: int, map_number: int, state: Integers
) -> None:
    """Fill an event's row in the index of events."""
    row[columns.SIZE] = size
    row[columns.MAP] = map_number
    row[columns.TYPE] = u8(wire, event + 4)
    row[columns.TIMESTAMP] = u32(wire, event)
    row[columns.SERVER_ID] = u32(wire, event + 5)
    row[columns.OFFSET] = state[OFFSET]
    row[columns.TRANSACTION] = state[TRANSACTIONS]
    row[columns.FLAGS] = u16(wire, event + HEADER_BYTES + 6)


@kernel_part
def _put(
    wire: Bytes,
    event: int,
    size: int,
    map_number: int,
    state: Integers,
    ring: Bytes,
    events: Integers,
) -> int:
    """Copy an event into the ring and index it. Return NONE, FULL if the ring or the
    index has no room, or LARGE_ROWS."""
    if state[EVENTS] == len(events):
        return FULL
    if size > len(ring):
        events[state[EVENTS], columns.AT] = event
        _index_event(events[state[EVENTS]], wire, event, size, map_number, state)
        return LARGE_ROWS
    offset = state[PUT] & len(ring) - 1
    skipped = len(ring) - offset if offset + size > len(ring) else 0
    if skipped and state[PUT] == state[ACK]:
        # The ring is empty, so the bytes up to its end need not stay reserved.
        state[PUT] += skipped
        state[GET] = state[ACK] = state[PUT]
        skipped = offset = 0
    if state[PUT] + skipped + size - state[ACK] > len(ring):
        return FULL
    if skipped:
        offset = 0
    copy(ring, offset, wire, event, size)
    row = events[state[EVENTS]]
    row[columns.AT] = offset
    _index_event(row, wire, event, size, map_number, state)
    state[PUT] += skipped + size
    state[EVENTS] += 1
    return NONE


@kernel_part
def _advance(
    wire: Bytes,
    event: int,
    size: int,
    code: int,
    mode: int,
    state: Integers,
    transactions: Integers,
) -> None:
    """Move the input past the event, and the log's offset too if the event is in the
    log."""
    state[AT] = state[NEXT]
    if mode == WIRE:
        state[SEQUENCE] += 1
    if mode != NESTED and not _is_artificial(code, u32(wire, event + 13), u16(wire, event + 17)):
        state[OFFSET] += size
        transactions[state[TRANSACTIONS], columns.LOG_BYTES] += size


@kernel_part
def _begin_transaction(
    wire: Bytes, event: int, end: int, code: int, state: Integers, transactions: Integers
) -> None:
    """Open a transaction, and fill its index row from its GTID event."""
    row = transactions[state[TRANSACTIONS]]
    _open_transaction(state, row)
    row[columns.ORIGIN_SERVER] = u32(wire, event + 5)
    body = event + HEADER_BYTES
    if code == EventType.MARIADB_GTID:
        row[columns.GTID_KIND] = columns.MARIADB
        row[columns.GTID_HIGH] = u32(wire, body + 8)
        row[columns.GTID_LOW] = u32(wire, event + 5)
        row[columns.GTID_NUMBER] = i64(wire, body)
        return
    row[columns.GTID_KIND] = columns.MYSQL if code == EventType.GTID else columns.ANONYMOUS
    row[columns.GTID_HIGH] = b64(wire, body + 1)
    row[columns.GTID_LOW] = b64(wire, body + 9)
    row[columns.GTID_NUMBER] = i64(wire, body + 17)
    # A logical clock of 1 + 16 bytes (since 5.7), then commit times of 7 bytes each
    # (since 8.0).
    if end - body >= 49 and u8(wire, body + 25) == LOGICAL_CLOCK:
        timestamp_bits = _u56(wire, body + 42)
        immediate = original = timestamp_bits & COMMIT_TIMESTAMP_MASK
        if timestamp_bits >> 55 and end - body >= 56:
            original = _u56(wire, body + 49) & COMMIT_TIMESTAMP_MASK
        row[columns.ORIGINAL_TIME] = original
        is_own = u32(wire, event + 5) == state[SERVER_ID]
        row[columns.COMMIT_TIME] = _exact_commit_time(immediate, original, is_own)


@kernel_part
def _u56(wire: Bytes, at: int) -> int:
    return u32(wire, at) | u16(wire, at + 4) << 32 | u8(wire, at + 6) << 48


@kernel_part
def _keep_text(
    wire: Bytes,
    event: int,
    end: int,
    code: int,
    state: Integers,
    transactions: Integers,
    texts: Bytes,
    text_index: Integers,
) -> int:
    """Copy a text of the open transaction, cut off at the transaction's limit
    (`MOST_TEXT_BYTES`). Return NONE, or FULL if the arrays have no room."""
    transaction = state[TRANSACTIONS]
    row = transactions[transaction]
    begin = event + HEADER_BYTES + (1 if code == EventType.ROWS_QUERY else 0)
    size = max(end - begin, 0)
    room = MOST_TEXT_BYTES - row[columns.TEXT_BYTES]
    if room < 0:
        return NONE
    is_whole = size < room
    if not is_whole:
        size = _cut_text(wire, begin, max(room - 1, 0))
    if is_whole or size > 0:
        if state[TEXTS] == len(text_index) or state[TEXT_PUT] + size > len(texts):
            return FULL
        copy(texts, state[TEXT_PUT], wire, begin, size)
        entry = text_index[state[TEXTS]]
        entry[columns.TEXT_OWNER] = transaction
        entry[columns.TEXT_AT] = state[TEXT_PUT]
        entry[columns.TEXT_SIZE] = size
        state[TEXTS] += 1
        state[TEXT_PUT] += size
    if is_whole:
        row[columns.TEXT_BYTES] += size + 1
    else:
        row[columns.TEXT_BYTES] = MOST_TEXT_BYTES + 1
    return NONE


@kernel_part
def _cut_text(wire: Bytes, begin: int, size: int) -> int:
    """Return the largest length up to `size` that does not split a character."""
    for back in range(min(_MOST_CONTINUATION_BYTES, size) + 1):
        if u8(wire, begin + size - back) & 0xC0 != 0x80:
            return size - back
    return size


def open_transaction(state: Integers, row: Integers) -> None:
    """Initialise the index row of a transaction that begins at the log's current
    offset."""
    row[:] = 0
    row[columns.FIRST_EVENT] = state[EVENTS]
    row[columns.FILE] = state[FILE]
    row[columns.BEGIN_OFFSET] = state[OFFSET]


def emit(state: Integers, transactions: Integers, timestamp: int, size: int) -> None:
    """Complete the open transaction. `timestamp`, `size`: seconds and bytes of its last
    event in the log; `size` is 0 if that event came out of a payload, which is counted
    by itself."""
    row = transactions[state[TRANSACTIONS]]
    row[columns.END_EVENT] = state[EVENTS]
    row[columns.END_OFFSET] = state[OFFSET]
    row[columns.LAST_TIMESTAMP] = timestamp
    if size:
        row[columns.LAST_OFFSET] = state[OFFSET] - size
        row[columns.LAST_SIZE] = size
        row[columns.LAST_CRC] = state[EVENT_CRC]
    state[TRANSACTIONS] += 1
    state[COMPLETE_EVENTS] = state[EVENTS]
    state[GET] = state[PUT]
    if size:
        state[ALL_TRANSACTIONS] += 1
        state[ALL_BYTES] += row[columns.LOG_BYTES]


def is_at_stop(state: Integers) -> bool:
    """Return whether reading has to stop; to be called between transactions only. At a
    file's beginning only STOP_OFFSET counts: a later run recognises its start by the
    event before it, and there is none in the file."""
    is_at_count = (
        state[ALL_TRANSACTIONS] >= state[STOP_TRANSACTIONS] or state[ALL_BYTES] >= state[STOP_BYTES]
    )
    return bool(
        state[OFFSET] >= state[STOP_OFFSET] or (is_at_count and state[OFFSET] > FIRST_OFFSET)
    )


_open_transaction: Final = kernel_part(open_transaction)
_emit: Final = kernel_part(emit)
_is_at_stop: Final = kernel_part(is_at_stop)


_DAMAGE_SENTENCES: Final = {
    NO_HEADER: "an event is too short to have a header",
    WRONG_SIZE: "an event's length is not the one in its header",
    WRONG_CHECKSUM: "an event's checksum does not match its bytes",
    WRONG_OFFSET: "an event does not end at the offset in its header",
    WRONG_PACKET: "a packet of the server's stream is missing or duplicated",
    NO_MAP: "a row event refers to a table map that its statement does not have",
    SHORT: "a row event or table map ends within its fixed part",
}


def damage_error(code: int, at: Coordinates) -> DamagedEvent:
    """Return the error for an outcome of the loop, at the place of the event concerned."""
    return damaged(_DAMAGE_SENTENCES[code], at)


@dataclass(frozen=True, slots=True)
class TextBuffer:
    """The memory for texts of statements and their index (n x 3). The registers TEXTS
    and TEXT_PUT say how much is in use."""

    data: npt.NDArray[np.uint8]
    index: Integers

    @classmethod
    def of(cls, size: int) -> TextBuffer:
        """Return a buffer of `size` bytes, or of MOST_TEXT_BYTES if that is more. Its
        index has room for the texts of any transaction, because each counts for
        at least one of these bytes."""
        return cls(
            np.empty(max(size, MOST_TEXT_BYTES), np.uint8), np.empty((MOST_TEXT_BYTES, 3), np.int64)
        )

    def count_before(self, registers: Registers, transaction: int) -> int:
        """Return the number of texts of the transactions before this one."""
        count = registers.texts
        return int(self.index[:count, columns.TEXT_OWNER].searchsorted(transaction)) if count else 0

    def truncate(self, registers: Registers, transaction: int, kept_count: int) -> None:
        """Remove the texts of `transaction`, the newest one, except its first
        `kept_count`."""
        count = self.count_before(registers, transaction) + kept_count
        registers.texts, registers.text_put = count, self._end(count)

    def copy_of_first(self, registers: Registers, transaction_count: int) -> Texts:
        """Return a copy of the texts of the first `transaction_count` transactions."""
        count = self.count_before(registers, transaction_count)
        return Texts(self.data[: self._end(count)].copy(), self.index[:count].copy())

    def drop_first(self, registers: Registers, transaction_count: int) -> None:
        """Remove the texts of the first `transaction_count` transactions; the others
        move up."""
        dropped, count = self.count_before(registers, transaction_count), registers.texts
        begin, end = self._end(dropped), registers.text_put
        if count:
            self.data[: end - begin] = self.data[begin:end].copy()
            # TEXT_OWNER and TEXT_AT become smaller; TEXT_SIZE stays.
            differences = (transaction_count, begin, 0)
            self.index[: count - dropped] = self.index[dropped:count] - differences
            registers.texts, registers.text_put = count - dropped, end - begin

    def _end(self, count: int) -> int:
        """Return the end of the first `count` texts in `data`."""
        if not count:
            return 0
        last = self.index[count - 1]
        return int(last[columns.TEXT_AT] + last[columns.TEXT_SIZE])
