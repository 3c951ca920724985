"""Two accounts of one table, part by part, as sentences.

Belongs here: what differs, in words a person can check against SHOW CREATE TABLE. Does
not: which of the two is right, nor what a difference means for stored values.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, replace
from typing import Any, Final

from pipeline.schema.model import (
    ColumnSchema,
    ExpressionDefault,
    ForeignKey,
    KeySchema,
    LiteralDefault,
    TableSchema,
    WrittenDefault,
)

_TABLE: Final = ("charset", "collation", "engine", "partitioned", "system_versioned")


def differences(schema: TableSchema, other: TableSchema) -> tuple[str, ...]:
    """What differs between two accounts, each as "what: one, other"; their names are not
    compared. Columns are compared in their order, keys and foreign keys by name."""
    return tuple(_differences(schema, other))


def aligned(table: TableSchema, other: TableSchema) -> TableSchema:
    """Return the table with the properties of another one that a log may not tell: defaults, where
    either has a constant whose value it does not know (MariaDB makes expressions of some), and ON
    UPDATE of a TIMESTAMP without a default. MySQL gives that to a table's first TIMESTAMP in any
    ALTER under `explicit_defaults_for_timestamp = 0`, and logs the variable only with statements
    that define a TIMESTAMP."""
    return replace(table, columns=tuple(_aligned(column, other) for column in table.columns))


def _aligned(column: ColumnSchema, other: TableSchema) -> ColumnSchema:
    same = other.column(column.name)
    if same is None:
        return column
    defaults = (column.default, same.default)
    if None not in defaults and any(isinstance(default, WrittenDefault) for default in defaults):
        return replace(column, default=same.default)
    if column.type == same.type == "timestamp" and defaults == (None, None):
        return replace(column, on_update=same.on_update)
    return column


def _differences(schema: TableSchema, other: TableSchema) -> Iterator[str]:
    for part in _TABLE:
        yield from _differs(part, getattr(schema, part), getattr(other, part))
    names = [", ".join(column.name for column in table.columns) for table in (schema, other)]
    yield from _differs("columns", *(f"({listed})" for listed in names))
    for ours in schema.columns:
        theirs = other.column(ours.name)
        if theirs is not None:
            yield from _parts(f"column {ours.name}", ours, theirs)
    yield from _by_name("key", _named(schema.keys), _named(other.keys))
    yield from _by_name("foreign key", _named(schema.foreign_keys), _named(other.foreign_keys))


def _named(items: tuple[KeySchema, ...] | tuple[ForeignKey, ...]) -> dict[str, Any]:
    return {item.name.lower(): item for item in items}


def _by_name(what: str, ours: Mapping[str, Any], theirs: Mapping[str, Any]) -> Iterator[str]:
    for name in dict.fromkeys([*ours, *theirs]):
        if name in ours and name in theirs:
            yield from _parts(f"{what} {name}", ours[name], theirs[name])
        else:
            there, missing = ("there", "missing") if name in ours else ("missing", "there")
            yield f"{what} {name}: {there}, {missing}"


def _parts(
    what: str,
    ours: ColumnSchema | KeySchema | ForeignKey,
    theirs: ColumnSchema | KeySchema | ForeignKey,
) -> Iterator[str]:
    for field in fields(ours):
        values = getattr(ours, field.name), getattr(theirs, field.name)
        yield from _differs(f"{what} {field.name.replace('_', ' ')}", *values)


def _differs(what: str, ours: Any, theirs: Any) -> Iterator[str]:
    if ours != theirs:
        yield f"{what}: {_shown(ours)}, {_shown(theirs)}"


def _shown(value: Any) -> str:
    match value:
        case None:
            return "none"
        case LiteralDefault(text):
            return repr(text)
        case WrittenDefault(text):
            return text
        case ExpressionDefault(text):
            return f"({text})"
        case str():
            return value or "none"
    return str(value)
