"""Loads and stores at an address, for compiled code, and products of 128 bits.

`array_access` does the same with arrays. Compiled code counts references whenever an
array is passed to a function, which takes ten times as long as writing a small value;
an address is only a number. No function checks bounds: its caller does, and keeps the
arrays alive.

Loads of every width return a signed 64-bit integer; only `i64` can return a negative
one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from lockstep.pipeline.binlog.arrays.compiled import intrinsic


def _load(bits: int) -> Callable[[int], int]:
    return cast("Callable[[int], int]", intrinsic("load_at", bits))


def _store(bits: int) -> Callable[[int, int], None]:
    return cast("Callable[[int, int], None]", intrinsic("store_at", bits))


u8, u16, u32, i64 = _load(8), _load(16), _load(32), _load(64)
"""`u16(address)`: the little-endian integer of 16 bits."""

put8, put16, put32, put64 = _store(8), _store(16), _store(32), _store(64)
"""`put16(address, value)`: store the value's low 16 bits, little-endian."""

multiply_high = cast("Callable[[int, int, int], int]", intrinsic("multiply_high"))
"""`multiply_high(upper, lower, factor)`: (upper·2**64 + lower)·factor / 2**128, all
unsigned, with the last bit set if the quotient is not whole. A remainder of 1 counts as
0, because the first factor is a power of ten that was rounded up (`digits`)."""

multiply_add = cast("Callable[[int, int, int, int], tuple[int, int]]", intrinsic("multiply_add"))
"""`multiply_add(high, low, factor, addend)`: the halves of (high·2**64 + low)·factor +
addend, a signed integer of 128 bits."""
