"""The structure of a table's rows in the log, and the keys that identify rows.

`row_structure` and `schema_of` convert between a table's schema and the structure that
the log's decoder needs; `pipeline.binlog.rows.table_map.read_structure` reads the same
structure from a TABLE_MAP with full metadata.

Two functions choose a key. `row_key` gives the server's; `merge_key` gives the one by
which the lake tells rows apart. They can differ in a table without a primary key.

The lake compares keys as text or bytes. Two keys that MySQL keeps apart never become
one: values that differ under a collation also differ in their bytes. Decoding the bytes
to text must not lose that difference, so a table is stopped if a key's text, encoded
again, gives other bytes (`pipeline.binlog.values.charsets`).

The widths of types are those of `pack_length()` in `sql/field.h` of MySQL's source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from lockstep.pipeline.schema.collations import max_character_bytes
from lockstep.pipeline.schema.model import (
    BLOB_FAMILY,
    GEOMETRY_TYPES,
    TEXT_FAMILY,
    ColumnSchema,
    KeyPart,
    KeySchema,
    TableSchema,
)
from lockstep.pipeline.values.table import Column, TableStructure

_ROW_TYPES: Final = {
    **dict.fromkeys(TEXT_FAMILY, "text"),
    **dict.fromkeys(BLOB_FAMILY, "blob"),
    **dict.fromkeys(GEOMETRY_TYPES, "geometry"),
    **dict.fromkeys(("inet4", "inet6", "uuid"), "binary"),
}
_LENGTH_OR_WIDTH: Final = {
    **{
        name: count
        for family in (TEXT_FAMILY, BLOB_FAMILY)
        for count, name in enumerate(family, start=1)
    },
    **dict.fromkeys(("json", "geometry", "vector"), 4),
    "inet4": 4,
    "inet6": 16,
    "uuid": 16,
}
"""Type → the width of its values in bytes if all are equally wide; otherwise the width
of the length that precedes each value."""

_COMPRESSED: Final = "compressed "
"""Prefix of the type of a column that MariaDB compresses."""

_CHARACTER_TYPES: Final = frozenset({"char", "varchar"})
_BINARY_STRING_TYPES: Final = frozenset({"binary", "varbinary"})
_TEMPORAL_TYPES: Final = frozenset({"datetime", "timestamp", "time"})
_TYPES_WITH_BINARY_CHARSET: Final = frozenset({*_BINARY_STRING_TYPES, "blob"})


def row_structure(table: TableSchema) -> TableStructure:
    """Return the columns of the table's row images, and the key of the rows. The columns
    include those that MariaDB adds to each image, but not the hidden columns of MySQL's
    functional indexes (`hidden_columns`)."""
    return _structure(table, row_key)


def logged_structure(table: TableSchema) -> TableStructure:
    """Return `row_structure` with the key that a TABLE_MAP names. For a table without a
    primary key, MySQL never names a UNIQUE key over a virtual generated column."""
    return _structure(table, _logged_key)


def _structure(
    table: TableSchema, key_of: Callable[[TableSchema], tuple[str, ...]]
) -> TableStructure:
    table = _with_hash_columns(_with_row_times(table))
    return TableStructure(table.name, tuple(map(_row_column, table.columns)), key_of(table))


def _with_row_times(table: TableSchema) -> TableSchema:
    """Return a system-versioned table with the two columns that MariaDB adds at the end
    of each row image, unless they are declared. The second column, row_end, is also
    added to the primary and UNIQUE keys."""
    are_declared = any(column.system_period is not None for column in table.columns)
    if not table.system_versioned or are_declared:
        return table
    times = (
        ColumnSchema(name, "timestamp", nullable=False, length=6)
        for name in ("row_start", "row_end")
    )
    keys = (
        replace(key, parts=(*key.parts, KeyPart("row_end")))
        if key.kind in ("primary", "unique")
        else key
        for key in table.keys
    )
    return replace(table, columns=(*table.columns, *times), keys=tuple(keys))


def _with_hash_columns(table: TableSchema) -> TableSchema:
    """Return the table with one column for each UNIQUE key that MariaDB enforces by a
    hash, which MariaDB adds at the end of each row image. MariaDB makes this column
    nullable or not by the order in which the keys were made. That order is unknown, so
    the column is nullable here."""
    hashed_keys = [key for key in table.keys if key.hashed]
    hashes = (
        ColumnSchema(f"DB_ROW_HASH_{number}", "bigint", unsigned=True)
        for number, _ in enumerate(hashed_keys, 1)
    )
    return replace(table, columns=(*table.columns, *hashes))


def row_key(table: TableSchema) -> tuple[str, ...]:
    """Return the columns of the primary key; without one, those of the first UNIQUE key
    that consists of whole NOT NULL columns, as in `sql/dd_table_share.cc`."""
    return next(_row_keys(table), ())


def _logged_key(table: TableSchema) -> tuple[str, ...]:
    """Return the key that a TABLE_MAP names (see `logged_structure`)."""
    virtual = {c.name for c in table.columns if c.generated is not None and not c.stored}
    for key in _row_keys(table):
        if key == table.primary_key or virtual.isdisjoint(key):
            return key
    return ()


def _row_keys(table: TableSchema) -> Iterator[tuple[str, ...]]:
    if table.primary_key:
        yield table.primary_key
    for key in table.keys:
        if key.kind == "unique" and not key.hashed and _identifies_rows(key, table):
            yield key.columns


def _identifies_rows(key: KeySchema, table: TableSchema) -> bool:
    columns = [table.column(part.column or "") for part in key.parts if part.prefix is None]
    has_whole_columns = len(columns) == len(key.parts)
    return has_whole_columns and all(
        column is not None and not column.nullable for column in columns
    )


def _row_column(column: ColumnSchema) -> Column:
    row_type = _ROW_TYPES.get(column.type, column.type)
    is_decimal = row_type == "decimal"
    return Column(
        name=column.name,
        type=f"{_COMPRESSED}{row_type}" if column.compressed else row_type,
        nullable=column.nullable,
        unsigned=column.unsigned or row_type == "year",
        length=_length(column, row_type),
        precision=column.precision if is_decimal else None,
        scale=column.scale if is_decimal else None,
        charset="binary" if row_type in _TYPES_WITH_BINARY_CHARSET else column.charset,
        members=column.members,
    )


def _length(column: ColumnSchema, row_type: str) -> int | None:
    """Return the length as `pipeline.values.table.Column.length` defines it."""
    if row_type == "bit" or row_type in _TEMPORAL_TYPES or column.type in _BINARY_STRING_TYPES:
        return column.length
    if column.type in _CHARACTER_TYPES:
        return (column.length or 0) * max_character_bytes(column.charset or "binary")
    if row_type == "enum":
        return 1 if len(column.members) < 256 else 2
    if row_type == "set":
        size = (len(column.members) + 7) // 8
        return size if size <= 4 else 8
    return _LENGTH_OR_WIDTH.get(column.type, _LENGTH_OR_WIDTH.get(row_type))


_FAMILIES: Final = {"text": TEXT_FAMILY, "blob": BLOB_FAMILY}
_TYPES_WITH_CHARSET: Final = frozenset({"char", "varchar", "text", "enum", "set"})
_TYPES_WITH_LENGTH: Final = frozenset({"bit", *_BINARY_STRING_TYPES, *_TEMPORAL_TYPES})


def schema_of(structure: TableStructure) -> TableSchema:
    """Return a schema with this structure: the inverse of `row_structure`.

    The schema lacks everything that a structure does not contain: defaults, all keys
    except the primary key, collations, and the table's character set. Every spatial
    type becomes "geometry", and MariaDB's INET6 and UUID become BINARY.
    """
    key = tuple(KeyPart(name) for name in structure.primary_key)
    return TableSchema(
        structure.name,
        tuple(map(_column_schema_of, structure.columns)),
        (KeySchema("PRIMARY", "primary", key),) if key else (),
    )


def _column_schema_of(column: Column) -> ColumnSchema:
    row_type = column.type.removeprefix(_COMPRESSED)
    # The length of a TEXT or BLOB is the number of bytes of its values' lengths.
    name = _FAMILIES[row_type][(column.length or 2) - 1] if row_type in _FAMILIES else row_type
    charset = column.charset if row_type in _TYPES_WITH_CHARSET else None
    length = column.length if row_type in _TYPES_WITH_LENGTH else None
    if row_type in _CHARACTER_TYPES:
        length = (column.length or 0) // max_character_bytes(charset or "binary")
    return ColumnSchema(
        column.name,
        name,
        nullable=column.nullable,
        length=length,
        precision=column.precision,
        scale=column.scale,
        unsigned=column.unsigned and row_type != "year",
        charset=charset,
        members=column.members,
        compressed=row_type != column.type,
    )


def merge_key(schema: TableSchema) -> tuple[str, ...]:
    """Return the columns of the primary key. Without one, return those of a UNIQUE
    index that consists of whole NOT NULL columns. Of several such indexes, the one
    whose name sorts first counts: the order in which a schema has its keys means
    nothing."""
    return next(key_candidates(schema), ())


def key_candidates(schema: TableSchema) -> Iterator[tuple[str, ...]]:
    """Yield the columns of every key that identifies rows, the columns of `merge_key`
    first. Names are spelled as in the table's columns."""
    for key in identifying_keys(schema):
        yield tuple(_stored_spelling(schema, name) for name in key.columns)


def key_columns(schema: TableSchema) -> frozenset[str]:
    """Return the columns of all keys that identify rows. If a key is dropped, another
    one identifies the rows from then on."""
    return frozenset(name for key in key_candidates(schema) for name in key)


def identifying_keys(schema: TableSchema) -> Iterator[KeySchema]:
    """Yield every key that identifies rows, the key of `merge_key` first."""
    unique = sorted(
        (key for key in schema.keys if key.kind == "unique"), key=lambda key: key.name.lower()
    )
    yield from (key for key in schema.keys if key.kind == "primary")
    yield from (key for key in unique if _identifies_rows(key, schema))


def _stored_spelling(schema: TableSchema, name: str) -> str:
    column = schema.column(name)
    return name if column is None else column.name
