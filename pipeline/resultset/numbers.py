"""Integers, BIT, YEAR, FLOAT, DOUBLE and DECIMAL of a result's rows.

Format: little-endian, two's complement or IEEE 754 (MySQL manual, "Binary Protocol Value"). A
MEDIUMINT has four bytes, a YEAR two; a BIT is selected as a number. A DECIMAL is text,
`[-]digits[.digits]`, with as many digits after the point as the column's scale, and leading zeros
if it is ZEROFILL.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from pipeline.binlog.arrays.address_access import widened
from pipeline.binlog.arrays.array_access import (
    Bytes,
    i64,
    put8,
    put16,
    put32,
    put64,
    u8,
    u16,
    u32,
)
from pipeline.binlog.arrays.cells import Places, room
from pipeline.binlog.arrays.compiled import kernel
from pipeline.resultset.strings import texts
from pipeline.resultset.walk import Answers
from pipeline.schema.types import arrow_type
from pipeline.table import Column

_SHORT_YEAR: Final = 2
_MOST_POWER: Final = 10**18
_MINUS, _POINT, _ZERO, _NINE = b"-.09"


def integers(column: Column, answers: Answers) -> pa.Array:
    """TINYINT to BIGINT, FLOAT, DOUBLE → the column's Arrow type, by copying their bits."""
    return _as(arrow_type(column), answers)


def bits(column: Column, answers: Answers) -> pa.Array:
    """BIT(1) → boolean, BIT(64) → decimal(20,0), all others → int64."""
    kind = arrow_type(column)
    return _as(pa.int64() if pa.types.is_boolean(kind) else kind, answers).cast(kind)


def years(column: Column, answers: Answers) -> pa.Array:
    """YEAR → int16. MariaDB sends a YEAR(2) as the last two digits of 1970 to 2069."""
    buffer, out = room(len(answers), 2)
    _years(answers.data, answers.at, answers.definition.length == _SHORT_YEAR, out)
    return pa.Array.from_buffers(pa.int16(), len(answers), [answers.validity(), buffer])


def _as(kind: pa.DataType, answers: Answers) -> pa.Array:
    width = kind.bit_width // 8
    buffer, out = room(len(answers), width)
    definition = answers.definition
    parts = answers.data, answers.at, definition.size
    _numbers(*parts, not definition.unsigned, width, out)
    return pa.Array.from_buffers(kind, len(answers), [answers.validity(), buffer])


@kernel
def _numbers(data: Bytes, at: Places, size: int, signed: bool, width: int, out: Bytes) -> None:
    """Write integers of `width` bytes. Only unsigned BIGINTs are widened to sixteen bytes, so their
    upper half is 0."""
    for row in range(len(at)):
        value = 0
        if at[row] >= 0:
            if size == 1:
                value = u8(data, at[row])
                value = (value ^ 0x80) - 0x80 if signed else value
            elif size == 2:
                value = u16(data, at[row])
                value = (value ^ 0x8000) - 0x8000 if signed else value
            elif size == 4:
                value = u32(data, at[row])
                value = (value ^ 0x80000000) - 0x80000000 if signed else value
            else:
                value = i64(data, at[row])
        if width == 1:
            put8(out, row, value)
        elif width == 2:
            put16(out, row * 2, value)
        elif width == 4:
            put32(out, row * 4, value)
        elif width == 8:
            put64(out, row * 8, value)
        else:
            put64(out, row * 16, value)
            put64(out, row * 16 + 8, 0)


@kernel
def _years(data: Bytes, at: Places, short: bool, out: Bytes) -> None:
    for row in range(len(at)):
        value = u16(data, at[row]) if at[row] >= 0 else 0
        if short and value < 100:
            value += 2000 if value < 70 else 1900
        put16(out, row * 2, value)


def decimals(column: Column, answers: Answers) -> pa.Array:
    """DECIMAL(p,s) → decimal(p,s) up to 38 digits, else text. ValueError for text that is not such
    a number."""
    kind = arrow_type(column)
    if not pa.types.is_decimal(kind):
        _require(_without_zeros(answers.data, answers.at, answers.size))
        return texts(column, answers)
    buffer, out = room(len(answers), 16)
    parts = answers.data, answers.at, answers.size
    _require(_decimals(*parts, kind.precision, kind.scale, out))
    return pa.Array.from_buffers(kind, len(answers), [answers.validity(), buffer])


def _require(wrong: int) -> None:
    if wrong >= 0:
        raise ValueError("not a decimal")


@kernel
def _decimals(data: Bytes, at: Places, size: Places, precision: int, scale: int, out: Bytes) -> int:
    """Write 128-bit integers, 18 digits at a time; return the first row that is not such a number,
    or -1."""
    for row in range(len(at)):
        high = low = 0
        if at[row] >= 0:
            place = int(at[row])
            end = place + int(size[row])
            negative = place < end and u8(data, place) == _MINUS
            if negative:
                place += 1
            point = end - scale - 1 if scale else end
            if point <= place or (scale and u8(data, point) != _POINT):
                return row
            while place < point - 1 and u8(data, place) == _ZERO:
                place += 1
            zero = point - place == 1 and u8(data, place) == _ZERO
            if point - place + scale - (1 if zero else 0) > precision:
                return row
            while place < end:
                word, power = 0, 1
                while place < end and power < _MOST_POWER:
                    if place != point:
                        digit = u8(data, place) - _ZERO
                        if digit < 0 or digit > 9:
                            return row
                        word = 10 * word + digit
                        power *= 10
                    place += 1
                high, low = widened(high, low, power, word)
            if negative:
                high, low = widened(high, low, -1, 0)
        put64(out, row * 16, low)
        put64(out, row * 16 + 8, high)
    return -1


@kernel
def _without_zeros(data: Bytes, at: Places, size: Places) -> int:
    """Move each number's beginning past its leading zeros, except one before the point; return the
    first row that is not a number, or -1."""
    for row in range(len(at)):
        if at[row] < 0:
            continue
        place = int(at[row])
        end = place + int(size[row])
        points = 0
        digits = 0
        for byte in range(place, end):
            value = u8(data, byte)
            if value == _POINT:
                points += 1
            elif value >= _ZERO and value <= _NINE:
                digits += 1
            elif value != _MINUS or byte != place:
                return row
        if points > 1 or digits == 0:
            return row
        while end - place > 1 and u8(data, place) == _ZERO and u8(data, place + 1) != _POINT:
            place += 1
        at[row] = place
        size[row] = end - place
    return -1
