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
from lockstep.pipeline.schema.evolving.alter import alter_table, new_column_names
from lockstep.pipeline.schema.evolving.column_changes import (
    charset_with_collation,
    chosen_charset,
    inherited_charset,
    resolve_column,
    with_implicit_timestamps,
    with_zero_defaults,
)
from lockstep.pipeline.schema.evolving.keys import (
    GEOMETRY_KEY_REASON,
    change_references,
    has_geometry_key,
    keys_and_references,
    resolve_keys,
    resolve_references,
    with_not_null_keys,
    with_renamed_constraints,
)
from lockstep.pipeline.schema.hidden_columns import add_hidden_columns
from lockstep.pipeline.schema.model import (
    DatabaseCode,
    DatabaseSchema,
    ForeignKey,
    ServerSchema,
    TableSchema,
)
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
    RepairTables,
    RowsChange,
    SchemaChange,
    TruncateTable,
    WrittenColumn,
    WrittenPeriod,
)
from lockstep.pipeline.values.table import TableName

EvolvedStep = tuple[ServerSchema, list[Effect]]
"""The schema after a change, and the change's effects."""


@dataclass(frozen=True, slots=True)
class EvolvedSchema:
    """The schema after a statement, and the statement's effects."""

    schema: ServerSchema
    effects: tuple[Effect, ...]


def evolve(
    schema: ServerSchema, changes: Sequence[SchemaChange], context: StatementContext
) -> EvolvedSchema:
    """Apply the changes of one statement. MariaDB logs a two-phase ALTER twice; the
    ALTER takes effect where its commit is logged, not where its start is."""
    if context.alter_phase in ("start", "rollback"):
        return EvolvedSchema(schema, ())
    effects: list[Effect] = []
    for change in changes:
        schema, new_effects = _apply_change(schema, change, context)
        effects += new_effects
    return EvolvedSchema(schema, tuple(effects))


def possible_view(
    schema: ServerSchema, changes: Sequence[SchemaChange], context: StatementContext
) -> TableName | None:
    """Return the table of a CREATE TABLE IF NOT EXISTS that may have created nothing:
    MySQL and MariaDB log the statement even if a view has the table's name. Return None
    for all other statements, and if the history or `ddl_xid` shows that it is no view."""
    match changes:
        case [CreateTable() | CreateLike() | CreateSelect() as change] if change.if_not_exists:
            name = change.table
            exists = schema.table(name) is not None or schema.is_unknown(name)
            return None if exists or context.ddl_xid else name
    return None


def _apply_change(
    schema: ServerSchema, change: SchemaChange, context: StatementContext
) -> EvolvedStep:
    match change:
        case CreateTable() | CreateLike() | CreateSelect():
            return _apply_create(schema, change, context)
        case DropTables():
            return _apply_drop(schema, change)
        case RenameTables(pairs, if_exists):
            effects: list[Effect] = []
            for old, new in pairs:
                schema, new_effects = _apply_rename(schema, old, new, if_exists=if_exists)
                effects += new_effects
            return schema, effects
        case TruncateTable(name):
            table = schema.table(name)
            if table is None and not schema.is_unknown(name):
                return schema, [UnknownTable(name, "TRUNCATE")]
            return schema, [Truncated(name if table is None else table.name)]
        case AlterTable():
            return _apply_alter(schema, change, context)
        case RepairTables(tables):
            return schema, [UnloggedChange(name, "REPAIR TABLE") for name in tables]
        case CreateDatabase():
            return _apply_create_database(schema, change, context)
        case AlterDatabase():
            return _apply_alter_database(schema, change, context)
        case DropDatabase():
            return _apply_drop_database(schema, change)
    assert_never(change)


# -- tables -----------------------------------------------------------------------


def _apply_create(
    schema: ServerSchema,
    change: CreateTable | CreateLike | CreateSelect,
    context: StatementContext,
) -> EvolvedStep:
    name = change.table
    before = schema.table(name)
    is_unknown = schema.is_unknown(name)
    effects: list[Effect] = []
    if change.if_not_exists and context.finds_view:
        return schema, [Unchanged(name, "a view has its name")]
    # The event's data dictionary transaction (`ddl_xid`) proves that IF NOT EXISTS
    # created the table, even if the history has a table of that name.
    may_exist = change.if_not_exists and not context.ddl_xid
    replaces = change.or_replace or (change.if_not_exists and context.ddl_xid)
    if is_unknown and may_exist:
        return schema, [UnknownTable(name, "CREATE TABLE IF NOT EXISTS")]
    if before is not None:
        if may_exist:
            return schema, [Unchanged(name, "it exists")]
        if not replaces:
            reason = "it is created although it exists"
            return schema.with_unknown_tables(name), [NotFollowed(name, reason)]
    if replaces and (before is not None or is_unknown):
        effects.append(Dropped(name))
    try:
        after = _new_table(change, schema, context)
    except CannotFollow as error:
        copies_unknown = isinstance(change, CreateLike) and schema.table(change.like) is None
        not_followed = NotFollowed(name, str(error), copies_unknown)
        return schema.with_unknown_tables(name), [*effects, not_followed]
    return schema.with_table(after), [*effects, Created(after.name, after)]


