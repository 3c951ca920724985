"""Keys and foreign keys as the server makes them from their definitions, and their
renaming.

The server chooses names, adds keys for foreign keys, and makes columns of primary keys
NOT NULL. A key that would be too long gets a shorter prefix; a UNIQUE of MariaDB gets a
hash of the values.

Rules: `mysql_prepare_create_table` in `sql/sql_table.cc` of MySQL and MariaDB, and
`foreign_key_prefix` in MySQL's `sql/sql_class.cc`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Final

from lockstep.pipeline.schema.collations import max_character_bytes
from lockstep.pipeline.schema.context import ServerDialect, StatementContext
from lockstep.pipeline.schema.effects import CannotFollow
from lockstep.pipeline.schema.model import (
    GEOMETRY_TYPES,
    LOB_SIZES,
    SIZED_STRINGS,
    ColumnSchema,
    ForeignKey,
    KeyPart,
    KeySchema,
    ReferentialAction,
    ServerSchema,
    TableSchema,
)
from lockstep.pipeline.schema.statements.changes import (
    Element,
    WrittenColumn,
    WrittenKey,
    WrittenPeriod,
    WrittenReference,
)
from lockstep.pipeline.values.table import TableName

_KINDS_WITHOUT_PREFIX: Final = frozenset({"fulltext", "spatial"})

PREFIX_TYPES: Final = SIZED_STRINGS | frozenset(LOB_SIZES)
"""Types of which a key can index a prefix."""

_POINT_BYTES: Final = 25
"""Bytes of a POINT (SRID, byte order, type and two doubles), which MySQL 5.7 indexes as
prefix."""

_KEY_BYTE_LIMITS: Final = {"InnoDB": 3072, "MyISAM": 1000, "Aria": 2300}
"""Largest size in bytes of a key, and of each part of it, by engine; InnoDB with 16 KiB
pages."""

_OLD_ROW_FORMATS: Final = frozenset({"compact", "redundant"})
_OLD_PART_LIMIT: Final = 767
"""InnoDB's row formats from before MySQL 5.7, and the largest size in bytes of a key's
part in them."""

_MARIADB_BYTES: Final = {"tinyint": 1, "year": 1, "smallint": 2, "mediumint": 3, "date": 3}
_MARIADB_DEFAULT_BYTES: Final = 8
"""Bytes of a value in a MariaDB key: by type, and for all types that are not listed."""

_INDEXED_BYTES: Final = {
    **_MARIADB_BYTES,
    **dict.fromkeys(("int", "float", "inet4"), 4),
    **dict.fromkeys(("bigint", "double"), 8),
    **dict.fromkeys(("inet6", "uuid"), 16),
}
"""Bytes of a value, by type, as `indexed_prefix_length` returns them."""

_MOMENT_BYTES: Final = {"time": 3, "timestamp": 4, "datetime": 5}
"""Bytes of a value without fractional digits. Each two fractional digits take one byte
more."""

_DIGIT_BYTES: Final = (0, 1, 1, 2, 2, 3, 3, 4, 4, 4)
"""Number of decimal digits → bytes (MySQL manual, "Precision Math")."""

GEOMETRY_KEY_REASON: Final = "the prefix of a geometry in a key is unknown"
"""Reason for which MariaDB's keys over spatial types are not followed."""

Columns = Mapping[str, ColumnSchema]
"""A table's columns, by their names in lower case."""


