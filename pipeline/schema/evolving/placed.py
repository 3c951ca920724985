"""A table's columns after an ALTER TABLE, in their places, and the keys that stay.

Belongs here: which column is which, by its name before. Types and defaults are `columns`,
new keys `keys`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from pipeline.schema.context import StatementContext
from pipeline.schema.evolving.charsets import Charset
from pipeline.schema.evolving.clauses import AlterPlan
from pipeline.schema.evolving.column_changes import BLOBS, TEXTS, converted, converted_text
from pipeline.schema.evolving.defaults import resolve_default
from pipeline.schema.evolving.effects import CannotFollow
from pipeline.schema.evolving.prefixes import WITH_PREFIX, in_key
from pipeline.schema.hidden_columns import kept, numbered, with_hidden
from pipeline.schema.model import (
    ColumnSchema,
    ExpressionDefault,
    HiddenColumn,
    KeyPart,
    KeySchema,
    TableSchema,
)
from pipeline.schema.statements.changes import (
    FIRST,
    AddColumn,
    AlterDefault,
    AlterVisibility,
    ChangeColumn,
)


@dataclass(frozen=True, slots=True)
class PlacedColumn:
    """A column of the new table, and its name in the old one."""

    column: ColumnSchema
    before: str | None


def placed_columns(
    table: TableSchema,
    plan: AlterPlan,
    new: list[ColumnSchema],
    convert: Charset | None,
    context: StatementContext,
) -> tuple[list[PlacedColumn], tuple[HiddenColumn, ...]]:
    """The columns in their order: all that stay in their places, then each new and each moved
    one goes where its clause says, in the order of the clauses. The hidden columns that stay
    among them come apart; none where their places are not known."""
    hidden = _kept_hidden(table, plan, context)
    changes = {
        change.old.lower(): column
        for change, column in zip(plan.defined, new, strict=True)
        if isinstance(change, ChangeColumn)
    }
    unsized = {
        change.old.lower()
        for change in plan.defined
        if isinstance(change, ChangeColumn)
        and change.column.type.name in TEXTS + BLOBS
        and not change.column.type.sized
    }
    columns: list[PlacedColumn | HiddenColumn] = []
    for column in with_hidden(table.columns, table.hidden):
        if isinstance(column, HiddenColumn):
            columns += (one for one in hidden if one.place == column.place)
            continue
        folded = column.name.lower()
        if folded in changes:
            made = changes[folded]
            if convert is not None and folded in unsized and context.facts.mysql_8:
                made = converted_text(made, column)
            columns.append(PlacedColumn(made, column.name))
        elif folded not in plan.dropped:
            columns.append(PlacedColumn(_kept(column, plan, convert, context), column.name))
    for one, made in zip(plan.defined, new, strict=True):
        if isinstance(one, AddColumn):
            _place(columns, PlacedColumn(_defined(made, plan, context), None), one.after)
        elif one.after is not None:
            moved = _taken_out(columns, one.column.name)
            after = replace(moved, column=_defined(moved.column, plan, context))
            _place(columns, after, one.after)
    visible = [column for column in columns if isinstance(column, PlacedColumn)]
    if len({placement.column.name.lower() for placement in visible}) != len(visible):
        raise CannotFollow("two columns would have one name")
    first = table.columns[0]
    places = [place for place, placement in enumerate(visible) if placement.before == first.name]
    if _made_by_server(first) and any(places):
        raise CannotFollow("the server does not say whether a column goes before its own key")
    return visible, numbered(columns)


def _kept_hidden(
    table: TableSchema, plan: AlterPlan, context: StatementContext
) -> tuple[HiddenColumn, ...]:
    if not context.facts.places_hidden:
        return ()
    return kept(table, plan.dropped_keys, plan.renamed_keys) or ()


def _made_by_server(column: ColumnSchema) -> bool:
    """MySQL's `sql_generate_invisible_primary_key`: while it is on, the column stays first."""
    return column.name == "my_row_id" and column.invisible and column.auto_increment


def _taken_out(columns: list[PlacedColumn | HiddenColumn], name: str) -> PlacedColumn:
    """A column that was changed stands in its old place until its own clause moves it: a
    clause before that one finds it there, under its new name."""
    moved = next(
        column
        for column in columns
        if isinstance(column, PlacedColumn) and column.column.name.lower() == name.lower()
    )
    columns.remove(moved)
    return moved


