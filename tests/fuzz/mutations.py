"""What is done to a log's bytes, and what makes them a log again; and small inputs that declare
enormous lengths, counts and sizes.

Headers, checksums and packets agree with the random damage, so that it is found where it is and not
at the gate. All of it depends on the seed alone. `targets` reads the outcome.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Sequence
from functools import cache
from random import Random
from typing import Final

from lockstep.pipeline.binlog.stream.framing import HEADER, EventType
from tests.fuzz.recorded import Corpus
from tests.pipeline.made import (
    LARGEST_PACKET,
    format_description,
    gtid,
    nested,
    payload,
    query,
    rows,
    table_map,
    wire,
)

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


_MANY: Final = (1 << 24, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 40, (1 << 63) - 1, 1 << 63)
_BOMB_BYTES: Final = 16 << 20


def lying_log(chance: Random) -> bytes:
    """The packets of a log in which something says that it is far larger than it is."""
    return chance.choice(_LOGS)(chance)


def _log(*events: tuple[int, bytes]) -> bytes:
    begun = ((EventType.FORMAT_DESCRIPTION, format_description()), (EventType.GTID, gtid(1)))
    return wire(framed([nested(kind, body) for kind, body in (*begun, *events)]))


def _rows(chance: Random) -> bytes:
    """A cell's length of four bytes; without it, the columns' number."""
    text = struct.pack("<I", chance.choice(_MANY) & 0xFFFFFFFF)
    body = struct.pack("<IHHH", 1, 0, 1, 2) + b"\x01\xff\0" + text + b"text"
    return _log(
        (EventType.QUERY, query("BEGIN")),
        (EventType.TABLE_MAP, _long_text()),
        (EventType.WRITE_ROWS, body),
        (EventType.XID, bytes(8)),
    )


def _long_text() -> bytes:
    """A LONGTEXT that is the key, with all metadata."""
    return (
        struct.pack("<IHH", 1, 0, 1)
        + b"\x04shop\0\x01t\0\x01\xfc\x01\x04\0"
        + (b"\x02\x01\x2d\x04\x02\x01a\x08\x01\x00")
    )


def _texts(chance: Random) -> bytes:
    """Statements' texts, their lengths wrong, together more than is kept of a transaction."""
    events = [(EventType.QUERY, query("BEGIN"))]
    for _ in range(chance.choice((1, 10, 300))):
        body = chance.randbytes(1) + b"\xe2\x82\xac" * chance.choice((0, 1, 1000))
        kind = chance.choice((EventType.ROWS_QUERY, EventType.MARIADB_ANNOTATE_ROWS))
        events.append((kind, body[: chance.choice((0, 1, 2, 20, len(body)))]))
    return _log(*events, (EventType.XID, bytes(8)))


def _columns(chance: Random) -> bytes:
    """A table map of very many columns."""
    many = b"\xfe" + struct.pack("<Q", chance.choice(_MANY))
    body = struct.pack("<IHH", 1, 0, 1) + b"\x04shop\0\x01t\0" + many + b"\x03\0\0"
    return _log(
        (EventType.QUERY, query("BEGIN")),
        (EventType.TABLE_MAP, body),
        (EventType.WRITE_ROWS, rows(1)),
        (EventType.XID, bytes(8)),
    )


def _sizes(chance: Random) -> bytes:
    """A payload's two sizes, and how long its fields are."""
    size, lying = chance.choice(_MANY), chance.choice(((1,), (3,), (1, 3)))
    fields = b"".join(
        bytes([kind, 9, 0xFE]) + struct.pack("<Q", size if kind in lying else value)
        for kind, value in ((2, 255), (3, 4), (1, 4))
    )
    if chance.random() < 0.3:
        fields = b"\x01\xfe" + struct.pack("<Q", size) + fields
    return _log((EventType.TRANSACTION_PAYLOAD, fields + b"\0abcd"))


def _window(chance: Random) -> bytes:
    """A zstd frame (RFC 8878, 3.1.1) whose window or content is very large."""
    window = bytes([0, chance.randrange(256)])
    content = b"\xe0" + struct.pack("<Q", chance.choice(_MANY))
    frame = b"\x28\xb5\x2f\xfd" + chance.choice((window, content)) + b"\x01\0\0" + bytes(50)
    fields = b"\x02\x01\0" + b"\x01\x03\xfc" + struct.pack("<H", len(frame))
    return _log((EventType.TRANSACTION_PAYLOAD, fields + b"\0" + frame))


def _bomb(chance: Random) -> bytes:
    """A few kilobytes that unpack to very many: zeros, or rows, or one event."""
    return _log((EventType.TRANSACTION_PAYLOAD, _unpacking(chance.randrange(4))))


@cache
def _unpacking(which: int) -> bytes:
    begin = nested(EventType.QUERY, query("BEGIN"))
    statement = nested(EventType.TABLE_MAP, table_map()) + nested(EventType.WRITE_ROWS, rows(1))
    size = 1 << 31 if which == 0 else (1 << 32) - 1
    one = HEADER.pack(1, EventType.WRITE_ROWS, 1, size, 0, 0) + bytes(100)
    many = statement * (_BOMB_BYTES // len(statement))
    data = (begin + one, begin + one, begin + many, b"")[which]
    return payload(data.ljust(_BOMB_BYTES, b"\0"))


def _packets(chance: Random) -> bytes:
    """A packet, or the first of many, that never comes."""
    data = _log((EventType.QUERY, query("BEGIN")))[:-9]
    number = 4
    head = struct.pack("<I", chance.choice((1 << 20, LARGEST_PACKET - 1, LARGEST_PACKET)))[:3]
    return data + head + bytes([number, 0]) + bytes(chance.randrange(200))


def _compressed(chance: Random) -> bytes:
    """MariaDB's compressed rows that say how long they are."""
    said = struct.pack(">I", chance.choice(_MANY) & 0xFFFFFFFF)
    body = struct.pack("<IHH", 1, 0, 1) + b"\x01\xff\x84" + said + _DEFLATED
    return _log(
        (EventType.QUERY, query("BEGIN")),
        (EventType.TABLE_MAP, table_map()),
        (EventType.MARIADB_WRITE_ROWS_COMPRESSED_V1, body),
    )


def _sets(chance: Random) -> bytes:
    """PREVIOUS_GTIDS of very many sources, or intervals."""
    many = struct.pack("<Q", chance.choice(_MANY))
    body = chance.choice((many, struct.pack("<Q", 1) + bytes(16) + many)) + bytes(100)
    events = (
        (EventType.FORMAT_DESCRIPTION, format_description()),
        (EventType.PREVIOUS_GTIDS, body),
    )
    return wire(framed([nested(kind, data) for kind, data in events]))


def _xids(chance: Random) -> bytes:
    """XA_PREPARE with the lengths of its XID."""
    many = chance.choice(_MANY) & 0xFFFFFFFF
    return _log(
        (EventType.QUERY, query("XA START X'61',X'',1")),
        (EventType.XA_PREPARE, struct.pack("<BIII", 0, 1, many, many) + b"gtrid"),
    )


_DEFLATED: Final = zlib.compress(bytes(100))
_LOGS: Final[tuple[Callable[[Random], bytes], ...]] = (
    _rows,
    _columns,
    _sizes,
    _window,
    _bomb,
    _packets,
    _compressed,
    _sets,
    _xids,
    _texts,
)