def resolve_keys(
    written_keys: Sequence[WrittenKey],
    columns: Sequence[ColumnSchema],
    engine: str,
    facts: ServerDialect,
    row_format: str | None,
) -> tuple[KeySchema, ...]:
    """Return the keys as the server makes them. `written_keys`: the keys that the table
    keeps, then new keys. Raise CannotFollow if only the server knows how a key is
    made."""
    by_name = {column.name.lower(): column for column in columns}
    if facts.is_mariadb and any(
        key.generated and any(_column_type(part, by_name) in LOB_SIZES for part in key.parts)
        for key in written_keys
    ):
        raise CannotFollow("the key of a foreign key over a TEXT or BLOB is unknown")
    unprefixed = [_without_prefixes(key, by_name, facts) for key in written_keys]
    needed_keys = _without_redundant(unprefixed, facts)
    written_names = {key.name for key in needed_keys if key.name is not None}
    keys: list[KeySchema] = []
    for written in needed_keys:
        parts = tuple(_resolved_part(part, written, by_name, facts) for part in written.parts)
        name = written.name or _free_name(parts, {key.name for key in keys}, written_names)
        key = KeySchema(name, written.kind, parts, written.invisible, written.generated)
        if facts.is_mariadb:
            key = _mariadb_key(key, by_name, engine, hashed=written.uses_hash)
            keys.append(_with_row_end(key, columns))
        else:
            keys.append(_mysql_key(key, by_name, engine, row_format, facts))
    return tuple(keys)


def _without_prefixes(key: WrittenKey, columns: Columns, facts: ServerDialect) -> WrittenKey:
    """Return the key without prefixes of columns whose types are always indexed as a
    whole; for MySQL 5.7, which ignores DESC, also without DESC."""
    parts = []
    for part in key.parts:
        kind = _column_type(part, columns)
        if kind is not None and kind not in PREFIX_TYPES | GEOMETRY_TYPES:
            part = replace(part, prefix=None)
        parts.append(replace(part, descending=False) if facts.is_mysql_57 else part)
    return replace(key, parts=tuple(parts))


def _without_redundant(
    written_keys: Sequence[WrittenKey], facts: ServerDialect
) -> list[WrittenKey]:
    """Return the keys without the generated ones (added for foreign keys) that another
    key can replace. Of two generated keys, the longer one stays; if they are equally
    long, the later one."""
    redundant_indexes: set[int] = set()
    for index, key in enumerate(written_keys):
        for earlier_index, earlier in enumerate(written_keys[:index]):
            if earlier_index in redundant_indexes:
                continue
            is_key_shorter = key.generated and len(key.parts) < len(earlier.parts)
            if earlier.generated and not is_key_shorter:
                removed, remaining = earlier_index, index
            else:
                removed, remaining = index, earlier_index
            if _can_replace(written_keys[remaining], written_keys[removed], facts):
                redundant_indexes.add(removed)
                break
    return [key for index, key in enumerate(written_keys) if index not in redundant_indexes]


def _can_replace(key: WrittenKey, removed: WrittenKey, facts: ServerDialect) -> bool:
    """Return whether `removed` is generated and its columns are the first columns of
    `key`. In MySQL these columns must be ascending in `key`."""
    return (
        removed.generated
        and len(removed.parts) <= len(key.parts)
        and key.kind not in _KINDS_WITHOUT_PREFIX
        and all(
            removed_part.column is not None
            and part.column is not None
            and removed_part.column.lower() == part.column.lower()
            and part.prefix is None
            and (facts.is_mariadb or not part.descending)
            for removed_part, part in zip(removed.parts, key.parts, strict=False)
        )
    )


