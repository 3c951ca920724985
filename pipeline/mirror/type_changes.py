"""The work that a change of a column's type in the lake takes.

Delta widens some types in place, without rewriting files (Delta protocol, "Type
Widening", table of supported changes). Other changes need a cast of all rows, if Spark,
Arrow and MySQL give the same result for every value. For all remaining changes, the
values have to be read from the source again.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

import pyarrow as pa
from pyarrow import types

_LONG_DIGITS: Final = 20
"""Fewest digits before the decimal point that a DECIMAL needs for Delta to widen a
BIGINT to it."""

_INT_DIGITS: Final = 10
"""The same number for smaller integers."""

_INTEGERS: Final = (pa.int8(), pa.int16(), pa.int32(), pa.int64())
_DIGITS: Final = {pa.int8(): 3, pa.int16(): 5, pa.int32(): 10, pa.int64(): 19}
"""Largest number of decimal digits that each integer type can have."""

_MANTISSA: Final = {pa.float32(): 24, pa.float64(): 53}
"""Number of bits up to which every integer is exact in each floating-point type."""


class TypeChange(IntEnum):
    """The work that a change of type takes, from the cheapest to the most expensive."""

    SAME = 0
    WIDEN = 1
    """Delta changes the type in the table's metadata; files stay as they are."""
    REWRITE = 2
    """Values stay the same, but all rows must be written again."""
    REREAD = 3
    """Only the source knows the values in the new type."""


def type_change(old: pa.DataType, new: pa.DataType) -> TypeChange:
    """Return the work that the change of a column from type `old` to type `new` takes."""
    if old == new:
        return TypeChange.SAME
    if _widens(old, new):
        return TypeChange.WIDEN
    return TypeChange.REWRITE if _casts(old, new) else TypeChange.REREAD


def _widens(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether Delta widens `old` to `new` in place."""
    if types.is_decimal(new) and types.is_decimal(old):
        whole_digits = old.precision - old.scale
        return bool(new.precision - new.scale >= whole_digits and new.scale >= old.scale)
    if types.is_decimal(new) and old in _INTEGERS:
        digits = _LONG_DIGITS if old == pa.int64() else _INT_DIGITS
        return bool(new.precision - new.scale >= digits)
    if old in _INTEGERS and new in _INTEGERS:
        return bool(new.bit_width > old.bit_width)
    if new == pa.float64():
        return old in (pa.int8(), pa.int16(), pa.int32(), pa.float32())
    return bool(types.is_date32(old) and new == pa.timestamp("us"))


def _casts(old: pa.DataType, new: pa.DataType) -> bool:
    """Return whether a cast gives each value the result that MySQL would give it."""
    if types.is_boolean(old):
        return new in _INTEGERS or (types.is_decimal(new) and new.precision > new.scale)
    if old in _INTEGERS and types.is_decimal(new):
        return bool(new.precision - new.scale >= _DIGITS[old])
    if old in _INTEGERS and new in _MANTISSA:
        return bool(old.bit_width <= _MANTISSA[new])
    return False
