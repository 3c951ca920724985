"""Table structures as the server has them now, from information_schema.

What the log says of a structure is `pipeline.binlog.table_map`; a test holds the two
against each other.
"""

from __future__ import annotations

from typing import Any

from pymysql.cursors import Cursor

from pipeline.table import Column, TableName, TableStructure
from pipeline.tables import SYSTEM_DATABASES

_COLUMNS = """
select c.table_schema, c.table_name, c.column_name, c.data_type, c.is_nullable, c.column_type,
       c.character_octet_length, c.numeric_precision, c.numeric_scale, c.datetime_precision,
       c.character_set_name
  from information_schema.columns c
  join information_schema.tables t using (table_schema, table_name)
 where t.table_type = 'BASE TABLE' {where}
 order by c.table_schema, c.table_name, c.ordinal_position
"""
_KEYS = """
select c.table_schema, c.table_name, c.column_name
  from information_schema.statistics c
 where c.index_name = 'PRIMARY' {where}
 order by c.table_schema, c.table_name, c.seq_in_index
"""
_ONE = "and c.table_schema = %s and c.table_name = %s"


def read_structures(cursor: Cursor, table: TableName | None = None) -> list[TableStructure]:
    """Every base table's structure, system databases left out, or that of `table` alone;
    two statements, however many tables there are."""
    where, values = (_ONE, (table.database, table.name)) if table else ("", ())
    cursor.execute(_COLUMNS.format(where=where), values)
    columns: dict[TableName, list[Column]] = {}
    for database, name, *column in cursor.fetchall():
        if database not in SYSTEM_DATABASES:
            columns.setdefault(TableName(database, name), []).append(_column(*column))
    cursor.execute(_KEYS.format(where=where), values)
    keys: dict[TableName, list[str]] = {}
    for database, name, column in cursor.fetchall():
        keys.setdefault(TableName(database, name), []).append(column)
    return [
        TableStructure(name, tuple(found), tuple(keys.get(name, ())))
        for name, found in columns.items()
    ]


_BLOBS = frozenset({"tinyblob", "blob", "mediumblob", "longblob"})
_TEXTS = frozenset({"tinytext", "text", "mediumtext", "longtext"})


def _column(
    name: str,
    data_type: str,
    nullable: str,
    column_type: Any,
    octets: int | None,
    precision: int | None,
    scale: int | None,
    fraction: int | None,
    charset: str | None,
) -> Column:
    full = column_type.decode() if isinstance(column_type, bytes) else str(column_type)
    base = data_type.lower()
    kind = "blob" if base in _BLOBS else "text" if base in _TEXTS else base
    decimal = kind == "decimal"
    return Column(
        name=name,
        type=kind,
        nullable=nullable == "YES",
        unsigned="unsigned" in full,
        length=fraction if fraction is not None else octets,
        precision=precision if decimal else None,
        scale=scale if decimal else None,
        charset=charset,
    )
