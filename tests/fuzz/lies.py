"""Small inputs that say they are enormous.

Belongs here: lengths, counts and sizes that a declaration may hold, beyond what there is.
Does not: damage by chance (`mutations`).
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Final

from lockstep.pipeline.binlog.stream.framing import HEADER, EventType
from tests.fuzz.mutations import framed
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
