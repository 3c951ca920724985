"""Printing of integers, doubles and times as decimal digits, at an address, in compiled
code.

A double is printed as the shortest decimal that reads back as the same double. MySQL
(`dtoa` in mode 4, strings/dtoa.cc) and Python's `repr` print it so, too. The algorithm
is Raffaello Giulietti, "The Schubfach way to render doubles" (2020): all numbers that
round to a double form an interval. There is a power of ten such that the interval is at
least as wide as this power, and less than ten times as wide. So the result is one of
four multiples of this power.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.arrays.address_access import multiply_high, put8, put16, u8
from lockstep.pipeline.binlog.arrays.compiled import kernel_part

INFINITE_EXPONENT: Final = 0x7FF
"""The exponent bits of infinities and NaN."""

_EXPONENT_SHIFT: Final = 52
_HIDDEN_BIT: Final = 1 << _EXPONENT_SHIFT
"""The first bit of a normal double's significand, which is not stored."""

_LEAST_EXPONENT: Final = -1074
"""Exponent of two of the smallest doubles."""

_LEAST_POWER: Final = -292
_GREATEST_POWER: Final = 324
"""Powers of ten that the algorithm needs for all doubles."""

# my_gcvt (strings/dtoa.cc) uses an exponent for numbers with more zeros after the
# point, and for whole numbers with more digits.
_MAX_ZEROS: Final = 14
_MAX_WHOLE_DIGITS: Final = 15

_MINUS, _POINT, _ZERO, _E, _COLON = b"-.0e:"
_ZERO_POINT: Final = int.from_bytes(b"0.", "little")
POINT_ZERO: Final = int.from_bytes(b".0", "little")

DIGIT_PAIRS: Final = np.frombuffer(b"".join(b"%02d" % pair for pair in range(100)), "<u2")
POWERS_OF_TEN: Final = np.array([10**power for power in range(19)], np.int64)

MAX_HOURS: Final = 838
"""Largest hour of a TIME."""


@kernel_part
def put_digits(at: int, value: int, count: int) -> None:
    """Write the last `count` digits of `value` ≥ 0, with leading zeros, at address
    `at`."""
    end = at + count
    while end - at >= 2:
        hundreds = value // 100
        end -= 2
        put16(end, DIGIT_PAIRS[value - 100 * hundreds])
        value = hundreds
    if end > at:
        put8(at, _ZERO + value % 10)


@kernel_part
def count_digits(value: int) -> int:
    """Return the number of digits of `value` ≥ 0; 1 for 0."""
    if value < 10000:
        if value < 100:
            return 1 if value < 10 else 2
        return 3 if value < 1000 else 4
    count = 5
    while count < 19 and value >= POWERS_OF_TEN[count]:
        count += 1
    return count


