"""Decoders of DATE, DATETIME, TIMESTAMP and TIME with fractions, in the formats since
MySQL 5.6 and before it.

Formats since 5.6 (`my_datetime_packed_from_binary` and similar functions in MySQL's
`mysys/my_time.cc`) are big-endian, with a byte for two digits of a fraction: DATETIME
and TIME are packed bit fields, offset by half the range, and a TIMESTAMP is a number of
seconds. The formats before 5.6 (`Field_datetime`, `Field_timestamp`, `Field_time`) are
little-endian: DATETIME and TIME are decimal numbers. A DATE (`Field_newdate`) has had
one format all the time, little-endian bit fields. Zero and partial dates (year, month
or day is 0) have no value in Arrow: they become NULL and are counted. An invalid date
(February 31) raises a TableError, so that only its table is stopped.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.address_access import put8
from lockstep.pipeline.binlog.arrays.array_access import (
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
from lockstep.pipeline.binlog.arrays.cells import (
    NULLED,
    OLD_TEMPORAL_CODES,
    Cells,
    Int32s,
    allocate,
)
from lockstep.pipeline.binlog.arrays.compiled import kernel, kernel_part
from lockstep.pipeline.binlog.stream.framing import damaged
from lockstep.pipeline.binlog.values.digits import MAX_HOURS, put_time
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column

_GOOD, _PARTIAL, _INVALID, _DAMAGED = range(4)
"""Kinds of values, from the best to the worst. _PARTIAL: a zero or partial date, which
becomes NULL. _INVALID: an invalid date. _DAMAGED: bytes that are no such value. Each
kernel returns the worst kind that it met."""

_WriteMoments = Callable[[Bytes, Int32s, bool, int, Bytes], int]
"""A kernel that writes moments in microseconds."""


def dates(column: Column, cells: Cells) -> pa.Array:
    """Return DATEs as date32."""
    buffer, out = allocate(len(cells), 4)
    _count_or_raise(column, cells, _write_dates(cells.data, cells.at, out))
    return cells.array(pa.date32(), buffer)


def datetimes(column: Column, cells: Cells) -> pa.Array:
    """Return DATETIMEs as timestamps in microseconds, without a zone."""
    return _moments(column, cells, _write_datetimes, pa.timestamp("us"))


def timestamps(column: Column, cells: Cells) -> pa.Array:
    """Return TIMESTAMPs as timestamps in microseconds, in UTC."""
    return _moments(column, cells, _write_timestamps, pa.timestamp("us", tz="UTC"))


def _moments(
    column: Column, cells: Cells, write: _WriteMoments, array_type: pa.DataType
) -> pa.Array:
    buffer, out = allocate(len(cells), 8)
    is_old_format = cells.layout.code in OLD_TEMPORAL_CODES
    worst = write(cells.data, cells.at, is_old_format, cells.layout.scale, out)
    _count_or_raise(column, cells, worst)
    return cells.array(array_type, buffer)


def _count_or_raise(column: Column, cells: Cells, worst: int) -> None:
    """Count the values that became NULL, and raise the error for the worst kind of
    value."""
    if worst == _PARTIAL:
        cells.nulled_count = int(np.count_nonzero(cells.at == NULLED))
    if worst == _INVALID:
        raise TableError(
            f"column {column.name!r} holds an invalid date, such as February 31",
            hint="correct those rows in the source, or exclude the table",
        )
    if worst == _DAMAGED:
        raise damaged(f"a {column.type} has a year, time of day or fraction that does not exist")


_PARTIAL_DATE: Final = -(1 << 62)
_INVALID_DATE: Final = _PARTIAL_DATE - 1


@kernel_part
def _days_since_1970(year: int, month: int, day: int) -> int:
    """Return the days from 1970-01-01 to a date in the Gregorian calendar;
    _PARTIAL_DATE for a zero or partial date, _INVALID_DATE for one that no calendar
    has. Years are counted from March, so that the leap day is the last."""
    if year == 0 or month == 0 or day == 0:
        return _PARTIAL_DATE
    length = 30 + ((month + (month >> 3)) & 1)
    if month == 2:
        length = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if month > 12 or day > length:
        return _INVALID_DATE
    if month <= 2:
        year -= 1
        month += 12
    century = year // 100
    days = 365 * year + year // 4 - century + century // 4
    return days + (153 * (month - 3) + 2) // 5 + day - 719_469


@kernel_part
def _kind_of_date(days: int) -> int:
    if days > _PARTIAL_DATE:
        return _GOOD
    return _PARTIAL if days == _PARTIAL_DATE else _INVALID


@kernel
def _write_dates(data: Bytes, at: Int32s, out: Bytes) -> int:
    """Write days since 1970."""
    worst = _GOOD
    for i in range(len(at)):
        days = 0
        if at[i] >= 0:
            packed = u24(data, at[i])
            year = packed >> 9
            days = _days_since_1970(year, packed >> 5 & 15, packed & 31)
            kind = _kind_of_date(days) if year <= 9999 else _DAMAGED
            worst = max(worst, kind)
            if kind != _GOOD:
                at[i] = NULLED
        put32(out, i * 4, days)
    return worst


@kernel_part
def _fraction(data: Bytes, at: int, scale: int) -> int:
    """Return the microseconds of a fraction with `scale` digits."""
    if scale == 0:
        return 0
    if scale <= 2:
        return u8(data, at) * 10_000
    if scale <= 4:
        return (u8(data, at) << 8 | u8(data, at + 1)) * 100
    return b24(data, at)


@kernel
def _write_datetimes(data: Bytes, at: Int32s, is_old_format: bool, scale: int, out: Bytes) -> int:
    """Write microseconds since 1970. The old format is YYYYMMDDhhmmss as a number of
    eight bytes, little-endian."""
    worst = _GOOD
    for i in range(len(at)):
        value = 0
        if at[i] >= 0:
            if is_old_format:
                packed, micros = i64(data, at[i]), 0
                date, clock = packed // 1_000_000, packed % 1_000_000
                year, month, day = date // 10_000, date // 100 % 100, date % 100
                hour, minute, second = clock // 10_000, clock // 100 % 100, clock % 100
            else:
                packed, micros = b40(data, at[i]) - 0x8000000000, _fraction(data, at[i] + 5, scale)
                months, clock = packed >> 22, packed & 0x1FFFF
                year, month, day = months // 13, months % 13, packed >> 17 & 31
                hour, minute, second = clock >> 12, clock >> 6 & 63, clock & 63
            days = _days_since_1970(year, month, day)
            kind = _kind_of_date(days)
            clock_fits = hour <= 23 and minute <= 59 and second <= 59 and micros <= 999_999
            if packed < 0 or year > 9999 or not clock_fits:
                kind = _DAMAGED
            worst = max(worst, kind)
            if kind == _GOOD:
                seconds = days * 86_400 + hour * 3600 + minute * 60 + second
                value = seconds * 1_000_000 + micros
            else:
                at[i] = NULLED
        put64(out, i * 8, value)
    return worst


@kernel
def _write_timestamps(data: Bytes, at: Int32s, is_old_format: bool, scale: int, out: Bytes) -> int:
    """Write microseconds since 1970. A value is seconds since 1970, big-endian
    (little-endian in the old format). All zeros are the zero date."""
    worst = _GOOD
    for i in range(len(at)):
        value = 0
        if at[i] >= 0:
            seconds = u32(data, at[i]) if is_old_format else b32(data, at[i])
            micros = _fraction(data, at[i] + 4, scale)
            if micros > 999_999:
                worst = _DAMAGED
            value = seconds * 1_000_000 + micros
            if value == 0:
                worst = max(worst, _PARTIAL)
                at[i] = NULLED
        put64(out, i * 8, value)
    return worst


def times(column: Column, cells: Cells) -> pa.Array:
    """Return TIMEs as MySQL prints them: [-]HH:MM:SS[.ffffff], hours up to 838."""
    scale = cells.layout.scale
    buffer, out = allocate(len(cells), len("-838:59:59.") + scale)
    offsets, ends = allocate(len(cells) + 1, 4)
    is_old_format = cells.layout.code in OLD_TEMPORAL_CODES
    worst = _write_times(cells.data, cells.at, is_old_format, scale, out, ends.view(np.int32))
    _count_or_raise(column, cells, worst)
    return cells.array(pa.string(), offsets, buffer)


_MINUS: Final = ord("-")


@kernel_part
def _packed_time(data: Bytes, at: int, scale: int) -> int:
    """Return hours << 36 | minutes << 30 | seconds << 24 | microseconds, with the
    value's sign."""
    if scale > 4:
        return (b24(data, at) << 24 | b24(data, at + 3)) - 0x800000000000
    seconds_part = b24(data, at) - 0x800000
    if scale == 0:
        return seconds_part << 24
    width = 0x100 if scale <= 2 else 0x10000
    fraction = u8(data, at + 3)
    if scale > 2:
        fraction = fraction << 8 | u8(data, at + 4)
    if seconds_part < 0 and fraction:
        seconds_part += 1
        fraction -= width
    return (seconds_part << 24) + fraction * (10_000 if scale <= 2 else 100)


@kernel
def _write_times(
    data: Bytes, at: Int32s, is_old_format: bool, scale: int, out: Bytes, ends: Int32s
) -> int:
    """Write texts and where each ends. Stop at the first invalid time."""
    start = out.ctypes.data
    address = start
    ends[0] = 0
    for i in range(len(at)):
        if at[i] >= 0:
            if is_old_format:
                number = (u24(data, at[i]) ^ 0x800000) - 0x800000
                is_negative = number < 0
                number = abs(number)
                hour, minute, second = number // 10_000, number // 100 % 100, number % 100
                micros = 0
            else:
                packed = _packed_time(data, at[i], scale)
                is_negative = packed < 0
                packed = abs(packed)
                hour, minute = packed >> 36 & 0x3FF, packed >> 30 & 63
                second, micros = packed >> 24 & 63, packed & 0xFFFFFF
            if hour > MAX_HOURS or minute > 59 or second > 59 or micros > 999_999:
                return _DAMAGED
            if is_negative:
                put8(address, _MINUS)
                address += 1
            address = put_time(address, hour, minute, second, micros, scale)
        ends[i + 1] = address - start
    return _GOOD
