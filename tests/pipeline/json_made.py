"""Documents of MySQL's binary JSON, written by the tests.

Form: sql-common/json_binary.h of MySQL's source.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value that only SQL has: its type (enum_field_types) and its bytes."""

    kind: int
    data: bytes


Json: TypeAlias = "bool | int | float | str | Opaque | Sequence[Json] | Mapping[str, Json] | None"
"""What a document is made of."""


def made(value: Json, *, large: bool = False) -> bytes:
    """The document; `large` objects and arrays have four bytes for sizes and places."""
    kind, data = _encoded(value, large)
    return bytes([kind]) + data


def _encoded(value: Json, large: bool) -> tuple[int, bytes]:
    match value:
        case None | bool():
            return 4, {None: b"\0", True: b"\1", False: b"\2"}[value]
        case int():
            return _integer(value)
        case float():
            return 11, struct.pack("<d", value)
        case str():
            return 12, _counted(value.encode())
        case Opaque():
            return 15, bytes([value.kind]) + _counted(value.data)
        case Mapping():
            keys = sorted((key.encode() for key in value), key=lambda key: (len(key), key))
            return 0 + large, _container(keys, [value[key.decode()] for key in keys], large)
        case _:
            return 2 + large, _container(None, value, large)


def _integer(value: int) -> tuple[int, bytes]:
    for kind, form in ((5, "<h"), (6, "<H"), (7, "<i"), (8, "<I"), (9, "<q")):
        try:
            return kind, struct.pack(form, value)
        except struct.error:
            continue
    return 10, struct.pack("<Q", value)


def _counted(data: bytes) -> bytes:
    length, count = len(data), b""
    while length > 127:
        count += bytes([length & 127 | 128])
        length >>= 7
    return count + bytes([length]) + data


def _container(keys: Sequence[bytes] | None, values: Sequence[Json], large: bool) -> bytes:
    number, width = ("<I", 4) if large else ("<H", 2)
    entry = width + 2 if keys is not None else 0
    at = 2 * width + len(values) * (entry + 1 + width)
    key_entries, value_entries, tail = b"", b"", b""
    for key in keys or ():
        key_entries += struct.pack(number + "H", at + len(tail), len(key))
        tail += key
    for value in values:
        kind, data = _encoded(value, large)
        if kind in (4, 5, 6) or (large and kind in (7, 8)):
            value_entries += bytes([kind]) + data.ljust(width, b"\0")
        else:
            value_entries += bytes([kind]) + struct.pack(number, at + len(tail))
            tail += data
    size = at + len(tail)
    return (
        struct.pack("<II" if large else "<HH", len(values), size)
        + key_entries
        + value_entries
        + tail
    )
