"""ALTER TABLE on a known table → the table after it.

Belongs here: all clauses of one statement at once, as `mysql_prepare_alter_table` in
MySQL's `sql/sql_table.cc` does it: columns that stay, in their places; columns that move
or are new, in the statement's order; then the keys. Does not: RENAME and clauses that
change rows (`pipeline.schema.evolve`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.schema.context import StatementContext
from pipeline.schema.evolving.charsets import Charset, chosen
from pipeline.schema.evolving.clauses import AlterPlan, merged, planned
from pipeline.schema.evolving.column_changes import (
    beside_convert,
    resolve_columns,
    with_timestamps,
    with_zero_moments,
)
from pipeline.schema.evolving.create import inherited_charset, session_charset, split
from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.evolving.keys import (
    pending_key,
    resolve_keys,
    with_key_columns,
)
from pipeline.schema.evolving.placed import kept_keys, placed_columns
from pipeline.schema.evolving.references import kept_by, resolve_references
from pipeline.schema.hidden_columns import appended, expressions
from pipeline.schema.model import (
    ForeignKey,
    HiddenColumn,
    KeySchema,
    ServerSchema,
    TableSchema,
)
from pipeline.schema.statements.changes import (
    AddForeignKey,
    Clause,
    RenameTo,
)
from pipeline.schema.statements.written import (
    WrittenOptions,
)


@dataclass(frozen=True, slots=True)
class AlteredTable:
    """The table after the statement; its columns' new names by the old ones in lower case;
    for each column its name before, None for a new one."""

    table: TableSchema
    renamed: Mapping[str, str]
    columns_from: tuple[str | None, ...]


def altered(
    table: TableSchema,
    clauses: tuple[Clause, ...],
    schema: ServerSchema,
    context: StatementContext,
) -> AlteredTable:
    """The table after all clauses; CannotFollow for a clause that does not fit it."""
    _check_rename(table, clauses, context)
    plan = planned(table, clauses, context.facts)
    convert = _converted_to(table, plan, schema, context)
    charset = _charset(table, plan, convert, context)
    engine = plan.options.engine or table.engine
    written = [change.column for change in plan.defined]
    if convert is not None:
        written = [beside_convert(column, charset, convert, context) for column in written]
    new = resolve_columns(written, charset, context)
    placed, hidden = placed_columns(table, plan, new, convert, context)
    defined = {column.name.lower() for column in new}
    kept = {column.name.lower() for column in table.columns if not column.nullable} - defined
    columns = with_timestamps((placement.column for placement in placed), defined, context)
    names = {
        placement.before.lower(): placement.column.name
        for placement in placed
        if placement.before is not None and placement.before != placement.column.name
    }
    keys = kept_keys(table, plan, placed)
    pending, references = split(tuple(plan.elements), context)
    made = [*map(pending_key, keys), *pending]
    row_format = plan.options.row_format or table.row_format
    resolved = resolve_keys(made, columns, engine, context.facts, row_format)
    foreign: tuple[ForeignKey, ...] = ()
    if kept_by(engine):
        foreign = _references(table, plan, names) + resolve_references(
            references, table.name, table.foreign_keys, columns, schema, context
        )
    after = replace(
        table,
        columns=with_zero_moments(with_key_columns(columns, resolved, plan.periods), kept, context),
        keys=resolved,
        foreign_keys=foreign,
        charset=None if charset is None else charset.name,
        collation=None if charset is None else charset.collation,
        engine=engine,
        row_format=row_format,
        partitioned=_or(plan.options.partitioned, table.partitioned),
        system_versioned=_or(plan.options.system_versioned, table.system_versioned),
        hidden=_with_new_keys(hidden, keys, resolved, len(placed), context),
    )
    return AlteredTable(after, names, tuple(placement.before for placement in placed))


def _with_new_keys(
    hidden: tuple[HiddenColumn, ...],
    kept: Sequence[KeySchema],
    keys: Sequence[KeySchema],
    visible: int,
    context: StatementContext,
) -> tuple[HiddenColumn, ...]:
    """The hidden columns of kept keys, and behind all columns those of new ones; none where their
    places are not known."""
    if not context.facts.places_hidden:
        return ()
    if len(hidden) != len(expressions(kept)):
        return ()
    names = {key.name for key in kept}
    return appended(hidden, visible, [key for key in keys if key.name not in names])


def _check_rename(
    table: TableSchema, clauses: tuple[Clause, ...], context: StatementContext
) -> None:
    """Foreign keys of a table that points at itself get lost or astray where it is renamed
    and changed at once."""
    if len(clauses) == 1 or not any(isinstance(clause, RenameTo) for clause in clauses):
        return
    own = any(key.references == table.name for key in table.foreign_keys)
    added = {
        clause.reference.references.name for clause in clauses if isinstance(clause, AddForeignKey)
    }
    if (own and context.facts.mariadb) or table.name.name in added:
        raise CannotFollow("it renames a table that points at itself")


def _or(chosen_value: bool | None, before: bool) -> bool:
    return before if chosen_value is None else chosen_value


def _converted_to(
    table: TableSchema, plan: AlterPlan, schema: ServerSchema, context: StatementContext
) -> Charset | None:
    """What CONVERT TO makes of the columns; None without one. DEFAULT is of the table's
    database to MariaDB, and of the session's to MySQL."""
    if plan.convert is None:
        return None
    if context.facts.mariadb and plan.convert_again:
        raise CannotFollow("it names two character sets")
    inherited = inherited_charset(schema, table.name.database)
    if not context.facts.mariadb and plan.convert.charset is None:
        inherited = session_charset(schema, context)
    return chosen(plan.convert.charset, plan.convert.collation, inherited, context)


def _charset(
    table: TableSchema, plan: AlterPlan, convert: Charset | None, context: StatementContext
) -> Charset | None:
    """The table's own; None where nothing tells it: then columns of characters have to name
    theirs. CHARACTER SET behind CONVERT TO is for the table alone."""
    before = convert
    if before is None and table.charset is not None and table.collation is not None:
        before = Charset(table.charset, table.collation)
    options = plan.options
    if plan.convert is not None:
        if context.facts.mariadb and (options.charset or options.collation):
            raise CannotFollow("it names two character sets")
        written = WrittenOptions(charset=plan.convert.charset, collation=plan.convert.collation)
        options = merged(written, options, context.facts)
    if before is None and options.charset is None and options.collation is None:
        return None
    return chosen(options.charset, options.collation, before, context)


def _references(
    table: TableSchema, plan: AlterPlan, names: Mapping[str, str]
) -> tuple[ForeignKey, ...]:
    return tuple(
        replace(key, columns=tuple(names.get(name.lower(), name) for name in key.columns))
        for key in table.foreign_keys
        if key.name.lower() not in plan.dropped_references
    )
