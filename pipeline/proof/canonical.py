"""The canonical text of a value, computed in two ways: by the server in SQL, and by us
from Arrow.

Each type has both ways side by side. Our functions take an Arrow array and return a
binary array, with NULL for NULL. Not here: hashing rows (`hashes`), Arrow's types
(`schema.types`).

A row's text is the texts of its columns, separated by commas. A text that may contain a
comma is preceded by its length, so that different rows never have the same text. A
value that may be long is replaced by its SHA-256. NULL is the empty text, which no
value has. Text is compared as UTF-8 bytes, whatever its character set at the source.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from math import isfinite
from typing import Any, Final, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.schema.collations import UTF8_COMPATIBLE_CHARSETS
from lockstep.pipeline.schema.types import FAMILIES, MAX_DECIMAL_DIGITS, Family
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column

MARIADB: Final = "mariadb"

_MIN_WITHOUT_EXPONENT: Final = 1e-5
_MAX_WITHOUT_EXPONENT: Final = 1e9
"""Between these values, Arrow prints a double as a server does, without an exponent."""

_MAX_LEADING_ZEROS: Final = 14
_MAX_WHOLE_DIGITS: Final = 15
"""With more leading zeros or digits than these, `my_gcvt` (strings/dtoa.cc) writes an
exponent."""

_SPATIAL_REFERENCE_FLAG: Final = 0x2000_0000


def plain_texts(values: pa.Array) -> pa.Array:
    """Return the texts of integers, booleans and dates."""
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.int8())
    return _binary(values.cast(pa.string()))


def decimal_texts(values: pa.Array) -> pa.Array:
    """Return the texts of decimals, with all digits of the scale. Arrow's own texts
    have exponents for small values."""
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


def double_texts(values: pa.Array) -> pa.Array:
    """Return the texts of DOUBLE, and of FLOAT as a double. A text is the shortest that
    parses to the same double."""
    values = values.cast(pa.float64())
    magnitude = pc.abs(values)
    is_small = pc.and_(pc.less(magnitude, _MIN_WITHOUT_EXPONENT), pc.not_equal(magnitude, 0.0))
    is_plain = pc.and_not(pc.less(magnitude, _MAX_WITHOUT_EXPONENT), is_small)
    has_exponent = pc.invert(pc.fill_null(is_plain, True))
    texts = values.cast(pa.string())
    if pc.any(has_exponent).as_py():
        replacements = [double_text(value) for value in values.filter(has_exponent).to_pylist()]
        texts = pc.replace_with_mask(texts, has_exponent, pa.array(replacements, pa.string()))
    return _binary(texts)


def double_text(value: float) -> str:
    """Return the text that MySQL's `my_gcvt` writes if it has room for all digits."""
    if value == 0 or not isfinite(value):
        return f"{value:g}"
    negative, digits, power = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(power, int), "the value is finite"
    return "-" * negative + _double_notation("".join(map(str, digits)), power)


def _double_notation(digits: str, power: int) -> str:
    """Return the text of digits · 10**power. The last digit is not 0."""
    whole = len(digits) + power
    if whole < -_MAX_LEADING_ZEROS or (whole > _MAX_WHOLE_DIGITS and power >= 0):
        point = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{digits[0]}{point}e{whole - 1}"
    if whole <= 0:
        return f"0.{'0' * -whole}{digits}"
    if power >= 0:
        return digits + "0" * power
    return f"{digits[:whole]}.{digits[whole:]}"


def moment_texts(values: pa.Array) -> pa.Array:
    """Return the texts of dates with times: six fractional digits, whatever the
    column's precision; TIMESTAMP in UTC."""
    return _binary(values.cast(pa.timestamp("us")).cast(pa.string()))


def length_prefixed_texts(values: pa.Array) -> pa.Array:
    """Return the bytes of each value, preceded by the number of bytes and a colon."""
    data = _binary(values)
    lengths = pc.binary_length(data).cast(pa.string()).cast(data.type)
    return pc.binary_join_element_wise(lengths, data, pa.scalar(b":", data.type))


def sha256_texts(values: pa.Array, storage_bytes: Callable[[Any], bytes] = bytes) -> pa.Array:
    """Return the SHA-256 of each value's bytes in the server's storage format, as 64
    hex digits. `storage_bytes`: converts a value to these bytes."""
    sha = hashlib.sha256
    plain_values = values if pa.types.is_nested(values.type) else _binary(values)
    digests = [
        None if value is None else sha(storage_bytes(value)).hexdigest().encode()
        for value in plain_values.to_pylist()
    ]
    return pa.array(digests, pa.large_binary())


def vector_sha256_texts(values: pa.Array) -> pa.Array:
    return sha256_texts(values, lambda floats: np.asarray(floats, "<f4").tobytes())


def geometry_storage_bytes(value: bytes) -> bytes:
    """Return EWKB in the server's storage format: the spatial reference id, then WKB."""
    if len(value) < 5:
        return value
    order = "<" if value[0] else ">"
    (kind,) = struct.unpack(f"{order}I", value[1:5])
    if not kind & _SPATIAL_REFERENCE_FLAG:
        return bytes(4) + value
    (reference,) = struct.unpack(f"{order}I", value[5:9])
    header = struct.pack(f"{order}I", kind & ~_SPATIAL_REFERENCE_FLAG)
    return struct.pack("<I", reference) + value[:1] + header + value[9:]


def _binary(values: pa.Array) -> pa.Array:
    if pa.types.is_binary(values.type) or pa.types.is_string(values.type):
        return values.cast(pa.binary()).cast(pa.large_binary())
    return values.cast(pa.large_binary())


