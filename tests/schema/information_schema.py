"""Tables as a real server's information_schema has them, in the words of the model.

Belongs here: reading both servers' dialects into one. Expressions are only marked as
there: each server prints its own form of them.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Iterable
from dataclasses import replace
from itertools import groupby
from typing import Any, Final

import pymysql
from pymysql.constants import ER
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.model import (
    ColumnSchema,
    DatabaseSchema,
    Default,
    ExpressionDefault,
    ForeignKey,
    KeyKind,
    KeyPart,
    KeySchema,
    ServerSchema,
    TableSchema,
    ValueDefault,
)
from lockstep.pipeline.values.table import TableName

SYSTEM: Final = ("mysql", "sys", "information_schema", "performance_schema")

_TABLES = """
select table_schema, table_name, engine, table_collation, create_options, table_type
  from information_schema.tables where table_type in ('BASE TABLE', 'SYSTEM VERSIONED') and {where}
"""
_COLUMNS = """
select table_schema, table_name, column_name, data_type, is_nullable, column_type,
       character_maximum_length, numeric_precision, numeric_scale, datetime_precision,
       character_set_name, collation_name, column_default, extra, generation_expression, {srid}
  from information_schema.columns where {where}
 order by table_schema, table_name, ordinal_position
"""
_KEYS = """
select table_schema, table_name, index_name, non_unique, column_name, sub_part, index_type,
       collation, {visible}, {expression}
  from information_schema.statistics where {where}
 order by table_schema, table_name, index_name, seq_in_index
"""
_ANY_FOREIGN = "select 1 from information_schema.referential_constraints where {where} limit 1"
_FOREIGN = """
select r.constraint_schema, r.table_name, r.constraint_name, k.column_name,
       k.referenced_table_schema, k.referenced_table_name, k.referenced_column_name,
       r.delete_rule, r.update_rule
  from information_schema.referential_constraints r
  join information_schema.key_column_usage k
    on k.constraint_schema = r.constraint_schema and k.constraint_name = r.constraint_name
   and k.table_name = r.table_name
 where {where}
 order by r.constraint_schema, r.table_name, r.constraint_name, k.ordinal_position
"""
_HASHING: Final = ("InnoDB", "MyISAM", "Aria")
"""Engines for which MariaDB hashes; others have hash indexes of their own."""

_OTHERWISE: Final = frozenset(
    {"timestamp", "bit", "binary", "varbinary", "tinyblob", "blob", "mediumblob", "longblob"}
)
"""Printed in the zone of who made them, as bytes up to a NUL, or with ? for some: what their
values are is `tests/hostile/test_literals.py`'s."""

_ROUNDED: Final = re.compile(r"(?:float|double)\((\d+),(\d+)\)")
_QUOTED: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED: Final = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROLS: Final = {"0": "\0", "n": "\n", "r": "\r"}


def read_server(cursor: Cursor, *, mariadb: bool, like: str = "%") -> ServerSchema:
    """Everything in databases whose names are LIKE that, system ones left out."""
    schema = ServerSchema()
    cursor.execute("set @like = %s", (like,))
    for name, charset, collation in _rows(
        cursor,
        "select schema_name, default_character_set_name, default_collation_name"
        " from information_schema.schemata where {where}",
        "schema_name",
    ):
        schema = schema.with_database(DatabaseSchema(name, _utf8(charset), _utf8(collation)))
    tables = _tables(cursor)
    bare = mariadb or _before_8(cursor)
    _add_columns(cursor, tables, mariadb=mariadb, srid="null" if bare else "srs_id")
    visible = "'NO'" if bare else "if(is_visible = 'YES', 'NO', 'YES')"
    shown = ("ignored" if mariadb else visible), ("null" if bare else "expression")
    _add_keys(cursor, tables, *shown, mariadb=mariadb)
    _add_foreign_keys(cursor, tables)
    return replace(schema, tables=tables)


def _rows(cursor: Cursor, query: str, column: str, **parts: str) -> list[tuple[Any, ...]]:
    """Of the databases whose names are LIKE `@like`. Prepared once in a session: a server plans
    these views for longer than it reads them."""
    names = ", ".join(f"'{name}'" for name in SYSTEM)
    text = query.format(where=f"{column} like ? and {column} not in ({names})", **parts)
    name = f"asked_{zlib.crc32(text.encode())}"
    try:
        cursor.execute(f"execute {name} using @like")
    except pymysql.MySQLError as error:
        if error.args[0] != ER.UNKNOWN_STMT_HANDLER:
            raise
        cursor.execute(f"prepare {name} from %s", (text,))
        cursor.execute(f"execute {name} using @like")
    return list(cursor.fetchall())


