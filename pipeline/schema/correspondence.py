"""Which column of a structure that a person gave is which of the structure before.

Belongs here: what names alone tell of that, what a person says besides, and why neither may be
enough. Does not: where such a structure holds (`pipeline.runs.capturing.table_changes`),
statements that are followed (`evolving`).
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.schema.context import StatementContext
from pipeline.schema.happened import (
    Happened,
    differs_per_row,
    engine_changed,
    key_changed,
    values_changed,
)
from pipeline.schema.model import TableSchema
from pipeline.schema.statements.lexer import CannotRead
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.versions import ColumnsFrom

Renames = Sequence[tuple[str, str]]
"""A person's word: the name that a column had, and the name that it has."""


def may_rename_columns(text: str, context: StatementContext) -> bool:
    """Whether a statement that nobody followed may give columns other names."""
    try:
        reader = StatementReader(text, context)
    except CannotRead:
        return True
    while not reader.over:
        if reader.next().keyword in ("CHANGE", "RENAME"):
            return True
    return False


def columns_from(before: TableSchema, given: TableSchema, renames: Renames) -> ColumnsFrom:
    """For each column of `given` its name in `before`, None for a new one: by what the person
    said, and else by its name."""
    was = {new.lower(): old for old, new in renames}
    gone = {old.lower() for old, _ in renames}
    found = []
    for column in given.columns:
        folded = column.name.lower()
        same = None if folded in gone and folded not in was else before.column(column.name)
        old = before.column(was[folded]) if folded in was else same
        found.append(None if old is None else old.name)
    return tuple(found)


def why_refused(before: TableSchema, given: TableSchema, renames: Renames) -> str | None:
    """Why what a person says of columns cannot be; None where it can."""
    olds = [old.lower() for old, _ in renames]
    news = [new.lower() for _, new in renames]
    for old, new in renames:
        said = f"{old}={new}"
        if before.column(old) is None:
            there = ", ".join(column.name for column in before.columns)
            return f"{said}: the table had no column {old} where it stopped, only {there}"
        if given.column(new) is None:
            there = ", ".join(column.name for column in given.columns)
            return f"{said}: the given structure has no column {new}, only {there}"
        if old.lower() == new.lower():
            return f"{said}: a column that keeps its name needs no --rename; leave it out"
        if olds.count(old.lower()) > 1:
            return f"{old} cannot have become two columns"
        if news.count(new.lower()) > 1:
            return f"{new} cannot have been two columns"
        if before.column(new) is not None and new.lower() not in olds:
            return f"{said}: there was already a column {new}, and nothing says what became of it"
        if given.column(old) is not None and old.lower() not in news:
            return (
                f"{said}: the given structure has a column {old} as well, and nothing says which "
                "column that was"
            )
    return None


def why_unclear(
    before: TableSchema, given: TableSchema, renames: Renames = (), *, renaming: bool
) -> str | None:
    """Why rows of before cannot go on under the structure given: it is not told which column is
    which, or the rules of statements (`consequences`) have them read for such a change.
    `renaming`: the statement between the two may have given columns other names."""
    if renaming and not renames:
        return "the statement that stopped it renames, which the given structure does not show"
    origins = columns_from(before, given, renames)
    stays = {name for name in origins if name is not None}
    gone = [column.name for column in before.columns if column.name not in stays]
    new = [
        column.name for column, origin in zip(given.columns, origins, strict=True) if origin is None
    ]
    if gone and new:
        return (
            f"by the structure given {', '.join(gone)} may have become {', '.join(new)}, or have "
            "gone while that is new"
        )
    change = Happened(given.name, "changed", "", before, given, origins, strict=False)
    for test in (engine_changed, values_changed, key_changed, differs_per_row):
        if why := test(change):
            return f"by the structure given, {why}"
    return None