@dataclass(frozen=True, slots=True)
class CanonicalForm:
    """The two ways to compute a type's texts. `sql`: an expression in which `{c}`
    stands for the column's quoted name, `{n}` for its length, `{p}` and `{s}` for its
    precision and scale. `texts_of`: converts an Arrow array of the lake's type."""

    sql: str
    texts_of: Callable[[pa.Array], pa.Array]


_NUMBER: Final = CanonicalForm("{c}", plain_texts)
# An unsigned column may have ZEROFILL, which prints leading zeros.
_UNSIGNED: Final = CanonicalForm("cast({c} as unsigned)", plain_texts)
_DECIMAL: Final = CanonicalForm("{c}", decimal_texts)
_UNSIGNED_DECIMAL: Final = CanonicalForm("cast({c} as decimal({p},{s}))", decimal_texts)
# MySQL's CONCAT truncates a double's text to 22 characters; JSON has all its digits.
_DOUBLE: Final = CanonicalForm(
    "trim(trailing '.0' from cast(cast({c} * 1e0 as json) as char))", double_texts
)
_DOUBLE_OF_MARIADB: Final = CanonicalForm("{c} * 1e0", double_texts)
_BITS: Final = CanonicalForm("{c} + 0", plain_texts)
# MariaDB's YEAR(2) has two digits, for 1970 to 2069.
_YEAR: Final = CanonicalForm(
    "if(length({c}) > 2, {c} + 0, {c} + if({c} + 0 < 70, 2000, 1900))", plain_texts
)
_DATE: Final = CanonicalForm(
    "if(year({c}) and month({c}) and dayofmonth({c}), {c}, null)", plain_texts
)
_MOMENT: Final = CanonicalForm(
    "if(year({c}) and month({c}) and dayofmonth({c}), cast({c} as datetime(6)), null)",
    moment_texts,
)


def _length_prefixed_form(value: str, length: str | None = None) -> CanonicalForm:
    return CanonicalForm(f"concat(length({length or value}), ':', {value})", length_prefixed_texts)


def _sha256_form(
    value: str, texts_of: Callable[[pa.Array], pa.Array] = sha256_texts
) -> CanonicalForm:
    return CanonicalForm(f"sha2({value}, 256)", texts_of)


_IN_UTF8: Final = "convert({c} using utf8mb4)"
_TEXT: Final = _length_prefixed_form("cast({c} as binary)", "{c}")
_CONVERTED: Final = _length_prefixed_form(f"cast({_IN_UTF8} as binary)", _IN_UTF8)
_SHA256: Final = _sha256_form("{c}")
_SHA256_OF_CONVERTED: Final = _sha256_form(_IN_UTF8)
_TIME: Final = _length_prefixed_form("cast({c} as char)")
# The log has INET6 and UUID of MariaDB as BINARY.
_PADDED_BYTES: Final = _length_prefixed_form("cast({c} as binary({n}))")
_BYTES: Final = _length_prefixed_form("{c}")
_GEOMETRY: Final = _sha256_form("{c}", partial(sha256_texts, storage_bytes=geometry_storage_bytes))
_VECTOR: Final = _sha256_form("cast({c} as binary)", vector_sha256_texts)


def canonical_form(column: Column, flavour: str) -> CanonicalForm:
    """Return the two ways to compute a column's texts. Raise TableError for a type that
    cannot be compared."""
    match FAMILIES.get(column.type):
        case Family.INTEGER:
            return _UNSIGNED if column.unsigned else _NUMBER
        case Family.DECIMAL:
            decimal = _UNSIGNED_DECIMAL if column.unsigned else _DECIMAL
            if (column.precision or 0) <= MAX_DECIMAL_DIGITS:
                return decimal
            return _length_prefixed_form(decimal.sql)
        case Family.FLOATING:
            return _DOUBLE_OF_MARIADB if flavour == MARIADB else _DOUBLE
        case Family.BIT:
            return _BITS
        case Family.YEAR:
            return _YEAR
        case Family.DATE:
            return _DATE
        case Family.DATETIME | Family.TIMESTAMP:
            return _MOMENT
        case Family.TIME:
            return _TIME
        case Family.TEXT:
            is_utf8 = column.charset is None or column.charset in UTF8_COMPATIBLE_CHARSETS
            if column.type == "text":
                return _SHA256 if is_utf8 else _SHA256_OF_CONVERTED
            return _TEXT if is_utf8 else _CONVERTED
        case Family.ENUM | Family.SET:
            return _CONVERTED
        case Family.BYTES if column.type == "blob":
            return _SHA256
        case Family.BYTES:
            return _PADDED_BYTES if column.type == "binary" else _BYTES
        case Family.JSON:
            return _SHA256
        case Family.GEOMETRY:
            return _GEOMETRY
        case Family.VECTOR:
            return _VECTOR
        case None:
            raise TableError(
                f"column {column.name!r} has the type {column.type.upper()}, which this version "
                "does not compare",
                hint="exclude the table, or change the column's type",
            )
        case family:
            assert_never(family)


def text_expression(column: Column, quoted: str, flavour: str) -> str:
    """Return the SQL expression for the text of a column's value. `quoted`: the
    column's quoted name."""
    template = canonical_form(column, flavour).sql
    return f"ifnull({_filled_template(template, column, quoted)}, '')"


def _filled_template(template: str, column: Column, quoted: str) -> str:
    """Return the template with its marks filled in. `str.format` would fail on braces
    in a quoted name. For the same reason the name is filled in last."""
    for mark, value in (
        ("{n}", column.length),
        ("{p}", column.precision),
        ("{s}", column.scale),
        ("{c}", quoted),
    ):
        template = template.replace(mark, str(value))
    return template
