"""What MySQL gave the rows that were there when a column was added.

The literal default as the column's lake type holds it; without one NULL, or, for NOT NULL,
the type's implicit default (MySQL manual, "Data Type Default Values", and what ALTER TABLE
does for ENUM and JSON); CURRENT_TIMESTAMP the statement's moment. Zero and partial dates
are NULL, as everywhere in the lake. Whatever only the server can tell is None.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, tzinfo
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from pipeline.schema.model import ColumnSchema, ExpressionDefault, LiteralDefault

_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "year"})
_CHARACTERS: Final = frozenset(
    {"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "set", "enum", "time"}
)
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_NOW: Final = re.compile(
    r"(?:current_timestamp|now|localtime|localtimestamp)(?:\s*\(\s*(\d?)\s*\))?", re.IGNORECASE
)
_MOMENT: Final = re.compile(r"(\d{4})-(\d\d)-(\d\d)(?: (\d\d):(\d\d):(\d\d)(?:\.(\d{1,6}))?)?")


@dataclass(frozen=True, slots=True)
class StatementMoment:
    """When a statement ran: `instant` carries a zone; `zone` is its session's time zone,
    None where that is not known."""

    instant: datetime
    zone: tzinfo | None = None


def fill_of(
    column: ColumnSchema, kind: pa.DataType, moment: StatementMoment | None
) -> pa.Scalar | None:
    """The value of an added column, of Arrow type `kind`, in the rows of before; None
    where only the server can tell it."""
    if column.generated is not None or column.auto_increment or column.system_period is not None:
        return None
    match column.default:
        case ExpressionDefault(text):
            return _now(text, column, kind, moment)
        case LiteralDefault(text):
            return _literal(text, column, kind, moment)
    return pa.scalar(None, kind) if column.nullable else _implicit(column, kind)


def _implicit(column: ColumnSchema, kind: pa.DataType) -> pa.Scalar | None:
    name = column.type
    if name in ("date", "datetime", "timestamp"):
        return pa.scalar(None, kind)
    if name in _INTEGERS or name in ("decimal", "float", "double", "bit"):
        return _number("0", column, kind)
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
    return None


def _literal(
    text: str, column: ColumnSchema, kind: pa.DataType, moment: StatementMoment | None
) -> pa.Scalar | None:
    name = column.type
    if name in _INTEGERS or name in ("decimal", "float", "double", "bit"):
        return _number(text, column, kind)
    if name in ("date", "datetime", "timestamp"):
        return _moment(text, kind, None if moment is None else moment.zone)
    if name in _BYTES:
        return _bytes(text, column)
    return pa.scalar(text) if name in _CHARACTERS else None


def _number(text: str, column: ColumnSchema, kind: pa.DataType) -> pa.Scalar | None:
    value: Any
    try:
        if column.type == "bit":
            value = int(text[2:-1] or "0", 2) if text.startswith("b'") else int(text)
            value = bool(value) if pa.types.is_boolean(kind) else value
        elif pa.types.is_integer(kind):
            value = int(text)
        elif pa.types.is_floating(kind):
            value = float(text)
        else:
            value = Decimal(text)
        if column.type in ("float", "double") and _rounded(value, column.scale):
            return None
        if pa.types.is_string(kind):
            return pa.scalar(f"{value:.{column.scale or 0}f}")
        return pa.scalar(Decimal(value) if pa.types.is_decimal(kind) else value, kind)
    except (ArithmeticError, ValueError):
        return None


def _rounded(value: float, digits: int | None) -> bool:
    """Whether FLOAT(m,d) and DOUBLE(m,d) would round it, which is MySQL's own business."""
    return digits is not None and round(value, digits) != value


def _bytes(text: str, column: ColumnSchema) -> pa.Scalar | None:
    if not text.lower().startswith("0x"):
        return None
    try:
        value = bytes.fromhex(text[2:])
    except ValueError:
        return None
    return pa.scalar(value.ljust((column.length or 0) if column.type == "binary" else 0, b"\0"))


def _moment(text: str, kind: pa.DataType, zone: tzinfo | None) -> pa.Scalar | None:
    """A literal of DATE, DATETIME, or of TIMESTAMP, which is in the session's zone."""
    found = _MOMENT.fullmatch(text)
    if found is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in found.groups()[:6])
    if not (year and month and day):
        return pa.scalar(None, kind)
    micros = int((found[7] or "").ljust(6, "0"))
    try:
        if pa.types.is_date(kind):
            return pa.scalar(date(year, month, day), kind)
        value = datetime(year, month, day, hour, minute, second, micros)
    except ValueError:
        return None
    if kind.tz is None:
        return pa.scalar(value, kind)
    return None if zone is None else pa.scalar(value.replace(tzinfo=zone).astimezone(UTC), kind)


def _now(
    text: str, column: ColumnSchema, kind: pa.DataType, moment: StatementMoment | None
) -> pa.Scalar | None:
    found = _NOW.fullmatch(text.strip())
    if found is None or moment is None or column.type not in ("datetime", "timestamp"):
        return None
    unit = 10 ** (6 - int(found[1] or 0))
    instant = moment.instant.astimezone(UTC)
    instant = instant.replace(microsecond=instant.microsecond // unit * unit)
    if kind.tz is not None:
        return pa.scalar(instant, kind)
    if moment.zone is None:
        return None
    return pa.scalar(instant.astimezone(moment.zone).replace(tzinfo=None), kind)
