"""Rows for tables whose structure is only known from information_schema: one that brings a table's
TABLE_MAP into the log, whatever its columns are, and statements that write rows of chance.

What a value is does not matter, only that rows differ. Where the server refuses a row, there is no
TABLE_MAP.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import suppress
from random import Random
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.model import (
    BLOB_FAMILY,
    CHARACTER_STRINGS,
    INTEGER_BITS,
    ColumnSchema,
    TableSchema,
)
from lockstep.pipeline.values.table import TableName

SESSION: Final = ("set sql_mode = '', foreign_key_checks = 0, unique_checks = 0, autocommit = 1",)
"""A session that takes what it can."""

_SHAPES: Final = {
    "point": "POINT({} 2)",
    "geometry": "POINT({} 2)",
    "linestring": "LINESTRING(0 0, 1 {})",
    "polygon": "POLYGON((0 0, 0 1, 1 1, 0 0))",
    "multipoint": "MULTIPOINT((0 0), (1 1))",
    "multilinestring": "MULTILINESTRING((0 0, 1 1))",
    "multipolygon": "MULTIPOLYGON(((0 0, 0 1, 1 1, 0 0)))",
    "geomcollection": "GEOMETRYCOLLECTION(POINT(1 1))",
    "geometrycollection": "GEOMETRYCOLLECTION(POINT(1 1))",
}
_LETTERS: Final = "abcÄß日 '\\%"
_KEYS: Final = 25
"""So few keys that rows meet each other."""


def insert_rows(cursor: Cursor, tables: Iterable[TableSchema]) -> None:
    """A row into each table: one with NULLs where the server takes no other."""
    for table in tables:
        columns = [c for c in _written(table) if c.system_period is None]
        for nulls in (False, True):
            values = ("null" if nulls and c.nullable else literal(c, 1) for c in columns)
            with suppress(pymysql.MySQLError):
                if cursor.execute(
                    f"insert ignore into {full_name(table.name)} ({_names(columns)})"
                    f" values ({', '.join(values)})"
                ):
                    break


def delete_rows(cursor: Cursor, tables: Iterable[TableSchema]) -> None:
    """Out again: what follows finds them empty."""
    for table in tables:
        with suppress(pymysql.MySQLError):
            cursor.execute(f"delete from {full_name(table.name)}")


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def full_name(table: TableName) -> str:
    return f"{quoted(table.database)}.{quoted(table.name)}"


def _names(columns: Iterable[ColumnSchema]) -> str:
    return ", ".join(quoted(column.name) for column in columns)


def _written(table: TableSchema) -> list[ColumnSchema]:
    return [column for column in table.columns if column.generated is None]


# -- statements of chance ---------------------------------------------------------------------


def change(chance: Random, table: TableSchema) -> str:
    """A statement that changes some rows, or none."""
    forms: tuple[Callable[[Random, TableSchema], str], ...] = (_insert, _update, _delete)
    (form,) = chance.choices(forms, (5, 4, 2))
    return form(chance, table)


def _insert(chance: Random, table: TableSchema) -> str:
    columns = _written(table)
    rows = ", ".join(
        f"({', '.join(_value(chance, table, column) for column in columns)})"
        for _ in range(chance.randint(1, 4))
    )
    word = chance.choice(("insert ignore", "insert ignore", "replace"))
    return f"{word} into {full_name(table.name)} ({_names(columns)}) values {rows or '()'}"


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


def _value(chance: Random, table: TableSchema, column: ColumnSchema) -> str:
    more = "".join(chance.choices(_LETTERS, k=chance.randint(0, 3)))
    if column.name in table.primary_key:
        return literal(column, chance.randint(1, _KEYS), more)
    if column.nullable and chance.random() < 0.2:
        return "null"
    return literal(column, chance.randint(0, 99), more)


def literal(column: ColumnSchema, number: int, more: str = "") -> str:
    """A literal that the column takes, made of the number where it can be; a text has `more`."""
    kind = column.type
    if kind in _SHAPES:
        return f"st_geomfromtext('{_SHAPES[kind].format(number)}', {column.srid or 0})"
    if kind in INTEGER_BITS:
        return str(number)
    if kind in CHARACTER_STRINGS:
        return "'" + f"{number}{more}".replace("\\", "\\\\").replace("'", "''") + "'"
    if kind in ("binary", "varbinary", *BLOB_FAMILY):
        return f"x'{number:02x}'"
    match kind:
        case "bit":
            return str(number % (1 << (column.length or 1)))
        case "enum" | "set":
            return str(1 + number % max(1, len(column.members)))
        case "datetime" | "timestamp":
            return f"'2024-02-{1 + number % 28:02} {number % 24:02}:59:01.{number:06}'"
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
        case "inet4":
            return "'10.0.0.1'"
        case "inet6":
            return "'::1'"
        case "uuid":
            return "'6ccd780c-baba-1026-9564-5b8c656024db'"
        case "decimal" | "float" | "double":
            return f"{number}.5"
        case _:
            raise ValueError(f"no value of {kind} is known")
