"""Text of a SELECT → values for Arrow: the independent path of verification.

Shares nothing with the log's decoder but the target types, so that the two can prove
each other. With `conv={}` PyMySQL hands over text for everything but binary columns.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from pipeline.schema.types import MAX_DECIMAL_DIGITS, TEXT_TYPES
from pipeline.table import Column, TableStructure


def row_converters(structure: TableStructure) -> list[Callable[[Any], Any]]:
    """One function per column, from what the driver gives to what Arrow takes."""
    return [_converter(column) for column in structure.columns]


def _converter(column: Column) -> Callable[[Any], Any]:
    if column.type.endswith("int"):
        return int
    if column.type == "decimal":
        return str if (column.precision or 0) > MAX_DECIMAL_DIGITS else Decimal
    if column.type in ("float", "double"):
        return float
    if column.type == "date":
        return _date
    if column.type in ("datetime", "timestamp"):
        return _moment
    if column.type in TEXT_TYPES or column.type == "enum":
        return _text
    return _bytes


def _text(value: str | bytes) -> str:
    return value.decode() if isinstance(value, bytes) else value


def _bytes(value: str | bytes) -> bytes:
    return value.encode("latin-1") if isinstance(value, str) else value


def _date(value: str | bytes) -> date | None:
    """Zero and partial dates are NULL, as in the log's path."""
    year, month, day = (int(part) for part in _text(value).split("-"))
    return date(year, month, day) if year and month and day else None


def _moment(value: str | bytes) -> datetime | None:
    text = _text(value)
    day = _date(text[:10])
    if day is None:
        return None
    return datetime.fromisoformat(text)
