"""Literals for any column, and statements that write rows of chance into any table.

Belongs here: INSERT, UPDATE and DELETE for tables whose structure is only known from
information_schema. What a value is does not matter, only that rows differ; the session of
`made_rows` takes what it can.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import Final

from lockstep.pipeline.schema.model import ColumnSchema, TableSchema
from lockstep.pipeline.values.table import TableName
from tests.schema.random_definitions import quoted

_TEXTS: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_INTEGERS: Final = frozenset({"tinyint", "smallint", "mediumint", "int", "bigint", "bit"})
_MOMENTS: Final = frozenset({"datetime", "timestamp"})
_POINTS: Final = frozenset({"point", "geometry"})
_LETTERS: Final = "abcÄß日 '\\%"
_KEYS: Final = 25
"""So few keys that rows meet each other."""


def full_name(table: TableName) -> str:
    return f"{quoted(table.database)}.{quoted(table.name)}"


def change(chance: Random, table: TableSchema) -> str:
    """A statement that changes some rows, or none."""
    forms: tuple[Callable[[Random, TableSchema], str], ...] = (_insert, _update, _delete)
    (form,) = chance.choices(forms, (5, 4, 2))
    return form(chance, table)


def _insert(chance: Random, table: TableSchema) -> str:
    columns = _written(table)
    names = ", ".join(quoted(column.name) for column in columns)
    rows = ", ".join(
        f"({', '.join(_value(chance, table, column) for column in columns)})"
        for _ in range(chance.randint(1, 4))
    )
    word = chance.choice(("insert ignore", "insert ignore", "replace"))
    return f"{word} into {full_name(table.name)} ({names}) values {rows or '()'}"


def _update(chance: Random, table: TableSchema) -> str:
    columns = _written(table)
    if not columns:
        return _delete(chance, table)
    chosen = chance.sample(columns, min(len(columns), chance.randint(1, 2)))
    changes = ", ".join(f"{quoted(one.name)} = {_value(chance, table, one)}" for one in chosen)
    return f"update ignore {full_name(table.name)} set {changes} {_some(chance)}"


def _delete(chance: Random, table: TableSchema) -> str:
    return f"delete from {full_name(table.name)} {_some(chance)}"


def _some(chance: Random) -> str:
    return f"order by rand({chance.randrange(1 << 30)}) limit {chance.randint(1, 3)}"


def _written(table: TableSchema) -> list[ColumnSchema]:
    return [column for column in table.columns if column.generated is None]


def _value(chance: Random, table: TableSchema, column: ColumnSchema) -> str:
    if column.name in table.primary_key:
        return literal(chance, column, chance.randint(1, _KEYS))
    if column.nullable and chance.random() < 0.2:
        return "null"
    return literal(chance, column, chance.randint(0, 99))


def literal(chance: Random, column: ColumnSchema, number: int) -> str:
    """A literal that the column takes, made of the number where it can be."""
    kind = column.type
    if kind in _INTEGERS:
        return str(number if kind != "bit" else number % (1 << (column.length or 1)))
    if kind in _TEXTS:
        return _text(chance, number)
    if kind in _BYTES:
        return f"x'{number:02x}'"
    if kind in ("enum", "set"):
        return str(1 + number % max(1, len(column.members)))
    if kind in _MOMENTS:
        return f"'2024-02-{1 + number % 28:02} {number % 24:02}:59:01.{number:06}'"
    if kind in _POINTS:
        return f"st_geomfromtext('POINT({number} 2)', {column.srid or 0})"
    return _other(kind, column, number)


def _text(chance: Random, number: int) -> str:
    more = "".join(chance.choices(_LETTERS, k=chance.randint(0, 3)))
    text = f"{number}{more}".replace("\\", "\\\\").replace("'", "''")
    return f"'{text}'"


def _other(kind: str, column: ColumnSchema, number: int) -> str:
    match kind:
        case "date":
            return f"'2024-03-{1 + number % 31:02}'"
        case "time":
            return f"'{number % 24:02}:{number % 60:02}:01.{number:06}'"
        case "year":
            return str(2000 + number)
        case "json":
            return f'\'{{"n": {number}, "of": ["ä", null]}}\''
        case "vector":
            return f"x'{'0000803f' * (column.length or 1)}'"
        case "linestring":
            return f"st_geomfromtext('LINESTRING(0 0, 1 {number})', {column.srid or 0})"
        case _:
            return f"{number}.5" if kind in ("float", "double", "decimal") else str(number)
