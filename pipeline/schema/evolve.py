"""The schema after a statement's changes, and the effects of these changes on each
table.

`evolving` has the rules for the columns and keys of one table. `evolve` is pure and
never raises: a change that does not fit the schema has the effect `NotFollowed` or
`UnknownTable`, and the table's structure is unknown from there on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import assert_never

from lockstep.pipeline.schema.context import StatementContext, stored_name
from lockstep.pipeline.schema.effects import (
    CannotFollow,
    Changed,
    Created,
    DatabaseEffect,
    Dropped,
    Effect,
    NotFollowed,
    Renamed,
    Truncated,
    Unchanged,
    UnknownTable,
    UnloggedChange,
)
from lockstep.pipeline.schema.evolving.alter import altered
from lockstep.pipeline.schema.evolving.column_changes import (
    Charset,
    chosen_charset,
    inherited_charset,
    of_collation,
    resolve_column,
    with_timestamps,
    with_zero_moments,
)
from lockstep.pipeline.schema.evolving.keys import (
    GEOMETRY_KEY,
    has_geometry_key,
    keeps_foreign_keys,
    keys_and_references,
    renamed_names,
    resolve_keys,
    resolve_references,
    with_children,
    with_key_columns,
)
from lockstep.pipeline.schema.model import (
    DatabaseCode,
    DatabaseSchema,
    ForeignKey,
    ServerSchema,
    TableSchema,
)
from lockstep.pipeline.schema.rows import add_hidden_columns
from lockstep.pipeline.schema.statements.changes import (
    AlterDatabase,
    AlterTable,
    CreateDatabase,
    CreateLike,
    CreateSelect,
    CreateTable,
    DropDatabase,
    DropTables,
    RenameTables,
    RenameTo,
    RepairTables,
    RowsChange,
    SchemaChange,
    TruncateTable,
    WrittenColumn,
    WrittenPeriod,
)
from lockstep.pipeline.values.table import TableName

Step = tuple[ServerSchema, list[Effect]]
"""The schema after a change, and the change's effects."""


@dataclass(frozen=True, slots=True)
class Evolved:
    """The schema after a statement, and the statement's effects."""

    schema: ServerSchema
    effects: tuple[Effect, ...]


def evolve(
    schema: ServerSchema, changes: Sequence[SchemaChange], context: StatementContext
) -> Evolved:
    """Apply the changes of one statement. MariaDB logs a two-phase ALTER twice; it has
    its effect where its commit is logged, not where its start is."""
    effects: list[Effect] = []
    if context.alter_phase in ("start", "rollback"):
        return Evolved(schema, ())
    for change in changes:
        schema, more = _step(schema, change, context)
        effects += more
    return Evolved(schema, tuple(effects))


def may_find_view(
    schema: ServerSchema, changes: Sequence[SchemaChange], context: StatementContext
) -> TableName | None:
    """Return the table that CREATE TABLE IF NOT EXISTS creates, unless a view has that
    name: MySQL and MariaDB log the statement in both cases. Return None for all other
    statements, and if the table is known to exist or proven to be created."""
    match changes:
        case [CreateTable() | CreateLike() | CreateSelect() as change] if change.if_not_exists:
            name = stored_name(change.table, context)
            exists = (
                schema.table(name) is not None or schema.fold_case(name) in schema.unknown_tables
            )
            return None if exists or context.ddl_xid else name
    return None


def forget(schema: ServerSchema, tables: Sequence[TableName]) -> ServerSchema:
    """Return the schema in which the structures of these tables are unknown."""
    for name in tables:
        schema = schema.with_unknown_table(name)
    return schema


def _step(schema: ServerSchema, change: SchemaChange, context: StatementContext) -> Step:
    match change:
        case CreateTable() | CreateLike() | CreateSelect():
            return _create(schema, change, context)
        case DropTables():
            return _drop(schema, change)
        case RenameTables(pairs, if_exists):
            effects: list[Effect] = []
            for old, new in pairs:
                schema, more = _rename(schema, old, new, context, if_exists=if_exists)
                effects += more
            return schema, effects
        case TruncateTable(name):
            table = schema.table(name)
            if table is None and schema.fold_case(name) not in schema.unknown_tables:
                return schema, [UnknownTable(name, "TRUNCATE")]
            return schema, [Truncated(name if table is None else table.name)]
        case AlterTable():
            return _alter(schema, change, context)
        case RepairTables(tables):
            return schema, [UnloggedChange(name, "REPAIR TABLE") for name in tables]
        case CreateDatabase():
            return _create_database(schema, change, context)
        case AlterDatabase():
            return _alter_database(schema, change, context)
        case DropDatabase():
            return _drop_database(schema, change)
    assert_never(change)


# -- tables -----------------------------------------------------------------------


