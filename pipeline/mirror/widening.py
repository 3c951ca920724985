"""Changes of a column's lake type: which of them need no rewrite, a cast, or the source.

In place: the pairs of Delta's type widening (Delta protocol, "Type Widening", table of supported
changes). By a cast: pairs for which Spark, Arrow and MySQL give the same answer for every value.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import pyarrow as pa
from pyarrow import types

LONG_DIGITS: Final = 20
"""Fewest whole digits of a decimal to which Delta widens a BIGINT."""

INT_DIGITS: Final = 10
"""The same for smaller integers."""

_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS: Final = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
_MANTISSA: Final = {pa.float32(): 24, pa.float64(): 53}


class TypeChange(IntEnum):
    """The work that a change of type takes, from the cheapest to the most expensive."""

    SAME = 0
    WIDEN = 1
    """Delta changes the column in place; old files stay."""
    REWRITE = 2
    """Values stay the same, but all rows must be written again."""
    REREAD = 3
    """Only the source knows the new values."""


def type_change(old: pa.DataType, new: pa.DataType) -> TypeChange:
    """Return the work that showing values of `old` as `new` takes."""
    if old == new:
        return TypeChange.SAME
    if _widens(old, new):
        return TypeChange.WIDEN
    return TypeChange.REWRITE if _casts(old, new) else TypeChange.REREAD


def _widens(old: pa.DataType, new: pa.DataType) -> bool:
    if types.is_decimal(new) and (digits := _whole_digits(old)):
        return bool(new.precision - new.scale >= digits and new.scale >= _scale(old))
    if old in _INTEGERS and new in _INTEGERS:
        return bool(new.bit_width > old.bit_width)
    if new == pa.float64():
        return old in (pa.int8(), pa.int16(), pa.int32(), pa.float32())
    return bool(types.is_date32(old) and new == pa.timestamp("us"))


def _whole_digits(old: pa.DataType) -> int:
    """Return the digits before the point that Delta requires of a decimal for values of `old`."""
    if types.is_decimal(old):
        return int(old.precision - old.scale)
    if old == pa.int64():
        return LONG_DIGITS
    return INT_DIGITS if old in _INTEGERS else 0


def _scale(old: pa.DataType) -> int:
    return int(old.scale) if types.is_decimal(old) else 0


def _casts(old: pa.DataType, new: pa.DataType) -> bool:
    if types.is_boolean(old):
        return new in _INTEGERS or (types.is_decimal(new) and new.precision > new.scale)
    if old in _INTEGERS and types.is_decimal(new):
        return bool(new.precision - new.scale >= _DIGITS[old])
    if old in _INTEGERS and new in _MANTISSA:
        return bool(old.bit_width <= _MANTISSA[new])
    return False
