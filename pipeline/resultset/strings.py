"""Text, bytes, members, JSON, geometry and vectors of a result's rows: bytes with a length.

Text comes in UTF-8 whatever the column's character set, ENUM and SET by their members' names, JSON
as text. A geometry comes as it is stored: its spatial reference (4 bytes, little-endian), then
well-known binary (MySQL manual, "Supported Spatial Data Formats"); EWKB is well-known binary
that says so in the outer type word where there is a reference, and has it behind. MariaDB
stores the empty value where a NOT NULL column was added: it stays empty.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.binlog.arrays.array_access import Bytes, b32, copy, put8, put32, u8, u32
from pipeline.binlog.arrays.cells import Places, room
from pipeline.binlog.arrays.compiled import kernel
from pipeline.errors import TableError
from pipeline.resultset.walk import Answers
from pipeline.table import Column

_REFERENCE, _HEAD = 4, 9
"""Bytes of a spatial reference; with byte order 1 and type 4 behind it."""

_HAS_REFERENCE: Final = 0x20000000


def texts(column: Column, answers: Answers) -> pa.Array:
    """CHAR to LONGTEXT, ENUM, SET, JSON → string; TableError for what is not UTF-8."""
    array = _copied(pa.string(), answers)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise TableError(
            "the source sent text that is not in the character set it says",
            hint="correct those rows in the source, or exclude the table",
        ) from error
    return array


def binaries(column: Column, answers: Answers) -> pa.Array:
    return _copied(pa.binary(), answers)


def geometries(column: Column, answers: Answers) -> pa.Array:
    """Geometry of any kind → EWKB; ValueError for bytes that end in their head."""
    offsets, ends, total = _spans(answers)
    buffer, out = room(total, 1)
    if not _geometries(answers.data, answers.at, answers.size, ends, out):
        raise ValueError("not well-known binary")
    return pa.Array.from_buffers(pa.binary(), len(answers), [answers.validity(), offsets, buffer])


def vectors(column: Column, answers: Answers) -> pa.Array:
    """VECTOR(n) → list of float32; ValueError for a broken number of bytes."""
    offsets, ends, total = _spans(answers)
    if bool((ends & 3).any()):
        raise ValueError("no vector")
    floats = pa.Array.from_buffers(pa.float32(), total // 4, [None, _bytes(answers, ends, total)])
    ends[:] = ends >> 2
    return pa.Array.from_buffers(
        pa.list_(pa.float32()), len(answers), [answers.validity(), offsets], children=[floats]
    )


def _copied(kind: pa.DataType, answers: Answers) -> pa.Array:
    offsets, ends, total = _spans(answers)
    buffers = [answers.validity(), offsets, _bytes(answers, ends, total)]
    return pa.Array.from_buffers(kind, len(answers), buffers)


def _spans(answers: Answers) -> tuple[pa.Buffer, Places, int]:
    """Arrow's offsets, twice, and the bytes in all: less than there are in the rows."""
    offsets, raw = room(len(answers) + 1, 4)
    ends = raw.view(np.int32)
    return offsets, ends, _sums(answers.at, answers.size, ends)


def _bytes(answers: Answers, ends: Places, total: int) -> pa.Buffer:
    buffer, out = room(total, 1)
    _copy(answers.data, answers.at, ends, out)
    return buffer


@kernel
def _sums(at: Places, size: Places, ends: Places) -> int:
    total = 0
    ends[0] = 0
    for row in range(len(at)):
        if at[row] >= 0:
            total += int(size[row])
        ends[row + 1] = total
    return total


@kernel
def _copy(data: Bytes, at: Places, ends: Places, out: Bytes) -> None:
    for row in range(len(at)):
        if at[row] >= 0:
            copy(out, int(ends[row]), data, int(at[row]), int(ends[row + 1]) - int(ends[row]))


@kernel
def _geometries(data: Bytes, at: Places, size: Places, ends: Places, out: Bytes) -> bool:
    total = 0
    for row in range(len(at)):
        count = int(size[row]) if at[row] >= 0 else 0
        if count:
            place = int(at[row])
            if count < _HEAD or u8(data, place + _REFERENCE) > 1:
                return False
            reference = u32(data, place)
            known, count = place + _REFERENCE, count - _REFERENCE
            if reference == 0:
                copy(out, total, data, known, count)
                total += count
            else:
                order = u8(data, known)
                put8(out, total, order)
                if order:
                    put32(out, total + 1, u32(data, known + 1) | _HAS_REFERENCE)
                    put32(out, total + 5, reference)
                else:
                    # The value's own order of bytes: what is stored is the number turned over.
                    kind = b32(data, known + 1) | _HAS_REFERENCE
                    for byte in range(4):
                        put8(out, total + 1 + byte, kind >> 24 - 8 * byte)
                        put8(out, total + 5 + byte, reference >> 24 - 8 * byte)
                copy(out, total + _HEAD, data, known + 5, count - 5)
                total += count + _REFERENCE
        ends[row + 1] = total
    return True
