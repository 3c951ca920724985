"""Integers, BIT, YEAR, FLOAT and DOUBLE of a result's rows.

Format: little-endian, two's complement or IEEE 754 (MySQL manual, "Binary Protocol Value"). A
MEDIUMINT has four bytes, a YEAR two; a BIT is asked for as a number.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

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
from pipeline.binlog.arrays.compiled import kernel, part
from pipeline.resultset.walk import Answers
from pipeline.schema.types import arrow_type
from pipeline.table import Column

_SHORT_YEAR: Final = 2


def integers(column: Column, answers: Answers) -> pa.Array:
    """TINYINT to BIGINT → the column's Arrow type."""
    return _as(arrow_type(column), answers)


def bits(column: Column, answers: Answers) -> pa.Array:
    """BIT(1) → boolean, BIT(64) → decimal(20,0), in between int64."""
    kind = arrow_type(column)
    if pa.types.is_boolean(kind):
        return _as(pa.int64(), answers).cast(kind)
    return _as(kind, answers)


def floats(column: Column, answers: Answers) -> pa.Array:
    """FLOAT → float32, DOUBLE → float64: the bits as they are."""
    return _as(arrow_type(column), answers)


def years(column: Column, answers: Answers) -> pa.Array:
    """YEAR → int16. MariaDB's YEAR(2) shows the last two digits of 1970 to 2069."""
    buffer, out = room(len(answers), 2)
    _years(answers.data, answers.at, answers.definition.length == _SHORT_YEAR, out)
    return pa.Array.from_buffers(pa.int16(), len(answers), [answers.validity(), buffer])


def _as(kind: pa.DataType, answers: Answers) -> pa.Array:
    width = kind.bit_width // 8
    buffer, out = room(len(answers), width)
    definition = answers.definition
    size, signed = definition.size, not definition.unsigned
    if size == 1:
        _bytes(answers.data, answers.at, signed, width, out)
    elif size == 2:
        _shorts(answers.data, answers.at, signed, width, out)
    elif size == 4:
        _words(answers.data, answers.at, signed, width, out)
    else:
        _longs(answers.data, answers.at, width, out)
    return pa.Array.from_buffers(kind, len(answers), [answers.validity(), buffer])


@part
def _put(out: Bytes, row: int, width: int, value: int) -> None:
    if width == 1:
        put8(out, row, value)
    elif width == 2:
        put16(out, row * 2, value)
    elif width == 4:
        put32(out, row * 4, value)
    else:
        put64(out, row * 8, value)


@kernel
def _bytes(data: Bytes, at: Places, signed: bool, width: int, out: Bytes) -> None:
    for row in range(len(at)):
        value = u8(data, at[row]) if at[row] >= 0 else 0
        _put(out, row, width, (value ^ 0x80) - 0x80 if signed else value)


@kernel
def _shorts(data: Bytes, at: Places, signed: bool, width: int, out: Bytes) -> None:
    for row in range(len(at)):
        value = u16(data, at[row]) if at[row] >= 0 else 0
        _put(out, row, width, (value ^ 0x8000) - 0x8000 if signed else value)


@kernel
def _words(data: Bytes, at: Places, signed: bool, width: int, out: Bytes) -> None:
    for row in range(len(at)):
        value = u32(data, at[row]) if at[row] >= 0 else 0
        _put(out, row, width, (value ^ 0x80000000) - 0x80000000 if signed else value)


@kernel
def _longs(data: Bytes, at: Places, width: int, out: Bytes) -> None:
    """Sixteen bytes for what is unsigned."""
    for row in range(len(at)):
        value = i64(data, at[row]) if at[row] >= 0 else 0
        if width == 16:
            put64(out, row * 16, value)
            put64(out, row * 16 + 8, 0)
        else:
            put64(out, row * 8, value)


@kernel
def _years(data: Bytes, at: Places, short: bool, out: Bytes) -> None:
    for row in range(len(at)):
        value = u16(data, at[row]) if at[row] >= 0 else 0
        if short and value < 100:
            value += 2000 if value < 70 else 1900
        put16(out, row * 2, value)
