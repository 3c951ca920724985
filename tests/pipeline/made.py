"""Events made from the format's description, for tests that need no server."""

from __future__ import annotations

import struct
import zlib
from uuid import UUID

import numpy as np
import pyarrow as pa

from lockstep.pipeline.binlog.stream.framing import HEADER, EventType
from lockstep.pipeline.binlog.stream.intake import HEADROOM
from lockstep.pipeline.ports.source import Received

SERVER = "00000001-0000-0000-0000-000000000001"


def packet(
    kind: int,
    body: bytes,
    offset: int,
    *,
    flags: int = 0,
    timestamp: int = 1_700_000_000,
    end: int | None = None,
    server_id: int = 7,
) -> bytes:
    """One event with CRC32 that stands at `offset`."""
    size = HEADER.size + len(body) + 4
    log_pos = (offset + size if end is None else end) & 0xFFFFFFFF
    head = HEADER.pack(timestamp, kind, server_id, size, log_pos, flags)
    data = head + body
    return data + struct.pack("<I", zlib.crc32(data))


def format_description(version: str = "9.7.4-made") -> bytes:
    return struct.pack("<H50sIB", 4, version.encode(), 0, 19) + bytes(40) + b"\x01"


def gtid(number: int) -> bytes:
    return b"\0" + UUID(SERVER).bytes + struct.pack("<q", number)


def query(text: str, database: str = "shop") -> bytes:
    data = database.encode()
    head = struct.pack("<IIBHH", 1, 0, len(data), 0, 0)
    return head + data + b"\0" + text.encode()


def rotate(name: str, offset: int = 4) -> bytes:
    return struct.pack("<Q", offset) + name.encode()


def table_map(table_id: int = 1, table: str = "t", database: str = "shop") -> bytes:
    """One INT column, no metadata."""
    names = b"".join(bytes([len(n)]) + n.encode() + b"\0" for n in (database, table))
    return struct.pack("<IHH", table_id, 0, 1) + names + b"\x01\x03\x00\x00"


def rows(*values: int, table_id: int = 1, last: bool = True) -> bytes:
    """WRITE_ROWS of one INT column."""
    head = struct.pack("<IHHH", table_id, 0, int(last), 2) + b"\x01\xff"
    images = np.zeros(len(values), [("nulls", "u1"), ("i", "<i4")])
    images["i"] = values
    return head + images.tobytes()


def xa_prepare(gtrid: bytes, bqual: bytes = b"", *, one_phase: bool = False) -> bytes:
    return struct.pack("<BIII", one_phase, 1, len(gtrid), len(bqual)) + gtrid + bqual


def xa(word: str, gtrid: bytes, bqual: bytes = b"") -> bytes:
    return query(f"XA {word} X'{gtrid.hex()}',X'{bqual.hex()}',1")


def mariadb_gtid(number: int, *, standalone: bool = False, gtrid: bytes = b"") -> bytes:
    """MariaDB's GTID event, with an XID if it prepares an XA transaction."""
    flags = (1 if standalone else 0) | (0x40 if gtrid else 0)
    xid = struct.pack("<IBB", 1, len(gtrid), 0) + gtrid if gtrid else b""
    return (struct.pack("<QIB", number, 0, flags) + xid).ljust(19, b"\0")


def nested(kind: int, body: bytes) -> bytes:
    """An event as it stands in a payload: without a checksum."""
    return HEADER.pack(1_700_000_000, kind, 7, HEADER.size + len(body), 0, 0) + body


def nested_transaction(*values: int) -> bytes:
    """BEGIN, a row event per hundred values, XID."""
    parts = [nested(EventType.QUERY, query("BEGIN"))]
    for first in range(0, len(values), 100):
        parts.append(nested(EventType.TABLE_MAP, table_map()))
        parts.append(nested(EventType.WRITE_ROWS, rows(*values[first : first + 100])))
    return b"".join([*parts, nested(EventType.XID, bytes(8))])


