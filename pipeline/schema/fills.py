"""The fill of a column: the value that MySQL gives to rows that exist when the column
is added, and to rows whose images leave it out.

The fill is the column's default, in the column's type in the lake: a constant, or the
statement's CURRENT_TIMESTAMP. A column without a default is filled with NULL or, if it
is NOT NULL, with the implicit default of its type (MySQL manual, "Data Type Default
Values"; for ENUM and JSON, the values that ALTER TABLE stores). Zero and partial dates
are NULL, as everywhere in the lake.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from lockstep.pipeline.schema.model import (
    BLOB_FAMILY,
    CHARACTER_STRINGS,
    INTEGER_BITS,
    ColumnSchema,
    ExpressionDefault,
    ValueDefault,
    WrittenDefault,
    now_digits,
)

_NUMBERS: Final = frozenset({*INTEGER_BITS, "year", "decimal", "float", "double", "bit"})
_CHARACTERS: Final = CHARACTER_STRINGS | {"set", "enum", "time"}
_BYTES: Final = frozenset({"binary", "varbinary", *BLOB_FAMILY})


@dataclass(frozen=True, slots=True)
class StatementMoment:
    """When a statement ran. `instant`: a datetime with a time zone. `zone`: the
    session's time zone; None if it is unknown."""

    instant: datetime
    zone: tzinfo | None = None


def fill_of(
    column: ColumnSchema, kind: pa.DataType, moment: StatementMoment | None
) -> pa.Scalar | None:
    """Return the fill of a column as a scalar of Arrow type `kind`; None if only the
    server knows it. `moment`: when the rows were filled; None if that is unknown, so
    that CURRENT_TIMESTAMP has no known value."""
    if column.generated is not None or column.auto_increment or column.system_period is not None:
        return None
    match column.default:
        case ExpressionDefault(text):
            return _now(text, column, kind, moment)
        case ValueDefault(text):
            return _constant(text, column, kind)
        case WrittenDefault():
            return None
    return pa.scalar(None, kind) if column.nullable else _implicit(column, kind)


def _implicit(column: ColumnSchema, kind: pa.DataType) -> pa.Scalar | None:
    """Return the implicit default of a NOT NULL column."""
    name = column.type
    if name in ("date", "datetime", "timestamp"):
        return pa.scalar(None, kind)
    if name == "time":
        digits = column.length or 0
        return pa.scalar("00:00:00" + ("." + "0" * digits if digits else ""))
    if name == "enum":
        return pa.scalar(column.members[0])
    if name == "json":
        return pa.scalar("null")
    if name in _CHARACTERS:
        return pa.scalar("")
    if name in _BYTES:
        return pa.scalar(bytes(column.length or 0) if name == "binary" else b"", pa.binary())
    return _number("0", column, kind) if name in _NUMBERS else None


def _constant(text: str, column: ColumnSchema, kind: pa.DataType) -> pa.Scalar | None:
    """Return the value of a `ValueDefault`; None if the column's type does not have
    the value."""
    name = column.type
    try:
        if name in _NUMBERS:
            return _number(text, column, kind)
        if name in ("date", "datetime", "timestamp"):
            return _moment(text, kind)
        if name in _BYTES:
            value = bytes.fromhex(text.removeprefix("0x"))
            padded = (column.length or 0) if name == "binary" else 0
            return pa.scalar(value.ljust(padded, b"\0"), kind)
    except (ArithmeticError, ValueError):
        return None
    return pa.scalar(text) if name in _CHARACTERS else None


def _number(text: str, column: ColumnSchema, kind: pa.DataType) -> pa.Scalar:
    value: Any = Decimal(int(text[2:-1], 2)) if text.startswith("b'") else Decimal(text)
    if pa.types.is_string(kind):
        return pa.scalar(f"{value:.{column.scale or 0}f}")
    if pa.types.is_floating(kind):
        value = float(text)
    elif pa.types.is_boolean(kind):
        value = bool(value)
    return pa.scalar(value, kind) if pa.types.is_decimal(kind) else pa.scalar(value).cast(kind)


def _moment(text: str, kind: pa.DataType) -> pa.Scalar:
    """Return the value of a DATE, DATETIME or TIMESTAMP; the text of a TIMESTAMP is in
    UTC."""
    year, month, day = (int(part) for part in text[:10].split("-"))
    if not (year and month and day):
        return pa.scalar(None, kind)
    if pa.types.is_date(kind):
        return pa.scalar(date(year, month, day), kind)
    value = datetime.fromisoformat(text)
    return pa.scalar(value if kind.tz is None else value.replace(tzinfo=UTC), kind)


def _now(
    text: str, column: ColumnSchema, kind: pa.DataType, moment: StatementMoment | None
) -> pa.Scalar | None:
    digits = now_digits(text)
    if digits is None or moment is None or column.type not in ("datetime", "timestamp"):
        return None
    unit = 10 ** (6 - digits)
    instant = moment.instant.astimezone(UTC)
    instant = instant.replace(microsecond=instant.microsecond // unit * unit)
    if kind.tz is not None:
        return pa.scalar(instant, kind)
    if moment.zone is None:
        return None
    return pa.scalar(instant.astimezone(moment.zone).replace(tzinfo=None), kind)
