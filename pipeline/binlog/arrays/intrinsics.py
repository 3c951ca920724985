"""numba intrinsics: loads, stores, copies and products of 128 bits, as LLVM
instructions.

`array_access` and `address_access` document the intrinsics and give them types. Each
public function here returns an intrinsic. Its inner function returns the numba types
and a function `build`, which emits the instructions. This module imports numba, so it
is itself imported only when code has to be compiled.
"""

from __future__ import annotations

from typing import Any, Final

from llvmlite import ir
from numba.core import cgutils, types
from numba.extending import intrinsic

_I64: Final = ir.IntType(64)
_I128: Final = ir.IntType(128)


def _element_pointer(
    context: Any, builder: Any, array_type: Any, array_and_index: Any, bits: int = 8
) -> Any:
    """Return a pointer to an integer of `bits` bits that begins at this byte of an
    array."""
    array, index = array_and_index
    first = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(first, [index]), ir.IntType(bits).as_pointer())


def _build_load(builder: Any, pointer: Any, bits: int, *, big_endian: bool = False) -> Any:
    value = builder.load(pointer)
    value.align = 1
    if big_endian:
        value = builder.bswap(value)
    return value if bits == 64 else builder.zext(value, _I64)


def _build_store(context: Any, builder: Any, value: Any, pointer: Any, bits: int) -> Any:
    narrow = value if bits == 64 else builder.trunc(value, ir.IntType(bits))
    builder.store(narrow, pointer).align = 1
    return context.get_dummy_value()


def load(bits: int, *, big_endian: bool = False) -> Any:
    def load_bytes(typing: Any, array: Any, at: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _element_pointer(context, builder, signature.args[0], args, bits)
            return _build_load(builder, pointer, bits, big_endian=big_endian)

        return types.int64(array, types.int64), build

    return intrinsic(load_bytes)


def store(bits: int) -> Any:
    def store_bytes(typing: Any, array: Any, at: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            pointer = _element_pointer(context, builder, signature.args[0], args[:2], bits)
            return _build_store(context, builder, args[2], pointer, bits)

        return types.void(array, types.int64, types.int64), build

    return intrinsic(store_bytes)


def copy() -> Any:
    def copy_bytes(typing: Any, target: Any, at: Any, source: Any, begin: Any, count: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            to_pointer = _element_pointer(context, builder, signature.args[0], args[:2])
            from_pointer = _element_pointer(context, builder, signature.args[2], args[2:4])
            memcpy: Any = cgutils.raw_memcpy  # It has no type annotations.
            memcpy(builder, to_pointer, from_pointer, args[4], 1)
            return context.get_dummy_value()

        return types.void(target, types.int64, source, types.int64, types.int64), build

    return intrinsic(copy_bytes)


def _pointer(builder: Any, address: Any, bits: int) -> Any:
    return builder.inttoptr(address, ir.IntType(bits).as_pointer())


def load_at(bits: int) -> Any:
    def load_bytes(typing: Any, address: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _build_load(builder, _pointer(builder, args[0], bits), bits)

        return types.int64(types.int64), build

    return intrinsic(load_bytes)


def store_at(bits: int) -> Any:
    def store_bytes(typing: Any, address: Any, value: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            return _build_store(context, builder, args[1], _pointer(builder, args[0], bits), bits)

        return types.void(types.int64, types.int64), build

    return intrinsic(store_bytes)


def multiply_high() -> Any:
    def multiply(typing: Any, upper: Any, lower: Any, factor: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            upper, lower, factor = (builder.zext(argument, _I128) for argument in args)
            carry = builder.lshr(builder.mul(lower, factor), _I128(64))
            product = builder.add(builder.mul(upper, factor), carry)
            quotient = builder.trunc(builder.lshr(product, _I128(64)), _I64)
            remainder = builder.trunc(product, _I64)
            is_inexact = builder.icmp_unsigned(">", remainder, _I64(1))
            return builder.or_(quotient, builder.zext(is_inexact, _I64))

        return types.int64(types.int64, types.int64, types.int64), build

    return intrinsic(multiply)


def multiply_add() -> Any:
    def multiply(typing: Any, high: Any, low: Any, factor: Any, addend: Any) -> Any:
        def build(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            high, factor, addend = (builder.sext(args[n], _I128) for n in (0, 2, 3))
            low = builder.zext(args[1], _I128)
            number = builder.or_(builder.shl(high, _I128(64)), low)
            number = builder.add(builder.mul(number, factor), addend)
            halves = [
                builder.trunc(builder.lshr(number, _I128(64)), _I64),
                builder.trunc(number, _I64),
            ]
            return context.make_tuple(builder, signature.return_type, halves)

        pair: Any = types.UniTuple  # It has no type annotations, as raw_memcpy.
        halves_type = pair(types.int64, 2)
        return halves_type(types.int64, types.int64, types.int64, types.int64), build

    return intrinsic(multiply)
