"""Objects, arrays and whole documents of MySQL's binary JSON → text, in compiled code.

Belongs here: the walk through a document. Does not: scalars (`json_text.py`), or the
Arrow array (`json.py`).

Format: sql-common/json_binary.h of MySQL's source, and `parse_array_or_object`,
`Value::element` and `Value::key` in json_binary.cc; text: `wrapper_to_string` in
json_dom.cc. An object or array is: number of elements, size in bytes, per element of an
object the place and length of its key, per element its type and either the value itself
or its place, then keys and values. Places count from its first byte. "Small" ones have
two bytes for numbers, sizes and places, "large" ones four.
"""

from __future__ import annotations

from typing import Final

from pipeline.binlog.arrays.address_access import i64, put8, put16, put64, u8, u16, u32
from pipeline.binlog.arrays.compiled import part
from pipeline.binlog.values.json_form import (
    DAMAGED,
    FULL,
    INT16,
    INT32,
    LARGE_ARRAY,
    LARGE_OBJECT,
    LITERAL,
    MOST_DEPTH,
    SLACK,
    SMALL_ARRAY,
    UINT16,
    UINT32,
)
from pipeline.binlog.values.json_text import scalar, string

_NO_TYPE: Final = 255

_COMMA: Final = int.from_bytes(b", ", "little")
_COLON: Final = int.from_bytes(b": ", "little")
_BRACE, _END_BRACE, _BRACKET, _END_BRACKET = b"{}[]"

# An open object or array, eight bytes each: its first byte, the one behind its entries and
# the one behind it; elements to come, and whether none came yet; the next entries of a key
# (0 in an array) and of a value; bytes of a number.
_BASE, _BODY, _STOP, _LEFT, _FIRST, _KEY, _VALUE, _WIDTH = range(0, 64, 8)
_FRAME: Final = 64

STACK_BYTES: Final = MOST_DEPTH * _FRAME


@part
def document(begin: int, end: int, place: int, limit: int, stack: int, bare_doubles: bool) -> int:
    """The text of the document from address `begin` to `end`, which is not empty.

    Written at `place`, up to `limit`; the place behind it, or FULL or DAMAGED.
    `stack` has STACK_BYTES to work with. `bare_doubles`: as in `Layout`.
    """
    if limit - place < SLACK:
        return FULL
    kind, at, stop = u8(begin), begin + 1, end
    top, bottom, highest = stack - _FRAME, stack - _FRAME, stack + STACK_BYTES - _FRAME
    while True:
        if kind > LARGE_ARRAY:
            place = scalar(kind, at, stop, end, place, limit, bare_doubles)
            if place < 0:
                return place
        else:
            if top == highest or not _open(kind, at, stop, top + _FRAME):
                return DAMAGED
            top += _FRAME
            put8(place, _BRACKET if kind >= SMALL_ARRAY else _BRACE)
            place += 1
        while top > bottom and i64(top + _LEFT) == 0:
            if limit - place < SLACK:
                return FULL
            put8(place, _END_BRACE if i64(top + _KEY) else _END_BRACKET)
            place += 1
            top -= _FRAME
        if top == bottom:
            return place
        if limit - place < SLACK:
            return FULL
        put16(place, _COMMA)
        place += 0 if i64(top + _FIRST) else 2
        put64(top + _FIRST, 0)
        put64(top + _LEFT, i64(top + _LEFT) - 1)
        if i64(top + _KEY):
            place = _key(top, end, place, limit)
            if place < 0:
                return place
        kind, at, stop = _element(top)


@part
def _number(at: int, width: int) -> int:
    return u16(at) if width == 2 else u32(at)


@part
def _open(kind: int, at: int, stop: int, frame: int) -> bool:
    """Fill the frame for the object or array from `at`; whether it fits before `stop`."""
    width = 4 if kind in (LARGE_OBJECT, LARGE_ARRAY) else 2
    if stop - at < 2 * width:
        return False
    count, size = _number(at, width), _number(at + width, width)
    keys = at + 2 * width
    values = keys + (0 if kind >= SMALL_ARRAY else count * (width + 2))
    body = values + count * (width + 1)
    if size > stop - at or body > at + size:
        return False
    put64(frame + _BASE, at)
    put64(frame + _BODY, body)
    put64(frame + _STOP, at + size)
    put64(frame + _LEFT, count)
    put64(frame + _FIRST, 1)
    put64(frame + _KEY, 0 if kind >= SMALL_ARRAY else keys)
    put64(frame + _VALUE, values)
    put64(frame + _WIDTH, width)
    return True


@part
def _key(frame: int, end: int, place: int, limit: int) -> int:
    """The next key and its colon; the place behind them, or why there are none."""
    entry, width = i64(frame + _KEY), i64(frame + _WIDTH)
    at, length = i64(frame + _BASE) + _number(entry, width), u16(entry + width)
    if at < i64(frame + _BODY) or length > i64(frame + _STOP) - at:
        return DAMAGED
    put64(frame + _KEY, entry + width + 2)
    place = string(at, length, end, place, limit)
    if place >= 0:
        put16(place, _COLON)
        place += 2
    return place


@part
def _element(frame: int) -> tuple[int, int, int]:
    """(type, first byte, the one behind what it may use) of the next element.

    No type that there is if its place is wrong.
    """
    entry, width, stop = i64(frame + _VALUE), i64(frame + _WIDTH), i64(frame + _STOP)
    put64(frame + _VALUE, entry + 1 + width)
    kind = u8(entry)
    if kind in (LITERAL, INT16, UINT16) or (width == 4 and kind in (INT32, UINT32)):
        return kind, entry + 1, entry + 1 + width
    at = i64(frame + _BASE) + _number(entry + 1, width)
    if at < i64(frame + _BODY) or at > stop:
        return _NO_TYPE, at, at
    return kind, at, stop
