"""CREATE TABLE, also LIKE another → a table.

Belongs here: putting a definition's parts together. Whether the table was there before is
decided in `pipeline.schema.evolve`.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.schema.context import StatementContext
from pipeline.schema.evolving.charsets import Charset, chosen, of_collation
from pipeline.schema.evolving.column_changes import (
    resolve_columns,
    with_timestamps,
    with_zero_moments,
)
from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.evolving.keys import resolve_keys, with_key_columns
from pipeline.schema.evolving.prefixes import SHAPES, holds_shapes
from pipeline.schema.evolving.references import (
    inline_references,
    kept_by,
    key_for,
    resolve_references,
)
from pipeline.schema.hidden_columns import appended
from pipeline.schema.model import ForeignKey, KeyPart, ServerSchema, TableSchema
from pipeline.schema.statements.changes import CreateTable
from pipeline.schema.statements.written import (
    Element,
    WrittenColumn,
    WrittenKey,
    WrittenPeriod,
    WrittenReference,
)
from pipeline.table import TableName


def stored_name(name: TableName, context: StatementContext) -> TableName:
    """The name as the server keeps it."""
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
    """The table a CREATE TABLE makes."""
    name = stored_name(change.table, context)
    options = change.options
    inherited = inherited_charset(schema, name.database)
    charset = chosen(options.charset, options.collation, inherited, context)
    written = [element for element in change.elements if isinstance(element, WrittenColumn)]
    names = {column.name.lower() for column in written}
    columns = with_timestamps(resolve_columns(written, charset, context), names, context)
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
    return _referring_to_itself(replace(table, foreign_keys=found))


def _referring_to_itself(table: TableSchema) -> TableSchema:
    """A foreign key without columns that points at its own table means its primary key."""
    keys = tuple(
        replace(key, referenced=table.primary_key)
        if not key.referenced and key.references == table.name
        else key
        for key in table.foreign_keys
    )
    return replace(table, foreign_keys=keys)


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
    """The key that a column's own definition asks for."""
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
