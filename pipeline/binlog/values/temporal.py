"""DATE, DATETIME and TIMESTAMP, with all fractions, in the present and the old form.

Format: `my_datetime_packed_from_binary` and its kin in MySQL's `mysys/my_time.cc` (packed,
big-endian, offset by half their range; a fraction in one byte per two digits); the forms
before 5.6 (`Field_newdate`, `Field_datetime`, `Field_timestamp`) are decimal numbers. A
date that has a zero for its year, month or day exists in MySQL alone: it becomes NULL and is
counted. One that no calendar has (February 31) quarantines the table.
"""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from pipeline.binlog.arrays.array_access import (
    Bytes,
    b24,
    b32,
    b40,
    i64,
    put32,
    put64,
    u8,
    u24,
    u32,
)
from pipeline.binlog.arrays.cells import SOFTENED, Cells, Places, room
from pipeline.binlog.arrays.compiled import kernel, part
from pipeline.errors import DamagedEvent, TableError
from pipeline.table import Column

_GOOD, _SOFT, _WRONG, BROKEN = range(4)
_DAY: Final = 86_400_000_000
OLD: Final = frozenset({7, 11, 12})
"""Type codes of the forms before MySQL 5.6."""


def dates(column: Column, cells: Cells) -> pa.Array:
    """DATE → date32."""
    buffer, out = room(len(cells), 4)
    finish(column, cells, _dates(cells.data, cells.at, out))
    return pa.Array.from_buffers(pa.date32(), len(cells), [cells.validity(), buffer])


def datetimes(column: Column, cells: Cells) -> pa.Array:
    """DATETIME(n) → timestamp without a zone, microseconds."""
    buffer, out = room(len(cells), 8)
    if cells.layout.code in OLD:
        found = _old_datetimes(cells.data, cells.at, out)
    else:
        found = _datetimes(cells.data, cells.at, cells.layout.scale, out)
    finish(column, cells, found)
    return pa.Array.from_buffers(pa.timestamp("us"), len(cells), [cells.validity(), buffer])


def timestamps(column: Column, cells: Cells) -> pa.Array:
    """TIMESTAMP(n) → timestamp in UTC, microseconds."""
    buffer, out = room(len(cells), 8)
    old = cells.layout.code in OLD
    finish(column, cells, _timestamps(cells.data, cells.at, old, cells.layout.scale, out))
    kind = pa.timestamp("us", tz="UTC")
    return pa.Array.from_buffers(kind, len(cells), [cells.validity(), buffer])


def finish(column: Column, cells: Cells, found: tuple[int, int]) -> None:
    """Note what was softened, refuse what is wrong."""
    cells.softened, worst = found
    if worst == _WRONG:
        raise TableError(
            f"column {column.name!r} holds a date that no calendar has",
            hint="the source allows invalid dates; correct them, or exclude the table",
        )
    if worst == BROKEN:
        raise DamagedEvent(
            f"a {column.type} has an hour, minute or second that does not exist",
            hint="it was not recorded; look at that place with mysqlbinlog -vv",
        )


@part
def _quality(year: int, month: int, day: int) -> int:
    if year == 0 or month == 0 or day == 0:
        return _SOFT
    if month > 12 or day > 31:
        return _WRONG
    days = 31
    if month == 2:
        leap = year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
        days = 29 if leap else 28
    elif month == 4 or month == 6 or month == 9 or month == 11:
        days = 30
    return _WRONG if day > days else _GOOD


@part
def _days(year: int, month: int, day: int) -> int:
    """Days since 1970-01-01 in the Gregorian calendar, years from 1."""
    if month <= 2:
        year -= 1
        month += 12
    century = year // 100
    days = 365 * year + year // 4 - century + century // 4
    return days + (153 * (month - 3) + 2) // 5 + day - 719_469


@kernel
def _dates(data: Bytes, at: Places, out: Bytes) -> tuple[int, int]:
    soft = worst = 0
    for i in range(len(at)):
        value = 0
        if at[i] >= 0:
            packed = u24(data, at[i])
            year, month, day = packed >> 9, packed >> 5 & 15, packed & 31
            quality = _quality(year, month, day)
            if quality == _GOOD:
                value = _days(year, month, day)
            else:
                at[i] = SOFTENED
                soft += quality == _SOFT
                worst = max(worst, quality)
        put32(out, i * 4, value)
    return soft, worst


@part
def _fraction(data: Bytes, at: int, scale: int) -> int:
    """Microseconds of a fraction of so many digits."""
    if scale == 0:
        return 0
    if scale <= 2:
        return u8(data, at) * 10_000
    if scale <= 4:
        return (u8(data, at) << 8 | u8(data, at + 1)) * 100
    return b24(data, at)


@part
def _moment(year: int, month: int, day: int, seconds: int, micros: int) -> int:
    return _days(year, month, day) * _DAY + seconds * 1_000_000 + micros


@kernel
def _datetimes(data: Bytes, at: Places, scale: int, out: Bytes) -> tuple[int, int]:
    soft = worst = 0
    for i in range(len(at)):
        value = 0
        if at[i] >= 0:
            packed = b40(data, at[i]) - 0x8000000000
            month, clock = packed >> 22, packed & 0x1FFFF
            year, month, day = month // 13, month % 13, packed >> 17 & 31
            hour, minute, second = clock >> 12, clock >> 6 & 63, clock & 63
            micros = _fraction(data, at[i] + 5, scale)
            quality = BROKEN if packed < 0 else _quality(year, month, day)
            if hour > 23 or minute > 59 or second > 59 or micros > 999_999:
                quality = BROKEN
            if quality == _GOOD:
                value = _moment(year, month, day, hour * 3600 + minute * 60 + second, micros)
            else:
                at[i] = SOFTENED
                soft += quality == _SOFT
                worst = max(worst, quality)
        put64(out, i * 8, value)
    return soft, worst


@kernel
def _old_datetimes(data: Bytes, at: Places, out: Bytes) -> tuple[int, int]:
    """YYYYMMDDhhmmss as a number of eight bytes, little-endian."""
    soft = worst = 0
    for i in range(len(at)):
        value = 0
        if at[i] >= 0:
            number = i64(data, at[i])
            date, clock = number // 1_000_000, number % 1_000_000
            year, month, day = date // 10_000, date // 100 % 100, date % 100
            hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
            quality = _quality(year, month, day)
            if number < 0 or year > 9999 or hour > 23 or minute > 59 or second > 59:
                quality = BROKEN
            if quality == _GOOD:
                value = _moment(year, month, day, hour * 3600 + minute * 60 + second, 0)
            else:
                at[i] = SOFTENED
                soft += quality == _SOFT
                worst = max(worst, quality)
        put64(out, i * 8, value)
    return soft, worst


@kernel
def _timestamps(data: Bytes, at: Places, old: bool, scale: int, out: Bytes) -> tuple[int, int]:
    """Seconds since the epoch, big-endian (the old form little-endian); all zero is the
    zero date."""
    soft = worst = 0
    for i in range(len(at)):
        value = 0
        if at[i] >= 0:
            seconds = u32(data, at[i]) if old else b32(data, at[i])
            micros = _fraction(data, at[i] + 4, scale)
            if micros > 999_999:
                worst = BROKEN
            value = seconds * 1_000_000 + micros
            if value == 0:
                at[i] = SOFTENED
                soft += 1
        put64(out, i * 8, value)
    return soft, worst
