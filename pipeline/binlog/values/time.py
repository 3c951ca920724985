"""TIME, with all fractions, in the present and the old form.

Format: `TIME_from_longlong_time_packed` and its kin in MySQL's `mysys/my_time.cc` (packed,
big-endian, offset by half its range); the form before 5.6 (`Field_time`) is a decimal number.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.binlog.arrays.array_access import Bytes, b24, put8, u8, u24
from pipeline.binlog.arrays.cells import Cells, Places, room
from pipeline.binlog.arrays.compiled import kernel, part
from pipeline.binlog.values.temporal import BROKEN, OLD, finish
from pipeline.table import Column


def times(column: Column, cells: Cells) -> pa.Array:
    """TIME(n) → text as MySQL prints it: [-]HH:MM:SS[.ffffff], hours to 838."""
    scale = cells.layout.scale
    buffer, out = room(len(cells), _TIME_BYTES + 1 + scale)
    offsets, ends = room(len(cells) + 1, 4)
    old = cells.layout.code in OLD
    found = _times(cells.data, cells.at, old, scale, out, ends.view(np.int32))
    finish(column, cells, (0, found))
    return pa.Array.from_buffers(pa.string(), len(cells), [cells.validity(), offsets, buffer])


_TIME_BYTES: Final = 11
"""-838:59:59, and a fourth digit that only damaged bytes could need."""


@part
def _two(out: Bytes, at: int, value: int) -> int:
    put8(out, at, 48 + value // 10)
    put8(out, at + 1, 48 + value % 10)
    return at + 2


@part
def _packed_time(data: Bytes, at: int, scale: int) -> int:
    """hours << 36 | minutes << 30 | seconds << 24 | microseconds, with its sign."""
    if scale > 4:
        return (b24(data, at) << 24 | b24(data, at + 3)) - 0x800000000000
    whole = b24(data, at) - 0x800000
    if scale == 0:
        return whole << 24
    width = 0x100 if scale <= 2 else 0x10000
    fraction = u8(data, at + 3)
    if scale > 2:
        fraction = fraction << 8 | u8(data, at + 4)
    if whole < 0 and fraction:
        whole += 1
        fraction -= width
    return (whole << 24) + fraction * (10_000 if scale <= 2 else 100)


@kernel
def _times(data: Bytes, at: Places, old: bool, scale: int, out: Bytes, ends: Places) -> int:
    """The worst that was found."""
    total, worst = 0, 0
    ends[0] = 0
    for i in range(len(at)):
        if at[i] >= 0:
            if old:
                number = (u24(data, at[i]) ^ 0x800000) - 0x800000
                negative = number < 0
                number = abs(number)
                hour, minute, second = number // 10_000, number // 100 % 100, number % 100
                micros = 0
            else:
                packed = _packed_time(data, at[i], scale)
                negative = packed < 0
                packed = abs(packed)
                hour, minute = packed >> 36 & 0x3FF, packed >> 30 & 63
                second, micros = packed >> 24 & 63, packed & 0xFFFFFF
            if hour > 838 or minute > 59 or second > 59 or micros > 999_999:
                return BROKEN
            if negative:
                put8(out, total, 45)
                total += 1
            if hour > 99:
                put8(out, total, 48 + hour // 100)
                total += 1
            total = _two(out, total, hour % 100)
            put8(out, total, 58)
            total = _two(out, total + 1, minute)
            put8(out, total, 58)
            total = _two(out, total + 1, second)
            if scale:
                put8(out, total, 46)
                total += 1
                for _ in range(scale):
                    put8(out, total, 48 + micros // 100_000)
                    micros = micros % 100_000 * 10
                    total += 1
        ends[i + 1] = total
    return worst
