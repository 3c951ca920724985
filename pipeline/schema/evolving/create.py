"""CREATE TABLE and CREATE TABLE … LIKE; and foreign keys: their names, what they refer to, and how
they follow renames.

`pipeline.schema.evolve` decides what happens if the table exists.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.evolving.column_changes import (
    Charset,
    chosen,
    of_collation,
    resolve_column,
    with_timestamps,
    with_zero_moments,
)
from lockstep.pipeline.schema.evolving.effects import CannotFollow
from lockstep.pipeline.schema.evolving.keys import (
    GEOMETRY_KEY,
    has_geometry_key,
    resolve_keys,
    with_key_columns,
)
from lockstep.pipeline.schema.hidden_columns import with_new
from lockstep.pipeline.schema.model import (
    ColumnSchema,
    ForeignKey,
    KeyPart,
    ServerSchema,
    TableSchema,
)
from lockstep.pipeline.schema.statements.changes import (
    CreateTable,
    Element,
    WrittenColumn,
    WrittenKey,
    WrittenPeriod,
    WrittenReference,
)
from lockstep.pipeline.values.table import TableName


def stored_name(name: TableName, context: StatementContext) -> TableName:
    """Return a new table's name as the server stores it: in lower case if
    `lower_case_table_names` is 1."""
    if context.facts.lower_case_table_names == 1:
        return TableName(name.database.lower(), name.name.lower())
    return name


def inherited_charset(schema: ServerSchema, database: str) -> Charset | None:
    """Return the default character set of a database's tables; None if the database is unknown."""
    parent = schema.database(database)
    return None if parent is None else Charset(parent.charset, parent.collation)


def session_charset(schema: ServerSchema, context: StatementContext) -> Charset | None:
    """Return the session's `collation_database`: that of its default database, without one the
    server's; None if it is unknown."""
    if context.database_collation is not None:
        return of_collation(context.database_collation)
    if context.database:
        return inherited_charset(schema, context.database)
    return None if context.server_collation is None else of_collation(context.server_collation)


def created(change: CreateTable, schema: ServerSchema, context: StatementContext) -> TableSchema:
    name = stored_name(change.table, context)
    options = change.options
    inherited = inherited_charset(schema, name.database)
    charset = chosen(options.charset, options.collation, inherited, context)
    written = [element for element in change.elements if isinstance(element, WrittenColumn)]
    names = {column.name.lower() for column in written}
    resolved = (resolve_column(column, charset, context) for column in written)
    columns = with_timestamps(resolved, names, context)
    engine = options.engine or context.facts.default_engine
    periods = [element for element in change.elements if isinstance(element, WrittenPeriod)]
    pending, references = split(change.elements, context)
    keys = resolve_keys(pending, columns, engine, context.facts, options.row_format)
    foreign_keys: tuple[ForeignKey, ...] = ()
    if kept_by(engine):
        foreign_keys = resolve_references(references, name, (), columns, schema, context)
    table = TableSchema(
        name,
        with_zero_moments(with_key_columns(columns, keys, periods), (), context),
        keys,
        (),
        charset.name,
        charset.collation,
        engine,
        options.row_format,
        bool(options.partitioned),
        bool(options.system_versioned) or any(column.versioned for column in written),
        with_new((), len(columns), keys) if context.facts.places_hidden else (),
    )
    # A foreign key that names no columns of its own table refers to its primary key, which is known
    # only now.
    return replace(
        table,
        foreign_keys=tuple(
            replace(key, referenced=table.primary_key)
            if not key.referenced and key.references == name
            else key
            for key in foreign_keys
        ),
    )


def split(
    elements: tuple[Element, ...], context: StatementContext
) -> tuple[list[WrittenKey], list[WrittenReference]]:
    """Return the keys that the elements define, in order, and the foreign keys."""
    keys: list[WrittenKey] = []
    references: list[WrittenReference] = []
    for element in elements:
        match element:
            case WrittenColumn(key=kind, reference=reference):
                if kind is not None:
                    keys.append(key_of(element))
                if element.unique_too and not context.facts.mariadb:
                    keys.append(WrittenKey("unique", (KeyPart(element.name),)))
                if reference is not None and _inline_references(context):
                    references.append(reference)
                    keys.append(_key_for(reference))
            case WrittenKey():
                keys.append(element)
            case WrittenReference():
                references.append(element)
                keys.append(_key_for(element))
    return keys, references


