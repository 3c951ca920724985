"""What is done to a log's bytes, and what makes them a log again.

Belongs here: damage by chance, and headers, checksums and packets that agree with it, so
that it is found where it is and not at the gate. Does not: what reads the outcome
(`targets`). All of it depends on the seed alone.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from random import Random
from typing import Final

from lockstep.pipeline.binlog.stream.framing import HEADER, EventType
from tests.fuzz.recorded import Corpus
from tests.pipeline.made import payload, wire

_BYTES: Final = (0, 1, 2, 4, 7, 8, 19, 0x7F, 0x80, 0xFA, 0xFB, 0xFC, 0xFD, 0xFE, 0xFF)
_CODES: Final = bytes(EventType)
_CHECKSUM: Final = 4


def damaged(chance: Random, data: bytes, other: bytes, *, begin: int = 0) -> bytes:
    """The data with something wrong behind `begin`; `other` is where bytes are taken from."""
    if len(data) <= begin:
        return data + other[:8]
    at = chance.randrange(begin, len(data))
    count = chance.choice((1, 2, 3, 4, 8, 16, 64))
    match chance.randrange(10):
        case 0 | 1:
            return data[:at] + bytes([data[at] ^ 1 << chance.randrange(8)]) + data[at + 1 :]
        case 2 | 3:
            return data[:at] + bytes([chance.choice(_BYTES)]) + data[at + 1 :]
        case 4:
            return data[:at] + _number(chance) + data[at + 8 :]
        case 5:
            return data[:at]
        case 6:
            return data[:at] + data[at + count :]
        case 7:
            return data[:at] + data[at : at + count] + data[at:]
        case 8:
            there = chance.randrange(len(other)) if other else 0
            return data[:at] + other[there:]
        case _:
            fill = bytes([chance.choice(_BYTES)]) * count
            return data[:at] + fill + data[at + count :]


def _number(chance: Random) -> bytes:
    """An integer near one of the powers of two, or a small one below zero."""
    value = (1 << chance.randrange(64)) + chance.randrange(-2, 3)
    width = chance.choice((2, 3, 4, 8))
    return (value & (1 << 8 * width) - 1).to_bytes(width, "little")


def disturbed(chance: Random, events: Sequence[bytes], corpus: Corpus) -> list[bytes]:
    """The events of a log, one to four things wrong with them."""
    changed = list(events)
    for _ in range(chance.choice((1, 1, 1, 2, 2, 3, 4))):
        _disturb(chance, changed, corpus)
    return changed


def _disturb(chance: Random, events: list[bytes], corpus: Corpus) -> None:
    if not events:
        return
    at = chance.randrange(len(events))
    event = events[at]
    group = chance.choice(corpus.transactions)
    other = chance.choice(group)
    match chance.randrange(12):
        case 0:
            del events[at]
        case 1:
            events.insert(at, event)
        case 2:
            events.insert(at, other)
        case 3:
            there = chance.randrange(len(events))
            events[at], events[there] = events[there], event
        case 4:
            # Type, flags.
            place, value = chance.choice(((4, chance.choice(_CODES)), (17, chance.randrange(256))))
            events[at] = event[:place] + bytes([value]) + event[place + 1 :]
        case _ if event in corpus.inside and chance.random() < 0.8:
            events[at] = _packed_again(chance, event, corpus)
        case _:
            events[at] = damaged(chance, event, other, begin=HEADER.size)


def _packed_again(chance: Random, event: bytes, corpus: Corpus) -> bytes:
    """A TRANSACTION_PAYLOAD whose inside is disturbed."""
    inside = disturbed(chance, corpus.inside[event], corpus)
    data = b"".join(one[:9] + struct.pack("<I", len(one)) + one[13:] for one in inside)
    if chance.random() < 0.2:
        data = damaged(chance, data, event)
    compressed, declared = chance.random() < 0.7, None
    if chance.random() < 0.1:
        declared = int.from_bytes(_number(chance), "little")
    return event[: HEADER.size] + payload(data, compressed=compressed, declared=declared)


def framed(events: Sequence[bytes], *, offset: int = 4) -> list[bytes]:
    """The events as they stand in a log from `offset` on: sizes, places, checksums."""
    made = []
    for event in events:
        size = len(event) + _CHECKSUM
        offset += size
        artificial = event[17] & 0x20
        place = offset & 0xFFFFFFFF
        if artificial:
            offset -= size
        data = event[:9] + struct.pack("<II", size, place) + event[17:]
        made.append(data + struct.pack("<I", zlib.crc32(data)))
    return made


def cut(chance: Random, data: bytes) -> list[bytes]:
    """The data in one to five pieces, sometimes without its end."""
    if chance.random() < 0.1:
        data = data[: chance.randrange(len(data) + 1)]
    places = sorted(chance.randrange(len(data) + 1) for _ in range(chance.choice((0, 0, 1, 2, 4))))
    return [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]


def sent(chance: Random, events: Sequence[bytes]) -> bytes:
    """The packets of a dump, now and then damaged as a broken peer would."""
    data = wire(list(events))
    if chance.random() < 0.05:
        data = damaged(chance, data, data)
    return data
