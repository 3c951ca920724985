"""Loads and stores at an address, for compiled code.

Belongs here: what `array_access` does with arrays, without them, and products of 128 bits.
Compiled code counts the references to an array at nearly every call it is handed to, which
costs ten times what a small value does; an address is only a number. None checks bounds:
whoever calls has proven them, and keeps the arrays alive. Does not: what the bytes mean.

Loads answer a signed 64-bit integer whatever the width; only `i64` may come out negative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from pipeline.binlog.arrays.compiled import inline


def _load(bits: int) -> Callable[[int], int]:
    return cast("Callable[[int], int]", inline("load_at", bits))


def _store(bits: int) -> Callable[[int, int], None]:
    return cast("Callable[[int, int], None]", inline("store_at", bits))


u8, u16, u32, i64 = _load(8), _load(16), _load(32), _load(64)
"""`u16(address)`: the little-endian integer of so many bits."""

put8, put16, put32, put64 = _store(8), _store(16), _store(32), _store(64)
"""`put16(address, value)`: the value's low bits, little-endian."""

scaled = cast("Callable[[int, int, int], int]", inline("scaled"))
"""`scaled(upper, lower, factor)`: (upper·2**64 + lower)·factor / 2**128, all unsigned, with
the last bit set if it is not whole. What a number one too large adds does not count."""

widened = cast("Callable[[int, int, int, int], tuple[int, int]]", inline("widened"))
"""`widened(high, low, factor, addend)`: the halves of a signed integer of 128 bits times a factor
and plus an addend, both of which are signed."""
