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

_NUMBER_TYPES: Final = frozenset({*INTEGER_BITS, "year", "decimal", "float", "double", "bit"})
_CHARACTER_TYPES: Final = CHARACTER_STRINGS | {"set", "enum", "time", "json"}
_BYTE_TYPES: Final = frozenset({"binary", "varbinary", *BLOB_FAMILY})


@dataclass(frozen=True, slots=True)
class StatementMoment:
    """The moment at which a statement ran. `instant`: a datetime with a time zone.
    `zone`: the session's time zone; None if it is unknown."""

    instant: datetime
    zone: tzinfo | None = None


def fill_of(
    column: ColumnSchema, arrow_type: pa.DataType, moment: StatementMoment | None
) -> pa.Scalar | None:
    """Return the fill of a column as a scalar of type `arrow_type`; None if only
    the server knows it. `moment`: when the rows were filled; None if that is unknown,
    so that CURRENT_TIMESTAMP has no known value."""
    if column.generated is not None or column.auto_increment or column.system_period is not None:
        return None
    match column.default:
        case ExpressionDefault(text):
            return _current_fill(text, column, arrow_type, moment)
        case ValueDefault(text):
            return _constant_fill(text, column, arrow_type)
        case WrittenDefault():
            return None
    if column.nullable:
        return pa.scalar(None, arrow_type)
    return _constant_fill(_implicit_default(column), column, arrow_type)


def _implicit_default(column: ColumnSchema) -> str:
    """Return the implicit default of a NOT NULL column, as the text of a
    `ValueDefault`."""
    match column.type:
        case "enum":
            return column.members[0]
        case "json":
            return "null"
        case "time":
            return "00:00:00" + ("." + "0" * column.length if column.length else "")
        case "date" | "datetime" | "timestamp":
            return "0000-00-00"
    return "0" if column.type in _NUMBER_TYPES else ""


def _constant_fill(text: str, column: ColumnSchema, arrow_type: pa.DataType) -> pa.Scalar | None:
    """Return the value of a `ValueDefault`; None if the column's type does not have
    the value."""
    try:
        if column.type in _NUMBER_TYPES:
            return _number_scalar(text, column, arrow_type)
        if column.type in ("date", "datetime", "timestamp"):
            return _moment_scalar(text, arrow_type)
        if column.type in _BYTE_TYPES:
            value = bytes.fromhex(text.removeprefix("0x"))
            padded_length = (column.length or 0) if column.type == "binary" else 0
            return pa.scalar(value.ljust(padded_length, b"\0"), arrow_type)
    except (ArithmeticError, ValueError):
        return None
    return pa.scalar(text) if column.type in _CHARACTER_TYPES else None


def _number_scalar(text: str, column: ColumnSchema, arrow_type: pa.DataType) -> pa.Scalar:
    value: Any = Decimal(int(text[2:-1], 2)) if text.startswith("b'") else Decimal(text)
    if pa.types.is_string(arrow_type):
        return pa.scalar(f"{value:.{column.scale or 0}f}")
    if pa.types.is_floating(arrow_type):
        value = float(text)
    elif pa.types.is_boolean(arrow_type):
        value = bool(value)
    if pa.types.is_decimal(arrow_type):
        return pa.scalar(value, arrow_type)
    return pa.scalar(value).cast(arrow_type)


def _moment_scalar(text: str, arrow_type: pa.DataType) -> pa.Scalar:
    """Return the value of a DATE, DATETIME or TIMESTAMP; the text of a TIMESTAMP is in
    UTC."""
    year, month, day = (int(part) for part in text[:10].split("-"))
    if not (year and month and day):
        return pa.scalar(None, arrow_type)
    if pa.types.is_date(arrow_type):
        return pa.scalar(date(year, month, day), arrow_type)
    value = datetime.fromisoformat(text)
    return pa.scalar(value if arrow_type.tz is None else value.replace(tzinfo=UTC), arrow_type)


def _current_fill(
    text: str, column: ColumnSchema, arrow_type: pa.DataType, moment: StatementMoment | None
) -> pa.Scalar | None:
    digits = now_digits(text)
    if digits is None or moment is None or column.type not in ("datetime", "timestamp"):
        return None
    if digits > (column.length or 0):
        return None  # MariaDB rounds or truncates by the session's mode.
    unit = 10 ** (6 - digits)
    instant = moment.instant.astimezone(UTC)
    instant = instant.replace(microsecond=instant.microsecond // unit * unit)
    if arrow_type.tz is not None:
        return pa.scalar(instant, arrow_type)
    if moment.zone is None:
        return None
    return pa.scalar(instant.astimezone(moment.zone).replace(tzinfo=None), arrow_type)
