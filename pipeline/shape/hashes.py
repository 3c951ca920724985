"""Keyed hashes of values: HMAC-SHA-256 of a canonical text, as 64 lower-case
hexadecimal digits.

Under the same key, equal values have equal hashes in all tables and sources. Values of
different types have equal hashes too if their texts are equal. NULL stays NULL. The
text, in UTF-8:

| type | text |
|---|---|
| whole numbers, BIT, YEAR | decimal digits without leading zeros, after "-" if negative |
| DECIMAL | the same with its fraction, without zeros at the end: 12.50 is 12.5, 5.00 is 5 |
| FLOAT, DOUBLE | the fewest digits that parse to the value, no exponent; 5.0 is 5, -0.0 is 0 |
| DATE | 2020-01-31 |
| DATETIME | 2020-01-31 10:00:00, and the fraction of a second without zeros at the end |
| TIMESTAMP | the same in UTC, with Z at the end |
| TIME | -838:59:59, and the fraction likewise |
| CHAR, VARCHAR, TEXT, JSON | the characters that the lake shows |
| BINARY | the bytes without trailing zero bytes, which pad it |
| VARBINARY, BLOB | the bytes |

Spatial types and VECTOR have no such text and are refused. ENUM and SET are refused
too: the log has only the numbers of their members, and the members of hidden columns
are not recorded. So a value that is read from the log would have another hash than
the same value that is read by a SELECT.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable
from decimal import Decimal
from typing import Final, assert_never

import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.proof import canonical
from lockstep.pipeline.schema.types import FAMILIES, Family
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import Column

HASH_DIGITS: Final = 64
"""Number of characters in a hash."""


class PrivacyKey:
    """The secret key of the hashes. No attribute and no repr reveals it.

    HMAC as in RFC 2104 is computed from two states of SHA-256 that have already read
    the key: the standard library's `hmac` takes twice as long for short values.
    `replaces`: the fingerprint of a former key, if the settings say that this key
    replaces it.
    """

    def __init__(self, secret: bytes, *, replaces: str | None = None) -> None:
        self.replaces = replaces
        block = hashlib.sha256().block_size
        key = secret if len(secret) <= block else hashlib.sha256(secret).digest()
        padded = key.ljust(block, b"\0")
        self._inner = hashlib.sha256(bytes(byte ^ 0x36 for byte in padded))
        self._outer = hashlib.sha256(bytes(byte ^ 0x5C for byte in padded))

        def derive(purpose: str) -> bytes:
            return hmac.digest(secret, purpose.encode(), "sha512")[:32]

        self._derive = derive  # A closure, so that the secret is in no attribute.

    @property
    def fingerprint(self) -> str:
        """16 hexadecimal digits that distinguish keys without revealing them."""
        return self.digest(b"lockstep: fingerprint of the privacy key")[:16]

    def derive_key(self, purpose: str) -> bytes:
        """Return another key of 32 bytes for a purpose, which does not reveal this key. It
        is an HMAC-SHA-512, because hashed columns are HMAC-SHA-256: a user who writes
        the purpose into such a column at the source could read its HMAC-SHA-256 in the
        lake."""
        return self._derive(purpose)

    def digest(self, data: bytes) -> str:
        """Return the hash as 64 hexadecimal digits."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(data)
        outer.update(inner.digest())
        return outer.hexdigest()

    def digests(self, data: pa.Array) -> pa.Array:
        """Return the hash of each value, NULL for NULL. Each distinct value is hashed
        once."""
        distinct = data.dictionary_encode()
        hashes = [self.digest(value) for value in distinct.dictionary.to_pylist()]
        return pa.array(hashes, pa.string()).take(distinct.indices)


