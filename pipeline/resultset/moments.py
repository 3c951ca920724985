"""DATE, DATETIME, TIMESTAMP and TIME of a result's rows.

Format: a length, then year 2, month 1, day 1, hour, minute, second 1 each, microseconds 4; trailing
parts that are zero are left out. A TIME is sign 1, days 4, hour, minute, second 1 each,
microseconds 4 (MySQL manual, "Binary Protocol Value"). A TIMESTAMP is in the session's zone, UTC.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.binlog.arrays.array_access import Bytes, put8, put32, put64, u8, u16, u32
from pipeline.binlog.arrays.cells import NULL, Places, room
from pipeline.binlog.arrays.compiled import kernel, part
from pipeline.resultset.walk import Answers
from pipeline.schema.types import arrow_type
from pipeline.table import Column

_NO_MOMENT: Final = -(1 << 62)
_NULL: Final = _NO_MOMENT + 1
_DAY: Final = 86_400_000_000
_DATE_BYTES, _CLOCK_BYTES, _ALL_BYTES = 4, 7, 11
_TIME_BYTES, _LONG_TIME_BYTES = 8, 12
_MOST_HOURS: Final = 838
_LONGEST: Final = 10
"""-838:59:59"""


def dates(column: Column, answers: Answers) -> pa.Array:
    """DATE → date32; a zero or partial date becomes NULL. ValueError for an invalid date."""
    buffer, out = room(len(answers), 4)
    _add_nulls(answers, _dates(answers.data, answers.at, answers.size, out))
    return pa.Array.from_buffers(pa.date32(), len(answers), [answers.validity(), buffer])


def moments(column: Column, answers: Answers) -> pa.Array:
    """DATETIME and TIMESTAMP → timestamp, microseconds; NULL and ValueError as in `dates`."""
    buffer, out = room(len(answers), 8)
    _add_nulls(answers, _moments(answers.data, answers.at, answers.size, out))
    return pa.Array.from_buffers(arrow_type(column), len(answers), [answers.validity(), buffer])


def times(column: Column, answers: Answers) -> pa.Array:
    """TIME(n) → text: [-]HH:MM:SS[.ffffff], hours to 838. ValueError for an invalid time."""
    digits = column.length or 0
    buffer, out = room(len(answers), _LONGEST + 1 + digits)
    offsets, ends = room(len(answers) + 1, 4)
    parts = answers.data, answers.at, answers.size
    if not _times(*parts, digits, out, ends.view(np.int32)):
        raise ValueError("not a time")
    return pa.Array.from_buffers(pa.string(), len(answers), [answers.validity(), offsets, buffer])


def _add_nulls(answers: Answers, nulls: int) -> None:
    if nulls < 0:
        raise ValueError("not a date")
    answers.nulls += nulls


@part
def _days(data: Bytes, at: int) -> int:
    """Return the days from 1970-01-01 to a date. Years are counted from March, so that
    the leap day is a year's last."""
    year, month, day = u16(data, at), u8(data, at + 2), u8(data, at + 3)
    if year == 0 or month == 0 or day == 0:
        return _NULL
    if month > 12 or year > 9999:
        return _NO_MOMENT
    length = 30 + (month + (month >> 3) & 1)
    if month == 2:
        length = 29 if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0) else 28
    if day > length:
        return _NO_MOMENT
    since = year * 12 + month - 3
    whole, of_year = since // 12, since % 12
    leaps = whole // 4 - whole // 100 + whole // 400
    return whole * 365 + leaps + (of_year * 306 + 5) // 10 + day - 719_469


@kernel
def _dates(data: Bytes, at: Places, size: Places, out: Bytes) -> int:
    """Write days; return the number of dates that became NULL, or -1 at an invalid date."""
    nulls = 0
    for row in range(len(at)):
        days = 0
        if at[row] >= 0:
            days = _NULL
            if size[row] == _DATE_BYTES:
                days = _days(data, at[row])
            elif size[row] != 0:
                return -1
            if days == _NO_MOMENT:
                return -1
            if days == _NULL:
                at[row] = NULL
                nulls += 1
                days = 0
        put32(out, row * 4, days)
    return nulls


@kernel
def _moments(data: Bytes, at: Places, size: Places, out: Bytes) -> int:
    nulls = 0
    last_date, days = 0, _NULL
    for row in range(len(at)):
        value = 0
        if at[row] >= 0:
            place, count = int(at[row]), int(size[row])
            if count not in (0, _DATE_BYTES, _CLOCK_BYTES, _ALL_BYTES):
                return -1
            # Neighbouring rows often have the same date, whose days are then known.
            date = u32(data, place) if count else 0
            if date != last_date:
                last_date = date
                days = _days(data, place) if date else _NULL
            micros = 0
            if count >= _CLOCK_BYTES:
                hour, minute, second = u8(data, place + 4), u8(data, place + 5), u8(data, place + 6)
                micros = (hour * 3600 + minute * 60 + second) * 1_000_000
                if hour > 23 or minute > 59 or second > 59:
                    return -1
            if count == _ALL_BYTES:
                fraction = u32(data, place + 7)
                if fraction > 999_999:
                    return -1
                micros += fraction
            if days == _NO_MOMENT:
                return -1
            if days == _NULL:
                at[row] = NULL
                nulls += 1
            else:
                value = days * _DAY + micros
        put64(out, row * 8, value)
    return nulls


@part
def _two(out: Bytes, at: int, value: int) -> None:
    put8(out, at, 48 + value // 10)
    put8(out, at + 1, 48 + value % 10)


@kernel
def _times(data: Bytes, at: Places, size: Places, digits: int, out: Bytes, ends: Places) -> bool:
    total = 0
    ends[0] = 0
    for row in range(len(at)):
        if at[row] >= 0:
            place, count = int(at[row]), int(size[row])
            hour = minute = second = micros = 0
            if count == _TIME_BYTES or count == _LONG_TIME_BYTES:
                hour = u32(data, place + 1) * 24 + u8(data, place + 5)
                minute, second = u8(data, place + 6), u8(data, place + 7)
                if count == _LONG_TIME_BYTES:
                    micros = u32(data, place + 8)
                if u8(data, place):
                    put8(out, total, 45)
                    total += 1
            elif count != 0:
                return False
            if hour > _MOST_HOURS or minute > 59 or second > 59 or micros > 999_999:
                return False
            if hour > 99:
                put8(out, total, 48 + hour // 100)
                total += 1
            _two(out, total, hour % 100)
            put8(out, total + 2, 58)
            _two(out, total + 3, minute)
            put8(out, total + 5, 58)
            _two(out, total + 6, second)
            total += 8
            if digits:
                put8(out, total, 46)
                total += 1
                for _ in range(digits):
                    put8(out, total, 48 + micros // 100_000)
                    micros = micros % 100_000 * 10
                    total += 1
        ends[row + 1] = total
    return True
