"""TABLE_MAP events → table structures.

Belongs here: the event's fixed part and its per-type metadata. Does not: its optional
metadata (`metadata`), values of rows.

Format: `Table_map_event` in `libs/mysql/binlog/event/rows_event.h`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
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
    years_counted,
)
from pipeline.binlog.stream.description import LogWriter
from pipeline.binlog.stream.event_reader import Reader
from pipeline.binlog.stream.framing import HEADER
from pipeline.errors import TableError
from pipeline.table import Column, TableName, TableStructure

_STRINGS: Final = frozenset({15, 242, 252, 253, 254})
_STRING, _GEOMETRY, _JSON = 254, 255, 245
_BARE_DOUBLES: Final = 80000
"""Up to this version MySQL prints whole doubles in JSON documents without ".0"."""

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
    """What a TABLE_MAP says before its optional part: whose rows follow under this id. `raw` is
    the whole event without checksum; `writer` wrote it."""

    table_id: int
    table: TableName
    raw: bytes
    writer: LogWriter = field(default_factory=LogWriter)


@dataclass(frozen=True, slots=True)
class Outline:
    """What a TABLE_MAP says of its table: all of it with full metadata. `said`: which parts
    it has besides types, widths and what may be NULL; names are "", signs and character
    sets as by default, members none where it has not."""

    table: TableName
    columns: tuple[Column, ...]
    primary_key: tuple[str, ...]
    said: frozenset[OptionalField]


def read_table_map(raw: bytes, writer: LogWriter | None = None) -> TableMap:
    """A whole TABLE_MAP event without checksum → its identity only; `read_structure` reads
    the rest where it is wanted. Without a `writer`, the newest MySQL is."""
    table_id, table, _ = _head(raw)
    return TableMap(table_id, table, raw, writer or LogWriter())


def read_layouts(mapped: TableMap) -> tuple[Layout, ...]:
    """A table map → where its columns' cells lie.

    TableError for a column type this version has never heard of, and for MariaDB's old
    temporal types, whose width the log does not tell.
    """
    _, _, reader = _head(mapped.raw)
    codes = reader.take(reader.packed())
    metadata = Reader(reader.packed_text(), "a TABLE_MAP event")
    layouts = tuple(layout(code, _metadata(code, metadata)) for code in codes)
    if mapped.writer.mariadb and any(one.code in _OLD_TEMPORAL for one in layouts):
        raise TableError(
            "it has temporal columns in the format before MariaDB 10.1.2",
            hint="rebuild the table with mysql56_temporal_format=ON (ALTER TABLE … FORCE)",
        )
    if mapped.writer.version is not None and mapped.writer.between(0, _BARE_DOUBLES):
        return tuple(
            replace(one, bare_doubles=True) if one.code == _JSON else one for one in layouts
        )
    return layouts


def _metadata(code: int, metadata: Reader) -> bytes:
    if code not in _NAMES:
        raise TableError(
            f"a column has the type number {code}, which this version does not know",
            hint="exclude the table",
        )
    return metadata.take(_METADATA_BYTES.get(code, 0))


def read_outlines(mapped: TableMap) -> tuple[Outline, ...]:
    """A table map → all it says of its table: one outline for each way in which its writer may
    have meant it. Only the signs of numbers have two, where the writer is of a version of which
    nobody knows whether it writes one for a YEAR (`years_counted`).

    TableError for a column type this version has never heard of, and for what contradicts
    itself.
    """
    _, table, reader = _head(mapped.raw)
    codes = reader.take(reader.packed())
    metadata = Reader(reader.packed_text(), f"the TABLE_MAP of {table}")
    slots = [_slot(code, metadata) for code in codes]
    nulls = reader.take((len(codes) + 7) // 8)
    strings = _STRINGS | {_GEOMETRY} if mapped.writer.mariadb else _STRINGS
    fields, what = dict(optional_fields(reader)), str(table)
    readings = [
        OptionalMetadata(slots, what, fields, strings, years=years)
        for years in years_counted(mapped.writer)
    ]
    consistent = [reading for reading in readings if reading.signs_fit]
    if not consistent:
        raise TableError(
            "its log describes it with signs of other columns than it has",
            hint="exclude the table, and report this log to us",
        )
    outlines = (_outline(table, reading, nulls) for reading in consistent)
    return tuple(dict.fromkeys(outlines))


def _outline(table: TableName, optional: OptionalMetadata, nulls: bytes) -> Outline:
    slots = optional.slots
    named = optional.has(OptionalField.NAMES)
    names = optional.names() if named else [""] * len(slots)
    columns = tuple(
        replace(column, name=name, nullable=bool(nulls[index >> 3] >> (index & 7) & 1))
        for index, (column, name) in enumerate(zip(optional.columns(), names, strict=True))
    )
    said = frozenset(part for part in OptionalField if optional.has(part))
    key = tuple(columns[index].name for index in optional.primary_key()) if named else ()
    return Outline(table, columns, key, said)


def read_structure(mapped: TableMap) -> TableStructure:
    """A table map → the table's structure.

    TableError where the map does not say all: no names (MINIMAL metadata), a column type this
    version has never heard of, or signs that can be read in two ways.
    """
    outline, *others = read_outlines(mapped)
    if OptionalField.NAMES not in outline.said:
        raise TableError(
            "its log has no column names (binlog_row_metadata=MINIMAL)", hint=METADATA_HINT
        )
    if others:
        raise TableError(
            "its log does not tell which of its numbers are unsigned, because it has a YEAR column "
            "and only some versions of MySQL 8.0 write a sign for it",
            hint=METADATA_HINT,
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
