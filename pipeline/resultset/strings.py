"""Text, bytes, ENUM, SET, JSON, GEOMETRY and VECTOR of a result's rows: bytes with a length.

Text comes in UTF-8 whatever the column's character set, ENUM and SET as their members' names, JSON
as text. A geometry comes as it is stored: its SRID (4 bytes, little-endian), then WKB (MySQL
manual, "Supported Spatial Data Formats"). EWKB is WKB in which, if there is an SRID, the outer type
has a flag and the SRID follows it. MariaDB stores an empty value when a NOT NULL column is added:
it stays empty.
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
"""Bytes of an SRID; of an SRID, byte order 1 and type 4."""

_HAS_REFERENCE: Final = 0x20000000


def texts(column: Column, answers: Answers) -> pa.Array:
    """CHAR to LONGTEXT, ENUM, SET, JSON → string; TableError for bytes that are not UTF-8."""
    array = _copied(pa.string(), answers)
    try:
        array.validate(full=True)
    except pa.ArrowInvalid as error:
        raise TableError(
            "the source sent text that is not UTF-8",
            hint="correct those rows in the source, or exclude the table",
        ) from error
    return array


def binaries(column: Column, answers: Answers) -> pa.Array:
    return _copied(pa.binary(), answers)


def geometries(column: Column, answers: Answers) -> pa.Array:
    """Geometry of any kind → EWKB; ValueError for a malformed header."""
    offsets, ends, total = _spans(answers)
    buffer, out = room(total, 1)
    if not _geometries(answers.data, answers.at, answers.size, ends, out):
        raise ValueError("not well-known binary")
    return pa.Array.from_buffers(pa.binary(), len(answers), [answers.validity(), offsets, buffer])


def vectors(column: Column, answers: Answers) -> pa.Array:
    """VECTOR(n) → list of float32; ValueError if the length is not a multiple of 4."""
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
    """Return Arrow's offsets, as a buffer and as an array, and the total number of bytes. They fit
    into 32 bits, since the rows do."""
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
            body, count = place + _REFERENCE, count - _REFERENCE
            if reference == 0:
                copy(out, total, data, body, count)
                total += count
            else:
                order = u8(data, body)
                put8(out, total, order)
                if order:
                    put32(out, total + 1, u32(data, body + 1) | _HAS_REFERENCE)
                    put32(out, total + 5, reference)
                else:
                    # The value is big-endian, so its numbers are read and written so.
                    kind = b32(data, body + 1) | _HAS_REFERENCE
                    for byte in range(4):
                        put8(out, total + 1 + byte, kind >> 24 - 8 * byte)
                        put8(out, total + 5 + byte, reference >> 24 - 8 * byte)
                copy(out, total + _HEAD, data, body + 5, count - 5)
                total += count + _REFERENCE
        ends[row + 1] = total
    return True