def _create(
    schema: ServerSchema,
    change: CreateTable | CreateLike | CreateSelect,
    context: StatementContext,
) -> Step:
    name = stored_name(change.table, context)
    before = schema.table(name)
    unknown = schema.fold_case(name) in schema.unknown_tables
    effects: list[Effect] = []
    if change.if_not_exists and context.finds_view:
        return schema, [Unchanged(name, "a view has its name")]
    # The event's data dictionary transaction (`ddl_xid`) proves that IF NOT EXISTS
    # created the table, even if the history has a table of that name.
    may_exist = change.if_not_exists and not context.ddl_xid
    replaced = change.or_replace or (change.if_not_exists and context.ddl_xid)
    if unknown and may_exist:
        return schema, [UnknownTable(name, "CREATE TABLE IF NOT EXISTS")]
    if before is not None:
        if may_exist:
            return schema, [Unchanged(name, "it exists")]
        if not replaced:
            reason = "it is created although it exists"
            return schema.with_unknown_table(name), [NotFollowed(name, reason)]
    if replaced and (before is not None or unknown):
        effects.append(Dropped(name, before))
    try:
        after = _new_table(change, schema, context)
    except CannotFollow as error:
        return schema.with_unknown_table(name), [*effects, NotFollowed(name, str(error))]
    return schema.with_table(after), [*effects, Created(after.name, after)]


def _new_table(
    change: CreateTable | CreateLike | CreateSelect,
    schema: ServerSchema,
    context: StatementContext,
) -> TableSchema:
    match change:
        case CreateTable():
            return _created(change, schema, context)
        case CreateLike(table, like):
            return _created_like(table, schema.table(like), context)
        case CreateSelect():
            raise CannotFollow("its columns come from a SELECT, so only the server knows them")
    assert_never(change)


def _created(change: CreateTable, schema: ServerSchema, context: StatementContext) -> TableSchema:
    name = stored_name(change.table, context)
    options = change.options
    inherited = inherited_charset(schema, name.database)
    charset = chosen_charset(options.charset, options.collation, inherited, context)
    written = [element for element in change.elements if isinstance(element, WrittenColumn)]
    names = {column.name.lower() for column in written}
    resolved = (resolve_column(column, charset, context) for column in written)
    columns = with_timestamps(resolved, names, context)
    engine = options.engine or context.facts.default_engine
    periods = [element for element in change.elements if isinstance(element, WrittenPeriod)]
    pending, references = keys_and_references(change.elements, context)
    keys = resolve_keys(pending, columns, engine, context.facts, options.row_format)
    foreign_keys: tuple[ForeignKey, ...] = ()
    if keeps_foreign_keys(engine):
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
        bool(options.system_versioned) or any(column.system_versioned for column in written),
        add_hidden_columns((), len(columns), keys) if context.facts.knows_hidden_places else (),
    )
    # If a foreign key refers to its own table without naming columns, it means the
    # primary key, which is known only now.
    return replace(
        table,
        foreign_keys=tuple(
            replace(key, referenced=table.primary_key)
            if not key.referenced and key.references == name
            else key
            for key in foreign_keys
        ),
    )


def _created_like(
    name: TableName, like: TableSchema | None, context: StatementContext
) -> TableSchema:
    """Return a table like another, without its foreign keys."""
    if like is None:
        raise CannotFollow("the table to copy is unknown")
    if context.facts.is_mariadb and has_geometry_key(like):
        raise CannotFollow(GEOMETRY_KEY)
    hidden = like.hidden if context.facts.knows_hidden_places else ()
    return replace(like, name=stored_name(name, context), foreign_keys=(), hidden=hidden)


def _drop(schema: ServerSchema, change: DropTables) -> Step:
    effects: list[Effect] = []
    for name in change.tables:
        before = schema.table(name)
        if before is not None or schema.fold_case(name) in schema.unknown_tables:
            effects.append(Dropped(before.name if before else name, before))
            schema = schema.without_table(name)
        elif change.if_exists:
            effects.append(Unchanged(name, "it does not exist"))
        else:
            effects.append(UnknownTable(name, "DROP TABLE"))
    return schema, effects


def _rename(
    schema: ServerSchema,
    old: TableName,
    new: TableName,
    context: StatementContext,
    *,
    if_exists: bool,
) -> Step:
    table = schema.table(old)
    target = stored_name(new, context)
    if table is None:
        if schema.fold_case(old) in schema.unknown_tables:
            moved = schema.without_table(old).with_unknown_table(target)
            return moved, [Renamed(old, target, None)]
        if if_exists:
            return schema, [Unchanged(old, "it does not exist")]
        if _may_be_view(schema, old, target):
            return schema, [Unchanged(old, "it is a view, not a table")]
        return schema, [UnknownTable(old, "RENAME")]
    if schema.table(target) not in (None, table):
        # The table may be temporary: MariaDB logs RENAME TABLE of temporary tables,
        # too.
        return schema.with_unknown_table(old).with_unknown_table(target), [
            NotFollowed(table.name, f"it is renamed to {target}, which already exists"),
            NotFollowed(target, f"{table.name} is renamed to it although it exists"),
        ]
    after = replace(
        table, name=target, foreign_keys=renamed_names(table.foreign_keys, table.name, target)
    )
    schema = schema.without_table(old).with_table(after)
    schema = with_children(schema, table.name, lambda key: replace(key, references=target))
    return schema, [Renamed(table.name, target, schema.table(target), after.names)]


