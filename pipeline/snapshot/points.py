"""Rows asked for by their keys: the condition, from values of the lake.

Belongs here: literals of a key's values as the lake has them. Does not: bounds, whose values a
server told (`bounds`), asking (`resources.mysql.chunks`), which keys.

A row that is there must be found: so each type is proven on each server with its extremes. What is
found beside it does no harm; whoever asks compares the keys that come back.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa

from pipeline.schema.model import ColumnSchema, TableSchema
from pipeline.snapshot.bounds import quoted
from pipeline.snapshot.keys import FORMS, Form

_LITERALS: Final = frozenset(
    {
        Form.EXACT,
        Form.FLOATING,
        Form.BITS,
        Form.YEAR,
        Form.DATE,
        Form.MOMENT,
        Form.TIME,
        Form.TEXT,
        Form.BYTES,
    }
)


def unaskable(schema: TableSchema, key: Sequence[str]) -> str | None:
    """The first column of the key by whose values no row can be asked for; None: by all."""
    for name in key:
        column = schema.column(name)
        if column is None or FORMS.get(column.type) not in _LITERALS:
            return name
    return None


def point_condition(schema: TableSchema, keys: pa.RecordBatch) -> str:
    """Complete SQL for the rows that have one of these keys, at least one; `keys` has the key's
    columns, of which `unaskable` finds none, as `schema.types` types them, without NULLs."""
    columns = [_required(schema, name) for name in keys.schema.names]
    names = [quoted(column.name) for column in columns]
    rows = zip(*(_literals(c, keys.column(c.name)) for c in columns), strict=True)
    if len(names) == 1:
        return f"{names[0]} in ({', '.join(literal for (literal,) in rows)})"
    # A row constructor is looked up in an index only where all sides have the same types.
    both = (" and ".join(f"{n} = {v}" for n, v in zip(names, row, strict=True)) for row in rows)
    return " or ".join(f"({one})" for one in both)


def _required(schema: TableSchema, name: str) -> ColumnSchema:
    column = schema.column(name)
    if column is None:
        raise ValueError(f"{schema.name} has no column {name}")
    return column


def _literals(column: ColumnSchema, values: pa.Array) -> Iterator[str]:
    form = FORMS[column.type]
    return (_literal(form, value) for value in values.to_pylist())


def _literal(form: Form, value: Any) -> str:
    match form:
        case Form.EXACT | Form.BITS:
            # A DECIMAL of more digits than the lake's is text there.
            return (
                format(value, "f")
                if isinstance(value, Decimal)
                else str(value if isinstance(value, str) else int(value))
            )
        case Form.FLOATING:
            return f"{value:.16e}"
        case Form.YEAR:
            return f"{value:04d}"
        case Form.DATE:
            assert isinstance(value, date)
            return f"date'{value.isoformat()}'"
        case Form.MOMENT:
            assert isinstance(value, datetime)
            return f"timestamp'{value:%Y-%m-%d %H:%M:%S.%f}'"
        case Form.TIME:
            return f"time'{value}'"
        case Form.TEXT:
            return f"_utf8mb4 x'{value.encode().hex()}'"
        case Form.BYTES:
            return f"x'{value.hex()}'"
        case _:
            raise ValueError(f"no literal of {form}")
