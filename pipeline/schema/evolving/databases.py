"""CREATE, ALTER and DROP DATABASE → the schema after them.

Belongs here: what a database hands down, and what goes with it.
"""

from __future__ import annotations

from dataclasses import replace

from pipeline.schema.context import StatementContext
from pipeline.schema.evolving.charsets import Charset, chosen, of_collation
from pipeline.schema.evolving.create import inherited_charset, stored_name
from pipeline.schema.evolving.effects import (
    CannotFollow,
    DatabaseEffect,
    Dropped,
    Effect,
)
from pipeline.schema.model import DatabaseCode, DatabaseSchema, ServerSchema
from pipeline.schema.statements.changes import (
    AlterDatabase,
    CreateDatabase,
    DropDatabase,
)
from pipeline.table import TableName

Step = tuple[ServerSchema, list[Effect]]
"""The schema after a change, and the effects of it."""


def create_database(
    schema: ServerSchema, change: CreateDatabase, context: StatementContext
) -> Step:
    name = stored_name(TableName(change.name, ""), context).database
    if schema.database(name) is not None:
        if change.if_not_exists:
            return schema, [DatabaseEffect(name, "unchanged")]
        schema = schema.without_database(name)
    server = context.server_collation
    inherited = None if server is None else of_collation(server)
    try:
        charset = chosen(change.charset, change.collation, inherited, context)
    except CannotFollow:
        return schema, [DatabaseEffect(name, "unknown")]
    database = DatabaseSchema(name, charset.name, charset.collation, DatabaseCode())
    return schema.with_database(database), [DatabaseEffect(name, "created")]


def alter_database(schema: ServerSchema, change: AlterDatabase, context: StatementContext) -> Step:
    before = schema.database(change.name)
    inherited = inherited_charset(schema, change.name)
    if before is None or inherited is None:
        return schema, [DatabaseEffect(change.name, "unknown")]
    try:
        charset: Charset = chosen(change.charset, change.collation, inherited, context)
    except CannotFollow:
        return schema.without_database(change.name), [DatabaseEffect(change.name, "unknown")]
    after = replace(before, charset=charset.name, collation=charset.collation)
    kind = "unchanged" if after == before else "changed"
    return schema.with_database(after), [DatabaseEffect(before.name, kind)]


def drop_database(schema: ServerSchema, change: DropDatabase) -> Step:
    if schema.database(change.name) is None and change.if_exists:
        return schema, [DatabaseEffect(change.name, "unchanged")]
    gone = schema.fold(TableName(change.name, "")).database
    dropped: list[Effect] = [
        Dropped(table.name, table) for key, table in schema.tables.items() if key.database == gone
    ]
    dropped += [Dropped(name, None) for name in schema.unknown if name.database == gone]
    return schema.without_database(change.name), [*dropped, DatabaseEffect(change.name, "dropped")]
