"""Integers, YEAR, BIT, FLOAT and DOUBLE, whose bytes in the log are nearly those of Arrow.

Format: little-endian, two's complement (`Field_tiny` … `Field_longlong`); BIT is big-endian;
YEAR is the years since 1900 in a byte, 0 for the year 0.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from lockstep.pipeline.binlog.arrays.array_access import (
    Bytes,
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
from lockstep.pipeline.binlog.arrays.cells import Cells, Places, room
from lockstep.pipeline.binlog.arrays.compiled import kernel
from lockstep.pipeline.schema.types import arrow_type
from lockstep.pipeline.values.table import Column


def integers(column: Column, cells: Cells) -> pa.Array:
    """TINYINT to BIGINT → the smallest Arrow type that holds them, decimal(20,0) at most; FLOAT →
    float32, DOUBLE → float64, by copying their bits."""
    kind = arrow_type(column)
    buffer, out = room(len(cells), kind.bit_width // 8)
    # An unsigned FLOAT is no wider than a signed one.
    unsigned = column.unsigned and not pa.types.is_floating(kind)
    _BY_SIZE[cells.layout.size](cells.data, cells.at, unsigned, out)
    return pa.Array.from_buffers(kind, len(cells), [cells.validity(), buffer])


@kernel
def _bytes(data: Bytes, at: Places, unsigned: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = u8(data, at[i]) if at[i] >= 0 else 0
        if unsigned:
            put16(out, i * 2, value)
        else:
            put8(out, i, value)


@kernel
def _shorts(data: Bytes, at: Places, unsigned: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = u16(data, at[i]) if at[i] >= 0 else 0
        if unsigned:
            put32(out, i * 4, value)
        else:
            put16(out, i * 2, value)


@kernel
def _mediums(data: Bytes, at: Places, unsigned: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = u24(data, at[i]) if at[i] >= 0 else 0
        put32(out, i * 4, value if unsigned else (value ^ 0x800000) - 0x800000)


@kernel
def _words(data: Bytes, at: Places, unsigned: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = u32(data, at[i]) if at[i] >= 0 else 0
        if unsigned:
            put64(out, i * 8, value)
        else:
            put32(out, i * 4, value)


@kernel
def _longs(data: Bytes, at: Places, unsigned: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = i64(data, at[i]) if at[i] >= 0 else 0
        if unsigned:
            put64(out, i * 16, value)
            put64(out, i * 16 + 8, 0)
        else:
            put64(out, i * 8, value)


_BY_SIZE: Final = {1: _bytes, 2: _shorts, 3: _mediums, 4: _words, 8: _longs}


def years(column: Column, cells: Cells) -> pa.Array:
    """YEAR → int16; 0 stays 0."""
    buffer, out = room(len(cells), 2)
    _years(cells.data, cells.at, out)
    return pa.Array.from_buffers(pa.int16(), len(cells), [cells.validity(), buffer])


@kernel
def _years(data: Bytes, at: Places, out: Bytes) -> None:
    for i in range(len(at)):
        value = u8(data, at[i]) if at[i] >= 0 else 0
        put16(out, i * 2, value + 1900 if value else 0)


def bits(column: Column, cells: Cells) -> pa.Array:
    """BIT(1) → boolean, BIT(64) → decimal(20,0), all others → int64."""
    kind = arrow_type(column)
    number = pa.int64() if pa.types.is_boolean(kind) else kind
    buffer, out = room(len(cells), number.bit_width // 8)
    _bits(cells.data, cells.at, cells.layout.size, number.bit_width > 64, out)
    return pa.Array.from_buffers(number, len(cells), [cells.validity(), buffer]).cast(kind)


@kernel
def _bits(data: Bytes, at: Places, size: int, wide: bool, out: Bytes) -> None:
    for i in range(len(at)):
        value = 0
        if at[i] >= 0:
            for byte in range(size):
                value = value << 8 | u8(data, at[i] + byte)
        if wide:
            put64(out, i * 16, value)
            put64(out, i * 16 + 8, 0)
        else:
            put64(out, i * 8, value)