def _tables(cursor: Cursor) -> dict[TableName, TableSchema]:
    found = {}
    for database, name, engine, collation, options, kind in _rows(cursor, _TABLES, "table_schema"):
        own = TableName(database, name)
        collation = _utf8(collation)
        found[own] = TableSchema(
            own,
            (),
            charset=collation.partition("_")[0] if collation else None,
            collation=collation,
            engine=engine or "InnoDB",
            partitioned="partitioned" in (options or ""),
            system_versioned=kind == "SYSTEM VERSIONED",
        )
    return found


def _before_8(cursor: Cursor) -> bool:
    """Whether it is a MySQL 5.7, which lacks some columns of information_schema."""
    cursor.execute("select @@version")
    ((version,),) = cursor.fetchall()
    return str(version).startswith("5.")


def _utf8(name: Any) -> Any:
    return re.sub(r"^utf8(?=_|$)", "utf8mb3", name) if isinstance(name, str) else name


def _text(value: Any) -> str:
    return value.decode() if isinstance(value, bytes) else str(value)


def _add_columns(
    cursor: Cursor, tables: dict[TableName, TableSchema], *, mariadb: bool, srid: str
) -> None:
    rows = _rows(cursor, _COLUMNS, "table_schema", srid=srid)
    for (database, table), found in groupby(rows, lambda row: row[:2]):
        own = TableName(database, table)
        if own in tables:
            columns = tuple(_column(list(row[2:]), mariadb=mariadb) for row in found)
            tables[own] = replace(tables[own], columns=columns)


def _column(row: list[Any], *, mariadb: bool) -> ColumnSchema:
    name, kind, nullable, full, length, precision, scale, digits = row[:8]
    charset, collation, default, extra, expression, srid = row[8:]
    kind, full, extra = kind.lower(), _text(full), (extra or "").upper()
    if kind == "geometrycollection" and not mariadb:
        kind = "geomcollection"  # its name before MySQL 8.0.11
    rounded = _ROUNDED.match(full)
    decimal = kind == "decimal"
    if kind == "bit":
        length = precision
    elif kind in ("datetime", "timestamp", "time"):
        length = digits
    elif kind == "vector":
        length = int(full[7:-1])
    elif kind not in ("char", "varchar", "binary", "varbinary"):
        length = None
    members = _members(full) if kind in ("enum", "set") else ()
    found = ColumnSchema(
        name,
        kind,
        nullable == "YES",
        length,
        int(rounded[1]) if rounded else precision if decimal else None,
        int(rounded[2]) if rounded else scale if decimal else None,
        unsigned=" unsigned" in full,
        zerofill=" zerofill" in full,
        # Of ENUM and SET the set `binary` is not shown.
        charset=_utf8(charset) or ("binary" if members else None),
        collation=_utf8(collation) or ("binary" if members else None),
        members=members,
        on_update="ON UPDATE" in extra,
        auto_increment="AUTO_INCREMENT" in extra,
        generated="" if expression and "GENERATED" in extra.replace("DEFAULT_", "") else None,
        stored="STORED GENERATED" in extra or "PERSISTENT" in extra,
        invisible="INVISIBLE" in extra,
        srid=srid,
        compressed="COMPRESSED" in full.partition("'")[0] and "/*" in full,
    )
    if found.generated is None and "DEFAULT_" not in extra and "GENERATED" in extra:
        found = replace(found, generated="")
    if (expression or "").startswith("ROW "):
        period = expression.removeprefix("ROW ").lower()
        return replace(found, generated=None, stored=False, system_period=period)
    read = _mariadb_default if mariadb else _mysql_default
    return replace(found, default=read(default, extra, found) if found.generated is None else None)


def _mysql_default(default: Any, extra: str, column: ColumnSchema) -> Default | None:
    if default is None:
        # MySQL 8.0.15 does not print expressions of TEXT and BLOB.
        unprinted = "DEFAULT_GENERATED" in extra and column.type.endswith(("text", "blob"))
        return expression("") if unprinted else None
    text = _text(default)
    # MySQL 5.7 marks none, and has but one: of columns of moments.
    moment = column.type in ("datetime", "timestamp") and text.startswith("CURRENT_TIMESTAMP")
    return expression(text) if moment or "DEFAULT_GENERATED" in extra else ValueDefault(text)


