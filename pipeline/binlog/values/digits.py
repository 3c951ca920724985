"""Whole numbers → decimal digits, in compiled code.

Belongs here: digits at an address that has room for them. Does not: signs, points and
whatever else makes digits a number of some type.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from pipeline.binlog.arrays.address_access import put8, put16
from pipeline.binlog.arrays.compiled import part

_ZERO: Final = ord("0")

PAIRS: Final = np.frombuffer(b"".join(b"%02d" % pair for pair in range(100)), "<u2")
TENS: Final = np.array([10**power for power in range(19)], np.int64)


@part
def put_digits(at: int, value: int, count: int) -> None:
    """The last `count` digits of `value` ≥ 0, zeros in front, from address `at`."""
    last = at + count
    while last - at >= 2:
        rest = value // 100
        last -= 2
        put16(last, PAIRS[value - 100 * rest])
        value = rest
    if last > at:
        put8(at, _ZERO + value % 10)


@part
def count_digits(value: int) -> int:
    """How many digits `value` ≥ 0 has; 1 for 0."""
    if value < 10000:
        if value < 100:
            return 1 if value < 10 else 2
        return 3 if value < 1000 else 4
    count = 5
    while count < 19 and value >= TENS[count]:
        count += 1
    return count


@part
def put_unsigned(at: int, value: int) -> int:
    """The 64 bits of `value` as an unsigned number; the place behind it."""
    if value < 0:
        # Half of it is a positive number, and so are a tenth and the last digit.
        tenth = (value >> 1 & 0x7FFFFFFFFFFFFFFF) // 5
        count = count_digits(tenth)
        put_digits(at, tenth, count)
        put8(at + count, _ZERO + (value - 10 * tenth))
        return at + count + 1
    count = count_digits(value)
    put_digits(at, value, count)
    return at + count
