"""One JSON scalar of MySQL's binary form → its text, in compiled code.

Belongs here: what a scalar's bytes are and how MySQL writes them. Does not: objects,
arrays and documents (`json`), or the values that only SQL has (`json_opaque`).

Formats: `parse_scalar` in sql-common/json_binary.cc and `wrapper_to_string` and
`double_quote` in sql-common/json_dom.cc of MySQL's source.

Each function takes the addresses of the bytes that a value may use, `at` to `stop`, of
its document's `end`, and of the text's `place` and `limit`. It answers the place behind the
text, or why there is none (negative). A place that it is called with has SLACK bytes up to
the limit, but for the few of a comma or colon.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.binlog.arrays.address_access import i64, put8, put32, put64, u8, u16, u32
from pipeline.binlog.arrays.compiled import part
from pipeline.binlog.values.digits import put_unsigned
from pipeline.binlog.values.json_form import (
    DAMAGED,
    DOUBLE,
    FALSE,
    FULL,
    INT16,
    INT32,
    INT64,
    LENGTH_BYTES,
    LITERAL,
    OPAQUE,
    SLACK,
    STRING,
    TRUE,
    UINT16,
    UINT32,
    UINT64,
    VAR_STRING,
)
from pipeline.binlog.values.json_opaque import longest, opaque
from pipeline.binlog.values.shortest import INFINITE, POINT_ZERO, put_double

_QUOTE, _BACKSLASH, _MINUS = b'"\\-'
_NULL: Final = int.from_bytes(b"null", "little")
_TRUE: Final = int.from_bytes(b"true", "little")
_FALSE: Final = int.from_bytes(b"fals", "little")
_E: Final = ord("e")

# A byte in all eight places of a word, and the bits that tell what a word holds.
_ONES: Final = 0x0101010101010101
_HIGH: Final = -0x7F7F7F7F7F7F7F80
_CONTROLS: Final = 0x20 * _ONES
_QUOTES: Final = _QUOTE * _ONES
_BACKSLASHES: Final = _BACKSLASH * _ONES

# What follows the backslash for a control character; 0 where it is a number.
_LETTERS: Final = dict(zip(b"\b\t\n\f\r", b"btnfr", strict=True))
ESCAPES: Final = np.array([_LETTERS.get(code, 0) for code in range(32)])
_UNICODE: Final = int.from_bytes(b"\\u00", "little")
_ZERO: Final = ord("0")
_TEN: Final = ord("a") - 10


@part
def scalar(
    kind: int, at: int, stop: int, end: int, place: int, limit: int, bare_doubles: bool
) -> int:
    """A value of any type but objects and arrays. `bare_doubles`: as in `Layout`."""
    room = stop - at
    if kind == STRING:
        first, length = _counted(at, stop)
        return DAMAGED if length < 0 else string(first, length, end, place, limit)
    if kind == INT16 and room >= 2:
        return _signed(place, (u16(at) ^ 0x8000) - 0x8000)
    if kind == LITERAL and room >= 1:
        return _literal(place, u8(at))
    if kind == DOUBLE and room >= 8:
        bits = i64(at)
        if bits >> 52 & INFINITE == INFINITE:
            return DAMAGED
        place = put_double(place, bits)
        return place - 2 if bare_doubles and u16(place - 2) == POINT_ZERO else place
    if kind == INT32 and room >= 4:
        return _signed(place, (u32(at) ^ 0x80000000) - 0x80000000)
    if kind == INT64 and room >= 8:
        return _signed(place, i64(at))
    if kind == UINT16 and room >= 2:
        return put_unsigned(place, u16(at))
    if kind == UINT32 and room >= 4:
        return put_unsigned(place, u32(at))
    if kind == UINT64 and room >= 8:
        return put_unsigned(place, i64(at))
    return _opaque(at, stop, end, place, limit) if kind == OPAQUE else DAMAGED


@part
def _signed(place: int, value: int) -> int:
    if value >= 0:
        return put_unsigned(place, value)
    put8(place, _MINUS)
    return put_unsigned(place + 1, -value)


@part
def _literal(place: int, which: int) -> int:
    if which == FALSE:
        put32(place, _FALSE)
        put8(place + 4, _E)
        return place + 5
    if which > FALSE:
        return DAMAGED
    put32(place, _TRUE if which == TRUE else _NULL)
    return place + 4


@part
def _counted(at: int, stop: int) -> tuple[int, int]:
    """(first byte, length) of what follows its length; a negative length if it ends too late."""
    length = shift = 0
    while at < stop and shift < 7 * LENGTH_BYTES:
        byte = u8(at)
        at += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return at, length if length <= stop - at else -1
    return at, -1


@part
def _opaque(at: int, stop: int, end: int, place: int, limit: int) -> int:
    """A type of SQL's, a length, and the value."""
    if at == stop:
        return DAMAGED
    first, length = _counted(at + 1, stop)
    if length < 0:
        return DAMAGED
    kind = u8(at)
    if kind == VAR_STRING:
        return string(first, length, end, place, limit)
    if limit - place < longest(kind, length) + SLACK:
        return FULL
    return opaque(kind, first, length, place)


@part
def string(at: int, length: int, end: int, place: int, limit: int) -> int:
    """`length` bytes of text in quotes, with escapes."""
    if limit - place < length + SLACK:
        return FULL
    put8(place, _QUOTE)
    place += 1
    last = at + length
    while at < last:
        count = min(last - at, 8)
        word = i64(at) if end - at >= 8 else _word(at, count)
        # Flags of bytes behind the string leave at the word's upper end.
        if _special(word) << 64 - 8 * count == 0:
            # Bytes behind the string are written over by what follows it.
            put64(place, word)
            place += count
        else:
            if limit - place < last - at + 6 * 8 + SLACK:
                return FULL
            place = _escaped(place, word, count)
        at += count
    put8(place, _QUOTE)
    return place + 1


@part
def _word(at: int, count: int) -> int:
    word = 0
    for byte in range(count):
        word |= u8(at + byte) << 8 * byte
    return word


@part
def _special(word: int) -> int:
    """Zero if none of the word's bytes needs an escape.

    The lowest bit that is set is the highest of the first such byte.
    """
    quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
    controls = word - _CONTROLS & ~word
    return (controls | (quotes - _ONES & ~quotes) | (backslashes - _ONES & ~backslashes)) & _HIGH


@part
def _escaped(place: int, word: int, count: int) -> int:
    """The word's first `count` bytes, with escapes."""
    for at in range(count):
        byte = word >> 8 * at & 0xFF
        if byte >= 0x20 and byte != _QUOTE and byte != _BACKSLASH:
            put8(place, byte)
            place += 1
        elif byte >= 0x20 or ESCAPES[byte] != 0:
            put8(place, _BACKSLASH)
            put8(place + 1, byte if byte >= 0x20 else ESCAPES[byte])
            place += 2
        else:
            put32(place, _UNICODE)
            put8(place + 4, _ZERO + (byte >> 4))
            low = byte & 0xF
            put8(place + 5, low + (_ZERO if low < 10 else _TEN))
            place += 6
    return place
