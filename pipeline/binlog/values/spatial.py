"""GEOMETRY and VECTOR.

Format: a geometry is stored as its SRID (4 bytes) and WKB; we give EWKB, the form PostGIS
made common: where the SRID is not 0, the flag 0x20000000 in the type and the SRID behind it.
A VECTOR is its floats, 4 bytes each.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from pipeline.binlog.arrays.array_access import Bytes, copy, put8, put32, u8, u32
from pipeline.binlog.arrays.cells import Cells, Places, room
from pipeline.binlog.arrays.compiled import kernel
from pipeline.binlog.stream.ring import Integers
from pipeline.binlog.values.strings import spans
from pipeline.errors import DamagedEvent
from pipeline.table import Column

_EWKB_SRID = 0x20000000
_HEAD = 9
"""SRID 4, byte order 1, type 4."""


def geometries(column: Column, cells: Cells) -> pa.Array:
    """Geometry of any kind → EWKB."""
    places, offsets, total = spans(column, cells)
    ends = np.frombuffer(offsets, np.int32)
    buffer, out = room(total, 1)
    if not _geometries(cells.data, places, ends, out):
        raise DamagedEvent(
            "a geometry ends within its head",
            hint="it was not recorded; look at that place with mysqlbinlog -vv",
        )
    return pa.Array.from_buffers(pa.binary(), len(cells), [cells.validity(), offsets, buffer])


@kernel
def _geometries(data: Bytes, places: Integers, ends: Places, out: Bytes) -> bool:
    total = 0
    begin = 0
    for i in range(len(places)):
        place, length = places[i], int(ends[i + 1]) - begin
        begin += length
        if place >= 0 and length:
            if length < _HEAD:
                return False
            srid, order = u32(data, place), u8(data, place + 4)
            if srid == 0:
                copy(out, total, data, place + 4, length - 4)
                total += length - 4
            else:
                put8(out, total, order)
                kind = u32(data, place + 5)
                if order == 0:
                    kind |= _EWKB_SRID >> 24
                    srid = srid >> 24 | srid >> 8 & 0xFF00 | (srid & 0xFF00) << 8 | srid << 24
                else:
                    kind |= _EWKB_SRID
                put32(out, total + 1, kind)
                put32(out, total + 5, srid)
                copy(out, total + _HEAD, data, place + _HEAD, length - _HEAD)
                total += length
        ends[i + 1] = total
    return True


def vectors(column: Column, cells: Cells) -> pa.Array:
    """VECTOR(n) → list of float32."""
    places, offsets, total = spans(column, cells)
    ends = np.frombuffer(offsets, np.int32)
    if bool((ends & 3).any()):
        raise DamagedEvent(
            "a vector has a broken number of bytes",
            hint="it was not recorded; look at that place with mysqlbinlog -vv",
        )
    buffer, out = room(total, 1)
    _copy(cells.data, places, ends, out)
    floats = pa.Array.from_buffers(pa.float32(), total // 4, [None, buffer])
    ends[:] = ends >> 2
    return pa.Array.from_buffers(
        pa.list_(pa.float32()), len(cells), [cells.validity(), offsets], children=[floats]
    )


@kernel
def _copy(data: Bytes, places: Integers, ends: Places, out: Bytes) -> None:
    for i in range(len(places)):
        if places[i] >= 0:
            begin = int(ends[i])
            copy(out, begin, data, places[i], int(ends[i + 1]) - begin)
