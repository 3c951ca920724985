"""Events of other servers and versions, made from their formats' descriptions."""

from __future__ import annotations

import struct
import zlib
from uuid import UUID

from tests.pipeline.made import Log

# How long the fixed parts of events are in MySQL 5.7, by type from 1 (its format description).
_LENGTHS_57 = bytes.fromhex(
    "380d0008001200040404041200005f00041a08000000080808020000000a0a0a2a2a00123400"
)


def number(value: int) -> bytes:
    """An unsigned integer of `mysql::serialization` (its readme, "Variable-length integers"):
    as many ones at the low end as bytes follow the first, a zero, the value."""
    more = max((value.bit_length() - 1) // 7, 0)
    if more > 7:
        return b"\xff" + struct.pack("<Q", value)
    return (value << more + 1 | (1 << more) - 1).to_bytes(more + 1, "little")


def tagged_gtid(
    uuid: UUID, tag: str, count: int, immediate: int, original: int | None = None
) -> bytes:
    """GTID_TAGGED: version, size, last field that must be known; then numbered fields, those
    with a sign doubled."""
    fields = [
        (0, number(1)),
        (1, b"".join(number(byte) for byte in uuid.bytes)),
        (2, number(count << 1)),
        (3, number(len(tag)) + tag.encode()),
        (4, number(3 << 1)),
        (5, number(4 << 1)),
        (6, number(immediate)),
        *([(7, number(original))] if original is not None else []),
        (8, number(1234)),
        (9, number(80400)),
    ]
    body = b"".join(number(field) + value for field, value in fields)
    size = len(body) + 3
    size += len(number(size)) - 1
    return number(1) + number(size) + number(0) + body


def description(version: str, *, checksum: bool = True) -> bytes:
    """The format description of a server of that version; types of 5.7 and more."""
    lengths = _LENGTHS_57 + bytes(5 if "MariaDB" not in version else 133)
    return struct.pack("<H50sIB", 4, version.encode(), 0, 19) + lengths + bytes([checksum])


def log_of(version: str) -> Log:
    """A log that begins with that server's format description and nothing else."""
    log = Log()
    log.offset, log.packets = 4, []
    log.add(15, description(version))
    return log


def row_event(table_id: int, columns: int, images: bytes, *, extra: bytes | None = None) -> bytes:
    """The body of a WRITE or DELETE of all columns, the statement's last: version 1 without
    `extra`, 2 with it."""
    head = struct.pack("<IHH", table_id, 0, 1)
    if extra is not None:
        head += struct.pack("<H", 2 + len(extra)) + extra
    return head + bytes([columns]) + b"\xff" * ((columns + 7) // 8) + images


def update_event(
    table_id: int, columns: int, images: bytes, *, extra: bytes | None = None
) -> bytes:
    """The body of an UPDATE: one bitmap more."""
    body = row_event(table_id, columns, b"", extra=extra)
    return body + b"\xff" * ((columns + 7) // 8) + images


def map_of(types: bytes, metadata: bytes = b"", *, table_id: int = 1) -> bytes:
    """TABLE_MAP of shop.t without optional metadata, as MySQL 5.7 writes it."""
    names = b"\4shop\0\1t\0"
    nulls = b"\xff" * ((len(types) + 7) // 8)
    head = struct.pack("<IHH", table_id, 0, 1) + names + bytes([len(types)]) + types
    return head + bytes([len(metadata)]) + metadata + nulls


def compressed(data: bytes, *, declared: int | None = None, head: int = 0x80) -> bytes:
    """MariaDB's compressed block: how, how long, zlib."""
    size = len(data) if declared is None else declared
    digits = size.to_bytes(4, "big").lstrip(b"\0") or b"\0"
    return bytes([head | len(digits)]) + digits + zlib.compress(data)
