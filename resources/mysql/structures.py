"""Table structures as the server has them now, from information_schema.

Belongs here: saying of a column what a TABLE_MAP with full metadata says of it, in the
same words, so that one can stand in for the other. What the log says is
`pipeline.binlog.table_map`; a test holds the two against each other.

Source: the MySQL manual, "The INFORMATION_SCHEMA COLUMNS Table"; widths in a TABLE_MAP:
`libs/mysql/binlog/event/rows_event.h` and `pack_length()` in `sql/field.h`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

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
            columns.setdefault(TableName(database, name), []).append(_column(_Listed(*column)))
    cursor.execute(_KEYS.format(where=where), values)
    keys: dict[TableName, list[str]] = {}
    for database, name, column in cursor.fetchall():
        keys.setdefault(TableName(database, name), []).append(column)
    return [
        TableStructure(name, tuple(found), tuple(keys.get(name, ())))
        for name, found in columns.items()
    ]


_TYPES: Final = {
    **dict.fromkeys(("tinytext", "text", "mediumtext", "longtext"), "text"),
    **dict.fromkeys(("tinyblob", "blob", "mediumblob", "longblob"), "blob"),
    **dict.fromkeys(("point", "linestring", "polygon", "geometry"), "geometry"),
    **dict.fromkeys(("multipoint", "multilinestring", "multipolygon"), "geometry"),
    **dict.fromkeys(("geomcollection", "geometrycollection"), "geometry"),
    **dict.fromkeys(("inet4", "inet6", "uuid"), "binary"),
}
"""information_schema's names that the log does not tell apart."""

_LENGTH_BYTES: Final = {
    **dict.fromkeys(("tinytext", "tinyblob"), 1),
    **dict.fromkeys(("text", "blob"), 2),
    **dict.fromkeys(("mediumtext", "mediumblob"), 3),
    **dict.fromkeys(("longtext", "longblob", "json", "geometry", "vector"), 4),
}
"""How many bytes of a row image say how long the value is."""

_WIDTHS: Final = {"inet4": 4, "inet6": 16, "uuid": 16}
"""MariaDB's types that are BINARY to the log."""

_TEMPORAL: Final = frozenset({"datetime", "timestamp", "time"})
_BYTE_STRINGS: Final = frozenset({"binary", "varbinary", "blob"})
_MEMBERS: Final = frozenset({"enum", "set"})
_SIGNED_OR_NOT: Final = re.compile(r"(tiny|small|medium|big)?int|decimal|float|double")
_COMPRESSED: Final = re.compile(r"/\*M?!\d+ COMPRESSED")
_OLD: Final = re.compile(r"/\* (mariadb-5\.3|5\.5 binary format) \*/")


@dataclass(frozen=True, slots=True)
class _Listed:
    """A row of information_schema.columns."""

    name: str
    data_type: str
    nullable: str
    column_type: Any
    octets: int | None
    precision: int | None
    scale: int | None
    fraction: int | None
    charset: str | None


def _column(listed: _Listed) -> Column:
    full = listed.column_type
    full = full.decode() if isinstance(full, bytes) else str(full)
    base = listed.data_type.lower()
    kind = _TYPES.get(base, base)
    members = _members(full) if kind in _MEMBERS else ()
    decimal = kind == "decimal"
    return Column(
        name=listed.name,
        type=_named(kind, full),
        nullable=listed.nullable == "YES",
        unsigned=_unsigned(kind, full),
        length=_length(listed, base, kind, len(members)),
        precision=listed.precision if decimal else None,
        scale=listed.scale if decimal else None,
        charset=_charset(kind, listed.charset),
        members=members,
    )


def _named(kind: str, full: str) -> str:
    """Columns that have another form in the log have another name: MariaDB's compressed
    ones, and times and dates as they were kept before MySQL 5.6."""
    if kind in _MEMBERS:
        return kind
    if _COMPRESSED.search(full):
        return f"compressed {kind}"
    return f"old {kind}" if _OLD.search(full) else kind


def _unsigned(kind: str, full: str) -> bool:
    if kind == "year":
        return True
    return _SIGNED_OR_NOT.fullmatch(kind) is not None and " unsigned" in full


def _length(listed: _Listed, base: str, kind: str, members: int) -> int | None:
    """Bytes, bits of a BIT, fractional digits of a temporal type; see `Column.length`."""
    if kind == "bit":
        return listed.precision
    if kind in _TEMPORAL:
        return listed.fraction
    if kind == "enum":
        return 1 if members < 256 else 2
    if kind == "set":
        size = (members + 7) // 8
        return size if size <= 4 else 8
    known = {**_LENGTH_BYTES, **_WIDTHS}
    return known.get(base, known.get(kind, listed.octets))


def _charset(kind: str, charset: str | None) -> str | None:
    """`utf8` is what servers before 8.0.30 call utf8mb3."""
    if charset is None:
        return "binary" if kind in _BYTE_STRINGS or kind in _MEMBERS else None
    return "utf8mb3" if charset == "utf8" else charset


_QUOTED: Final = re.compile(r"'((?:[^'\\]|''|\\.)*)'", re.DOTALL)
_ESCAPED: Final = re.compile(r"''|\\(.)", re.DOTALL)
_CONTROLS: Final = {"0": "\0", "n": "\n", "r": "\r"}


def _members(column_type: str) -> tuple[str, ...]:
    """The members in `enum('a','it''s')`, escaped as `append_unescaped` (`sql/unireg.cc`)
    does: quotes doubled, backslash before NUL, newline, carriage return and itself."""
    return tuple(_ESCAPED.sub(_plain, text) for text in _QUOTED.findall(column_type))


def _plain(found: re.Match[str]) -> str:
    letter = found.group(1)
    return "'" if letter is None else _CONTROLS.get(letter, letter)