def key_of(column: WrittenColumn) -> WrittenKey:
    kind = column.key or "index"
    return WrittenKey(kind, (KeyPart(column.name),), "PRIMARY" if kind == "primary" else None)


def created_like(
    name: TableName, like: TableSchema | None, context: StatementContext
) -> TableSchema:
    """Return a table like another, without its foreign keys."""
    if like is None:
        raise CannotFollow("the table to copy is unknown")
    if context.facts.mariadb and has_geometry_key(like):
        raise CannotFollow(GEOMETRY_KEY)
    hidden = like.hidden if context.facts.places_hidden else ()
    return replace(like, name=stored_name(name, context), foreign_keys=(), hidden=hidden)


_ENGINES: Final = frozenset({"innodb", "ndbcluster"})


def kept_by(engine: str) -> bool:
    """Return whether an engine has foreign keys; the others ignore them silently."""
    return engine.lower() in _ENGINES


def _inline_references(context: StatementContext) -> bool:
    """Return whether REFERENCES in a column's definition has an effect: in MySQL from 9.0 on, in
    MariaDB from 10.5 on."""
    return context.facts.version >= (100500 if context.facts.mariadb else 90000)


def _key_for(reference: WrittenReference) -> WrittenKey:
    parts = tuple(KeyPart(name) for name in reference.columns)
    return WrittenKey("index", parts, reference.name or reference.index, generated=True)


def resolve_references(
    written: Iterable[WrittenReference],
    table: TableName,
    before: Sequence[ForeignKey],
    columns: Sequence[ColumnSchema],
    schema: ServerSchema,
    context: StatementContext,
) -> tuple[ForeignKey, ...]:
    """Return new foreign keys of a table as the server makes them. `before`: those that the table
    has, whose names count for the names of new ones."""
    number = max((_number(key.name, table.name) for key in before), default=0)
    names = {column.name.lower(): column.name for column in columns}
    default_action = "NO ACTION" if context.facts.mysql_8 else "RESTRICT"
    keys = []
    for reference in written:
        name = reference.name
        if name is None:
            number += 1
            name = f"{table.name}_ibfk_{number}"
        database = reference.references.database or table.database
        target = stored_name(TableName(database, reference.references.name), context)
        parent = schema.table(target)
        keys.append(
            ForeignKey(
                name,
                tuple(names.get(column.lower(), column) for column in reference.columns),
                target,
                _referenced(reference, parent),
                reference.on_delete or default_action,
                reference.on_update or default_action,
            )
        )
    return tuple(keys)


def _referenced(reference: WrittenReference, parent: TableSchema | None) -> tuple[str, ...]:
    if not reference.referenced:
        return parent.primary_key if parent is not None else ()
    if parent is None:
        return reference.referenced
    names = {column.name.lower(): column.name for column in parent.columns}
    return tuple(names.get(name.lower(), name) for name in reference.referenced)


def _number(name: str, table: str) -> int:
    match = re.fullmatch(re.escape(table) + r"_ibfk_(\d+)", name, re.IGNORECASE)
    return int(match[1]) if match else 0


def renamed_names(
    keys: Iterable[ForeignKey], old: TableName, new: TableName
) -> tuple[ForeignKey, ...]:
    """Return the foreign keys of a renamed table: names that the server chose contain the table's
    name, and change with it."""
    renamed = []
    for key in keys:
        if number := _number(key.name, old.name):
            key = replace(key, name=f"{new.name}_ibfk_{number}")
        renamed.append(key)
    return tuple(renamed)


def with_children(
    schema: ServerSchema, parent: TableName, change: Callable[[ForeignKey], ForeignKey]
) -> ServerSchema:
    """Return the schema in which all foreign keys that refer to a table are changed."""
    folded = schema.fold(parent)
    tables = dict(schema.tables)
    for name, table in schema.tables.items():
        refers = [schema.fold(key.references) == folded for key in table.foreign_keys]
        if any(refers):
            keys = zip(table.foreign_keys, refers, strict=True)
            changed = tuple(change(key) if refer else key for key, refer in keys)
            tables[name] = replace(table, foreign_keys=changed)
    return replace(schema, tables=tables)
