"""Tables and databases as the server has them now, in full, from information_schema.

Belongs here: a handful of questions, whatever the number of tables, and putting the
answers together. Does not: what a column's row means (`columns`), the place in the log
that the answers belong to (`baseline`).

The questions are asked one after the other, and tables come and go between them: one that
has no columns any more is left out. What an account may not see is not there. Of a table on which
it has privileges on single columns, information_schema shows only these: such a table is not taken
for what is shown of it (`ReadTables.unread`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pymysql.cursors import Cursor

from pipeline.schema.hidden_columns import places_known, shown_places
from pipeline.schema.model import (
    ColumnSchema,
    DatabaseSchema,
    HiddenColumn,
    KeyPart,
    KeySchema,
    TableSchema,
)
from pipeline.table import TableName
from pipeline.tables import SYSTEM_DATABASES
from resources.mysql.code import SYSTEM, read_all_code
from resources.mysql.columns import ListedColumn, read_column, unescaped, utf8
from resources.mysql.dialect import Dialect, read_dialect
from resources.mysql.foreign_keys import read_foreign_keys
from resources.mysql.privileges import hidden_in_part
from resources.mysql.scopes import Scope, ask, scopes_of

_DATABASES: Final = """
select schema_name, default_character_set_name, default_collation_name
  from information_schema.schemata order by schema_name
"""
_TABLES: Final = """
select table_schema, table_name, engine, table_collation, create_options, table_type
  from information_schema.tables
 where table_type in ('BASE TABLE', 'SYSTEM VERSIONED') and {where}
 order by table_schema, table_name
"""
_COLUMNS: Final = """
select table_schema, table_name, column_name, data_type, is_nullable, column_type,
       character_maximum_length, numeric_precision, numeric_scale, datetime_precision,
       character_set_name, collation_name, column_default, extra, generation_expression, SRID,
       ordinal_position, privileges
  from information_schema.columns where {where}
 order by table_schema, table_name, ordinal_position
"""
_KEYS: Final = """
select table_schema, table_name, index_name, non_unique, index_type, HIDDEN,
       column_name, sub_part, collation, EXPRESSION
  from information_schema.statistics where {where}
 order by table_schema, table_name, index_name, seq_in_index
