"""Arrow columns → the texts that stand for their values, as `canonical` has them.

Belongs here: what a server prints of a type, made of whole columns. Does not: which type is
printed how (`canonical`). Every function takes an array and gives a binary array, NULL for NULL.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from math import isfinite
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

_LEAST_PLAIN: Final = 1e-5
_MOST_PLAIN: Final = 1e9
"""Between them Arrow prints a double as a server does: without an exponent."""

_MOST_ZEROS: Final = 14
_MOST_WHOLE: Final = 15
"""Beyond these `my_gcvt` (strings/dtoa.cc) writes an exponent."""

_HAS_SPATIAL_REFERENCE: Final = 0x2000_0000


def plain(values: pa.Array) -> pa.Array:
    """Whole numbers, truths and dates."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return _binary(values.cast(pa.string()))


def decimals(values: pa.Array) -> pa.Array:
    """All digits of the scale, never an exponent, as Arrow would write of small ones."""
    scale = values.type.scale
    kind = pa.decimal128(38, 0)
    units = pa.Array.from_buffers(
        kind, len(values), values.buffers(), values.null_count, values.offset
    )
    printed = units.cast(pa.string())
    if scale == 0:
        return _binary(printed)
    digits = pc.ascii_lpad(pc.ascii_ltrim(printed, "-"), scale + 1, "0")
    whole = pc.utf8_slice_codeunits(digits, 0, -scale)
    fraction = pc.utf8_slice_codeunits(digits, -scale)
    sign = pc.if_else(pc.starts_with(printed, "-"), "-", "")
    return _binary(pc.binary_join_element_wise(sign, whole, ".", fraction, ""))


def doubles(values: pa.Array) -> pa.Array:
    """FLOAT as a double too: the shortest text that reads back as the same double."""
    values = values.cast(pa.float64())
    size = pc.abs(values)
    middle = pc.and_(pc.greater_equal(size, _LEAST_PLAIN), pc.less(size, _MOST_PLAIN))
    middle = pc.or_(middle, pc.equal(size, 0.0))
    printed = values.cast(pa.string())
    others = np.flatnonzero(~pc.fill_null(middle, True).to_numpy(zero_copy_only=False))
    if len(others):
        spelled = [double_text(value) for value in values.take(pa.array(others)).to_pylist()]
        mask = np.zeros(len(values), np.bool_)
        mask[others] = True
        printed = pc.replace_with_mask(printed, pa.array(mask), pa.array(spelled, pa.string()))
    return _binary(printed)


def double_text(value: float) -> str:
    """As `my_gcvt` writes it with room for all digits."""
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.removesuffix(".0").partition(".")
    digits = (whole + fraction).lstrip("0")
    significant = digits.rstrip("0")
    power = int(exponent or 0) - len(fraction) + len(digits) - len(significant)
    return ("-" if value < 0 else "") + _spelled(significant, power)


def _spelled(digits: str, power: int) -> str:
    """`digits`·10**power; `digits` ends with no zero."""
    whole = len(digits) + power
    if whole < -_MOST_ZEROS or (whole > _MOST_WHOLE and power >= 0):
        point = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{digits[0]}{point}e{whole - 1}"
    if whole <= 0:
        return f"0.{'0' * -whole}{digits}"
    if power >= 0:
        return digits + "0" * power
    return f"{digits[:whole]}.{digits[whole:]}"


def moments(values: pa.Array) -> pa.Array:
    """Six digits of a second, whatever the column has; those of a TIMESTAMP in UTC."""
    return _binary(values.cast(pa.timestamp("us")).cast(pa.string()))


def counted(values: pa.Array) -> pa.Array:
    """Bytes, their number in front."""
    data = _binary(values)
    lengths = pc.binary_length(data).cast(pa.string()).cast(data.type)
    return pc.binary_join_element_wise(lengths, data, pa.scalar(b":", data.type))


def digested(values: pa.Array) -> pa.Array:
    """The SHA2 of bytes, as 64 hexadecimal digits."""
    return _digests(values, lambda data: data)


def digested_geometries(values: pa.Array) -> pa.Array:
    return _digests(values, stored_geometry)


def digested_vectors(values: pa.Array) -> pa.Array:
    return digested(
        pa.array(
            [
                None if one is None else np.asarray(one, "<f4").tobytes()
                for one in values.to_pylist()
            ],
            pa.binary(),
        )
    )


def stored_geometry(value: bytes) -> bytes:
    """EWKB as a server stores it: the spatial reference in front, then well-known binary."""
    if len(value) < 5:
        return value
    order = "<" if value[0] else ">"
    (kind,) = struct.unpack(f"{order}I", value[1:5])
    if not kind & _HAS_SPATIAL_REFERENCE:
        return bytes(4) + value
    (reference,) = struct.unpack(f"{order}I", value[5:9])
    head = struct.pack(f"{order}I", kind & ~_HAS_SPATIAL_REFERENCE)
    return struct.pack("<I", reference) + value[:1] + head + value[9:]


def _digests(values: pa.Array, stored: Callable[[bytes], bytes]) -> pa.Array:
    sha = hashlib.sha256
    return pa.array(
        [
            None if one is None else sha(stored(one)).hexdigest().encode()
            for one in _binary(values).to_pylist()
        ],
        pa.large_binary(),
    )


def _binary(values: pa.Array) -> pa.Array:
    if pa.types.is_binary(values.type) or pa.types.is_string(values.type):
        return values.cast(pa.binary()).cast(pa.large_binary())
    return values.cast(pa.large_binary())