def payload(data: bytes, *, compressed: bool = True, declared: int | None = None) -> bytes:
    """TRANSACTION_PAYLOAD around the events' bytes."""
    inside = pa.Codec("zstd").compress(data, asbytes=True) if compressed else data

    def field(kind: int, value: int) -> bytes:
        packed = b"\xfe" + struct.pack("<Q", value)
        return bytes([kind, len(packed)]) + packed

    size = len(data) if declared is None else declared
    head = field(2, 0 if compressed else 255) + field(3, size) + field(1, len(inside))
    return head + b"\0" + inside


class Log:
    """Builds a log file's events one after another, offsets counted."""

    def __init__(self, offset: int = 4) -> None:
        self.offset = offset
        self.packets: list[bytes] = []
        self.add(EventType.FORMAT_DESCRIPTION, format_description())
        self.add(EventType.PREVIOUS_GTIDS, struct.pack("<Q", 0))

    def add(self, kind: int, body: bytes, **options: int) -> int:
        """Append an event; where it begins."""
        made = packet(kind, body, self.offset, **options)
        self.packets.append(made)
        begin, self.offset = self.offset, self.offset + len(made)
        return begin

    def begin(self, number: int = 1) -> int:
        """A transaction that is open; where it begins."""
        begin = self.add(EventType.GTID, gtid(number))
        self.say("BEGIN")
        return begin

    def say(self, text: str) -> int:
        return self.add(EventType.QUERY, query(text))

    def prepare(self, number: int, gtrid: bytes, *values: int) -> None:
        """An XA transaction with a statement of these rows, up to its XA PREPARE."""
        self.add(EventType.GTID, gtid(number))
        self.add(EventType.QUERY, xa("START", gtrid))
        self.write(*values)
        self.add(EventType.QUERY, xa("END", gtrid))
        self.add(EventType.XA_PREPARE, xa_prepare(gtrid))

    def transaction(self, number: int, *, end: str = "xid", rows: int = 1) -> int:
        """A transaction with so many row events of a row each, whose value is `number`."""
        begin = self.begin(number)
        for _ in range(rows):
            self.write(number)
        self.end(end, number)
        return begin

    def write(self, *values: int, table: str = "t", table_id: int = 1) -> None:
        """A statement: a table map and its rows."""
        self.add(EventType.TABLE_MAP, table_map(table_id, table))
        self.add(EventType.WRITE_ROWS, rows(*values, table_id=table_id))

    def end(self, how: str = "xid", number: int = 1) -> None:
        if how == "xid":
            self.add(EventType.XID, struct.pack("<Q", number))
        else:
            self.say(how)

    def statement(self, number: int, text: str) -> None:
        self.add(EventType.GTID, gtid(number))
        self.say(text)

    def wire(self, *, end: bool = True) -> bytes:
        """The packets that a dump of this log sends."""
        return wire(self.packets, end=end)


def wire(events: list[bytes], *, end: bool = True) -> bytes:
    """Events as MySQL packets, numbered from 1, an EOF packet behind them."""
    sent = [b"\0" + event for event in events] + ([b"\xfe\0\0\2\0"] if end else [])
    parts, number = [], 1
    for data in sent:
        while True:
            piece, data = data[:LARGEST_PACKET], data[LARGEST_PACKET:]
            parts.append(struct.pack("<I", len(piece))[:3] + bytes([number & 0xFF]) + piece)
            number += 1
            if len(piece) < LARGEST_PACKET:
                break
    return b"".join(parts)


LARGEST_PACKET = 0xFFFFFF


def received(data: bytes) -> Received:
    """A piece of a dump, as a socket's reader hands it on."""
    array = np.empty(HEADROOM + len(data), np.uint8)
    array[HEADROOM:] = np.frombuffer(data, np.uint8)
    return Received(array, HEADROOM, len(array))
