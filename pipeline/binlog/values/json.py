"""MySQL's binary JSON → the text that SELECT prints, as Arrow strings.

Belongs here: a column's documents, the Arrow array, and the walk through the objects and arrays
of each document, in compiled code. Does not: scalars (`json_text`).

Format: sql-common/json_binary.h of MySQL's source, and `parse_array_or_object`,
`Value::element` and `Value::key` in json_binary.cc; text: `wrapper_to_string` in
json_dom.cc. An object or array is: number of elements, size in bytes, per element of an
object the place and length of its key, per element its type and either the value itself
or its place, then keys and values. Places count from its first byte. "Small" ones have
two bytes for numbers, sizes and places, "large" ones four.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.binlog.arrays.address_access import i64, put8, put16, put32, put64, u8, u16, u32
from pipeline.binlog.arrays.array_access import Bytes
from pipeline.binlog.arrays.cells import Cells
from pipeline.binlog.arrays.compiled import kernel, part
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
    TEXT_EXTRA,
    TEXT_FACTOR,
    UINT16,
    UINT32,
)
from pipeline.binlog.values.json_text import scalar, string
from pipeline.binlog.values.strings import spans
from pipeline.errors import DamagedEvent, TableError
from pipeline.table import Column


def documents(column: Column, cells: Cells) -> pa.Array:
    """JSON → its text, byte for byte what SELECT prints."""
    places, offsets, _ = spans(column, cells)
    lengths = np.diff(np.frombuffer(offsets, np.int32)).astype(np.int64)
    lengths[places < 0] = -1
    return json_array(cells.data, places, lengths, bare_doubles=cells.layout.bare_doubles)


Integers = npt.NDArray[np.int64]

_DONE: Final = 0
_MOST_BYTES: Final = (1 << 31) - 1
"""What the offsets of an Arrow string array can count."""

_NULL: Final = int.from_bytes(b"null", "little")


def json_array(
    data: Bytes, at: Integers, length: Integers, *, bare_doubles: bool = False
) -> pa.Array:
    """The documents `data[at[i] : at[i] + length[i]]` as strings; NULL where length < 0.
    `bare_doubles`: as in `Layout`.

    An empty document is the JSON null. DamagedEvent if one is not what the format
    demands; TableError if one holds bytes that are not UTF-8, or if all have more than
    2 GiB of text. Text has at most some eight times as many bytes as documents.
    """
    text = _Text(len(at), int(np.maximum(length, 0).sum()))
    stack = np.empty(STACK_BYTES, np.uint8)
    index = 0
    while True:
        status, index, used = _write(
            data, at, length, index, text.out, text.offsets, stack, bare_doubles
        )
        if status == _DONE:
            return text.array(length >= 0, used)
        if status == FULL:
            text.grow()
        else:
            raise DamagedEvent(
                f"value {index} is not a JSON document",
                hint="it was not recorded; run again, and if that fails, look at the source's "
                "column with check table",
            )


class _Text:
    """Arrow's buffers of a string array: offsets, and bytes that grow."""

    def __init__(self, count: int, document_bytes: int) -> None:
        self._count = count
        self._offsets = pa.allocate_buffer(4 * (count + 1))
        self.offsets = np.frombuffer(self._offsets, np.int32)
        self.offsets[0] = 0
        room = document_bytes + document_bytes // 4 + 16 * count + 4 * SLACK
        self._bytes = pa.allocate_buffer(min(room, _MOST_BYTES), resizable=True)
        self.out = np.frombuffer(self._bytes, np.uint8)

    def grow(self) -> None:
        """Twice the room."""
        if len(self.out) == _MOST_BYTES:
            raise TableError(
                "JSON documents that were changed together have more than 2 GiB of text",
                hint="exclude the table, or change fewer rows per statement",
            )
        self._bytes.resize(min(2 * len(self.out), _MOST_BYTES))
        self.out = np.frombuffer(self._bytes, np.uint8)

    def array(self, valid: npt.NDArray[np.bool_], used: int) -> pa.Array:
        nulls = self._count - int(np.count_nonzero(valid))
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
        self._bytes.resize(used, shrink_to_fit=False)
        buffers = [bitmap, self._offsets, self._bytes]
        array = pa.Array.from_buffers(pa.string(), self._count, buffers, nulls)
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise TableError(
                "a JSON document holds text that is not UTF-8",
                hint="correct the document on the source, or exclude the table",
            ) from error
        return array


@kernel
def _write(
    data: Bytes,
    at: Integers,
    length: Integers,
    first: int,
    out: Bytes,
    offsets: npt.NDArray[np.int32],
    stack: Bytes,
    bare_doubles: bool,
) -> tuple[int, int, int]:
    """Documents from `first` on; why it ended, at which one, and bytes written before it."""
    here, there, frames = data.ctypes.data, out.ctypes.data, stack.ctypes.data
    place = int(offsets[first])
    for index in range(first, len(at)):
        size = length[index]
        if size > 0:
            if at[index] < 0 or size > len(data) - at[index]:
                return DAMAGED, index, place
            begin, to = here + at[index], there + place
            most = TEXT_FACTOR * size + TEXT_EXTRA
            # Only text longer than `most` can come to a limit so far behind it.
            limit = to + min(most + 4 * SLACK, len(out) - place)
            end = document(begin, begin + size, to, limit, frames, bare_doubles)
            if end == FULL:
                return (FULL if limit == there + len(out) else DAMAGED), index, place
            if end < 0:
                return end, index, place
            if end - to > most:
                return DAMAGED, index, place
            place = end - there
        elif size == 0:
            if len(out) - place < SLACK:
                return FULL, index, place
            put32(there + place, _NULL)
            place += 4
        offsets[index + 1] = place
    return _DONE, len(at), place


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