def _may_be_view(schema: ServerSchema, old: TableName, target: TableName) -> bool:
    """Return whether RENAME TABLE of a name that is no known table may rename a view. A
    view stays in its database, and the history knows all tables of that database."""
    return (
        old.database == target.database
        and schema.database(old.database) is not None
        and schema.table(target) is None
        and schema.fold_case(target) not in schema.unknown_tables
    )


def _alter(schema: ServerSchema, change: AlterTable, context: StatementContext) -> Step:
    name = change.table
    targets = [clause.name for clause in change.clauses if isinstance(clause, RenameTo)]
    target = targets[-1] if targets else None
    unlogged: list[Effect] = []
    for clause in change.clauses:
        if isinstance(clause, RowsChange):
            unlogged.append(UnloggedChange(name, clause.reason))
            if clause.other_table is not None:
                unlogged.append(UnloggedChange(clause.other_table, clause.reason))
    before = schema.table(name)
    if before is None:
        return _alter_unknown_table(schema, change, target, context)
    try:
        table, renamed, columns_from = altered(before, change.clauses, schema, context)
    except CannotFollow as error:
        schema, moved = _renamed(schema.with_unknown_table(name), name, target, context)
        return schema, [NotFollowed(before.name, str(error)), *moved, *unlogged]
    schema = schema.with_table(table)
    if renamed:
        schema = with_children(schema, before.name, partial(_with_renamed_columns, renamed))
    after = schema.table(name) or table
    effects: list[Effect] = []
    if after != before or columns_from != before.names:
        effects.append(Changed(before.name, before, after, columns_from))
    schema, moved = _renamed(schema, name, target, context)
    effects += [
        replace(effect, columns_from=columns_from) if isinstance(effect, Renamed) else effect
        for effect in moved
    ]
    effects += unlogged
    return schema, effects or [Unchanged(before.name, "it did not change")]


def _with_renamed_columns(renamed: Mapping[str, str], key: ForeignKey) -> ForeignKey:
    """Return a foreign key after columns of its parent were renamed. `renamed`: new
    names by old names in lower case."""
    return replace(key, referenced=tuple(renamed.get(c.lower(), c) for c in key.referenced))


def _renamed(
    schema: ServerSchema, name: TableName, target: TableName | None, context: StatementContext
) -> Step:
    if target is None or schema.fold_case(target) == schema.fold_case(name):
        return schema, []
    return _rename(schema, name, target, context, if_exists=False)


def _alter_unknown_table(
    schema: ServerSchema,
    change: AlterTable,
    target: TableName | None,
    context: StatementContext,
) -> Step:
    if schema.fold_case(change.table) not in schema.unknown_tables:
        if change.if_exists:
            return schema, [Unchanged(change.table, "it does not exist")]
        return schema, [UnknownTable(change.table, "ALTER TABLE")]
    schema, moved = _renamed(schema, change.table, target, context)
    return schema, [UnknownTable(change.table, "ALTER TABLE"), *moved]


def _create_database(
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
        charset = chosen_charset(change.charset, change.collation, inherited, context)
    except CannotFollow:
        return schema, [DatabaseEffect(name, "unknown")]
    database = DatabaseSchema(name, charset.name, charset.collation, DatabaseCode())
    return schema.with_database(database), [DatabaseEffect(name, "created")]


def _alter_database(schema: ServerSchema, change: AlterDatabase, context: StatementContext) -> Step:
    before = schema.database(change.name)
    inherited = inherited_charset(schema, change.name)
    if before is None or inherited is None:
        return schema, [DatabaseEffect(change.name, "unknown")]
    try:
        charset: Charset = chosen_charset(change.charset, change.collation, inherited, context)
    except CannotFollow:
        return schema.without_database(change.name), [DatabaseEffect(change.name, "unknown")]
    after = replace(before, charset=charset.name, collation=charset.collation)
    kind = "unchanged" if after == before else "changed"
    return schema.with_database(after), [DatabaseEffect(before.name, kind)]


def _drop_database(schema: ServerSchema, change: DropDatabase) -> Step:
    if schema.database(change.name) is None and change.if_exists:
        return schema, [DatabaseEffect(change.name, "unchanged")]
    folded = schema.fold_case(TableName(change.name, "")).database
    dropped: list[Effect] = [
        Dropped(table.name, table) for key, table in schema.tables.items() if key.database == folded
    ]
    dropped += [
        Dropped(name, None) for name in sorted(schema.unknown_tables) if name.database == folded
    ]
    return schema.without_database(change.name), [*dropped, DatabaseEffect(change.name, "dropped")]
