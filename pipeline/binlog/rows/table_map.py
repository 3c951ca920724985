"""TABLE_MAP events → table structures.

Belongs here: the event's fixed part and its per-type metadata. Does not: its optional
metadata (`metadata`), values of rows.

Format: `Table_map_event` in `libs/mysql/binlog/event/rows_event.h`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from pipeline.binlog.arrays.cells import Layout, layout
from pipeline.binlog.rows.metadata import (
    ENUM,
    METADATA_HINT,
    SET,
    OptionalField,
    OptionalMetadata,
    Slot,
    optional_fields,
)
from pipeline.binlog.stream.event_reader import Reader
from pipeline.binlog.stream.framing import HEADER
from pipeline.errors import TableError
from pipeline.table import Column, TableName, TableStructure

_STRINGS: Final = frozenset({15, 242, 252, 253, 254})
_STRING, _GEOMETRY = 254, 255
_OLD_TEMPORAL: Final = frozenset({7, 11, 12})
_NAMES: Final = {
    1: "tinyint",
    2: "smallint",
    3: "int",
    4: "float",
    5: "double",
    7: "timestamp",
    8: "bigint",
    9: "mediumint",
    10: "date",
    11: "time",
    12: "datetime",
    13: "year",
    15: "varchar",
    16: "bit",
    17: "timestamp",
    18: "datetime",
    19: "time",
    242: "vector",
    245: "json",
    246: "decimal",
    ENUM: "enum",
    SET: "set",
    252: "text",
    253: "varchar",
    _STRING: "char",
    _GEOMETRY: "geometry",
}
TYPE_NAMES: Final = frozenset(_NAMES.values())
"""Base types as a table map tells them, before its character sets make bytes of strings."""

_METADATA_BYTES: Final = {
    4: 1,
    5: 1,
    15: 2,
    16: 2,
    17: 1,
    18: 1,
    19: 1,
    242: 1,
    245: 1,
    246: 2,
    ENUM: 2,
    SET: 2,
    252: 1,
    253: 2,
    _STRING: 2,
    255: 1,
}


@dataclass(frozen=True, slots=True)
class TableMap:
    """What a TABLE_MAP says before its optional part: whose rows follow under this id."""

    table_id: int
    table: TableName
    raw: bytes


@dataclass(frozen=True, slots=True)
class Outline:
    """What a TABLE_MAP says of its table: all of it with full metadata. `said`: which parts
    it has besides types, widths and what may be NULL; names are "", signs and character
    sets as by default, members none where it has not."""

    table: TableName
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    said: frozenset[OptionalField]


def read_table_map(raw: bytes) -> TableMap:
    """A whole TABLE_MAP event without checksum → its identity only; `read_structure` reads
    the rest where it is wanted."""
    table_id, table, _ = _head(raw)
    return TableMap(table_id, table, raw)


def read_layouts(raw: bytes, flavour: str = "mysql") -> tuple[Layout, ...]:
    """A whole TABLE_MAP event without checksum → where its columns' cells lie.

    TableError for a column type this version has never heard of, and for MariaDB's old
    temporal types, whose width the log does not tell.
    """
    _, _, reader = _head(raw)
    codes = reader.take(reader.packed())
    metadata = Reader(reader.packed_text(), "a TABLE_MAP event")
    layouts = tuple(layout(code, _metadata(code, metadata)) for code in codes)
    if flavour == "mariadb" and any(one.code in _OLD_TEMPORAL for one in layouts):
        raise TableError(
            "it has temporal columns in the format before MariaDB 10.1.2",
            hint="rebuild the table with mysql56_temporal_format=ON (ALTER TABLE … FORCE)",
        )
    return layouts


def _metadata(code: int, metadata: Reader) -> bytes:
    if code not in _NAMES:
        raise TableError(
            f"a column has the type number {code}, which this version does not know",
            hint="exclude the table",
        )
    return metadata.take(_METADATA_BYTES.get(code, 0))


def read_outline(raw: bytes, flavour: str = "mysql") -> Outline:
    """A whole TABLE_MAP event without checksum → all it says of its table.

    TableError for a column type this version has never heard of, and for what contradicts
    itself.
    """
    _, table, reader = _head(raw)
    codes = reader.take(reader.packed())
    metadata = Reader(reader.packed_text(), f"the TABLE_MAP of {table}")
    slots = [_slot(code, metadata) for code in codes]
    nulls = reader.take((len(codes) + 7) // 8)
    strings = _STRINGS | {_GEOMETRY} if flavour == "mariadb" else _STRINGS
    optional = OptionalMetadata(slots, str(table), dict(optional_fields(reader)), strings)
    named = optional.has(OptionalField.NAMES)
    names = optional.names() if named else [""] * len(slots)
    columns = tuple(
        replace(column, name=name, nullable=bool(nulls[index >> 3] >> (index & 7) & 1))
        for index, (column, name) in enumerate(zip(optional.columns(), names, strict=True))
    )
    said = frozenset(part for part in OptionalField if optional.has(part))
    key = tuple(columns[index].name for index in optional.primary_key()) if named else ()
    return Outline(table, columns, key, said)


def read_structure(raw: bytes, flavour: str = "mysql") -> TableStructure:
    """A whole TABLE_MAP event without checksum → the table's structure.

    TableError where the event does not say all: no names (MINIMAL metadata), or a column
    type this version has never heard of.
    """
    outline = read_outline(raw, flavour)
    if OptionalField.NAMES not in outline.said:
        raise TableError(
            "its log has no column names (binlog_row_metadata=MINIMAL)", hint=METADATA_HINT
        )
    return TableStructure(outline.table, outline.columns, outline.primary_key)


def _head(raw: bytes) -> tuple[int, TableName, Reader]:
    reader = Reader(raw[HEADER.size :], "a TABLE_MAP event")
    table_id = reader.integer(6)
    reader.take(2)
    database = reader.take(reader.integer(1)).decode("utf-8", "surrogateescape")
    reader.take(1)
    name = reader.take(reader.integer(1)).decode("utf-8", "surrogateescape")
    reader.take(1)
    return table_id, TableName(database, name), reader


def _slot(code: int, metadata: Reader) -> Slot:
    data = _metadata(code, metadata)
    if code == _STRING and data[0] in (ENUM, SET):
        code = data[0]
    column = Column(name="", type=_NAMES[code])
    match code:
        case 15 | 253:
            column = replace(column, length=int.from_bytes(data, "little"))
        case 254:
            # The length's upper bits hide, inverted, in the type byte (Field_string).
            column = replace(column, length=((data[0] & 0x30) ^ 0x30) << 4 | data[1])
        case 246:
            column = replace(column, precision=data[0], scale=data[1])
        case 17 | 18 | 19 | 252 | 242 | 245 | 255:
            column = replace(column, length=data[0])
        case 247 | 248:
            column = replace(column, length=data[1])
        case 16:
            column = replace(column, length=data[1] * 8 + data[0])
        case _:
            pass
    return Slot(code, column)