"""
_HASHING: Final = frozenset({"innodb", "myisam", "aria"})
_ROW_FORMAT: Final = re.compile(r"row_format=(\w+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class ReadTables:
    """`unread`: tables that are there and that the account may not read as a whole, each with
    what it lacks, in words."""

    tables: tuple[TableSchema, ...]
    unread: Mapping[TableName, str]


def read_whole_tables(cursor: Cursor, names: Collection[TableName] | None = None) -> ReadTables:
    """As `read_schemas`, of tables of which no column is hidden from the account."""
    tables, unread = _read(cursor, names)
    hidden = frozenset(hidden_in_part(cursor, [table.name for table in tables]))
    unread |= dict.fromkeys(hidden, "the account has privileges on columns of it, not on the table")
    return ReadTables(tuple(table for table in tables if table.name not in hidden), unread)


def read_schemas(
    cursor: Cursor, names: Collection[TableName] | None = None, *, foreign_keys: bool = True
) -> tuple[TableSchema, ...]:
    """Every base table, system databases left out, or those of `names` that there are, unless a
    column that is shown may not be read; without their `foreign_keys` if nobody needs them. For a
    table that was known before: whether columns are hidden is not asked."""
    return _read(cursor, names, foreign_keys=foreign_keys)[0]


def _read(
    cursor: Cursor, names: Collection[TableName] | None, *, foreign_keys: bool = True
) -> tuple[tuple[TableSchema, ...], dict[TableName, str]]:
    dialect = read_dialect(cursor)
    wanted = None if names is None else frozenset(names)
    scopes = scopes_of(wanted)
    tables = dict(_tables(cursor, scopes))
    columns, ordinals, refused = _columns(cursor, scopes, dialect)
    hashing = {name for name, table in tables.items() if table.engine.lower() in _HASHING}
    keys = _keys(cursor, scopes, dialect, hashing if dialect.mariadb else set())
    references = read_foreign_keys(cursor, scopes, dialect) if foreign_keys else {}
    unread = {
        name: f"the account may not read {', '.join(refused[name])} of it"
        for name in tables
        if name in refused and (wanted is None or name in wanted)
    }
    schemas = tuple(
        TableSchema(
            name,
            tuple(columns[name]),
            tuple(keys.get(name, ())),
            references.get(name, ()),
            table.collation.partition("_")[0] if table.collation else None,
            table.collation,
            table.engine,
            table.row_format,
            table.partitioned,
            table.versioned,
            _hidden(dialect, ordinals[name], keys.get(name, ())),
        )
        for name, table in tables.items()
        if name in columns and name not in refused and (wanted is None or name in wanted)
    )
    return schemas, unread


def read_databases(cursor: Cursor) -> tuple[DatabaseSchema, ...]:
    """Every database this account sees, with its triggers and views; of the system's, the one that
    may have tables of a managed service."""
    cursor.execute(_DATABASES)
    rows = [
        (name, utf8(charset) or "", utf8(collation) or "")
        for name, charset, collation in cursor.fetchall()
        if name.lower() not in SYSTEM_DATABASES or name == SYSTEM
    ]
    own = [name for name, *_ in rows if name != SYSTEM]
    code = read_all_code(cursor, own, read_dialect(cursor))
    return tuple(DatabaseSchema(*row, code[row[0]]) for row in rows if row[0] in code)


@dataclass(frozen=True, slots=True)
class _Table:
    engine: str
    collation: str | None
    row_format: str | None
    partitioned: bool
    versioned: bool


def _tables(cursor: Cursor, scopes: Sequence[Scope]) -> Iterator[tuple[TableName, _Table]]:
    for name, (engine, collation, options, kind) in ask(cursor, _TABLES, scopes):
        row_format = _ROW_FORMAT.search(options or "")
        yield (
            name,
            _Table(
                engine or "",
                utf8(collation),
                row_format[1].lower() if row_format else None,
                "partitioned" in (options or ""),
                kind == "SYSTEM VERSIONED",
            ),
        )


def _columns(
    cursor: Cursor, scopes: Sequence[Scope], dialect: Dialect
) -> tuple[
    dict[TableName, list[ColumnSchema]], dict[TableName, list[int]], dict[TableName, list[str]]
]:
    """The tables' columns, the places that the server counts for them, from 1, and the names of
    those that the account may not read."""
    question = _COLUMNS.replace("SRID", "srs_id" if dialect.mysql_from(8, 0, 3) else "null")
    columns: dict[TableName, list[ColumnSchema]] = {}
    ordinals: dict[TableName, list[int]] = {}
    refused: dict[TableName, list[str]] = {}
    for table, (*listed, ordinal, privileges) in ask(cursor, question, scopes):
        column = read_column(ListedColumn(*listed), mariadb=dialect.mariadb)
        columns.setdefault(table, []).append(column)
        ordinals.setdefault(table, []).append(int(ordinal))
        if "select" not in str(privileges).lower().split(","):
            refused.setdefault(table, []).append(column.name)
    return columns, ordinals, refused


def _hidden(
    dialect: Dialect, ordinals: list[int], keys: Collection[KeySchema]
) -> tuple[HiddenColumn, ...]:
    if not places_known(dialect.version, mariadb=dialect.mariadb):
        return ()
    return shown_places(ordinals, keys)


def _keys(
    cursor: Cursor, scopes: Sequence[Scope], dialect: Dialect, hashing: Collection[TableName]
) -> dict[TableName, list[KeySchema]]:
    """`hashing`: tables whose HASH keys are those that no B-tree can hold."""
    question = _KEYS.replace("HIDDEN", _invisible(dialect)).replace(
        "EXPRESSION", _expression(dialect)
    )
    parts: dict[TableName, dict[tuple[Any, ...], list[KeyPart]]] = {}
    for table, (name, many, kind, hidden, column, prefix, order, printed) in ask(
        cursor, question, scopes
    ):
        words = kind.lower() if kind in ("FULLTEXT", "SPATIAL") else None
        whole = prefix is None or words is not None
        part = KeyPart(
            column,
            None if whole else int(prefix),
            None if printed is None else unescaped(printed),
            order == "D",
        )
        usual = "index" if int(many) else "unique"
        hashed = kind == "HASH" and table in hashing
        word = words or ("primary" if name == "PRIMARY" else usual)
        key = (name, word, hidden == "YES", hashed)
        parts.setdefault(table, {}).setdefault(key, []).append(part)
    return {
        table: [
            KeySchema(name, word, tuple(of), hidden, hashed=hashed)
            for (name, word, hidden, hashed), of in keys.items()
        ]
        for table, keys in parts.items()
    }


def _invisible(dialect: Dialect) -> str:
    """Indexes that the optimizer passes over: INVISIBLE, or IGNORED since MariaDB 10.6."""
    if dialect.mysql_from(8, 0, 0):
        return "if(is_visible = 'YES', 'NO', 'YES')"
    return "ignored" if dialect.mariadb and dialect.version >= 100_600 else "'NO'"


def _expression(dialect: Dialect) -> str:
    """Functional key parts came with MySQL 8.0.13."""
    return "expression" if dialect.mysql_from(8, 0, 13) else "null"
