"""Events made from the format's description, for tests that need no server."""

from __future__ import annotations

import struct
import zlib
from uuid import UUID

from pipeline.binlog.framing import HEADER, EventType

SERVER = "00000001-0000-0000-0000-000000000001"


def packet(
    kind: int,
    body: bytes,
    offset: int,
    *,
    flags: int = 0,
    timestamp: int = 1_700_000_000,
    end: int | None = None,
) -> bytes:
    """One event with CRC32 that stands at `offset`."""
    size = HEADER.size + len(body) + 4
    log_pos = (offset + size if end is None else end) & 0xFFFFFFFF
    head = HEADER.pack(timestamp, kind, 7, size, log_pos, flags)
    data = head + body
    return data + struct.pack("<I", zlib.crc32(data))


def format_description() -> bytes:
    return struct.pack("<H50sIB", 4, b"made", 0, 19) + bytes(40) + b"\x01"


def gtid(number: int) -> bytes:
    return b"\0" + UUID(SERVER).bytes + struct.pack("<q", number)


def query(text: str, database: str = "shop") -> bytes:
    data = database.encode()
    head = struct.pack("<IIBHH", 1, 0, len(data), 0, 0)
    return head + data + b"\0" + text.encode()


def rotate(name: str, offset: int = 4) -> bytes:
    return struct.pack("<Q", offset) + name.encode()


class Log:
    """Builds a log file's packets one after another, offsets counted."""

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

    def transaction(self, number: int, *, end: str = "xid", rows: int = 1) -> int:
        begin = self.add(EventType.GTID, gtid(number))
        self.add(EventType.QUERY, query("BEGIN"))
        for _ in range(rows):
            self.add(EventType.TABLE_MAP, struct.pack("<IHH", 1, 0, 1) + b"\x04shop\0\x01t\0\0")
            self.add(EventType.WRITE_ROWS, struct.pack("<IHHH", 1, 0, 1, 2))
        if end == "xid":
            self.add(EventType.XID, struct.pack("<Q", number))
        else:
            self.add(EventType.QUERY, query(end))
        return begin