@kernel_part
def put_time(
    at: int, hour: int, minute: int, second: int, microsecond: int, fraction_digits: int
) -> int:
    """Write HH:MM:SS, or HHH:MM:SS from 100 hours on, and after a point the first
    `fraction_digits` digits of the fraction. Return the address after the text."""
    if hour >= 100:
        put8(at, _ZERO + hour // 100)
        at += 1
    put16(at, DIGIT_PAIRS[hour % 100])
    put8(at + 2, _COLON)
    put16(at + 3, DIGIT_PAIRS[minute])
    put8(at + 5, _COLON)
    put16(at + 6, DIGIT_PAIRS[second])
    at += 8
    if fraction_digits:
        put8(at, _POINT)
        at += 1
        while fraction_digits >= 2:
            put16(at, DIGIT_PAIRS[microsecond // 10_000])
            microsecond = microsecond % 10_000 * 100
            fraction_digits -= 2
            at += 2
        if fraction_digits:
            put8(at, _ZERO + microsecond // 100_000)
            at += 1
    return at


@kernel_part
def put_unsigned(at: int, value: int) -> int:
    """Write the 64 bits of `value` as an unsigned number; return the address after
    it."""
    if value < 0:
        # The unsigned number is 2**63 or more. Its half fits into a signed integer, and
        # so does its tenth.
        tenth = (value >> 1 & 0x7FFFFFFFFFFFFFFF) // 5
        count = count_digits(tenth)
        put_digits(at, tenth, count)
        put8(at + count, _ZERO + (value - 10 * tenth))
        return at + count + 1
    count = count_digits(value)
    put_digits(at, value, count)
    return at + count


def _power_bits() -> npt.NDArray[np.int64]:
    """Return the first 128 bits, rounded up, of 10**power for each power in ascending
    order, in two columns: the upper and the lower 64 bits."""
    table = np.empty((_GREATEST_POWER - _LEAST_POWER + 1, 2), np.uint64)
    for row, power in enumerate(range(_LEAST_POWER, _GREATEST_POWER + 1)):
        if power < 0:
            divisor = 10**-power
            bits = -((-1 << 127 + divisor.bit_length()) // divisor)
        else:
            bits = -((-(10**power) << 128) >> (10**power).bit_length())
        table[row] = bits >> 64, bits & (1 << 64) - 1
    return table.view(np.int64)


POWER_BITS: Final = _power_bits()


@kernel_part
def shortest_digits(bits: int) -> tuple[int, int]:
    """Return (digits, power) such that ±digits·10**power reads back as the double with
    these bits.

    `digits` is 0 for zeros and otherwise does not end with 0. For finite doubles only.
    """
    fraction, exponent = bits & (_HIDDEN_BIT - 1), bits >> _EXPONENT_SHIFT & INFINITE_EXPONENT
    if exponent != 0:
        digits, power = _nearest_digits(_HIDDEN_BIT | fraction, exponent + _LEAST_EXPONENT - 1)
    elif fraction != 0:
        digits, power = _nearest_digits(fraction, _LEAST_EXPONENT)
    else:
        return 0, 0
    while digits % 100_000_000 == 0:
        digits //= 100_000_000
        power += 8
    if digits % 10_000 == 0:
        digits //= 10_000
        power += 4
    if digits % 100 == 0:
        digits //= 100
        power += 2
    if digits % 10 == 0:
        digits //= 10
        power += 1
    return digits, power


@kernel_part
def _nearest_digits(significand: int, exponent: int) -> tuple[int, int]:
    """Return (digits, power) for significand·2**exponent; `digits` may end with zeros.

    `value`, `first`, `last` and `half` are in quarters of 10**power.
    """
    # At a power of two, the next lower double is only half as far away as the next
    # higher one.
    is_narrow = significand == _HIDDEN_BIT and exponent != _LEAST_EXPONENT
    # floor(log10(2**exponent)), or floor(log10(3/4·2**exponent)) if `is_narrow`; then
    # floor(log2(10**-power)).
    power = exponent * 1262611 - 524031 >> 22 if is_narrow else exponent * 1262611 >> 22
    shift = exponent + (-power * 1741647 >> 19) + 1
    row = -power - _LEAST_POWER
    upper, lower = POWER_BITS[row, 0], POWER_BITS[row, 1]
    middle = 4 * significand
    value = multiply_high(upper, lower, middle << shift)
    first = multiply_high(upper, lower, middle - (1 if is_narrow else 2) << shift)
    last = multiply_high(upper, lower, middle + 2 << shift)
    # The interval's ends belong to it only if the significand is even, because ties
    # round to even.
    first += significand & 1
    last -= significand & 1
    digits = value >> 2
    if digits >= 10:
        tens = digits // 10 * 10
        is_below_inside, is_above_inside = first <= tens << 2, tens + 10 << 2 <= last
        if is_below_inside != is_above_inside:
            return tens if is_below_inside else tens + 10, power
    is_below_inside, is_above_inside = first <= digits << 2, digits + 1 << 2 <= last
    if is_below_inside != is_above_inside:
        return digits if is_below_inside else digits + 1, power
    half = (digits << 2) + 2
    rounds_down = value < half or (value == half and digits & 1 == 0)
    return digits if rounds_down else digits + 1, power


@kernel_part
def put_double(at: int, bits: int) -> int:
    """Write a finite double, at most 34 bytes ("-0.", 14 zeros and 17 digits); return
    the address after it.

    The text is that of `my_gcvt` (strings/dtoa.cc), with ".0" after whole numbers
    (`wrapper_to_string`, sql-common/json_dom.cc).
    """
    if bits < 0:
        put8(at, _MINUS)
        at += 1
    digits, power = shortest_digits(bits)
    count = count_digits(digits)
    whole_digits = count + power
    if whole_digits < -_MAX_ZEROS or (whole_digits > _MAX_WHOLE_DIGITS and power >= 0):
        return _put_scientific(at, digits, count, whole_digits - 1)
    if whole_digits <= 0:
        put16(at, _ZERO_POINT)
        at = _put_zeros(at + 2, -whole_digits)
        put_digits(at, digits, count)
        return at + count
    if power >= 0:
        put_digits(at, digits, count)
        at = _put_zeros(at + count, power)
        put16(at, POINT_ZERO)
        return at + 2
    _put_with_point(at, digits, count, whole_digits)
    return at + count + 1


@kernel_part
def _put_with_point(at: int, digits: int, count: int, whole_digits: int) -> None:
    """Write `count` digits with a point after the first `whole_digits` of them."""
    put_digits(at + 1, digits, count)
    for address in range(at, at + whole_digits):
        put8(address, u8(address + 1))
    put8(at + whole_digits, _POINT)


@kernel_part
def _put_zeros(at: int, count: int) -> int:
    for address in range(at, at + count):
        put8(address, _ZERO)
    return at + count


@kernel_part
def _put_scientific(at: int, digits: int, count: int, exponent: int) -> int:
    """Write one digit, the others after a point, and an exponent without plus or
    leading zeros."""
    if count == 1:
        put_digits(at, digits, 1)
        at += 1
    else:
        _put_with_point(at, digits, count, 1)
        at += count + 1
    put8(at, _E)
    at += 1
    if exponent < 0:
        put8(at, _MINUS)
        at += 1
        exponent = -exponent
    length = count_digits(exponent)
    put_digits(at, exponent, length)
    return at + length