def _new_table(
    change: CreateTable | CreateLike | CreateSelect,
    schema: ServerSchema,
    context: StatementContext,
) -> TableSchema:
    match change:
        case CreateTable():
            return _table_of_create(change, schema, context)
        case CreateLike(table, like):
            return _table_like(table, schema.table(like), context)
        case CreateSelect():
            raise CannotFollow("its columns come from a SELECT, so only the server knows them")
    assert_never(change)


def _table_of_create(
    change: CreateTable, schema: ServerSchema, context: StatementContext
) -> TableSchema:
    name = change.table
    options = change.options
    inherited = inherited_charset(schema, name.database)
    charset = chosen_charset(options.charset, options.collation, inherited, context)
    written_columns = [element for element in change.elements if isinstance(element, WrittenColumn)]
    names = {column.name.lower() for column in written_columns}
    resolved = (resolve_column(column, charset, context) for column in written_columns)
    columns = with_implicit_timestamps(resolved, names, context)
    engine = options.engine or context.facts.default_engine
    periods = [element for element in change.elements if isinstance(element, WrittenPeriod)]
    written_keys, references = keys_and_references(change.elements, context)
    keys = resolve_keys(written_keys, columns, engine, context.facts, options.row_format)
    hidden = add_hidden_columns((), len(columns), keys)
    table = TableSchema(
        name,
        with_zero_defaults(with_not_null_keys(columns, keys, periods), (), context),
        keys,
        charset=charset.name,
        collation=charset.collation,
        engine=engine,
        row_format=options.row_format,
        partitioned=bool(options.partitioned),
        system_versioned=bool(options.system_versioned)
        or any(column.system_versioned for column in written_columns),
        expression_columns=hidden if context.facts.knows_hidden_places else (),
    )
    return replace(table, foreign_keys=resolve_references((), references, table, schema, context))


def _table_like(
    name: TableName, like: TableSchema | None, context: StatementContext
) -> TableSchema:
    """Return a table like another, without its foreign keys."""
    if like is None:
        raise CannotFollow("the table to copy is unknown")
    if context.facts.is_mariadb and has_geometry_key(like):
        raise CannotFollow(GEOMETRY_KEY_REASON)
    hidden = like.expression_columns if context.facts.knows_hidden_places else ()
    return replace(like, name=name, foreign_keys=(), expression_columns=hidden)


def _apply_drop(schema: ServerSchema, change: DropTables) -> EvolvedStep:
    effects: list[Effect] = []
    for name in change.tables:
        before = schema.table(name)
        if before is not None or schema.is_unknown(name):
            effects.append(Dropped(before.name if before else name))
            schema = schema.without_table(name)
        elif change.if_exists:
            effects.append(Unchanged(name, "it does not exist"))
        else:
            effects.append(UnknownTable(name, "DROP TABLE"))
    return schema, effects


def _apply_rename(
    schema: ServerSchema, old: TableName, target: TableName, *, if_exists: bool
) -> EvolvedStep:
    table = schema.table(old)
    if table is None:
        if schema.is_unknown(old):
            schema = schema.without_table(old).with_unknown_tables(target)
            return schema, [Renamed(old, target)]
        if if_exists:
            return schema, [Unchanged(old, "it does not exist")]
        if _may_be_view(schema, old, target):
            return schema, [Unchanged(old, "it is a view, not a table")]
        return schema, [UnknownTable(old, "RENAME")]
    if schema.table(target) not in (None, table):
        # The table may be temporary: MariaDB logs RENAME TABLE of temporary tables,
        # too.
        return schema.with_unknown_tables(old, target), [
            NotFollowed(table.name, f"it is renamed to {target}, which already exists"),
            NotFollowed(target, f"{table.name} is renamed to it although it exists"),
        ]
    after = replace(
        table,
        name=target,
        foreign_keys=with_renamed_constraints(table.foreign_keys, table.name, target),
    )
    schema = schema.without_table(old).with_table(after)
    schema = change_references(schema, table.name, lambda key: replace(key, references=target))
    return schema, [Renamed(table.name, target, after.names)]


def _may_be_view(schema: ServerSchema, old: TableName, target: TableName) -> bool:
    """Return whether RENAME TABLE of a name that is no known table may rename a view. A
    view stays in its database, and the history knows all tables of that database."""
    return (
        old.database == target.database
        and schema.database(old.database) is not None
        and schema.table(target) is None
        and not schema.is_unknown(target)
    )


