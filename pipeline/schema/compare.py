"""The differences between two descriptions of one table.

MySQL and MariaDB print the same expression in different ways. So `comparable_table`
makes all expressions equal, except for CURRENT_TIMESTAMP, whose synonyms get one
spelling.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields, replace
from typing import Any, Final

from lockstep.pipeline.schema.model import (
    ColumnSchema,
    Default,
    ExpressionDefault,
    ForeignKey,
    KeyPart,
    KeySchema,
    TableSchema,
    ValueDefault,
    WrittenDefault,
    now_digits,
    now_expression,
)

_TABLE_PROPERTIES: Final = ("charset", "collation", "engine", "partitioned", "system_versioned")


def differences(schema: TableSchema, other: TableSchema) -> tuple[str, ...]:
    """Return each difference between two descriptions of a table as "property: value,
    value", the value of `schema` first. The order of columns is compared; the tables'
    names and the order of keys are not."""
    return tuple(_differences(schema, other))


def with_unlogged_properties(table: TableSchema, other: TableSchema) -> TableSchema:
    """Return the table, but with the properties of `other` that a log does not have:
    some defaults, and some ON UPDATE.

    A column gets its namesake's default if both have one and the value of either is
    unknown (MariaDB turns some defaults into expressions). If both are TIMESTAMP
    without a default, the column gets its namesake's ON UPDATE: in MySQL with
    `explicit_defaults_for_timestamp = 0`, any ALTER TABLE adds ON UPDATE to the table's
    first TIMESTAMP, but MySQL logs this variable only with statements that define a
    TIMESTAMP.
    """
    return replace(
        table, columns=tuple(_with_unlogged_column(column, other) for column in table.columns)
    )


def _with_unlogged_column(column: ColumnSchema, other: TableSchema) -> ColumnSchema:
    namesake = other.column(column.name)
    if namesake is None:
        return column
    defaults = (column.default, namesake.default)
    if None not in defaults and any(isinstance(default, WrittenDefault) for default in defaults):
        return replace(column, default=namesake.default)
    if column.type == namesake.type == "timestamp" and defaults == (None, None):
        return replace(column, on_update=namesake.on_update)
    return column


def _differences(schema: TableSchema, other: TableSchema) -> Iterator[str]:
    for name in _TABLE_PROPERTIES:
        yield from _difference(name, getattr(schema, name), getattr(other, name))
    our_names, their_names = (f"({', '.join(table.names)})" for table in (schema, other))
    yield from _difference("columns", our_names, their_names)
    for ours in schema.columns:
        theirs = other.column(ours.name)
        if theirs is not None:
            yield from _property_differences(f"column {ours.name}", ours, theirs)
    yield from _key_differences("key", schema.keys, other.keys)
    yield from _key_differences("foreign key", schema.foreign_keys, other.foreign_keys)


def _key_differences(
    subject: str,
    ours: Iterable[KeySchema | ForeignKey],
    theirs: Iterable[KeySchema | ForeignKey],
) -> Iterator[str]:
    # The order of a table's keys means nothing, and two descriptions of a table differ
    # in it.
    our_keys, their_keys = ({key.name.lower(): key for key in keys} for keys in (ours, theirs))
    for name in sorted(our_keys.keys() | their_keys.keys()):
        if name not in their_keys:
            yield f"{subject} {name}: there, missing"
        elif name not in our_keys:
            yield f"{subject} {name}: missing, there"
        else:
            yield from _property_differences(f"{subject} {name}", our_keys[name], their_keys[name])


def _property_differences(
    subject: str,
    ours: ColumnSchema | KeySchema | ForeignKey,
    theirs: ColumnSchema | KeySchema | ForeignKey,
) -> Iterator[str]:
    for field in fields(ours):
        values = getattr(ours, field.name), getattr(theirs, field.name)
        yield from _difference(f"{subject} {field.name.replace('_', ' ')}", *values)


def _difference(subject: str, ours: Any, theirs: Any) -> Iterator[str]:
    if ours != theirs:
        yield f"{subject}: {_value_text(ours)}, {_value_text(theirs)}"


def _value_text(value: Any) -> str:
    match value:
        case None:
            return "none"
        case ValueDefault(text):
            return repr(text)
        case WrittenDefault(text):
            return text
        case ExpressionDefault(text):
            return f"({text})"
        case str():
            return value or "none"
    return str(value)


_ANY_EXPRESSION: Final = "…"
_SHORTENED_PREFIXES: Final = frozenset(767 // width for width in (1, 2, 3, 4))
"""Lengths, in characters, of prefixes that MySQL shortened to 767 bytes, for characters
of one to four bytes. If the column's character set changes later, the prefix keeps its
length in characters, so each length can occur with each character set."""


def comparable_table(table: TableSchema) -> TableSchema:
    """Return the table without properties that only the server or only the history can
    know."""
    return replace(
        table,
        columns=tuple(map(_comparable_column, table.columns)),
        keys=tuple(map(_comparable_key, table.keys)),
        row_format=None,
        # MySQL does not report partitions for PARTITION BY KEY () without a column.
        partitioned=False,
    )


def _comparable_column(column: ColumnSchema) -> ColumnSchema:
    generated = None if column.generated is None else _ANY_EXPRESSION
    return replace(column, default=_comparable_default(column), generated=generated)


def _comparable_default(column: ColumnSchema) -> Default | None:
    match column.default:
        case ExpressionDefault(text):
            digits = now_digits(text)
            return ExpressionDefault(_ANY_EXPRESSION if digits is None else now_expression(digits))
        case ValueDefault(text) if column.type == "float":
            (stored_value,) = struct.unpack("f", struct.pack("f", float(text)))
            return ValueDefault(repr(stored_value))
    return column.default


def _comparable_key(key: KeySchema) -> KeySchema:
    parts = tuple(
        part if part.expression is None else replace(part, expression=_ANY_EXPRESSION)
        for part in key.parts
    )
    return replace(key, parts=parts, generated=False)


def disagreements(history: TableSchema, server: TableSchema) -> Sequence[str]:
    """Return each difference between the history and the server as "property: history,
    server"."""
    theirs = with_unlogged_properties(comparable_table(server), history)
    return differences(comparable_table(history), _with_full_prefixes(theirs, history))


def _with_full_prefixes(server: TableSchema, history: TableSchema) -> TableSchema:
    """Return the server's table with the history's longer prefixes, if MySQL 5.7 may
    have shortened them because of `innodb_large_prefix`.

    While this global variable is OFF, MySQL shortens a part of more than 767 bytes
    whenever a session without strict mode builds the index, in every row format. The
    log does not have the variable. MySQL refuses a UNIQUE key in this case, so no
    shortened prefix identifies rows.
    """
    history_indexes = {key.name.lower(): key for key in history.keys if key.kind == "index"}
    keys = []
    for key in server.keys:
        namesake = history_indexes.get(key.name.lower())
        if namesake is not None and len(namesake.parts) == len(key.parts):
            key = replace(key, parts=tuple(map(_with_longer_prefix, key.parts, namesake.parts)))
        keys.append(key)
    return replace(server, keys=tuple(keys))


def _with_longer_prefix(server: KeyPart, history: KeyPart) -> KeyPart:
    if server.prefix is None or server.prefix not in _SHORTENED_PREFIXES:
        return server
    is_longer = history.prefix is None or history.prefix > server.prefix
    return replace(server, prefix=history.prefix) if is_longer else server
