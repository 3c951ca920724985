"""Which tables a statement's changes concern, without knowing any structure.

Belongs here: names only. What the change does to them is `pipeline.schema.evolve`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

from pipeline.position import Coordinates
from pipeline.schema.statements.changes import (
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
)
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class Touched:
    """A table that statements changed: `last` is where the last of them ends; `created`,
    whether the first of them certainly made it."""

    last: Coordinates
    created: bool


def touched_by(
    changes: Sequence[SchemaChange], tables: Sequence[TableName]
) -> dict[TableName, bool]:
    """The tables whose structure the changes concern, and whether they certainly make the
    table. `tables`: those there are, for changes of a whole database."""
    found: dict[TableName, bool] = {}
    for change in changes:
        for name, created in _names(change, tables).items():
            found.setdefault(name, created)
    return found


def named_by(changes: Sequence[SchemaChange]) -> tuple[TableName, ...] | None:
    """Return the tables that the changes may change, rows included; None for any table."""
    named: list[TableName] = []
    for change in changes:
        match change:
            case AlterDatabase() | DropDatabase():
                return None
            case DropTables(tables) | RepairTables(tables):
                named += tables
            case RenameTables(pairs):
                named += (name for pair in pairs for name in pair)
            case AlterTable(table, clauses):
                named.append(table)
                named += (clause.name for clause in clauses if isinstance(clause, RenameTo))
                exchanges = (clause for clause in clauses if isinstance(clause, RowsChange))
                named += (clause.other for clause in exchanges if clause.other is not None)
            case CreateDatabase():
                pass
            case CreateTable() | CreateLike() | CreateSelect() | TruncateTable():
                named.append(change.table)
            case _:
                assert_never(change)
    return tuple(dict.fromkeys(named))


def needed_by(changes: Sequence[SchemaChange]) -> tuple[TableName, ...]:
    """Return the tables without which the server would have refused the first of the changes that
    names them."""
    needed: list[TableName] = []
    for change in changes:
        match change:
            case DropTables(tables, if_exists):
                needed += () if if_exists else tables
            case RepairTables(tables):
                needed += tables
            case RenameTables(pairs, if_exists):
                needed += () if if_exists else (old for old, _ in pairs)
            case AlterTable() | TruncateTable():
                needed.append(change.table)
            case CreateLike():
                needed.append(change.like)
    return tuple(needed)


def _names(change: SchemaChange, tables: Sequence[TableName]) -> dict[TableName, bool]:
    match change:
        case CreateTable() | CreateLike() | CreateSelect():
            made = not change.if_not_exists and not change.or_replace
            return {change.table: made}
        case DropTables():
            return dict.fromkeys(change.tables, False)
        case RenameTables(pairs):
            return dict.fromkeys((name for pair in pairs for name in pair), False)
        case AlterTable(table, clauses):
            to = [clause.name for clause in clauses if isinstance(clause, RenameTo)]
            return dict.fromkeys((table, *to), False)
        case TruncateTable() | RepairTables() | CreateDatabase():
            return {}
        case AlterDatabase(name) | DropDatabase(name):
            dropped = isinstance(change, DropDatabase)
            there = [one for one in tables if dropped and one.database.lower() == name.lower()]
            return dict.fromkeys(there, False)
    assert_never(change)