def _apply_alter(
    schema: ServerSchema, change: AlterTable, context: StatementContext
) -> EvolvedStep:
    name = change.table
    target = change.new_names[-1] if change.new_names else None
    unlogged_effects: list[Effect] = []
    for clause in change.clauses:
        if isinstance(clause, RowsChange):
            unlogged_effects.append(UnloggedChange(name, clause.name))
            if clause.other_table is not None:
                unlogged_effects.append(UnloggedChange(clause.other_table, clause.name))
    before = schema.table(name)
    if before is None:
        rename_effects: list[Effect] = []
        if schema.is_unknown(name):
            schema, rename_effects = _apply_rename_to(schema, name, target)
        elif change.if_exists:
            return schema, [Unchanged(name, "it does not exist")]
        return schema, [UnknownTable(name, "ALTER TABLE"), *unlogged_effects, *rename_effects]
    try:
        table, columns_from = alter_table(before, change.clauses, schema, context)
    except CannotFollow as error:
        schema, rename_effects = _apply_rename_to(schema.with_unknown_tables(name), name, target)
        return schema, [NotFollowed(before.name, str(error)), *unlogged_effects, *rename_effects]
    schema = schema.with_table(table)
    if new_names := new_column_names(columns_from, table):
        schema = change_references(schema, before.name, partial(_with_renamed_columns, new_names))
    after = schema.table(name) or table
    effects: list[Effect] = []
    if after != before or columns_from != before.names:
        effects.append(Changed(before.name, before, after, columns_from))
    effects += unlogged_effects
    # After the statement no table has the old name, whatever else the statement did.
    schema, rename_effects = _apply_rename_to(schema, name, target)
    effects += [
        replace(effect, columns_from=columns_from) if isinstance(effect, Renamed) else effect
        for effect in rename_effects
    ]
    return schema, effects or [Unchanged(before.name, "it did not change")]


def _with_renamed_columns(new_names: Mapping[str, str], key: ForeignKey) -> ForeignKey:
    """Return a foreign key after columns of its parent were renamed. `new_names`: what
    `new_column_names` returns."""
    return replace(key, referenced=tuple(new_names.get(c.lower(), c) for c in key.referenced))


def _apply_rename_to(
    schema: ServerSchema, name: TableName, target: TableName | None
) -> EvolvedStep:
    if target is None or schema.fold_case(target) == schema.fold_case(name):
        return schema, []
    return _apply_rename(schema, name, target, if_exists=False)


def _apply_create_database(
    schema: ServerSchema, change: CreateDatabase, context: StatementContext
) -> EvolvedStep:
    name = stored_name(TableName(change.name, ""), context).database
    effects: list[Effect] = []
    if not change.if_not_exists or context.ddl_xid:
        # OR REPLACE drops the database that exists. `ddl_xid` proves that none did.
        schema, effects = _without_database(schema, name)
    elif schema.database(name) is not None:
        return schema, [DatabaseEffect(name, "unchanged")]
    server = context.server_collation
    inherited = None if server is None else charset_with_collation(server)
    try:
        charset = chosen_charset(change.charset, change.collation, inherited, context)
    except CannotFollow:
        return schema, [*effects, DatabaseEffect(name, "unknown")]
    database = DatabaseSchema(name, charset.name, charset.collation, DatabaseCode())
    return schema.with_database(database), [*effects, DatabaseEffect(name, "created")]


def _apply_alter_database(
    schema: ServerSchema, change: AlterDatabase, context: StatementContext
) -> EvolvedStep:
    before = schema.database(change.name)
    if before is None:
        return schema, [DatabaseEffect(change.name, "unknown")]
    inherited = inherited_charset(schema, change.name)
    try:
        charset = chosen_charset(change.charset, change.collation, inherited, context)
    except CannotFollow:
        others = {name: other for name, other in schema.databases.items() if other is not before}
        return replace(schema, databases=others), [DatabaseEffect(change.name, "unknown")]
    after = replace(before, charset=charset.name, collation=charset.collation)
    return schema.with_database(after), [
        DatabaseEffect(before.name, "unchanged" if after == before else "changed")
    ]


def _apply_drop_database(schema: ServerSchema, change: DropDatabase) -> EvolvedStep:
    if schema.database(change.name) is None and change.if_exists:
        return schema, [DatabaseEffect(change.name, "unchanged")]
    schema, effects = _without_database(schema, change.name)
    return schema, [*effects, DatabaseEffect(change.name, "dropped")]


def _without_database(schema: ServerSchema, name: str) -> EvolvedStep:
    folded = schema.fold_database(name)
    tables = [table.name for key, table in schema.tables.items() if key.database == folded]
    tables += sorted(table for table in schema.unknown_tables if table.database == folded)
    return schema.without_database(name), [*map(Dropped, tables)]
