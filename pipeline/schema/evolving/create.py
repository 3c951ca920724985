"""CREATE TABLE, also LIKE another → a table; and foreign keys, as far as more than their own text
decides about them: names, what they point at, how they follow renames.

Whether the table was there before is decided in `pipeline.schema.evolve`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final

from pipeline.schema.context import StatementContext
from pipeline.schema.evolving.column_changes import (
    Charset,
    chosen,
    of_collation,
    resolve_column,
    with_timestamps,
    with_zero_moments,
)
from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.evolving.keys import SHAPES, holds_shapes, resolve_keys, with_key_columns
from pipeline.schema.hidden_columns import appended
from pipeline.schema.model import ColumnSchema, ForeignKey, KeyPart, ServerSchema, TableSchema
from pipeline.schema.statements.changes import (
    CreateTable,
    Element,
    WrittenColumn,
    WrittenKey,
    WrittenPeriod,
    WrittenReference,
)
from pipeline.table import TableName


def stored_name(name: TableName, context: StatementContext) -> TableName:
    if context.facts.lower_case_table_names == 1:
        return TableName(name.database.lower(), name.name.lower())
    return name


def inherited_charset(schema: ServerSchema, database: str) -> Charset | None:
    """What a table of that database is made with; None if the database is not known."""
    found = schema.database(database)
    return None if found is None else Charset(found.charset, found.collation)


def session_charset(schema: ServerSchema, context: StatementContext) -> Charset | None:
    """The session's `collation_database`: of its default database, or without one the server's;
    None where nobody knows it."""
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
    found: tuple[ForeignKey, ...] = ()
    if kept_by(engine):
        found = resolve_references(references, name, (), columns, schema, context)
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
        appended((), len(columns), keys) if context.facts.places_hidden else (),
    )
    # A foreign key without columns that points at its own table means its primary key.
    return replace(
        table,
        foreign_keys=tuple(
            replace(key, referenced=table.primary_key)
            if not key.referenced and key.references == name
            else key
            for key in found
        ),
    )


def split(
    elements: tuple[Element, ...], context: StatementContext
) -> tuple[list[WrittenKey], list[WrittenReference]]:
    """The keys that elements bring along, in order, and the foreign keys."""
    keys: list[WrittenKey] = []
    references: list[WrittenReference] = []
    for element in elements:
        match element:
            case WrittenColumn(key=kind, reference=reference):
                if kind is not None:
                    keys.append(key_of(element))
                if element.unique_too and not context.facts.mariadb:
                    keys.append(WrittenKey("unique", (KeyPart(element.name),)))
                if reference is not None and inline_references(context):
                    references.append(reference)
                    keys.append(key_for(reference))
            case WrittenKey():
                keys.append(element)
            case WrittenReference():
                references.append(element)
                keys.append(key_for(element))
    return keys, references


def key_of(column: WrittenColumn) -> WrittenKey:
    kind = column.key or "index"
    return WrittenKey(kind, (KeyPart(column.name),), "PRIMARY" if kind == "primary" else None)


def created_like(
    name: TableName, like: TableSchema | None, context: StatementContext
) -> TableSchema:
    """A table like another: all of it but the foreign keys."""
    if like is None:
        raise CannotFollow("the table to copy is not known")
    if context.facts.mariadb and holds_shapes(like):
        raise CannotFollow(SHAPES)
    hidden = like.hidden if context.facts.places_hidden else ()
    return replace(like, name=stored_name(name, context), foreign_keys=(), hidden=hidden)


_ENGINES: Final = frozenset({"innodb", "ndbcluster"})
_INLINE_SINCE: Final = 90000
"""MySQL ignored REFERENCES in a column's definition before 9.0; MariaDB before 10.5."""

_INLINE_SINCE_MARIADB: Final = 100500


def kept_by(engine: str) -> bool:
    """Whether an engine has foreign keys; the others drop them without a word."""
    return engine.lower() in _ENGINES


def inline_references(context: StatementContext) -> bool:
    since = _INLINE_SINCE_MARIADB if context.facts.mariadb else _INLINE_SINCE
    return context.facts.version >= since


def key_for(reference: WrittenReference) -> WrittenKey:
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
    number = max((_number(key.name, table.name) for key in before), default=0)
    names = {column.name.lower(): column.name for column in columns}
    usual = "NO ACTION" if context.facts.mysql_8 else "RESTRICT"
    found = []
    for reference in written:
        name = reference.name
        if name is None:
            number += 1
            name = f"{table.name}_ibfk_{number}"
        target = _target(reference.references, table, context)
        parent = schema.table(target)
        found.append(
            ForeignKey(
                name,
                tuple(names.get(column.lower(), column) for column in reference.columns),
                target,
                _referenced(reference, parent),
                reference.on_delete or usual,
                reference.on_update or usual,
            )
        )
    return tuple(found)


def _target(named: TableName, table: TableName, context: StatementContext) -> TableName:
    found = TableName(named.database or table.database, named.name)
    if context.facts.lower_case_table_names != 1:
        return found
    return TableName(found.database.lower(), found.name.lower())


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
    """Names that the server chose follow the table's own name."""
    found = []
    for key in keys:
        if _number(key.name, old.name):
            key = replace(key, name=f"{new.name}_ibfk_{_number(key.name, old.name)}")
        found.append(key)
    return tuple(found)


def with_children(
    schema: ServerSchema, parent: TableName, change: Callable[[ForeignKey], ForeignKey]
) -> ServerSchema:
    folded = schema.fold(parent)
    tables = dict(schema.tables)
    for name, table in schema.tables.items():
        points = [schema.fold(key.references) == folded for key in table.foreign_keys]
        if any(points):
            keys = zip(table.foreign_keys, points, strict=True)
            changed = tuple(change(key) if here else key for key, here in keys)
            tables[name] = replace(table, foreign_keys=changed)
    return replace(schema, tables=tables)