def _defined(made: ColumnSchema, plan: AlterPlan, context: StatementContext) -> ColumnSchema:
    """A column that a clause puts in its place, as ALTER COLUMN has it then. MariaDB lets that
    name one that MODIFY or CHANGE moves; of one that they leave in its place no server does."""
    if made.name.lower() in plan.altered and isinstance(made.default, ExpressionDefault):
        raise CannotFollow(f"{made.name} is defined with two defaults")
    return _altered(made, plan, context)


def _place(
    columns: list[PlacedColumn | HiddenColumn], column: PlacedColumn, after: str | None
) -> None:
    if after is None:
        columns.append(column)
    elif after == FIRST:
        columns.insert(0, column)
    else:
        names = [
            None if isinstance(one, HiddenColumn) else one.column.name.lower() for one in columns
        ]
        if after.lower() not in names:
            raise CannotFollow(f"a column goes after {after}, which is not there")
        columns.insert(names.index(after.lower()) + 1, column)


def _kept(
    column: ColumnSchema, plan: AlterPlan, convert: Charset | None, context: StatementContext
) -> ColumnSchema:
    folded = column.name.lower()
    if folded in plan.renamed:
        # What else is said of that name is said of a column that is added under it.
        column = replace(column, name=plan.renamed[folded])
    else:
        column = _altered(column, plan, context)
    return column if convert is None else converted(column, convert)


def _altered(column: ColumnSchema, plan: AlterPlan, context: StatementContext) -> ColumnSchema:
    for clause in plan.altered.get(column.name.lower(), ()):
        match clause:
            case AlterDefault() if column.generated is not None:
                continue
            case AlterDefault(default=default):
                if context.facts.mariadb and isinstance(column.default, ExpressionDefault):
                    # DEFAULT and ON UPDATE CURRENT_TIMESTAMP go together there.
                    column = replace(column, on_update=False)
                column = replace(column, default=resolve_default(default, column, context))
            case AlterVisibility(invisible=invisible):
                column = replace(column, invisible=invisible)
    return column


def kept_keys(table: TableSchema, plan: AlterPlan, placed: list[PlacedColumn]) -> list[KeySchema]:
    """Keys that were not dropped, on what is left of their columns; none without any."""
    found = []
    for key in table.keys:
        folded = key.name.lower()
        if folded in plan.dropped_keys:
            continue
        parts = tuple(part for old in key.parts if (part := _kept_part(old, table, placed)))
        if not parts:
            continue
        key = replace(
            key,
            parts=parts,
            name=plan.renamed_keys.get(folded, key.name),
            invisible=plan.key_visibility.get(folded, key.invisible),
            generated=key.generated and folded not in plan.renamed_keys,
        )
        found.append(key)
    return found


def _kept_part(part: KeyPart, table: TableSchema, placed: list[PlacedColumn]) -> KeyPart | None:
    """The first column, from the left, that is the part's own or new under its name."""
    if part.column is None:
        return part
    folded = part.column.lower()
    found = next(
        (
            placement
            for placement in placed
            if (placement.before or placement.column.name).lower() == folded
        ),
        None,
    )
    if found is None:
        return None
    after = found.column
    if found.before is None:
        return replace(part, column=after.name, prefix=_of_another(part, after, table))
    before = table.column(found.before)
    if before is not None and before.members and after.type in WITH_PREFIX:
        raise CannotFollow(f"how much of {after.name} its key holds is not known")
    if part.prefix is None or before is None:
        return replace(part, column=after.name)
    shorter = after.length is not None and after.length < part.prefix
    return replace(part, column=after.name, prefix=None if shorter else part.prefix)


def _of_another(part: KeyPart, after: ColumnSchema, table: TableSchema) -> int | None:
    """The prefix of a part whose column was dropped and added anew: as long as it was."""
    if after.type not in WITH_PREFIX:
        return None
    gone = table.column(part.column or "")
    held = None if gone is None else in_key(part, gone)
    if held is None:
        raise CannotFollow(f"how much of the new {after.name} its key holds is not known")
    return held or None