def _mariadb_default(default: Any, _: str, column: ColumnSchema) -> Default | None:
    """MariaDB prints an expression, a literal being one."""
    if default is None or default == "NULL" or (column.compressed and default == "''"):
        # Compressed columns without a default are shown with an empty one.
        return None
    text = _text(default)
    quoted = re.fullmatch(r"_?[a-z0-9]*'((?:[^'\\]|''|\\.)*)'", text, re.DOTALL)
    if quoted is not None:
        return ValueDefault(_ESCAPED.sub(_plain, quoted[1]))
    if re.fullmatch(r"[xX]'[0-9A-Fa-f]*'|0x[0-9A-Fa-f]+|b'[01]*'|-?[0-9.eE+-]+", text):
        return ValueDefault(text)
    return expression(text)


def expression(text: str) -> ExpressionDefault:
    """CURRENT_TIMESTAMP in one form, every other expression as "there"."""
    found = re.fullmatch(r"(?:current_timestamp|now)(?:\((\d*)\))?", text.strip(), re.IGNORECASE)
    if found is None:
        return ExpressionDefault("…")
    digits = int(found[1] or 0)
    return ExpressionDefault(f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP")


def _members(column_type: str) -> tuple[str, ...]:
    return tuple(_ESCAPED.sub(_plain, text) for text in _QUOTED.findall(column_type))


def _plain(found: re.Match[str]) -> str:
    letter = found.group(1)
    return "'" if letter is None else _CONTROLS.get(letter, letter)


def _add_keys(
    cursor: Cursor,
    tables: dict[TableName, TableSchema],
    visible: str,
    printed: str,
    *,
    mariadb: bool,
) -> None:
    keys: dict[tuple[TableName, str], KeySchema] = {}
    for database, table, name, many, column, prefix, kind, order, hidden, shown in _rows(
        cursor, _KEYS, "table_schema", visible=visible, expression=printed
    ):
        own = TableName(database, table), name
        hashed = mariadb and kind == "HASH" and tables[own[0]].engine in _HASHING
        kind = kind.lower() if kind in ("FULLTEXT", "SPATIAL") else None
        part = KeyPart(
            column,
            int(prefix) if prefix is not None and kind is None else None,
            None if shown is None else "…",
            order == "D",
        )
        usual: KeyKind = "index" if int(many) else "unique"
        known = keys.get(own)
        keys[own] = KeySchema(
            name,
            kind or ("primary" if name == "PRIMARY" else usual),
            (*(known.parts if known else ()), part),
            hidden == "YES",
            hashed=hashed,
        )
    for (own_name, _), key in keys.items():
        if own_name in tables:
            tables[own_name] = replace(tables[own_name], keys=(*tables[own_name].keys, key))


def _add_foreign_keys(cursor: Cursor, tables: dict[TableName, TableSchema]) -> None:
    if not _rows(cursor, _ANY_FOREIGN, "constraint_schema"):
        return
    found: dict[tuple[TableName, str], ForeignKey] = {}
    for database, table, name, column, to, parent, referenced, delete, update in _rows(
        cursor, _FOREIGN, "r.constraint_schema"
    ):
        own = TableName(database, table), name
        known = found.get(own)
        found[own] = ForeignKey(
            name,
            (*(known.columns if known else ()), column),
            TableName(to, parent),
            (*(known.referenced if known else ()), referenced),
            delete,
            update,
        )
    for (own_name, _), key in found.items():
        if own_name in tables:
            before = tables[own_name]
            tables[own_name] = replace(before, foreign_keys=(*before.foreign_keys, key))


def comparable(table: TableSchema) -> TableSchema:
    """What information_schema can tell of a followed table."""
    return replace(
        table,
        columns=tuple(map(_comparable, table.columns)),
        keys=tuple(_comparable_key(key) for key in table.keys),
        row_format=None,
        # MySQL does not show it for PARTITION BY KEY () without a column.
        partitioned=False,
    )


def _comparable(column: ColumnSchema) -> ColumnSchema:
    default = column.default
    if isinstance(default, ExpressionDefault):
        default = expression(default.text)
    if isinstance(default, ValueDefault) and column.type in ("float", "double"):
        default = ValueDefault(repr(float(default.text)))
    if isinstance(default, ValueDefault) and column.zerofill:
        default = ValueDefault(default.text.lstrip("0"))
    if isinstance(default, ValueDefault) and column.members and column.charset == "binary":
        # Printed as bytes.
        default = ValueDefault("…")
    if isinstance(default, ValueDefault) and column.type in _OTHERWISE:
        default = ValueDefault("…")
    generated = None if column.generated is None else ""
    return replace(column, default=default, generated=generated)


def _comparable_key(key: KeySchema) -> KeySchema:
    parts: Iterable[KeyPart] = (
        part if part.expression is None else replace(part, expression="…") for part in key.parts
    )
    return replace(key, parts=tuple(parts), generated=False)
