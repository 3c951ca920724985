"""The next event of the input: packet and event headers, checksums, counted offsets.

Belongs here: finding it and proving it to be what its headers say. Does not: what it is
to the rules (`stream`).
"""

from __future__ import annotations

from pipeline.binlog.arrays.array_access import Bytes, crc32, u8, u16, u32
from pipeline.binlog.arrays.compiled import part
from pipeline.binlog.arrays.outcomes import (
    LARGE,
    MORE,
    NO_HEADER,
    NONE,
    PACKET,
    WRONG_CHECKSUM,
    WRONG_OFFSET,
    WRONG_PACKET,
    WRONG_SIZE,
)
from pipeline.binlog.stream.registers import (
    AT,
    CHECKSUM,
    EVENT_AT,
    EVENT_CRC,
    EVENT_SIZE,
    NEXT,
    OFFSET,
    SEQUENCE,
)
from pipeline.binlog.stream.ring import Integers
from pipeline.binlog.stream.wire_format import (
    ARTIFICIAL,
    CHECKSUM_BYTES,
    DESCRIPTION,
    ENCRYPTION,
    HEADER,
    HEARTBEAT,
    HEARTBEAT_V2,
    NESTED,
    PACKET_HEAD,
    PACKET_LIMIT,
    ROTATE,
    WHOLE,
    WIRE,
)


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
