"""One text for one value, the same whether the server writes it or we do: a row for each type.

Belongs here: which text stands for a value of a type, as an expression of SQL and as a function of
our own, side by side. Does not: what is made of a row's texts (`hashes`), Arrow's types
(`schema.types`). A function of ours takes a column and gives a binary array, NULL for NULL.

A row's text is the texts of its columns with commas between. Texts that can hold a comma have
their length in front, so that no two rows share a text; where a value may be long its SHA2 stands
for it. NULL is the empty text, which no value has. Character sets are not mixed: text is compared
as the lake has it, in UTF-8, as bytes.
"""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from math import isfinite
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import TableError
from pipeline.schema.types import MAX_DECIMAL_DIGITS, TEXT_TYPES
from pipeline.table import Column

MARIADB: Final = "mariadb"

_UTF8: Final = frozenset({None, "utf8mb4", "utf8mb3", "ascii"})
"""Sets whose stored bytes are UTF-8."""

_LONG: Final = frozenset({"text", "blob", "json", "geometry", "vector"})
"""Types of values that may be long: beyond a server's max_allowed_packet, together."""


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
    negative, digits, power = Decimal(repr(value)).normalize().as_tuple()
    assert isinstance(power, int), "the value is finite"
    return "-" * negative + _spelled("".join(map(str, digits)), power)


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


def digested(values: pa.Array, stored: Callable[[Any], bytes] = bytes) -> pa.Array:
    """The SHA2 of what is stored, as 64 hexadecimal digits."""
    sha = hashlib.sha256
    stored_values = values if pa.types.is_nested(values.type) else _binary(values)
    digests = [
        None if one is None else sha(stored(one)).hexdigest().encode()
        for one in stored_values.to_pylist()
    ]
    return pa.array(digests, pa.large_binary())


def digested_geometries(values: pa.Array) -> pa.Array:
    return digested(values, stored_geometry)


def digested_vectors(values: pa.Array) -> pa.Array:
    return digested(values, lambda floats: np.asarray(floats, "<f4").tobytes())


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


def _binary(values: pa.Array) -> pa.Array:
    if pa.types.is_binary(values.type) or pa.types.is_string(values.type):
        return values.cast(pa.binary()).cast(pa.large_binary())
    return values.cast(pa.large_binary())


@dataclass(frozen=True, slots=True)
class Canonical:
    """How a type's values are written. `sql`: an expression with `{c}` for the column's quoted
    name and `{n}` for its length; `text`: from a column of the lake's Arrow type to its texts, a
    binary array with NULLs where values are NULL."""

    sql: str
    text: Callable[[pa.Array], pa.Array]


_NUMBER: Final = Canonical("{c}", plain)
# ZEROFILL, which makes a column unsigned, prints zeros in front.
_UNSIGNED: Final = Canonical("cast({c} as unsigned)", plain)
_DECIMAL: Final = Canonical("{c}", decimals)
_UNSIGNED_DECIMAL: Final = Canonical("cast({c} as decimal({p},{s}))", decimals)
# CONCAT of MySQL cuts a double's text off at 22 characters; JSON has all its digits.
_DOUBLE: Final = Canonical(
    "trim(trailing '.0' from cast(cast({c} * 1e0 as json) as char))", doubles
)
_DOUBLE_OF_MARIADB: Final = Canonical("{c} * 1e0", doubles)
_BITS: Final = Canonical("{c} + 0", plain)
# MariaDB's YEAR(2) has two digits, of 1970 to 2069.
_YEAR: Final = Canonical("if(length({c}) > 2, {c} + 0, {c} + if({c} + 0 < 70, 2000, 1900))", plain)
_DATE: Final = Canonical("if(year({c}) and month({c}) and dayofmonth({c}), {c}, null)", plain)
_MOMENT: Final = Canonical(
    "if(year({c}) and month({c}) and dayofmonth({c}), cast({c} as datetime(6)), null)",
    moments,
)


def _counted(value: str, length: str | None = None) -> Canonical:
    return Canonical(f"concat(length({length or value}), ':', {value})", counted)


def _digested(value: str, text: Callable[[pa.Array], pa.Array] = digested) -> Canonical:
    return Canonical(f"sha2({value}, 256)", text)


_IN_UTF8: Final = "convert({c} using utf8mb4)"
_TEXT: Final = _counted("cast({c} as binary)", "{c}")
_CONVERTED: Final = _counted(f"cast({_IN_UTF8} as binary)", _IN_UTF8)
_LONG_TEXT: Final = _digested("{c}")
_OTHERS: Final = _CONVERTED, _digested(_IN_UTF8)

_CANONICAL: Final[dict[str, Canonical]] = {
    "bit": _BITS,
    "year": _YEAR,
    "date": _DATE,
    "datetime": _MOMENT,
    "timestamp": _MOMENT,
    "time": _counted("cast({c} as char)"),
    "enum": _CONVERTED,
    "set": _CONVERTED,
    # INET6 and UUID of MariaDB are BINARY to the log.
    "binary": _counted("cast({c} as binary({n}))"),
    "varbinary": _counted("{c}"),
    "blob": _LONG_TEXT,
    "json": _LONG_TEXT,
    "geometry": _digested("{c}", digested_geometries),
    "vector": _digested("cast({c} as binary)", digested_vectors),
}


def canonical(column: Column, flavour: str) -> Canonical:
    """How a column's values are written; TableError for a type that is not listed."""
    kind = column.type
    if kind.endswith("int"):
        return _UNSIGNED if column.unsigned else _NUMBER
    if kind == "decimal":
        own = _UNSIGNED_DECIMAL if column.unsigned else _DECIMAL
        return own if (column.precision or 0) <= MAX_DECIMAL_DIGITS else _counted(own.sql)
    if kind in ("float", "double"):
        return _DOUBLE_OF_MARIADB if flavour == MARIADB else _DOUBLE
    if kind in TEXT_TYPES:
        short, long = (_TEXT, _LONG_TEXT) if column.charset in _UTF8 else _OTHERS
        return long if kind in _LONG else short
    found = _CANONICAL.get(kind)
    if found is None:
        raise TableError(
            f"column {column.name!r} has the type {kind.upper()}, which this version does not "
            "compare",
            hint="exclude the table, or change the column's type",
        )
    return found


def expression(column: Column, quoted: str, flavour: str) -> str:
    """The SQL expression for the text of a column's value; '' for NULL. `quoted`: its name."""
    template = canonical(column, flavour).sql
    return f"ifnull({_filled(template, column, quoted)}, '')"


def _filled(template: str, column: Column, quoted: str) -> str:
    """Not `format`: a quoted name may hold braces."""
    for mark, value in (
        ("{n}", column.length),
        ("{p}", column.precision),
        ("{s}", column.scale),
        ("{c}", quoted),
    ):
        template = template.replace(mark, str(value))
    return template
