"""Two accounts of one table, part by part, as sentences; and what a statement did, as one.

Not here: which of the two is right, nor what a difference means for stored values.

Expressions are the server's own print of them, on either server another; so only
whether there is one counts, and CURRENT_TIMESTAMP, which has one form.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, Final, assert_never

from pipeline.schema.evolving.effects import (
    Changed,
    Created,
    DatabaseEffect,
    Dirty,
    Dropped,
    Effect,
    NotFollowed,
    Renamed,
    Truncated,
    Unchanged,
    UnknownTable,
)
from pipeline.schema.model import (
    ColumnSchema,
    Default,
    ExpressionDefault,
    ForeignKey,
    KeyPart,
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
    # The order of a table's keys means nothing, and differs between two accounts of one table.
    for name in sorted(ours.keys() | theirs.keys()):
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


_NOW: Final = re.compile(
    r"(?:current_timestamp|now|localtime|localtimestamp)(?:\((?P<digits>\d*)\))?", re.IGNORECASE
)
_THERE: Final = "…"
_CUT: Final = frozenset(767 // width for width in (1, 2, 3, 4))
"""Characters of one to four bytes that 767 bytes hold. All count for each column: an index keeps
its number of characters when its column gets another character set."""


def comparable(table: TableSchema) -> TableSchema:
    """The table as far as both can tell; one that was read is as one that was followed."""
    return replace(
        table,
        columns=tuple(map(_column, table.columns)),
        keys=tuple(map(_key, table.keys)),
        row_format=None,
        # MySQL does not show it for PARTITION BY KEY () without a column.
        partitioned=False,
    )


def disagreements(history: TableSchema, server: TableSchema) -> Sequence[str]:
    """What the server has otherwise than the history, each as "what: history, server"."""
    theirs = aligned(comparable(server), history)
    return differences(comparable(history), _unshortened(theirs, history))


def _unshortened(server: TableSchema, history: TableSchema) -> TableSchema:
    """Return the server's table, with the history's prefixes where `innodb_large_prefix` explains
    that its own are shorter.

    While that global variable of MySQL 5.7 is OFF, each statement of a session without strict
    mode that makes a table's indexes cuts parts of more than 767 bytes, in every row format. No
    log has its value. A UNIQUE is refused instead, so no row is told apart by such a prefix.
    """
    known = {key.name.lower(): key for key in history.keys if key.kind == "index"}
    keys = []
    for key in server.keys:
        ours = known.get(key.name.lower())
        if ours is not None and len(ours.parts) == len(key.parts):
            key = replace(key, parts=tuple(map(_longer, key.parts, ours.parts)))
        keys.append(key)
    return replace(server, keys=tuple(keys))


def _longer(server: KeyPart, history: KeyPart) -> KeyPart:
    if server.prefix is None or server.prefix not in _CUT:
        return server
    longer = history.prefix is None or history.prefix > server.prefix
    return replace(server, prefix=history.prefix) if longer else server


def _column(column: ColumnSchema) -> ColumnSchema:
    generated = None if column.generated is None else _THERE
    return replace(column, default=_default(column), generated=generated)


def _default(column: ColumnSchema) -> Default | None:
    match column.default:
        case ExpressionDefault(text):
            return _expression(text)
        case LiteralDefault(text) if column.type == "float":
            return LiteralDefault(repr(_as_float(text)))
    return column.default


def _as_float(text: str) -> float:
    """What a FLOAT keeps of a number: 32 bits."""
    return float(struct.unpack("f", struct.pack("f", float(text)))[0])


def _expression(text: str) -> ExpressionDefault:
    match = _NOW.fullmatch(text)
    if match is None:
        return ExpressionDefault(_THERE)
    digits = (match["digits"] or "").lstrip("0")
    return ExpressionDefault(f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP")


def _key(key: KeySchema) -> KeySchema:
    parts = tuple(
        part if part.expression is None else replace(part, expression=_THERE) for part in key.parts
    )
    return replace(key, parts=parts, generated=False)


_SHOWN = 6
"""So many differences of a table are told; more are counted."""


def sentence(effect: Effect) -> str:
    """`shop.orders: column note: missing, there`, and the like."""
    match effect:
        case Created(table, after):
            return f"{table}: created with {len(after.columns)} columns"
        case Dropped(table):
            return f"{table}: dropped"
        case Renamed(table, to):
            return f"{table}: is now called {to}"
        case Truncated(table):
            return f"{table}: emptied"
        case Changed(table, before, after):
            found = differences(before, after)
            more = f"; and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
            return f"{table}: {'; '.join(found[:_SHOWN])}{more}"
        case Unchanged(table, why):
            return f"{table}: nothing, {why}"
        case Dirty(table, reason):
            return f"{table}: rows may have changed ({reason})"
        case NotFollowed(table, reason):
            return f"{table}: not followed, {reason}"
        case UnknownTable(table, statement):
            return f"{table}: {statement} on a table that was not known"
        case DatabaseEffect(name, kind):
            return f"database {name}: {kind}"
    assert_never(effect)
