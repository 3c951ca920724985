"""From MySQL's binary JSON to the text that SELECT prints, as Arrow strings.

The binary format, in MySQL's source: sql-common/json_binary.h, and
`parse_array_or_object`, `parse_scalar`, `Value::element` and `Value::key` in
json_binary.cc. The text: `wrapper_to_string` and `double_quote` in json_dom.cc,
`base64_encode` in mysys/base64.cc.

An object or array consists of its number of elements; its size in bytes; for each key
of an object its offset and length; for each element its type, and either its value or
the value's offset; then the keys and values. Offsets count from its first byte. "Small"
objects and arrays have two bytes for counts, sizes and offsets, "large" ones four.
Decimals and temporal values, as in `json_object('price', price, 'at', created_at)`, are
stored in the formats of SQL.

Compiled functions take addresses. A value may use the bytes from `at` to `stop`, and
its document ends at `end`. The text is written at `to`, and must not reach `limit`.
Functions return the address after the text, or FULL or DAMAGED, which are negative.
At least SLACK bytes are free before `limit` when a function is called, apart from a
comma or colon that was just written.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.address_access import (
    i64,
    put8,
    put16,
    put32,
    put64,
    u8,
    u16,
    u32,
)
from lockstep.pipeline.binlog.arrays.array_access import Bytes
from lockstep.pipeline.binlog.arrays.cells import Cells, decimal_size
from lockstep.pipeline.binlog.arrays.compiled import kernel, kernel_part
from lockstep.pipeline.binlog.stream.ring import Integers
from lockstep.pipeline.binlog.values.digits import (
    INFINITE_EXPONENT,
    MAX_HOURS,
    POINT_ZERO,
    count_digits,
    put_digits,
    put_double,
    put_time,
    put_unsigned,
)
from lockstep.pipeline.binlog.values.numbers import put_decimal
from lockstep.pipeline.binlog.values.strings import HIGH_BITS, MAX_ARRAY_BYTES, value_spans
from lockstep.pipeline.values.errors import DamagedEvent, TableError
from lockstep.pipeline.values.table import Column

# JSONB_TYPE_… in sql-common/json_binary.cc, enum_field_types in include/field_types.h,
# JSON_DOCUMENT_MAX_DEPTH in sql-common/json_syntax_check.cc.
SMALL_OBJECT, LARGE_OBJECT, SMALL_ARRAY, LARGE_ARRAY = range(4)
LITERAL, INT16, UINT16, INT32, UINT32, INT64, UINT64, DOUBLE, STRING = range(4, 13)
OPAQUE: Final = 15
"""Types of values. OPAQUE is a value of an SQL type."""

TIMESTAMP, DATE, TIME, DATETIME, DECIMAL = 7, 10, 11, 12, 246
"""SQL types of OPAQUE values that are not printed as base64."""

NULL, TRUE, FALSE = range(3)
"""Literals."""

MAX_LENGTH_BYTES: Final = 5
"""Most bytes of the length before a string: seven bits per byte, the lowest first."""

MAX_PRECISION, MAX_SCALE = 81, 30
"""Largest precision and scale of a decimal: 81 digits instead of 65, because JSON
counts the digits before the point in whole groups of nine."""

MONTHS: Final = 13
"""A packed date has its month and year as 13 * year + month."""

MAX_DEPTH: Final = 100
"""Deepest nesting of objects and arrays."""

TEXT_FACTOR, TEXT_EXTRA = 8, 64
"""A document whose text is longer than `TEXT_FACTOR * bytes + TEXT_EXTRA` is damaged:
its values overlap, and its text might grow without bounds. A valid byte becomes at most
six bytes of text (a control character)."""

SLACK: Final = 64
"""Bytes that must be free after the text, because compiled code stores whole words."""

FULL, DAMAGED = -1, -2
"""Returned instead of an address. FULL: there is no room for the text. DAMAGED: the
bytes are not a valid document."""

_MAX_DECIMAL_BYTES: Final = MAX_PRECISION + 3
"""Most bytes of a decimal's text, with sign, zero and point. Temporal values and the
head of a base64 text have fewer."""

_BASE64_HEAD: Final = int.from_bytes(b'"base64:', "little")
_BASE64_TYPE: Final = int.from_bytes(b"type", "little")
_BASE64_LINE: Final = 76
_NEWLINE: Final = int.from_bytes(rb"\n", "little")
_PAD, _COLON, _SPACE = b"=: "
BASE64_LETTERS: Final = np.array(
    [*b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"]
)

_QUOTE, _BACKSLASH, _MINUS, _ZERO = b'"\\-0'
_NULL: Final = int.from_bytes(b"null", "little")
_TRUE: Final = int.from_bytes(b"true", "little")
_FALSE: Final = int.from_bytes(b"false", "little")

# A byte repeated in all eight places of a word, for comparing eight bytes at once.
_EACH_BYTE: Final = 0x0101010101010101
_CONTROLS: Final = 0x20 * _EACH_BYTE
_QUOTES: Final = _QUOTE * _EACH_BYTE
_BACKSLASHES: Final = _BACKSLASH * _EACH_BYTE

# The letter after the backslash for a control character; 0 if it is written as \u00XX.
_LETTERS: Final = dict(zip(b"\b\t\n\f\r", b"btnfr", strict=True))
ESCAPES: Final = np.array([_LETTERS.get(code, 0) for code in range(32)])
_UNICODE: Final = int.from_bytes(b"\\u00", "little")
_HEX_LETTER_OFFSET: Final = ord("a") - 10

_DONE: Final = 0


def documents(column: Column, cells: Cells) -> pa.Array:
    """Return the text of each JSON document, byte for byte as SELECT prints it."""
    starts, offsets, _ = value_spans(column, cells)
    lengths = np.diff(np.frombuffer(offsets, np.int32)).astype(np.int64)
    lengths[starts < 0] = -1
    return json_array(cells.data, starts, lengths, bare_doubles=cells.layout.bare_doubles)


def json_array(
    data: Bytes, at: Integers, length: Integers, *, bare_doubles: bool = False
) -> pa.Array:
    """Return the documents `data[at[i] : at[i] + length[i]]` as strings; NULL if
    length[i] < 0. `bare_doubles`: whole doubles are printed without ".0"
    (`Layout.bare_doubles`).

    An empty document is the JSON null. Raise DamagedEvent if a document is malformed;
    TableError if one has bytes that are not UTF-8, or if the documents' texts have more
    than 2 GiB together.
    """
    text = _Text(len(at), int(np.maximum(length, 0).sum()))
    stack = np.empty(_STACK_BYTES, np.uint8)
    index = 0
    while True:
        status, index, used_bytes = _write_documents(
            data, at, length, index, text.out, text.offsets, stack, bare_doubles
        )
        if status == _DONE:
            return text.array(length >= 0, used_bytes)
        if status == FULL:
            text.grow()
        else:
            raise DamagedEvent(
                f"value {index} of a JSON column is not a valid document",
                hint="it was not recorded; run again, and if that fails, run CHECK TABLE on the "
                "source's table",
            )


class _Text:
    """The buffers of an Arrow string array, whose bytes can grow."""

    def __init__(self, count: int, document_bytes: int) -> None:
        self._count = count
        self._offsets = pa.allocate_buffer(4 * (count + 1))
        self.offsets = np.frombuffer(self._offsets, np.int32)
        self.offsets[0] = 0
        initial_bytes = document_bytes + document_bytes // 4 + 16 * count + 4 * SLACK
        self._bytes = pa.allocate_buffer(min(initial_bytes, MAX_ARRAY_BYTES), resizable=True)
        self.out = np.frombuffer(self._bytes, np.uint8)

    def grow(self) -> None:
        if len(self.out) == MAX_ARRAY_BYTES:
            raise TableError(
                "JSON documents of one batch have more than 2 GiB of text",
                hint="exclude the table, or change fewer rows per statement",
            )
        self._bytes.resize(min(2 * len(self.out), MAX_ARRAY_BYTES))
        self.out = np.frombuffer(self._bytes, np.uint8)

    def array(self, valid: npt.NDArray[np.bool_], used_bytes: int) -> pa.Array:
        nulls = self._count - int(np.count_nonzero(valid))
        bitmap = pa.py_buffer(np.packbits(valid, bitorder="little")) if nulls else None
        self._bytes.resize(used_bytes, shrink_to_fit=False)
        buffers = [bitmap, self._offsets, self._bytes]
        array = pa.Array.from_buffers(pa.string(), self._count, buffers, nulls)
        try:
            array.validate(full=True)
        except pa.ArrowInvalid as error:
            raise TableError(
                "a JSON document has text that is not UTF-8",
                hint="correct the document on the source, or exclude the table",
            ) from error
        return array


@kernel
def _write_documents(
    data: Bytes,
    at: Integers,
    length: Integers,
    first: int,
    out: Bytes,
    offsets: npt.NDArray[np.int32],
    stack: Bytes,
    bare_doubles: bool,
) -> tuple[int, int, int]:
    """Write the documents from `first` on. Return the outcome (_DONE, FULL or DAMAGED),
    the document at which it ended, and the number of bytes written before that
    document."""
    source, target, frames = data.ctypes.data, out.ctypes.data, stack.ctypes.data
    used_bytes = int(offsets[first])
    for index in range(first, len(at)):
        size = length[index]
        if size > 0:
            if at[index] < 0 or size > len(data) - at[index]:
                return DAMAGED, index, used_bytes
            begin, text_begin = source + at[index], target + used_bytes
            max_text_bytes = TEXT_FACTOR * size + TEXT_EXTRA
            # If the buffer does not end first, only a text longer than `max_text_bytes`
            # reaches this limit.
            limit = text_begin + min(max_text_bytes + 4 * SLACK, len(out) - used_bytes)
            text_end = _write_document(begin, begin + size, text_begin, limit, frames, bare_doubles)
            if text_end == FULL:
                return (FULL if limit == target + len(out) else DAMAGED), index, used_bytes
            if text_end < 0:
                return text_end, index, used_bytes
            if text_end - text_begin > max_text_bytes:
                return DAMAGED, index, used_bytes
            used_bytes = text_end - target
        elif size == 0:
            if len(out) - used_bytes < SLACK:
                return FULL, index, used_bytes
            put32(target + used_bytes, _NULL)
            used_bytes += 4
        offsets[index + 1] = used_bytes
    return _DONE, len(at), used_bytes


_NO_TYPE: Final = 255

_NEXT_ELEMENT: Final = int.from_bytes(b", ", "little")
_AFTER_KEY: Final = int.from_bytes(b": ", "little")
_BRACE, _END_BRACE, _BRACKET, _END_BRACKET = b"{}[]"

# Fields of a frame, which describes an open object or array; each has eight bytes.
# _BASE: address of its first byte. _BODY: address after its entries. _STOP: address
# after it. _LEFT: number of elements still to be written. _FIRST: 1 before the first
# element. _KEY, _VALUE: addresses of the next key's entry (0 in an array) and the next
# value's. _WIDTH: bytes of its numbers, 2 or 4.
_BASE, _BODY, _STOP, _LEFT, _FIRST, _KEY, _VALUE, _WIDTH = range(0, 64, 8)
_FRAME: Final = 64

_STACK_BYTES: Final = MAX_DEPTH * _FRAME


@kernel_part
def _write_document(
    begin: int, end: int, to: int, limit: int, stack: int, bare_doubles: bool
) -> int:
    """Write the text of the document from address `begin` to `end`, which is not empty.

    `stack` has _STACK_BYTES for the frames, which replace recursion.
    """
    if limit - to < SLACK:
        return FULL
    value_type, at, stop = u8(begin), begin + 1, end
    bottom = stack - _FRAME
    top, highest = bottom, bottom + _STACK_BYTES
    while True:
        if value_type > LARGE_ARRAY:
            to = _write_scalar(value_type, at, stop, end, to, limit, bare_doubles)
            if to < 0:
                return to
        else:
            if top == highest or not _open_frame(value_type, at, stop, top + _FRAME):
                return DAMAGED
            top += _FRAME
            put8(to, _BRACKET if value_type >= SMALL_ARRAY else _BRACE)
            to += 1
        while top > bottom and i64(top + _LEFT) == 0:
            if limit - to < SLACK:
                return FULL
            put8(to, _END_BRACE if i64(top + _KEY) else _END_BRACKET)
            to += 1
            top -= _FRAME
        if top == bottom:
            return to
        if limit - to < SLACK:
            return FULL
        # Before the first element, the next text overwrites the comma.
        put16(to, _NEXT_ELEMENT)
        to += 0 if i64(top + _FIRST) else 2
        put64(top + _FIRST, 0)
        put64(top + _LEFT, i64(top + _LEFT) - 1)
        if i64(top + _KEY):
            to = _write_key(top, end, to, limit)
            if to < 0:
                return to
        value_type, at, stop = _next_element(top)


@kernel_part
def _read_number(at: int, width: int) -> int:
    return u16(at) if width == 2 else u32(at)


@kernel_part
def _open_frame(value_type: int, at: int, stop: int, frame: int) -> bool:
    """Fill the frame for the object or array at `at`. Return False if that ends after
    `stop`."""
    width = 4 if value_type in (LARGE_OBJECT, LARGE_ARRAY) else 2
    if stop - at < 2 * width:
        return False
    count, size = _read_number(at, width), _read_number(at + width, width)
    keys = at + 2 * width
    values = keys + (0 if value_type >= SMALL_ARRAY else count * (width + 2))
    body = values + count * (width + 1)
    if size > stop - at or body > at + size:
        return False
    put64(frame + _BASE, at)
    put64(frame + _BODY, body)
    put64(frame + _STOP, at + size)
    put64(frame + _LEFT, count)
    put64(frame + _FIRST, 1)
    put64(frame + _KEY, 0 if value_type >= SMALL_ARRAY else keys)
    put64(frame + _VALUE, values)
    put64(frame + _WIDTH, width)
    return True


@kernel_part
def _write_key(frame: int, end: int, to: int, limit: int) -> int:
    """Write the next key and its colon."""
    entry, width = i64(frame + _KEY), i64(frame + _WIDTH)
    at, length = i64(frame + _BASE) + _read_number(entry, width), u16(entry + width)
    if at < i64(frame + _BODY) or length > i64(frame + _STOP) - at:
        return DAMAGED
    put64(frame + _KEY, entry + width + 2)
    to = _write_string(at, length, end, to, limit)
    if to >= 0:
        put16(to, _AFTER_KEY)
        to += 2
    return to


@kernel_part
def _next_element(frame: int) -> tuple[int, int, int]:
    """Return (type, first byte, end of the bytes that it may use) of the next element.
    The type is _NO_TYPE if its offset is invalid."""
    entry, width, stop = i64(frame + _VALUE), i64(frame + _WIDTH), i64(frame + _STOP)
    put64(frame + _VALUE, entry + 1 + width)
    value_type = u8(entry)
    if value_type in (LITERAL, INT16, UINT16) or (width == 4 and value_type in (INT32, UINT32)):
        return value_type, entry + 1, entry + 1 + width
    at = i64(frame + _BASE) + _read_number(entry + 1, width)
    if at < i64(frame + _BODY) or at > stop:
        return _NO_TYPE, at, at
    return value_type, at, stop


@kernel_part
def _write_scalar(
    value_type: int, at: int, stop: int, end: int, to: int, limit: int, bare_doubles: bool
) -> int:
    """Write a value of any type except objects and arrays."""
    available = stop - at
    if value_type == STRING:
        first, length = _read_length(at, stop)
        return DAMAGED if length < 0 else _write_string(first, length, end, to, limit)
    if value_type == INT16 and available >= 2:
        return _write_signed(to, (u16(at) ^ 0x8000) - 0x8000)
    if value_type == LITERAL and available >= 1:
        return _write_literal(to, u8(at))
    if value_type == DOUBLE and available >= 8:
        double_bits = i64(at)
        if double_bits >> 52 & INFINITE_EXPONENT == INFINITE_EXPONENT:
            return DAMAGED
        to = put_double(to, double_bits)
        return to - 2 if bare_doubles and u16(to - 2) == POINT_ZERO else to
    if value_type == INT32 and available >= 4:
        return _write_signed(to, (u32(at) ^ 0x80000000) - 0x80000000)
    if value_type == INT64 and available >= 8:
        return _write_signed(to, i64(at))
    if value_type == UINT16 and available >= 2:
        return put_unsigned(to, u16(at))
    if value_type == UINT32 and available >= 4:
        return put_unsigned(to, u32(at))
    if value_type == UINT64 and available >= 8:
        return put_unsigned(to, i64(at))
    return _write_opaque(at, stop, to, limit) if value_type == OPAQUE else DAMAGED


@kernel_part
def _write_signed(to: int, value: int) -> int:
    if value >= 0:
        return put_unsigned(to, value)
    put8(to, _MINUS)
    return put_unsigned(to + 1, -value)


@kernel_part
def _write_literal(to: int, literal: int) -> int:
    if literal == FALSE:
        put64(to, _FALSE)
        return to + 5
    if literal > FALSE:
        return DAMAGED
    put32(to, _TRUE if literal == TRUE else _NULL)
    return to + 4


@kernel_part
def _read_length(at: int, stop: int) -> tuple[int, int]:
    """Read a length of variable size. Return (first byte after it, length), or length
    -1 if that is invalid."""
    length = shift = 0
    while at < stop and shift < 7 * MAX_LENGTH_BYTES:
        byte = u8(at)
        at += 1
        length |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            return at, length if length <= stop - at else -1
    return at, -1


@kernel_part
def _write_opaque(at: int, stop: int, to: int, limit: int) -> int:
    """Write an opaque value: its SQL type, its length, and its bytes."""
    if at == stop:
        return DAMAGED
    value_type = u8(at)
    at, length = _read_length(at + 1, stop)
    if length < 0:
        return DAMAGED
    letters = (length + 2) // 3 * 4
    if limit - to < _MAX_DECIMAL_BYTES + letters + letters // _BASE64_LINE * 2 + SLACK:
        return FULL
    if value_type == DECIMAL:
        return _write_decimal(at, length, to)
    if value_type not in (DATE, TIME, DATETIME, TIMESTAMP):
        return _write_base64(value_type, at, length, to)
    if length != 8:
        return DAMAGED
    put8(to, _QUOTE)
    to = _write_moment(value_type, i64(at), to + 1)
    if to > 0:
        put8(to, _QUOTE)
        to += 1
    return to


@kernel_part
def _write_string(at: int, length: int, end: int, to: int, limit: int) -> int:
    if limit - to < length + SLACK:
        return FULL
    put8(to, _QUOTE)
    to += 1
    last = at + length
    while at < last:
        count = min(last - at, 8)
        word = i64(at) if end - at >= 8 else _read_word(at, count)
        # The shift removes the flags of bytes after the string.
        if _escape_bits(word) << 64 - 8 * count == 0:
            # Bytes after the string are stored too; the text that follows overwrites
            # them.
            put64(to, word)
            to += count
        else:
            if limit - to < last - at + 6 * 8 + SLACK:
                return FULL
            to = _write_escaped(to, word, count)
        at += count
    put8(to, _QUOTE)
    return to + 1


@kernel_part
def _read_word(at: int, count: int) -> int:
    word = 0
    for byte in range(count):
        word |= u8(at + byte) << 8 * byte
    return word


@kernel_part
def _escape_bits(word: int) -> int:
    """Return zero if no byte of the word needs an escape.

    Otherwise the lowest bit that is set is the highest bit of the first byte that needs
    one.
    """
    quotes, backslashes = word ^ _QUOTES, word ^ _BACKSLASHES
    controls = word - _CONTROLS & ~word
    return (
        controls | (quotes - _EACH_BYTE & ~quotes) | (backslashes - _EACH_BYTE & ~backslashes)
    ) & HIGH_BITS


@kernel_part
def _write_escaped(to: int, word: int, count: int) -> int:
    """Write the word's first `count` bytes, with escapes."""
    for at in range(count):
        byte = word >> 8 * at & 0xFF
        if byte >= 0x20 and byte != _QUOTE and byte != _BACKSLASH:
            put8(to, byte)
            to += 1
        elif byte >= 0x20 or ESCAPES[byte] != 0:
            put8(to, _BACKSLASH)
            put8(to + 1, byte if byte >= 0x20 else ESCAPES[byte])
            to += 2
        else:
            put32(to, _UNICODE)
            put8(to + 4, _ZERO + (byte >> 4))
            low_digit = byte & 0xF
            put8(to + 5, low_digit + (_ZERO if low_digit < 10 else _HEX_LETTER_OFFSET))
            to += 6
    return to


