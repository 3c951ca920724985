"""Tables that statements changed while an XA transaction was prepared.

Belongs here: which, by the statements alone. Does not: which statements those are, what a run does
about it (`pipeline.runs.capturing.log_reader`).

Most servers keep a prepared transaction's tables locked until it ends. MySQL 5.7 lets go of them
with the session that prepared it: then a table may be truncated or dropped, so that the rows are
gone, or renamed, so that they are another name's. The server alone knows what its commit brings.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable

from pipeline.schema.history import SchemaStatement
from pipeline.schema.refold import logged_statement
from pipeline.schema.statements.changes import (
    CreateLike,
    CreateSelect,
    CreateTable,
    Irrelevant,
    NotUnderstood,
    SchemaChange,
    TruncateTable,
)
from pipeline.schema.statements.read import read_change
from pipeline.schema.statements.touched import touched_by
from pipeline.table import TableName


def moved(
    tables: Collection[TableName],
    statements: Iterable[SchemaStatement],
    fold: Callable[[TableName], TableName],
) -> set[TableName]:
    """Those of the tables that the statements changed, and every name that their rows may be under
    since. `fold`: the name as the server compares it."""
    names, found = {fold(table) for table in tables}, set[TableName]()
    for statement in statements:
        touched = {fold(table) for table in _touched(statement, sorted(names))}
        if not names.isdisjoint(touched):
            names |= touched
            found |= touched
    return found


def _touched(statement: SchemaStatement, tables: list[TableName]) -> set[TableName]:
    logged = logged_statement(statement)
    read = read_change(logged.text, logged.context)
    if isinstance(read, Irrelevant):
        return set()
    if isinstance(read, NotUnderstood):
        return set(tables if read.may_touch is None else read.may_touch)
    emptied = {change.table for change in read if isinstance(change, TruncateTable)}
    return emptied | touched_by([one for one in read if not _creates(one)], tables).keys()


def _creates(change: SchemaChange) -> bool:
    """Whether it makes a table where none is: one with rows has gone from there before, or it does
    nothing (IF NOT EXISTS)."""
    if isinstance(change, CreateTable | CreateLike | CreateSelect):
        return not change.or_replace
    return False
