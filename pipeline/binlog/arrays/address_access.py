"""Loads and stores at an address, for compiled code.

Belongs here: what `array_access` does with arrays, without them, and a product of 128 bits.
Compiled code counts the references to an array at nearly every call it is handed to, which
costs ten times what a small value does; an address is only a number. None checks bounds:
whoever calls has proven them, and keeps the arrays alive. Does not: what the bytes mean.

Loads answer a signed 64-bit integer whatever the width; only `i64` may come out negative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, cast

from llvmlite import ir
from numba.core import types
from numba.extending import intrinsic

_I64: Final = ir.IntType(64)


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


def _load(bits: int) -> Callable[[int], int]:
    def load(typing: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(_pointer(builder, args[0], bits))
            value.align = 1
            return value if bits == 64 else builder.zext(value, _I64)

        return types.int64(types.int64), build

    made: Any = intrinsic(load)
    return cast("Callable[[int], int]", made)


def _store(bits: int) -> Callable[[int, int], None]:
    def store(typing: Any, address: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            narrow = args[1] if bits == 64 else builder.trunc(args[1], ir.IntType(bits))
            builder.store(narrow, _pointer(builder, args[0], bits)).align = 1
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), build

    made: Any = intrinsic(store)
    return cast("Callable[[int, int], None]", made)


u8, u16, u32, i64 = _load(8), _load(16), _load(32), _load(64)
"""`u16(address)`: the little-endian integer of so many bits."""

put8, put16, put32, put64 = _store(8), _store(16), _store(32), _store(64)
"""`put16(address, value)`: the value's low bits, little-endian."""


def _scaler() -> Callable[[int, int, int], int]:
    def scaling(typing: Any, upper: Any, lower: Any, factor: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            wide = ir.IntType(128)
            high, low, times = (builder.zext(argument, wide) for argument in args)
            carried = builder.lshr(builder.mul(low, times), wide(64))
            product = builder.add(builder.mul(high, times), carried)
            rest = builder.icmp_unsigned(">", builder.trunc(product, _I64), _I64(1))
            whole = builder.trunc(builder.lshr(product, wide(64)), _I64)
            return builder.or_(whole, builder.zext(rest, _I64))

        return types.int64(types.int64, types.int64, types.int64), build

    made: Any = intrinsic(scaling)
    return cast("Callable[[int, int, int], int]", made)


scaled = _scaler()
"""`scaled(upper, lower, factor)`: (upper·2**64 + lower)·factor / 2**128, all unsigned, with
the last bit set if it is not whole. What a number one too large adds does not count."""