def canonical_texts(column: Column, values: pa.Array, *, lower: bool = False) -> pa.Array:
    """Return the canonical text of each value, as bytes; NULL for NULL. `lower`: texts
    are in lower case. Raise TableError for a type without canonical texts."""
    to_texts = _text_function(column)
    if to_texts is None:
        raise TableError(
            f"column {column.name!r} is {column.type.upper()}, which cannot be hashed",
            hint="leave the column out with exclude_columns",
        )
    if lower:
        values = pc.utf8_lower(values)
    return to_texts(column, values)


def is_hashable(column: Column) -> bool:
    """Return whether the column's type has canonical texts."""
    return _text_function(column) is not None


_TextFunction = Callable[[Column, pa.Array], pa.Array]


def _stored_bytes(_: Column, values: pa.Array) -> pa.Array:
    return values.cast(pa.binary()).cast(pa.large_binary())


def _plain_texts(_: Column, values: pa.Array) -> pa.Array:
    return canonical.plain_texts(values)


def _decimal_texts(_: Column, values: pa.Array) -> pa.Array:
    """Return the texts of DECIMALs. `values` has texts if the DECIMAL has more digits
    than Arrow's decimals."""
    printed = canonical.decimal_texts(values) if pa.types.is_decimal(values.type) else values
    trimmed = _trim_fractions(printed.cast(pa.large_string()), pc.match_substring(printed, "."))
    return pc.if_else(pc.equal(trimmed, "-0"), "0", trimmed).cast(pa.large_binary())


def _float_texts(column: Column, values: pa.Array) -> pa.Array:
    if column.type == "float":
        # Arrow prints a float with the fewest digits. The double that is parsed from
        # them is then printed by Python with the same digits.
        values = values.cast(pa.string()).cast(pa.float64())
    return pa.array(map(_float_text, values.to_pylist()), pa.large_binary())


def _float_text(value: float | None) -> bytes | None:
    if value is None:
        return None
    digits = f"{Decimal(repr(value)):f}".removesuffix(".0")
    return b"0" if value == 0 else digits.encode()


def _moment_texts(column: Column, values: pa.Array) -> pa.Array:
    printed = canonical.moment_texts(values).cast(pa.large_string())
    trimmed = _trim_fractions(printed, pc.is_valid(printed)).cast(pa.large_binary())
    if column.type == "datetime":
        return trimmed
    zone, separator = (pa.scalar(text, pa.large_binary()) for text in (b"Z", b""))
    return pc.binary_join_element_wise(trimmed, zone, separator)


def _time_texts(_: Column, values: pa.Array) -> pa.Array:
    printed = values.cast(pa.large_string())
    return _trim_fractions(printed, pc.match_substring(printed, ".")).cast(pa.large_binary())


def _trim_fractions(printed: pa.Array, has_fraction: pa.Array) -> pa.Array:
    """Return the texts without zeros at the end of a fraction, and without a point
    before them."""
    trimmed = pc.utf8_rtrim(pc.utf8_rtrim(printed, "0"), ".")
    return pc.if_else(has_fraction, trimmed, printed)


def _unpadded_bytes(_: Column, values: pa.Array) -> pa.Array:
    unpadded = [None if value is None else value.rstrip(b"\0") for value in values.to_pylist()]
    return pa.array(unpadded, pa.large_binary())


def _text_function(column: Column) -> _TextFunction | None:
    """Return the function that makes the column's canonical texts; None if its type has
    none."""
    match FAMILIES.get(column.type):
        case Family.INTEGER | Family.BIT | Family.YEAR | Family.DATE:
            return _plain_texts
        case Family.FLOATING:
            return _float_texts
        case Family.DECIMAL:
            return _decimal_texts
        case Family.DATETIME | Family.TIMESTAMP:
            return _moment_texts
        case Family.TIME:
            return _time_texts
        case Family.TEXT | Family.JSON:
            return _stored_bytes
        case Family.BYTES:
            return _unpadded_bytes if column.type == "binary" else _stored_bytes
        case Family.ENUM | Family.SET | Family.GEOMETRY | Family.VECTOR | None:
            return None
        case family:
            assert_never(family)
