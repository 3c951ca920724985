"""SQL's own values inside JSON documents → text, in compiled code.

Belongs here: decimals and moments, which applications make by the million, such as
`json_object('price', price, 'at', created_at)`, and all others as base64. Does not: strings
(`json_text`).

Formats: `wrapper_to_string` in sql-common/json_dom.cc, `base64_encode` in mysys/base64.cc,
`bin2decimal` in strings/decimal.cc, `TIME_from_longlong_datetime_packed` and its like in
mysys/my_time.cc, `my_TIME_to_str` for the text, in MySQL's source.

Each function takes the value's bytes, `length` of them from address `at`, and writes at
`place`; it answers the place behind the text, or DAMAGED.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.binlog.arrays.address_access import i64, put8, put16, put32, put64, u8
from pipeline.binlog.arrays.compiled import part
from pipeline.binlog.values.digits import count_digits, put_digits
from pipeline.binlog.values.json_form import (
    DAMAGED,
    DATE,
    DATETIME,
    DECIMAL,
    MONTHS,
    MOST_HOURS,
    MOST_PRECISION,
    MOST_SCALE,
    TIME,
    TIMESTAMP,
)

_LONGEST: Final = MOST_PRECISION + 3
"""Bytes of the longest text, a decimal with sign, zero and point; a moment has 28."""

_BASE64_HEAD: Final = int.from_bytes(b'"base64:', "little")
_BASE64_TYPE: Final = int.from_bytes(b"type", "little")
_BASE64_LINE: Final = 76
_NEWLINE: Final = int.from_bytes(rb"\n", "little")
_PAD: Final = ord("=")
LETTERS: Final = np.array([*b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"])

_ZERO, _MINUS, _POINT, _COLON, _SPACE, _QUOTE = b'0-.: "'
_DIGITS: Final = 9
_SIGN: Final = 0x80
_MICROS: Final = 1_000_000


@part
def longest(kind: int, length: int) -> int:
    """Bytes of text that a value may have."""
    if kind in (DECIMAL, DATE, TIME, DATETIME, TIMESTAMP):
        return _LONGEST
    letters = (length + 2) // 3 * 4
    return _LONGEST + letters + letters // _BASE64_LINE * 2


@part
def opaque(kind: int, at: int, length: int, place: int) -> int:
    """Room for `longest` is the caller's."""
    if kind == DECIMAL:
        return _decimal(at, length, place)
    if kind not in (DATE, TIME, DATETIME, TIMESTAMP):
        return _base64(kind, at, length, place)
    if length != 8:
        return DAMAGED
    put8(place, _QUOTE)
    place = _moment(kind, i64(at), place + 1)
    if place > 0:
        put8(place, _QUOTE)
        place += 1
    return place


@part
def _moment(kind: int, packed: int, place: int) -> int:
    """Bits: year and month (by 13), day 5, hour 5 (10 for TIME), minute 6, second 6, micro 24."""
    if packed < 0:
        put8(place, _MINUS)
        place += 1
        packed = -packed
        if kind != TIME or packed < 0:
            return DAMAGED
    months, day, hour = packed >> 46, packed >> 41 & 0x1F, packed >> 36 & 0x1F
    minute, second, micro = packed >> 30 & 0x3F, packed >> 24 & 0x3F, packed & 0xFFFFFF
    if kind == TIME:
        hour, day = packed >> 36 & 0x3FF, 0
    most = MOST_HOURS if kind == TIME else 23
    year = months // MONTHS
    if hour > most or minute > 59 or second > 59 or micro >= _MICROS or year > 9999:
        return DAMAGED
    if kind == TIME and months != 0:
        return DAMAGED
    if kind != TIME:
        put_digits(place, year, 4)
        put8(place + 4, _MINUS)
        put_digits(place + 5, months % MONTHS, 2)
        put8(place + 7, _MINUS)
        put_digits(place + 8, day, 2)
        place += 10
        if kind == DATE:
            return place
        put8(place, _SPACE)
        place += 1
    width = max(2, count_digits(hour))
    put_digits(place, hour, width)
    place += width
    put8(place, _COLON)
    put_digits(place + 1, minute, 2)
    put8(place + 3, _COLON)
    put_digits(place + 4, second, 2)
    put8(place + 6, _POINT)
    put_digits(place + 7, micro, 6)
    return place + 13


@part
def _decimal(at: int, length: int, place: int) -> int:
    """Precision, scale, and nine digits in four bytes, fewer in fewer at both ends."""
    if length < 3:
        return DAMAGED
    precision, scale, end = u8(at), u8(at + 1), at + length
    whole = precision - scale
    if precision > MOST_PRECISION or scale > MOST_SCALE or whole < 0:
        return DAMAGED
    at += 2
    flip = 0 if u8(at) & _SIGN else 0xFF
    if flip:
        put8(place, _MINUS)
        place += 1
    first, sign, begun = at, _SIGN, False
    left = whole
    while left > 0:
        digits = left % _DIGITS if left % _DIGITS else _DIGITS
        number = _group(at, end, digits, flip, sign)
        if number < 0:
            return DAMAGED
        at, sign, left = at + _bytes(digits), 0, left - digits
        if begun or number > 0:
            width = digits if begun else count_digits(number)
            put_digits(place, number, width)
            place, begun = place + width, True
    if not begun:
        put8(place, _ZERO)
        place += 1
    if scale > 0:
        put8(place, _POINT)
        place += 1
    left = scale
    while left > 0:
        digits = min(left, _DIGITS)
        number = _group(at, end, digits, flip, sign)
        if number < 0:
            return DAMAGED
        at, sign, left = at + _bytes(digits), 0, left - digits
        put_digits(place, number, digits)
        place += digits
    return place if at == end and at > first else DAMAGED


@part
def _bytes(digits: int) -> int:
    return (digits + 1) // 2 if digits < 7 else 4


@part
def _group(at: int, end: int, digits: int, flip: int, sign: int) -> int:
    """The number of a group of digits; negative if it has more, or ends behind `end`."""
    size = _bytes(digits)
    if size > end - at:
        return -1
    number = u8(at) ^ sign ^ flip
    for byte in range(1, size):
        number = number << 8 | u8(at + byte) ^ flip
    return number if count_digits(number) <= digits else -1


@part
def _base64(kind: int, at: int, length: int, place: int) -> int:
    """`"base64:type15:…"`, in lines of 76 letters."""
    put64(place, _BASE64_HEAD)
    put32(place + 8, _BASE64_TYPE)
    place += 12
    width = count_digits(kind)
    put_digits(place, kind, width)
    put8(place + width, _COLON)
    place += width + 1
    last, line = at + length, place
    while at < last:
        if place - line == _BASE64_LINE:
            put16(place, _NEWLINE)
            place += 2
            line = place
        left = last - at
        word = u8(at) << 16
        if left > 1:
            word |= u8(at + 1) << 8
        if left > 2:
            word |= u8(at + 2)
        put8(place, LETTERS[word >> 18])
        put8(place + 1, LETTERS[word >> 12 & 63])
        put8(place + 2, LETTERS[word >> 6 & 63] if left > 1 else _PAD)
        put8(place + 3, LETTERS[word & 63] if left > 2 else _PAD)
        place += 4
        at += 3
    put8(place, _QUOTE)
    return place + 1