def _resolved_part(
    part: KeyPart, key: WrittenKey, columns: Columns, facts: ServerDialect
) -> KeyPart:
    if part.column is None:
        return part
    column = columns.get(part.column.lower())
    if column is None:
        raise CannotFollow(f"a key names the column {part.column}, which does not exist")
    # information_schema has no prefix for a column that is indexed as a whole.
    part = replace(part, column=column.name)
    if column.type == "point" and key.kind not in _KINDS_WITHOUT_PREFIX and facts.is_mysql_57:
        return replace(part, prefix=part.prefix or _POINT_BYTES)
    if key.kind in _KINDS_WITHOUT_PREFIX or column.type not in PREFIX_TYPES:
        return replace(part, prefix=None)
    if part.prefix is not None and column.length is not None and part.prefix >= column.length:
        return replace(part, prefix=None)
    if part.prefix is not None and column.type in LOB_SIZES:
        # MariaDB allows as many characters as the column has bytes.
        width = 1 if facts.is_mariadb else column_character_bytes(column)
        return replace(part, prefix=min(part.prefix, LOB_SIZES[column.type] // width))
    return part


def _free_name(parts: Sequence[KeyPart], earlier_names: set[str], later_names: set[str]) -> str:
    """Return the first column's name, with a number if an earlier key has that name. A
    key with an expression is called functional_index; its name also differs from those
    that are written for later keys."""
    base_name = parts[0].column or ""
    taken_names = {"primary", *map(str.lower, earlier_names)}
    if any(part.column is None for part in parts):
        base_name = "functional_index"
        taken_names.update(map(str.lower, later_names))
    for name in (base_name, *(f"{base_name}_{number}" for number in range(2, 100))):
        if name.lower() not in taken_names:
            return name
    raise CannotFollow(f"no name is free for a key on {base_name}")


def _mariadb_key(key: KeySchema, columns: Columns, engine: str, *, hashed: bool) -> KeySchema:
    """Return a key as MariaDB makes it.

    MariaDB does not shorten parts in InnoDB's old row formats: it refuses a part of
    more than 767 bytes (error 1709). A UNIQUE over a TEXT is hashed in these formats,
    too.
    """
    if any(part.column is None for part in key.parts):
        raise CannotFollow("MariaDB's keys over expressions are unknown")
    if _is_over_geometries(key, columns):
        raise CannotFollow(GEOMETRY_KEY_REASON)
    limit = _KEY_BYTE_LIMITS.get(engine)
    if key.kind not in ("unique", "index") or limit is None:
        return key
    part_bytes = [_part_bytes(part, columns) for part in key.parts]
    has_whole_lob = any(
        part.prefix is None and _column_type(part, columns) in LOB_SIZES for part in key.parts
    )
    is_too_long = has_whole_lob or max(part_bytes) > limit or sum(part_bytes) > limit
    if key.kind == "unique" and (hashed or is_too_long):
        plain_parts = tuple(replace(part, descending=False) for part in key.parts)
        return replace(key, parts=plain_parts, hashed=True)
    return replace(key, parts=tuple(_shortened_part(part, columns, limit) for part in key.parts))


def _with_row_end(key: KeySchema, columns: Sequence[ColumnSchema]) -> KeySchema:
    """Return a key with the columns that a system-versioned table needs. The past
    versions of a row have its key, so MariaDB adds the end of their period to every
    unique key."""
    end = next((column.name for column in columns if column.system_period == "end"), None)
    is_unique = key.kind in ("primary", "unique")
    if end is None or not is_unique or end in key.columns:
        return key
    return replace(key, parts=(*key.parts, KeyPart(end)))


def _mysql_key(
    key: KeySchema, columns: Columns, engine: str, row_format: str | None, facts: ServerDialect
) -> KeySchema:
    """Return a key as MySQL makes it. A part of an index that is too long is shortened
    in a session without strict mode. In strict mode, and for other kinds of keys, the
    statement fails and is not logged."""
    if key.kind != "index":
        return key
    if facts.is_mysql_8 and _column_type(key.parts[0], columns) in GEOMETRY_TYPES:
        return replace(key, kind="spatial")
    limit = {**_KEY_BYTE_LIMITS, "MEMORY": 3072}.get(engine)
    if engine == "InnoDB" and row_format in _OLD_ROW_FORMATS:
        limit = _OLD_PART_LIMIT
    if limit is None:
        return key
    return replace(key, parts=tuple(_shortened_part(part, columns, limit) for part in key.parts))


def _is_over_geometries(key: KeySchema, columns: Columns) -> bool:
    return key.kind not in _KINDS_WITHOUT_PREFIX and any(
        _column_type(part, columns) in GEOMETRY_TYPES for part in key.parts
    )


def _column_type(part: KeyPart, columns: Columns) -> str | None:
    """Return the type of the part's column; None for an expression, or a column that
    does not exist."""
    column = None if part.column is None else columns.get(part.column.lower())
    return None if column is None else column.type


def _part_bytes(part: KeyPart, columns: Columns) -> int:
    """Return the size of a part in bytes, which MariaDB compares with
    `_KEY_BYTE_LIMITS`."""
    column = columns[(part.column or "").lower()]
    if column.type not in PREFIX_TYPES:
        return _MARIADB_BYTES.get(column.type, _MARIADB_DEFAULT_BYTES)
    if part.prefix is None and column.type in LOB_SIZES:
        return LOB_SIZES[column.type]
    return (part.prefix or column.length or 0) * column_character_bytes(column)


def _shortened_part(part: KeyPart, columns: Columns, limit: int) -> KeyPart:
    """Return the part with a prefix of at most `limit` bytes."""
    column = None if part.column is None else columns[part.column.lower()]
    if column is None or column.type not in PREFIX_TYPES:
        return part
    max_prefix = limit // column_character_bytes(column)
    if part.prefix is None and column.type in LOB_SIZES:
        return replace(part, prefix=min(max_prefix, LOB_SIZES[column.type]))
    wanted_length = part.prefix or column.length or 0
    return replace(part, prefix=max_prefix) if wanted_length > max_prefix else part


# -- keys and columns ------------------------------------------------------------------


def kept_key(key: KeySchema) -> WrittenKey:
    """Return a key that a table keeps, as `resolve_keys` takes it."""
    return WrittenKey(key.kind, key.parts, key.name, key.invisible, generated=key.generated)


def with_not_null_keys(
    columns: Iterable[ColumnSchema], keys: Iterable[KeySchema], periods: Iterable[WrittenPeriod]
) -> tuple[ColumnSchema, ...]:
    """Return the columns, with NOT NULL for those of a primary key or a period,
    whatever was written."""
    not_null = {name.lower() for key in keys if key.kind == "primary" for name in key.columns}
    not_null |= {name.lower() for period in periods for name in period.columns}
    return tuple(
        replace(column, nullable=False) if column.name.lower() in not_null else column
        for column in columns
    )


def has_geometry_key(table: TableSchema) -> bool:
    """Return whether the table has an ordinary key (not SPATIAL) on a column of a
    spatial type."""
    columns = {column.name.lower(): column for column in table.columns}
    return any(_is_over_geometries(key, columns) for key in table.keys)


def indexed_prefix_length(part: KeyPart, column: ColumnSchema) -> int | None:
    """Return the number of characters or bytes of a column that a key's part indexes; 0
    for the whole value of any length, None if the number is unknown. A new column under
    the same name gets this number as its prefix."""
    if part.prefix is not None:
        return part.prefix
    if column.type in SIZED_STRINGS:
        return column.length
    if column.type in LOB_SIZES:
        return 0  # FULLTEXT, or a hash of the whole in MariaDB
    if column.type == "enum":
        return (1 if len(column.members) < 256 else 2) // column_character_bytes(column)
    if column.type == "decimal":
        scale = column.scale or 0
        integer_digits = (column.precision or 0) - scale
        return sum(count // 9 * 4 + _DIGIT_BYTES[count % 9] for count in (integer_digits, scale))
    if column.type in _MOMENT_BYTES:
        return _MOMENT_BYTES[column.type] + ((column.length or 0) + 1) // 2
    return _INDEXED_BYTES.get(column.type)


def column_character_bytes(column: ColumnSchema) -> int:
    """Return the number of bytes of a column's widest character; 1 without a character
    set."""
    return max_character_bytes(column.charset) if column.charset else 1


# -- foreign keys, and the keys of a definition ----------------------------------------

_ENGINES_WITH_FOREIGN_KEYS: Final = frozenset({"innodb", "ndbcluster"})
"""Other engines ignore the definitions of foreign keys."""


def keys_and_references(
    elements: tuple[Element, ...], context: StatementContext
) -> tuple[list[WrittenKey], list[WrittenReference]]:
    """Return the keys that the elements define, in their order, and the foreign keys. A
    foreign key also adds a generated key on its columns."""
    keys: list[WrittenKey] = []
    references: list[WrittenReference] = []
    for element in elements:
        match element:
            case WrittenColumn(key=kind, reference=reference):
                if kind is not None:
                    keys.append(declared_key(element))
                if element.is_also_unique and not context.facts.is_mariadb:
                    keys.append(WrittenKey("unique", (KeyPart(element.name),)))
                if reference is not None and _has_inline_references(context):
                    references.append(reference)
                    keys.append(_generated_key(reference))
            case WrittenKey():
                keys.append(element)
            case WrittenReference():
                references.append(element)
                keys.append(_generated_key(element))
    return keys, references


def declared_key(column: WrittenColumn) -> WrittenKey:
    """Return the key that a column's definition declares."""
    kind = column.key or "index"
    return WrittenKey(kind, (KeyPart(column.name),), "PRIMARY" if kind == "primary" else None)


def _has_inline_references(context: StatementContext) -> bool:
    """Return whether REFERENCES in a column's definition has an effect: in MySQL from
    9.0 on, in MariaDB from 10.5 on."""
    return context.facts.version >= (100500 if context.facts.is_mariadb else 90000)


def _generated_key(reference: WrittenReference) -> WrittenKey:
    """Return the key that the server adds for a foreign key."""
    parts = tuple(KeyPart(name) for name in reference.columns)
    return WrittenKey("index", parts, reference.name or reference.index_name, generated=True)


def resolve_references(
    kept_keys: Iterable[ForeignKey],
    written: Iterable[WrittenReference],
    table: TableSchema,
    schema: ServerSchema,
    context: StatementContext,
) -> tuple[ForeignKey, ...]:
    """Return the foreign keys of a table: those that it keeps, then new ones as the
    server makes them. `table`: has its new columns, keys and engine, and its former
    foreign keys. The names of new foreign keys continue the numbers of the former."""
    if table.engine.lower() not in _ENGINES_WITH_FOREIGN_KEYS:
        return ()
    last_number = max(
        (_constraint_number(key.name, table.name.name) for key in table.foreign_keys), default=0
    )
    default_action: ReferentialAction = "NO ACTION" if context.facts.is_mysql_8 else "RESTRICT"
    keys = [*kept_keys]
    for reference in written:
        name = reference.name
        if name is None:
            last_number += 1
            name = f"{table.name.name}_ibfk_{last_number}"
        database = reference.references.database or table.name.database
        target = TableName(database, reference.references.name)
        parent = table if target == table.name else schema.table(target)
        keys.append(
            ForeignKey(
                name,
                columns=_stored_spellings(reference.columns, table),
                references=target,
                referenced=_stored_spellings(reference.referenced, parent)
                if reference.referenced or parent is None
                else parent.primary_key,
                on_delete=reference.on_delete or default_action,
                on_update=reference.on_update or default_action,
            )
        )
    return tuple(keys)


def _stored_spellings(names: tuple[str, ...], table: TableSchema | None) -> tuple[str, ...]:
    stored = () if table is None else table.names
    spellings = {name.lower(): name for name in stored}
    return tuple(spellings.get(name.lower(), name) for name in names)


def _constraint_number(name: str, table: str) -> int:
    """Return n for a name like `table_ibfk_n`, which the server chose; 0 for any other
    name."""
    match = re.fullmatch(re.escape(table) + r"_ibfk_(\d+)", name, re.IGNORECASE)
    return int(match[1]) if match else 0


def with_renamed_constraints(
    keys: Iterable[ForeignKey], old: TableName, new: TableName
) -> tuple[ForeignKey, ...]:
    """Return the foreign keys of a renamed table. Names that the server chose contain
    the table's name, and change with it."""
    renamed = []
    for key in keys:
        if number := _constraint_number(key.name, old.name):
            key = replace(key, name=f"{new.name}_ibfk_{number}")
        renamed.append(key)
    return tuple(renamed)


def change_references(
    schema: ServerSchema, parent: TableName, change: Callable[[ForeignKey], ForeignKey]
) -> ServerSchema:
    """Return the schema with `change` applied to each foreign key that refers to the
    table."""
    folded = schema.fold_case(parent)

    def refers(key: ForeignKey) -> bool:
        return schema.fold_case(key.references) == folded

    tables = dict(schema.tables)
    for name, table in schema.tables.items():
        if any(map(refers, table.foreign_keys)):
            keys = tuple(change(key) if refers(key) else key for key in table.foreign_keys)
            tables[name] = replace(table, foreign_keys=keys)
    return replace(schema, tables=tables)
