"""Loads, stores, copies and a product of 128 bits, as LLVM is told of them.

Belongs here: the code behind the names of `array_access` and `address_access`, which is all that
numba's own words make slow or impossible. Does not: what the names promise. It is imported when
the first of them has to be compiled, and numba with it.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_I64: Final = ir.IntType(64)


def _element(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def load(bits: int, *, big: bool = False) -> Any:
    def load(typing: Any, array: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _element(context, builder, signature.args[0], *args)
            value = builder.load(builder.bitcast(place, ir.IntType(bits).as_pointer()))
            value.align = 1
            if big and bits > 8:
                value = builder.bswap(value)
            return value if bits == 64 else builder.zext(value, _I64)

        return types.int64(array, types.int64), build

    return intrinsic(load)


def store(bits: int) -> Any:
    def store(typing: Any, array: Any, at: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _element(context, builder, signature.args[0], args[0], args[1])
            narrow = args[2] if bits == 64 else builder.trunc(args[2], ir.IntType(bits))
            stored = builder.store(narrow, builder.bitcast(place, ir.IntType(bits).as_pointer()))
            stored.align = 1
            return context.get_dummy_value()

        return types.void(array, types.int64, types.int64), build

    return intrinsic(store)


def copy() -> Any:
    def copying(typing: Any, into: Any, at: Any, source: Any, begin: Any, count: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to = _element(context, builder, signature.args[0], args[0], args[1])
            of = _element(context, builder, signature.args[2], args[2], args[3])
            move: Any = cgutils.raw_memcpy
            move(builder, to, of, args[4], 1)
            return context.get_dummy_value()

        return types.void(into, types.int64, source, types.int64, types.int64), build

    return intrinsic(copying)


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


def load_at(bits: int) -> Any:
    def load(typing: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            value = builder.load(_pointer(builder, args[0], bits))
            value.align = 1
            return value if bits == 64 else builder.zext(value, _I64)

        return types.int64(types.int64), build

    return intrinsic(load)


def store_at(bits: int) -> Any:
    def store(typing: Any, address: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            narrow = args[1] if bits == 64 else builder.trunc(args[1], ir.IntType(bits))
            builder.store(narrow, _pointer(builder, args[0], bits)).align = 1
            return context.get_dummy_value()

        return types.void(types.int64, types.int64), build

    return intrinsic(store)


def scaled() -> Any:
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

    return intrinsic(scaling)
