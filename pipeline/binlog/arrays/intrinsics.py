"""numba intrinsics: loads, stores, copies and products of 128 bits in LLVM's
instructions.

`array_access` and `address_access` say what each does, and give it its type. This
module imports numba, so it is itself imported only when code has to be compiled.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_I64: Final = ir.IntType(64)


def _element(context: Any, builder: Any, kind: Any, array: Any, at: Any) -> Any:
    return builder.gep(context.make_array(kind)(context, builder, array).data, [at])


def _build_load(builder: Any, place: Any, bits: int, *, big: bool = False) -> Any:
    value = builder.load(place)
    value.align = 1
    if big and bits > 8:
        value = builder.bswap(value)
    return value if bits == 64 else builder.zext(value, _I64)


def _build_store(context: Any, builder: Any, value: Any, place: Any, bits: int) -> Any:
    narrow = value if bits == 64 else builder.trunc(value, ir.IntType(bits))
    builder.store(narrow, place).align = 1
    return context.get_dummy_value()


def load(bits: int, *, big: bool = False) -> Any:
    def load(typing: Any, array: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _element(context, builder, signature.args[0], *args)
            place = builder.bitcast(place, ir.IntType(bits).as_pointer())
            return _build_load(builder, place, bits, big=big)

        return types.int64(array, types.int64), build

    return intrinsic(load)


def store(bits: int) -> Any:
    def store(typing: Any, array: Any, at: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            place = _element(context, builder, signature.args[0], args[0], args[1])
            place = builder.bitcast(place, ir.IntType(bits).as_pointer())
            return _build_store(context, builder, args[2], place, bits)

        return types.void(array, types.int64, types.int64), build

    return intrinsic(store)


def copy() -> Any:
    def copy_bytes(typing: Any, into: Any, at: Any, source: Any, begin: Any, count: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to = _element(context, builder, signature.args[0], args[0], args[1])
            of = _element(context, builder, signature.args[2], args[2], args[3])
            move: Any = cgutils.raw_memcpy
            move(builder, to, of, args[4], 1)
            return context.get_dummy_value()

        return types.void(into, types.int64, source, types.int64, types.int64), build

    return intrinsic(copy_bytes)


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


def load_at(bits: int) -> Any:
    def load(typing: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _build_load(builder, _pointer(builder, args[0], bits), bits)

        return types.int64(types.int64), build

    return intrinsic(load)


def store_at(bits: int) -> Any:
    def store(typing: Any, address: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _build_store(context, builder, args[1], _pointer(builder, args[0], bits), bits)

        return types.void(types.int64, types.int64), build

    return intrinsic(store)


def multiply_high() -> Any:
    def multiply(typing: Any, upper: Any, lower: Any, factor: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            wide = ir.IntType(128)
            high, low, times = (builder.zext(argument, wide) for argument in args)
            carry = builder.lshr(builder.mul(low, times), wide(64))
            product = builder.add(builder.mul(high, times), carry)
            rest = builder.icmp_unsigned(">", builder.trunc(product, _I64), _I64(1))
            whole = builder.trunc(builder.lshr(product, wide(64)), _I64)
            return builder.or_(whole, builder.zext(rest, _I64))

        return types.int64(types.int64, types.int64, types.int64), build

    return intrinsic(multiply)


def multiply_add() -> Any:
    def multiply(typing: Any, high: Any, low: Any, factor: Any, addend: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            wide = ir.IntType(128)
            upper, times, plus = (builder.sext(args[n], wide) for n in (0, 2, 3))
            number = builder.or_(builder.shl(upper, wide(64)), builder.zext(args[1], wide))
            number = builder.add(builder.mul(number, times), plus)
            halves = builder.lshr(number, wide(64)), number
            parts = [builder.trunc(half, _I64) for half in halves]
            return context.make_tuple(builder, signature.return_type, parts)

        pair: Any = types.UniTuple
        halves = pair(types.int64, 2)
        return halves(types.int64, types.int64, types.int64, types.int64), build

    return intrinsic(multiply)
