"""What statements change: one value for each form, in the order it has to happen.

Belongs here: `SchemaChange` and its clauses, `Irrelevant`, `NotUnderstood`. What a change
comes to on a given schema is `pipeline.schema.evolve`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pipeline.schema.statements.written import (
    Computed,
    Constant,
    Element,
    WrittenColumn,
    WrittenKey,
    WrittenOptions,
    WrittenPeriod,
    WrittenReference,
)
from pipeline.table import TableName

FIRST: Final = ""
"""A position's column for FIRST: no column has an empty name."""


# -- clauses of ALTER TABLE ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class AddColumn:
    """`after`: None at the end, FIRST, or a column's name."""

    column: WrittenColumn
    after: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class ChangeColumn:
    """CHANGE, and MODIFY, where `old` is the column's own name."""

    old: str
    column: WrittenColumn
    after: str | None = None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropColumn:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameColumn:
    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterDefault:
    """`default` None: DROP DEFAULT."""

    name: str
    default: Constant | Computed | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterVisibility:
    name: str
    invisible: bool


@dataclass(frozen=True, slots=True)
class AddKey:
    key: WrittenKey


@dataclass(frozen=True, slots=True)
class AddForeignKey:
    reference: WrittenReference


@dataclass(frozen=True, slots=True)
class AddPeriod:
    period: WrittenPeriod


@dataclass(frozen=True, slots=True)
class DropKey:
    """`name` None: the primary key."""

    name: str | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropForeignKey:
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class DropConstraint:
    """A key, a foreign key, or a CHECK."""

    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameKey:
    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AlterKeyVisibility:
    name: str
    invisible: bool


@dataclass(frozen=True, slots=True)
class RenameTo:
    name: TableName


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """`charset` None: the database's own."""

    charset: str | None
    collation: str | None


@dataclass(frozen=True, slots=True)
class SetOptions:
    options: WrittenOptions


@dataclass(frozen=True, slots=True)
class Neutral:
    """ALGORITHM, LOCK, FORCE, ORDER BY, CHECK constraints: no part of a `TableSchema`."""

    word: str


@dataclass(frozen=True, slots=True)
class RowsChange:
    """Rows may change with no row events; `reason` is the clause."""

    reason: str
    other: TableName | None = None


Clause = (
    AddColumn
    | ChangeColumn
    | DropColumn
    | RenameColumn
    | AlterDefault
    | AlterVisibility
    | AddKey
    | AddForeignKey
    | AddPeriod
    | DropKey
    | DropForeignKey
    | DropConstraint
    | RenameKey
    | AlterKeyVisibility
    | RenameTo
    | ConvertCharset
    | SetOptions
    | Neutral
    | RowsChange
)


# -- statements -------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class CreateTable:
    table: TableName
    elements: tuple[Element, ...]
    options: WrittenOptions
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateLike:
    table: TableName
    like: TableName
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateSelect:
    """Columns come from a SELECT: only statement format logs it so."""

    table: TableName
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropTables:
    tables: tuple[TableName, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTables:
    """Pairs, done one after the other."""

    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTable:
    table: TableName


@dataclass(frozen=True, slots=True)
class AlterTable:
    """CREATE INDEX and DROP INDEX too: they are such clauses."""

    table: TableName
    clauses: tuple[Clause, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RepairTables:
    """REPAIR TABLE: what a damaged table loses no event tells."""

    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    name: str
    charset: str | None = None
    collation: str | None = None
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    name: str
    charset: str | None = None
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class DropDatabase:
    name: str
    if_exists: bool = False


SchemaChange = (
    CreateTable
    | CreateLike
    | CreateSelect
    | DropTables
    | RenameTables
    | TruncateTable
    | AlterTable
    | RepairTables
    | CreateDatabase
    | AlterDatabase
    | DropDatabase
)


@dataclass(frozen=True, slots=True)
class Irrelevant:
    """On the list of statements that change no table's structure and no captured row."""

    kind: str


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """`may_touch`: the tables it may change; None: any."""

    reason: str
    may_touch: tuple[TableName, ...] | None = None
