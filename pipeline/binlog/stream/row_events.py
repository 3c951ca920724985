"""Table maps and row events: noted, or put into the ring.

Belongs here: finding a row event's table map, and the room for it. Does not: table maps
not seen before (`maps`), what a row holds (`rows`).

Format: `Rows_event` in `libs/mysql/binlog/event` of MySQL's source.
"""

from __future__ import annotations

from typing import Final

from pipeline.binlog.arrays.array_access import Bytes, copy, i64, u8, u16, u32
from pipeline.binlog.arrays.compiled import part
from pipeline.binlog.arrays.outcomes import EVENT, FULL, HUGE, NEW_MAP, NO_MAP, NONE, SHORT
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.registers import ACK, EVENTS, GET, OFFSET, PUT, STATEMENT, TRANSACTIONS
from pipeline.binlog.stream.ring import Integers
from pipeline.binlog.stream.wire_format import (
    DUMMY_TABLE,
    HEADER,
    STATEMENT_END,
    TABLE_MAP,
    TAKEN,
    TOLD,
)

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
