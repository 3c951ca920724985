"""DECIMAL of a result's rows: digits as text.

Format: `[-]digits[.digits]`, as many behind the point as the column has; zeros in front where it
is ZEROFILL.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.binlog.arrays.array_access import Bytes, put64, u8
from pipeline.binlog.arrays.cells import Places, room
from pipeline.binlog.arrays.compiled import kernel
from pipeline.resultset.strings import texts
from pipeline.resultset.walk import Answers
from pipeline.schema.types import arrow_type
from pipeline.table import Column

_ONE_WORD: Final = 18
_MINUS, _POINT, _ZERO, _NINE = b"-.09"
_32: Final = 0xFFFFFFFF


def decimals(column: Column, answers: Answers) -> pa.Array:
    """DECIMAL(p,s) → decimal(p,s) up to 38 digits, else its text. ValueError for a text that is
    no such number."""
    kind = arrow_type(column)
    if not pa.types.is_decimal(kind):
        _require(_without_zeros(answers.data, answers.at, answers.size))
        return texts(column, answers)
    buffer, out = room(len(answers), 16)
    read = _narrow if kind.precision <= _ONE_WORD else _wide
    _require(read(answers.data, answers.at, answers.size, kind.precision, kind.scale, out))
    return pa.Array.from_buffers(kind, len(answers), [answers.validity(), buffer])


def _require(wrong: int) -> None:
    if wrong >= 0:
        raise ValueError("no decimal")


@kernel
def _narrow(data: Bytes, at: Places, size: Places, precision: int, scale: int, out: Bytes) -> int:
    """Up to 18 digits: one word. The first row that is no such number, or -1."""
    limit = 10 ** (precision - 1)
    for row in range(len(at)):
        value = 0
        if at[row] >= 0:
            place = int(at[row])
            end = place + int(size[row])
            negative = place < end and u8(data, place) == _MINUS
            if negative:
                place += 1
            point = end - scale - 1 if scale else end
            if point <= place or (scale and u8(data, point) != _POINT):
                return row
            while place < end:
                if place != point:
                    digit = u8(data, place) - _ZERO
                    if digit < 0 or digit > 9:
                        return row
                    if value >= limit:
                        return row
                    value = 10 * value + digit
                place += 1
            if negative:
                value = -value
        put64(out, row * 16, value)
        put64(out, row * 16 + 8, value >> 63)
    return -1


@kernel
def _wide(data: Bytes, at: Places, size: Places, precision: int, scale: int, out: Bytes) -> int:
    """Up to 38 digits: four words of 32 bits, eight digits at a time."""
    words = np.zeros(4, np.int64)
    for row in range(len(at)):
        words[:] = 0
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
                carry, power = 0, 1
                while place < end and power < 100_000_000:
                    if place != point:
                        digit = u8(data, place) - _ZERO
                        if digit < 0 or digit > 9:
                            return row
                        carry = 10 * carry + digit
                        power *= 10
                    place += 1
                for word in range(4):
                    carry += words[word] * power
                    words[word] = carry & _32
                    carry >>= 32
            if negative:
                carry = 1
                for word in range(4):
                    carry += words[word] ^ _32
                    words[word] = carry & _32
                    carry >>= 32
        put64(out, row * 16, words[0] | words[1] << 32)
        put64(out, row * 16 + 8, words[2] | words[3] << 32)
    return -1


@kernel
def _without_zeros(data: Bytes, at: Places, size: Places) -> int:
    """Let each number begin behind the zeros in front of it, one before the point left over.
    The first row that is no number, or -1."""
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
