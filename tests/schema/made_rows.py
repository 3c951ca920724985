"""Rows for tables whose structure is only known from information_schema.

Belongs here: statements that bring a table's TABLE_MAP into the log, whatever its columns are.
What the values are does not matter; where the server refuses them, there is no TABLE_MAP.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.model import ColumnSchema, TableSchema

SESSION: Final = ("set sql_mode = '', foreign_key_checks = 0, unique_checks = 0, autocommit = 1",)
"""A session that takes what it can."""

_TEXTUAL: Final = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext"})
_BYTES: Final = frozenset({"binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"})
_SHAPES: Final = {
    "point": "POINT(1 2)",
    "geometry": "POINT(1 2)",
    "linestring": "LINESTRING(0 0, 1 1)",
    "polygon": "POLYGON((0 0, 0 1, 1 1, 0 0))",
    "multipoint": "MULTIPOINT((0 0), (1 1))",
    "multilinestring": "MULTILINESTRING((0 0, 1 1))",
    "multipolygon": "MULTIPOLYGON(((0 0, 0 1, 1 1, 0 0)))",
    "geomcollection": "GEOMETRYCOLLECTION(POINT(1 1))",
    "geometrycollection": "GEOMETRYCOLLECTION(POINT(1 1))",
}
_WORDS: Final = {
    "date": "'2024-02-29'",
    "datetime": "'2024-02-29 12:34:56.123456'",
    "timestamp": "'2024-02-29 12:34:56.123456'",
    "time": "'12:34:56.123456'",
    "year": "2024",
    "json": "'{\"a\": 1}'",
    "inet4": "'10.0.0.1'",
    "inet6": "'::1'",
    "uuid": "'6ccd780c-baba-1026-9564-5b8c656024db'",
}


def insert_rows(cursor: Cursor, tables: Iterable[TableSchema]) -> None:
    """A row into each table: one with NULLs where the server takes no other."""
    for table in tables:
        for number in (1, 2):
            with suppress(pymysql.MySQLError):
                if cursor.execute(_insert(table, number)):
                    break


def delete_rows(cursor: Cursor, tables: Iterable[TableSchema]) -> None:
    """Out again: what follows finds them empty."""
    for table in tables:
        with suppress(pymysql.MySQLError):
            cursor.execute(f"delete from {_name(table)}")


def _insert(table: TableSchema, number: int) -> str:
    columns = [c for c in table.columns if c.generated is None and c.system_period is None]
    names = ", ".join(_quoted(column.name) for column in columns)
    values = ", ".join(_value(column, number) for column in columns)
    return f"insert ignore into {_name(table)} ({names}) values ({values})"


def _name(table: TableSchema) -> str:
    return f"{_quoted(table.name.database)}.{_quoted(table.name.name)}"


def _quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def _value(column: ColumnSchema, number: int) -> str:
    kind = column.type
    if column.nullable and number == 2:
        return "null"
    if kind in _SHAPES:
        srid = f", {column.srid}" if column.srid is not None else ""
        return f"st_geomfromtext('{_SHAPES[kind]}'{srid})"
    if kind in _WORDS:
        return _WORDS[kind]
    if kind in _TEXTUAL or kind in _BYTES:
        return f"'{number}'"
    if kind == "vector":
        return f"x'{'0000803f' * (column.length or 1)}'"
    return f"{number}"
