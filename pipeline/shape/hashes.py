"""Keyed hashes of values: HMAC-SHA-256 over a canonical text, as 64 lower-case hexadecimal digits.

Belongs here: the canonical text of each type, and the hash over it. Does not: where the key comes
from (`resources.config`), texts that stand for rows when two sides are compared (`pipeline.proof`).

Equal values have equal hashes under one key, across tables, sources and types that have the same
text. NULL stays NULL. The text, in UTF-8:

| type | text |
|---|---|
| whole numbers, BIT, YEAR | decimal digits, "-" in front of negative ones; no zeros in front |
| DECIMAL | the same with its fraction, without zeros at the end: 12.50 is 12.5, 5.00 is 5 |
| FLOAT, DOUBLE | the fewest digits that read back as it, no exponent; 5.0 is 5, -0.0 is 0 |
| DATE | 2020-01-31 |
| DATETIME | 2020-01-31 10:00:00, and the fraction of a second without zeros at the end |
| TIMESTAMP | the same in UTC, with Z at the end |
| TIME | -838:59:59, and the fraction likewise |
| CHAR, VARCHAR, TEXT, JSON | the characters that the lake shows |
| BINARY | the bytes without the zero bytes that fill it up |
| VARBINARY, BLOB | the bytes |

Spatial types and VECTOR have no such text, and are refused. So are ENUM and SET: the log has only
numbers of their members, and the history of structures keeps no members of hidden columns. A run
that goes on with a recorded structure would hash something else than a load did.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from decimal import Decimal
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.errors import TableError
from pipeline.proof import canonical as texts
from pipeline.schema.types import TEXT_TYPES
from pipeline.table import Column

_DERIVED_BYTES: Final = 32

DIGITS: Final = 64
"""Characters of a hash."""


class PrivacyKey:
    """The secret that hashes are made with. Its text shows nothing of it.

    HMAC as RFC 2104 defines it, over two states of SHA-256 that have read the key already: the
    standard library's `hmac` takes twice as long for short values. `replaces`: the fingerprint of
    the key in whose place it comes, on purpose.
    """

    def __init__(self, secret: bytes, *, replaces: str | None = None) -> None:
        self.replaces = replaces
        if not secret:
            raise ValueError("the privacy key is empty")
        block = hashlib.sha256().block_size
        key = secret if len(secret) <= block else hashlib.sha256(secret).digest()
        padded = key.ljust(block, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in padded))

        def derive(purpose: str) -> bytes:
            return hmac.digest(secret, purpose.encode(), "sha512")[:_DERIVED_BYTES]

        self._derive = derive  # which, unlike a value, shows nothing of the key when it is printed

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits by which two keys are told apart; they don't tell the key."""
        return self.digest(b"lockstep: fingerprint of the privacy key")[:16]

    def derived(self, purpose: str) -> bytes:
        """Another key of 32 bytes, which tells nothing of this one; one for each purpose. Whoever
        may write to a hashed column sees the HMAC-SHA-256 of any text: this is another function."""
        return self._derive(purpose)

    def digest(self, data: bytes) -> str:
        """The hash of some bytes."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(data)
        outer.update(inner.digest())
        return outer.hexdigest()

    def digests(self, data: pa.Array) -> pa.Array:
        """The hash of each of these bytes, NULL for NULL; a value that occurs often is hashed
        once."""
        distinct = data.dictionary_encode()
        hashed = [self.digest(one) for one in distinct.dictionary.to_pylist()]
        return pa.array(hashed, pa.string()).take(distinct.indices)


def canonical_texts(column: Column, values: pa.Array, *, lower: bool = False) -> pa.Array:
    """The text of each value, as bytes; NULL for NULL. `lower`: texts are put into lower case.
    TableError for a type that has none."""
    text = _TEXTS.get(column.type)
    if text is None:
        raise TableError(
            f"column {column.name!r} is {column.type.upper()}, which cannot be hashed",
            hint="leave the column out with exclude_columns",
        )
    if lower:
        values = pc.utf8_lower(values)
    return text(column, values)


Text = Callable[[Column, pa.Array], pa.Array]


def _as_stored(_: Column, values: pa.Array) -> pa.Array:
    return values.cast(pa.binary()).cast(pa.large_binary())


def _whole(_: Column, values: pa.Array) -> pa.Array:
    return texts.plain(values)


def _decimals(_: Column, values: pa.Array) -> pa.Array:
    """A DECIMAL of more digits than Arrow's is a text already."""
    printed = texts.decimals(values) if pa.types.is_decimal(values.type) else values
    without = _without_zeros(printed.cast(pa.large_string()), pc.match_substring(printed, "."))
    return pc.if_else(pc.equal(without, "-0"), "0", without).cast(pa.large_binary())


def _floats(column: Column, values: pa.Array) -> pa.Array:
    if column.type == "float":
        # Arrow prints the shortest digits of a float, which a double then reads.
        values = values.cast(pa.string()).cast(pa.float64())
    return pa.array(map(_float, values.to_pylist()), pa.large_binary())


def _float(value: float | None) -> bytes | None:
    if value is None:
        return None
    digits = f"{Decimal(repr(value)):f}".removesuffix(".0")
    return b"0" if value == 0 else digits.encode()


def _moments(column: Column, values: pa.Array) -> pa.Array:
    printed = texts.moments(values).cast(pa.large_string())
    without = _without_zeros(printed, pc.is_valid(printed)).cast(pa.large_binary())
    if column.type == "datetime":
        return without
    zone, nothing = (pa.scalar(one, pa.large_binary()) for one in (b"Z", b""))
    return pc.binary_join_element_wise(without, zone, nothing)


def _times(_: Column, values: pa.Array) -> pa.Array:
    printed = values.cast(pa.large_string())
    return _without_zeros(printed, pc.match_substring(printed, ".")).cast(pa.large_binary())


def _without_zeros(printed: pa.Array, has_fraction: pa.Array) -> pa.Array:
    """Texts of numbers without the zeros at the end of a fraction, and without a point there."""
    trimmed = pc.utf8_rtrim(pc.utf8_rtrim(printed, "0"), ".")
    return pc.if_else(has_fraction, trimmed, printed)


def _filled_up(_: Column, values: pa.Array) -> pa.Array:
    return pa.array(
        [None if one is None else one.rstrip(b"\0") for one in values.to_pylist()],
        pa.large_binary(),
    )


_TEXTS: Final[dict[str, Text]] = {
    **dict.fromkeys(("tinyint", "smallint", "mediumint", "int", "bigint", "bit", "year"), _whole),
    **dict.fromkeys((*TEXT_TYPES, "json", "varbinary", "blob"), _as_stored),
    **dict.fromkeys(("datetime", "timestamp"), _moments),
    **dict.fromkeys(("float", "double"), _floats),
    "decimal": _decimals,
    "date": _whole,
    "time": _times,
    "binary": _filled_up,
}