@kernel_part
def _write_moment(value_type: int, packed: int, to: int) -> int:
    """Write a temporal value. Its bits, from the highest: 13 * year + month, 17; day,
    5; hour, 5 (10 for TIME); minute, 6; second, 6; microsecond, 24."""
    is_time = value_type == TIME
    if packed < 0:
        put8(to, _MINUS)
        to += 1
        packed = -packed
        if not is_time or packed < 0:
            return DAMAGED
    months, hour = packed >> 46, packed >> 36 & (0x3FF if is_time else 0x1F)
    minute, second, microsecond = packed >> 30 & 0x3F, packed >> 24 & 0x3F, packed & 0xFFFFFF
    if minute > 59 or second > 59 or microsecond >= 1_000_000:
        return DAMAGED
    if hour > (MAX_HOURS if is_time else 23) or months >= (1 if is_time else 10_000 * MONTHS):
        return DAMAGED
    if not is_time:
        put_digits(to, months // MONTHS, 4)
        put8(to + 4, _MINUS)
        put_digits(to + 5, months % MONTHS, 2)
        put8(to + 7, _MINUS)
        put_digits(to + 8, packed >> 41 & 0x1F, 2)
        to += 10
        if value_type == DATE:
            return to
        put8(to, _SPACE)
        to += 1
    return put_time(to, hour, minute, second, microsecond, 6)


@kernel_part
def _write_decimal(at: int, length: int, to: int) -> int:
    """Write a decimal: precision 1, scale 1, and the number in the format of a
    column."""
    if length < 3:
        return DAMAGED
    precision, scale = u8(at), u8(at + 1)
    if precision > MAX_PRECISION or scale > min(MAX_SCALE, precision):
        return DAMAGED
    if _decimal_size(precision, scale) != length - 2:
        return DAMAGED
    to = put_decimal(at + 2, precision, scale, to)
    return to if to > 0 else DAMAGED


_decimal_size: Final = kernel_part(decimal_size)


@kernel_part
def _write_base64(value_type: int, at: int, length: int, to: int) -> int:
    """Write `"base64:type15:…"`, in lines of 76 letters."""
    put64(to, _BASE64_HEAD)
    put32(to + 8, _BASE64_TYPE)
    to += 12
    width = count_digits(value_type)
    put_digits(to, value_type, width)
    put8(to + width, _COLON)
    to += width + 1
    last, line = at + length, to
    while at < last:
        if to - line == _BASE64_LINE:
            put16(to, _NEWLINE)
            to += 2
            line = to
        bytes_left = last - at
        word = u8(at) << 16
        if bytes_left > 1:
            word |= u8(at + 1) << 8
        if bytes_left > 2:
            word |= u8(at + 2)
        put8(to, BASE64_LETTERS[word >> 18])
        put8(to + 1, BASE64_LETTERS[word >> 12 & 63])
        put8(to + 2, BASE64_LETTERS[word >> 6 & 63] if bytes_left > 1 else _PAD)
        put8(to + 3, BASE64_LETTERS[word & 63] if bytes_left > 2 else _PAD)
        to += 4
        at += 3
    put8(to, _QUOTE)
    return to + 1
