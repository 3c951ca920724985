"""The least and the greatest key among changes, so that a merge passes over other files."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Bounds = Mapping[str, tuple[Any, Any]]
"""The mirror's column → least and greatest value."""


def key_bounds(changes: pa.Table, key: Mapping[str, str]) -> Bounds:
    """For key columns whose type orders the same in Arrow, Parquet statistics and Spark.
    `key`: a column of `changes` → the mirror's column.

    Integers, decimals and dates only: text has collations, floats have NaN.
    """
    bounds = {}
    for spelled, name in key.items():
        column = changes.column(spelled)
        if _family(column.type) in _LITERALS and len(column):
            ends = pc.min_max(column)
            bounds[name] = (ends["min"].as_py(), ends["max"].as_py())
    return {name: ends for name, ends in bounds.items() if ends[0] is not None}


def joined_bounds(one: Bounds, other: Bounds) -> Bounds:
    """Of the changes of both, which have the same columns; a side without any has none."""
    if not one or not other:
        return one or other
    return {
        name: (min(one[name][0], other[name][0]), max(one[name][1], other[name][1]))
        for name in one
        if name in other
    }


def bounds_literals(bounds: Bounds, kinds: pa.Schema) -> tuple[tuple[str, str, str], ...]:
    """(column, least, greatest) as SQL literals; `kinds` are the mirror's columns."""
    found = []
    for name, ends in bounds.items():
        least, greatest = map(_LITERALS[_family(kinds.field(name).type)], ends)
        found.append((name, least, greatest))
    return tuple(found)


def _family(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_decimal(kind):
        return "decimal"
    return "date" if pa.types.is_date(kind) else ""


_LITERALS: Mapping[str, Callable[[Any], str]] = {
    "integer": str,
    "decimal": lambda value: f"{value:f}BD",
    "date": lambda value: f"DATE'{value.isoformat()}'",
}
