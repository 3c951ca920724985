"""Decoders of integers, YEAR, BIT, FLOAT and DOUBLE, whose bytes in the log are nearly
those of Arrow; and of DECIMAL, exact numbers of up to 65 digits in a column, up to 81
in a JSON document.

Formats: integers are little-endian, two's complement (`Field_tiny` … `Field_longlong`);
BIT is big-endian; YEAR is the years since 1900 in one byte, 0 for the year 0. A decimal
(`bin2decimal` in MySQL's `strings/decimal.cc`) is groups of nine digits in four bytes,
big-endian; the first and last digits, if fewer than nine, take fewer bytes. A positive
decimal has its first bit set; a negative one has all bits inverted.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.address_access import multiply_add
from lockstep.pipeline.binlog.arrays.address_access import put8 as put8_at
from lockstep.pipeline.binlog.arrays.address_access import u8 as u8_at
from lockstep.pipeline.binlog.arrays.array_access import (
    Bytes,
    b16,
    b24,
    b32,
    i64,
    put8,
    put16,
    put32,
    put64,
    u8,
    u16,
    u24,
    u32,
)
from lockstep.pipeline.binlog.arrays.cells import Cells, Int32s, allocate, decimal_size
from lockstep.pipeline.binlog.arrays.compiled import kernel, kernel_part
from lockstep.pipeline.binlog.stream.framing import damaged
from lockstep.pipeline.binlog.stream.ring import Integers
from lockstep.pipeline.binlog.values.digits import POWERS_OF_TEN, count_digits, put_digits
from lockstep.pipeline.schema.types import arrow_type
from lockstep.pipeline.values.table import Column


def plain_numbers(column: Column, cells: Cells) -> pa.Array:
    """Return TINYINT to BIGINT as the smallest signed Arrow integers that hold them, or
    as decimal(20,0); FLOAT as float32, DOUBLE as float64. The bits are copied."""
    array_type = arrow_type(column)
    buffer, out = allocate(len(cells), array_type.bit_width // 8)
    # Unsigned integers become a wider type, but an unsigned FLOAT does not.
    is_unsigned = column.unsigned and not pa.types.is_floating(array_type)
    _COPY_BY_SIZE[cells.layout.size](cells.data, cells.at, is_unsigned, out)
    return cells.array(array_type, buffer)


@kernel
def _copy_bytes(data: Bytes, at: Int32s, is_unsigned: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = u8(data, at[i]) if at[i] >= 0 else 0
        if is_unsigned:
            put16(out, i * 2, value)
        else:
            put8(out, i, value)


@kernel
def _copy_shorts(data: Bytes, at: Int32s, is_unsigned: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = u16(data, at[i]) if at[i] >= 0 else 0
        if is_unsigned:
            put32(out, i * 4, value)
        else:
            put16(out, i * 2, value)


@kernel
def _copy_mediums(data: Bytes, at: Int32s, is_unsigned: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = u24(data, at[i]) if at[i] >= 0 else 0
        put32(out, i * 4, value if is_unsigned else (value ^ 0x800000) - 0x800000)


@kernel
def _copy_words(data: Bytes, at: Int32s, is_unsigned: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = u32(data, at[i]) if at[i] >= 0 else 0
        if is_unsigned:
            put64(out, i * 8, value)
        else:
            put32(out, i * 4, value)


@kernel
def _copy_longs(data: Bytes, at: Int32s, is_unsigned: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = i64(data, at[i]) if at[i] >= 0 else 0
        if is_unsigned:
            put64(out, i * 16, value)
            put64(out, i * 16 + 8, 0)
        else:
            put64(out, i * 8, value)


_COPY_BY_SIZE: Final = {
    1: _copy_bytes,
    2: _copy_shorts,
    3: _copy_mediums,
    4: _copy_words,
    8: _copy_longs,
}
"""Bytes of a cell → the function that copies it, or widens it if it is unsigned."""


def years(column: Column, cells: Cells) -> pa.Array:
    """Return YEARs as int16; 0 stays 0."""
    buffer, out = allocate(len(cells), 2)
    _write_years(cells.data, cells.at, out)
    return cells.array(pa.int16(), buffer)


@kernel
def _write_years(data: Bytes, at: Int32s, out: Bytes) -> None:
    for i in range(len(at)):
        value = u8(data, at[i]) if at[i] >= 0 else 0
        put16(out, i * 2, value + 1900 if value else 0)


def bits(column: Column, cells: Cells) -> pa.Array:
    """Return BIT(1) as boolean, BIT(64) as decimal(20,0), all others as int64."""
    array_type = arrow_type(column)
    number_type = pa.int64() if pa.types.is_boolean(array_type) else array_type
    buffer, out = allocate(len(cells), number_type.bit_width // 8)
    _write_bits(cells.data, cells.at, cells.layout.size, number_type.bit_width > 64, out)
    return cells.array(number_type, buffer).cast(array_type)


@kernel
def _write_bits(data: Bytes, at: Int32s, size: int, is_wide: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = 0
        if at[i] >= 0:
            for byte in range(size):
                value = value << 8 | u8(data, at[i] + byte)
        if is_wide:
            put64(out, i * 16, value)
            put64(out, i * 16 + 8, 0)
        else:
            put64(out, i * 8, value)


_POSITIVE_BIT: Final = 0x80
_MINUS, _POINT, _ZERO = b"-.0"


def decimals(column: Column, cells: Cells) -> pa.Array:
    """Return DECIMALs as decimals of up to 38 digits; those with more digits as text."""
    precision, scale = cells.layout.precision, cells.layout.scale
    array_type = arrow_type(column)
    if pa.types.is_decimal(array_type):
        buffer, out = allocate(len(cells), 16)
        buffers = [buffer]
        damaged_cell = _write_decimals(cells.data, cells.at, _digit_groups(precision, scale), out)
    else:
        buffer, out = allocate(len(cells), precision + 3)
        offsets, ends = allocate(len(cells) + 1, 4)
        buffers = [offsets, buffer]
        damaged_cell = _write_decimal_texts(
            cells.data, cells.at, precision, scale, out, ends.view(np.int32)
        )
    if damaged_cell >= 0:
        raise damaged("a DECIMAL has a group of digits that is too large")
    return cells.array(array_type, *buffers)


def _digit_groups(precision: int, scale: int) -> Integers:
    """Return (bytes, power of ten) for each group of digits, in order."""
    whole_digits = precision - scale
    digits = [whole_digits % 9, *[9] * (whole_digits // 9), *[9] * (scale // 9), scale % 9]
    return np.array([(decimal_size(n, 0), 10**n) for n in digits if n], np.int64)


@kernel_part
def _read_group(data: Bytes, at: int, size: int, flip: int) -> int:
    """Return a group of digits as a number. `flip`: -1 inverts all bits, 0 none."""
    if size == 4:
        return b32(data, at) ^ flip & 0xFFFFFFFF
    if size == 3:
        return b24(data, at) ^ flip & 0xFFFFFF
    if size == 2:
        return b16(data, at) ^ flip & 0xFFFF
    return u8(data, at) ^ flip & 0xFF


@kernel
def _write_decimals(data: Bytes, at: Int32s, groups: Integers, out: Bytes) -> int:
    """Write 128-bit integers; return the index of a damaged cell, or -1."""
    # The sign bit is part of the first group.
    sign = 1 << groups[0, 0] * 8 - 1
    for i in range(len(at)):
        high = low = 0
        at_cell = int(at[i])
        if at_cell >= 0:
            flip = 0 if u8(data, at_cell) & _POSITIVE_BIT else -1
            for g in range(len(groups)):
                size, power = groups[g, 0], groups[g, 1]
                number = _read_group(data, at_cell, size, flip)
                if g == 0:
                    number ^= sign
                if number >= power:
                    return i
                high, low = multiply_add(high, low, power, number)
                at_cell += size
            if flip:
                high, low = multiply_add(high, low, -1, 0)
        put64(out, i * 16, low)
        put64(out, i * 16 + 8, high)
    return -1


@kernel
def _write_decimal_texts(
    data: Bytes, at: Int32s, precision: int, scale: int, out: Bytes, ends: Int32s
) -> int:
    """Write texts, and where each ends; return the index of a damaged cell, or -1."""
    source, target = data.ctypes.data, out.ctypes.data
    to = target
    ends[0] = 0
    for i in range(len(at)):
        if at[i] >= 0:
            to = put_decimal(source + at[i], precision, scale, to)
            if to < 0:
                return i
        ends[i + 1] = to - target
    return -1


@kernel_part
def put_decimal(at: int, precision: int, scale: int, to: int) -> int:
    """Write the decimal at address `at` to address `to` as MySQL prints it: with at
    least one digit before the point, and `scale` digits after it. Return the address
    after the text; -1 if a group of digits is too large."""
    flip = 0 if u8_at(at) & _POSITIVE_BIT else 0xFF
    if flip:
        put8_at(to, _MINUS)
        to += 1
    digits_left, has_digits = precision, False
    sign = _POSITIVE_BIT  # part of the first group
    while digits_left > 0:
        digits = (digits_left - scale - 1) % 9 + 1 if digits_left > scale else min(digits_left, 9)
        size = (digits + 1) // 2 if digits < 7 else 4
        number = u8_at(at) ^ sign ^ flip
        for byte in range(1, size):
            number = number << 8 | u8_at(at + byte) ^ flip
        if number >= POWERS_OF_TEN[digits]:
            return -1
        if digits_left == scale:
            if not has_digits:
                put8_at(to, _ZERO)
                to += 1
            put8_at(to, _POINT)
            to, has_digits = to + 1, True
        if has_digits or number > 0:
            width = digits if has_digits else count_digits(number)
            put_digits(to, number, width)
            to, has_digits = to + width, True
        at, digits_left = at + size, digits_left - digits
        sign = 0
    if not has_digits:
        put8_at(to, _ZERO)
        to += 1
    return to
