"""DECIMAL: exact numbers of up to 65 digits.

Format: `bin2decimal` in MySQL's `strings/decimal.cc`: groups of nine digits in four bytes,
big-endian, what is left over before and behind them in fewer; the first bit is set for a
positive number, and all bits of a negative one are turned over.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.binlog.arrays.array_access import Bytes, b16, b24, b32, put8, put64, u8
from pipeline.binlog.arrays.cells import Cells, Places, room
from pipeline.binlog.arrays.compiled import kernel, part
from pipeline.binlog.stream.ring import Integers
from pipeline.errors import DamagedEvent
from pipeline.table import Column

MAX_DIGITS: Final = 38
_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
_ONE_WORD: Final = 18
_32: Final = 0xFFFFFFFF


def decimals(column: Column, cells: Cells) -> pa.Array:
    """DECIMAL(p,s) → decimal(p,s) up to 38 digits, else its text."""
    precision, scale = cells.layout.precision, cells.layout.scale
    groups = _groups(precision, scale)
    if precision > MAX_DIGITS:
        return _as_text(cells, groups, precision - scale)
    buffer, out = room(len(cells), 16)
    whole = _narrow if precision <= _ONE_WORD else _wide
    _require(whole(cells.data, cells.at, groups, out))
    kind = pa.decimal128(precision, scale)
    return pa.Array.from_buffers(kind, len(cells), [cells.validity(), buffer])


def _groups(precision: int, scale: int) -> Integers:
    """(bytes, digits) of each group, in order."""
    whole = precision - scale
    digits = [whole % 9, *[9] * (whole // 9), *[9] * (scale // 9), scale % 9]
    return np.array([(_BYTES[n], n) for n in digits if n], np.int64)


def _require(wrong: int) -> None:
    if wrong >= 0:
        raise DamagedEvent(
            "a decimal has a group of digits that is too large",
            hint="it was not recorded; look at that place with mysqlbinlog -vv",
        )


@part
def _group(data: Bytes, at: int, size: int, flip: int) -> int:
    if size == 4:
        return b32(data, at) ^ flip & _32
    if size == 3:
        return b24(data, at) ^ flip & 0xFFFFFF
    if size == 2:
        return b16(data, at) ^ flip & 0xFFFF
    return u8(data, at) ^ flip & 0xFF


@part
def _power(digits: int) -> int:
    value = 1
    for _ in range(digits):
        value *= 10
    return value


@kernel
def _narrow(data: Bytes, at: Places, groups: Integers, out: Bytes) -> int:
    """Up to 18 digits: one word. The index of a cell that is damaged, or -1."""
    count = len(groups)
    powers = np.empty(count, np.int64)
    for g in range(count):
        powers[g] = _power(groups[g, 1])
    # The sign's bit is part of the first group.
    sign = 1 << groups[0, 0] * 8 - 1
    for i in range(len(at)):
        place = int(at[i])
        if place < 0:
            put64(out, i * 16, 0)
            put64(out, i * 16 + 8, 0)
            continue
        flip = 0 if u8(data, place) & 0x80 else -1
        value = 0
        for g in range(count):
            size = groups[g, 0]
            digits = _group(data, place, size, flip)
            if g == 0:
                digits ^= sign
            if digits >= powers[g]:
                return i
            value = value * powers[g] + digits
            place += size
        value = value if flip == 0 else -value
        put64(out, i * 16, value)
        put64(out, i * 16 + 8, value >> 63)
    return -1


@kernel
def _wide(data: Bytes, at: Places, groups: Integers, out: Bytes) -> int:
    """Up to 38 digits: four words of 32 bits, multiplied and added by hand."""
    words = np.zeros(4, np.int64)
    for i in range(len(at)):
        place = int(at[i])
        words[:] = 0
        if place >= 0:
            flip = 0 if u8(data, place) & 0x80 else -1
            for g in range(len(groups)):
                size, power = groups[g, 0], _power(groups[g, 1])
                carry = _group(data, place, size, flip)
                if g == 0:
                    carry ^= 1 << size * 8 - 1
                if carry >= power:
                    return i
                for w in range(4):
                    carry += words[w] * power
                    words[w] = carry & _32
                    carry >>= 32
                place += size
            if flip:
                carry = 1
                for w in range(4):
                    carry += words[w] ^ _32
                    words[w] = carry & _32
                    carry >>= 32
        put64(out, i * 16, words[0] | words[1] << 32)
        put64(out, i * 16 + 8, words[2] | words[3] << 32)
    return -1


def _as_text(cells: Cells, groups: Integers, whole: int) -> pa.Array:
    """Digits as MySQL prints them: at least one before the point, all of the scale behind."""
    digits = int(groups[:, 1].sum())
    scale = digits - whole
    buffer, out = room(len(cells), digits + 3)
    offsets, ends = room(len(cells) + 1, 4)
    _require(_text(cells.data, cells.at, groups, whole, scale, out, ends.view(np.int32)))
    return pa.Array.from_buffers(pa.string(), len(cells), [cells.validity(), offsets, buffer])


@kernel
def _text(
    data: Bytes, at: Places, groups: Integers, whole: int, scale: int, out: Bytes, ends: Places
) -> int:
    total = 0
    ends[0] = 0
    text = np.empty(whole + scale, np.uint8)
    for i in range(len(at)):
        place = int(at[i])
        if place >= 0:
            negative = u8(data, place) & 0x80 == 0
            filled = 0
            for g in range(len(groups)):
                size, digits = groups[g, 0], groups[g, 1]
                value = _group(data, place, size, -1 if negative else 0)
                if g == 0:
                    value ^= 1 << size * 8 - 1
                if value >= _power(digits):
                    return i
                for d in range(digits - 1, -1, -1):
                    text[filled + d] = 48 + value % 10
                    value //= 10
                filled += digits
                place += size
            total = _printed(text, whole, scale, negative, out, total)
        ends[i + 1] = total
    return -1


@part
def _printed(text: Bytes, whole: int, scale: int, negative: bool, out: Bytes, total: int) -> int:
    if negative:
        put8(out, total, 45)
        total += 1
    first = 0
    while first < whole and text[first] == 48:
        first += 1
    if first == whole:
        put8(out, total, 48)
        total += 1
    for d in range(first, whole):
        put8(out, total, int(text[d]))
        total += 1
    if scale:
        put8(out, total, 46)
        total += 1
    for d in range(whole, whole + scale):
        put8(out, total, int(text[d]))
        total += 1
    return total
