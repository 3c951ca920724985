"""What statements change, as they wrote it: a value for each statement, clause and element.

Nothing is inherited yet: what a change comes to on a given schema is `pipeline.schema.evolve`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import ClassVar, Final, assert_never

from pipeline.schema.model import KeyPart
from pipeline.table import TableName

FIRST: Final = ""
"""A position's column for FIRST: no column has an empty name."""


# -- clauses of ALTER TABLE ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DefineColumn:
    """ADD, CHANGE and MODIFY. `old`: None for ADD, and for MODIFY the column's own name. `after`:
    None where it is, or at the end, FIRST, or a column's name. `maybe`: IF [NOT] EXISTS."""

    old: str | None
    column: WrittenColumn
    after: str | None = None
    maybe: bool = False


class Part(Enum):
    COLUMN = 1
    KEY = 2
    FOREIGN_KEY = 3
    CONSTRAINT = 4
    """A key, a foreign key, or a CHECK."""


@dataclass(frozen=True, slots=True)
class Drop:
    """The primary key is called PRIMARY."""

    part: Part
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class Rename:
    part: Part
    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetVisibility:
    part: Part
    name: str
    invisible: bool


@dataclass(frozen=True, slots=True)
class AlterDefault:
    """`default` None: DROP DEFAULT."""

    name: str
    default: Constant | Computed | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddElement:
    element: WrittenKey | WrittenReference | WrittenPeriod


@dataclass(frozen=True, slots=True)
class RenameTo:
    name: TableName


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    charset: str | None
    collation: str | None


@dataclass(frozen=True, slots=True)
class SetOptions:
    options: WrittenOptions


@dataclass(frozen=True, slots=True)
class Neutral:
    """ALGORITHM, LOCK, FORCE, ORDER BY, CHECK constraints: no part of a `TableSchema`."""

    word: str


EXCHANGE: Final = "EXCHANGE PARTITION"
"""The clause by which two tables exchange rows."""


@dataclass(frozen=True, slots=True)
class RowsChange:
    """Rows may change with no row events; `reason` is the clause."""

    reason: str
    other: TableName | None = None


Clause = (
    DefineColumn
    | Drop
    | Rename
    | AlterDefault
    | SetVisibility
    | AddElement
    | RenameTo
    | ConvertCharset
    | SetOptions
    | Neutral
    | RowsChange
)


# -- statements -------------------------------------------------------------------


class StatementKind(StrEnum):
    """Codes of `_ddl`: none is ever renamed, new ones may come."""

    CREATE_TABLE = "create_table"
    ALTER_TABLE = "alter_table"
    RENAME_TABLE = "rename_table"
    TRUNCATE_TABLE = "truncate_table"
    DROP_TABLE = "drop_table"
    REPAIR_TABLE = "repair_table"
    CREATE_DATABASE = "create_database"
    ALTER_DATABASE = "alter_database"
    DROP_DATABASE = "drop_database"
    NOT_UNDERSTOOD = "not_understood"


@dataclass(frozen=True, slots=True)
class CreateTable:
    kind: ClassVar = StatementKind.CREATE_TABLE
    table: TableName
    elements: tuple[Element, ...]
    options: WrittenOptions
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateLike:
    kind: ClassVar = StatementKind.CREATE_TABLE
    table: TableName
    like: TableName
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class CreateSelect:
    """Columns come from a SELECT: only statement format logs it so."""

    kind: ClassVar = StatementKind.CREATE_TABLE
    table: TableName
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class DropTables:
    kind: ClassVar = StatementKind.DROP_TABLE
    tables: tuple[TableName, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameTables:
    """Pairs, done one after the other."""

    kind: ClassVar = StatementKind.RENAME_TABLE
    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTable:
    kind: ClassVar = StatementKind.TRUNCATE_TABLE
    table: TableName


@dataclass(frozen=True, slots=True)
class AlterTable:
    """CREATE INDEX and DROP INDEX too: they are such clauses."""

    kind: ClassVar = StatementKind.ALTER_TABLE
    table: TableName
    clauses: tuple[Clause, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RepairTables:
    """REPAIR TABLE: what a damaged table loses no event tells."""

    kind: ClassVar = StatementKind.REPAIR_TABLE
    tables: tuple[TableName, ...]


@dataclass(frozen=True, slots=True)
class CreateDatabase:
    kind: ClassVar = StatementKind.CREATE_DATABASE
    name: str
    charset: str | None = None
    collation: str | None = None
    if_not_exists: bool = False
    or_replace: bool = False


@dataclass(frozen=True, slots=True)
class AlterDatabase:
    kind: ClassVar = StatementKind.ALTER_DATABASE
    name: str
    charset: str | None = None
    collation: str | None = None


@dataclass(frozen=True, slots=True)
class DropDatabase:
    kind: ClassVar = StatementKind.DROP_DATABASE
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

    kind: ClassVar = StatementKind.NOT_UNDERSTOOD
    reason: str
    may_touch: tuple[TableName, ...] | None = None


_SURROGATES: Final = re.compile("[\ud800-\udfff]")
"""Bytes that were no characters in the statement."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal: `kind` is string, number, hex, bits, null, or date, time and timestamp for
    those with that word before them; TRUE and FALSE are numbers. `charset` is its introducer."""

    kind: str
    text: str = ""
    charset: str | None = None

    @property
    def as_sql(self) -> str:
        introducer = f"_{self.charset} " if self.charset else ""
        match self.kind:
            case "hex":
                return f"{introducer}x'{self.text}'"
            case "bits":
                return f"{introducer}b'{self.text}'"
            case "number":
                return self.text
        word = "" if self.kind == "string" else f"{self.kind} "
        return introducer + word + "'" + _SURROGATES.sub("?", self.text).replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Computed:
    """An expression, as written; `now` for CURRENT_TIMESTAMP and its other names, whose
    text is that word and the digits."""

    text: str
    now: bool = False


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A data type under its information_schema name. `length` as declared; `sized` is a
    TEXT or BLOB whose length chooses among the four."""

    name: str
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    collation: str | None = None
    binary: bool = False
    members: tuple[Constant, ...] = ()
    sized: bool = False
    serial: bool = False
    check_json: bool = False
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class WrittenReference:
    """FOREIGN KEY, or a column's REFERENCES; `referenced` empty: the primary key."""

    columns: tuple[str, ...]
    references: TableName
    referenced: tuple[str, ...]
    name: str | None = None
    index: str | None = None
    on_delete: str | None = None
    on_update: str | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class WrittenKey:
    """PRIMARY KEY, UNIQUE, INDEX, FULLTEXT or SPATIAL; `name` None is the server's choice.
    `generated`: the one a foreign key brings along. `hash`: USING HASH."""

    kind: str
    parts: tuple[KeyPart, ...]
    name: str | None = None
    invisible: bool = False
    if_not_exists: bool = False
    generated: bool = False
    hash: bool = False


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """A column definition. `nullable` None: neither NULL nor NOT NULL was written.
    `key` is "primary", "unique" or None; `unique_too`: it asks for both. `versioned`: WITH
    SYSTEM VERSIONING of its own."""

    name: str
    type: WrittenType
    nullable: bool | None = None
    default: Constant | Computed | None = None
    on_update: bool = False
    auto_increment: bool = False
    generated: str | None = None
    stored: bool = False
    invisible: bool = False
    key: str | None = None
    unique_too: bool = False
    reference: WrittenReference | None = None
    srid: int | None = None
    system_period: str | None = None
    versioned: bool = False


@dataclass(frozen=True, slots=True)
class WrittenOptions:
    """Table options that matter here; None where not written."""

    engine: str | None = None
    charset: str | None = None
    collation: str | None = None
    row_format: str | None = None
    partitioned: bool | None = None
    system_versioned: bool | None = None


@dataclass(frozen=True, slots=True)
class WrittenPeriod:
    """MariaDB's PERIOD FOR a name: its two columns cannot be NULL."""

    columns: tuple[str, ...]


Element = WrittenColumn | WrittenKey | WrittenReference | WrittenPeriod


def touched_by(
    changes: Sequence[SchemaChange], tables: Sequence[TableName]
) -> dict[TableName, bool]:
    """The tables whose structure the changes concern, and whether they certainly make the
    table. `tables`: those there are, for changes of a whole database."""
    found: dict[TableName, bool] = {}
    for change in changes:
        names: Iterable[TableName] = ()
        created = False
        match change:
            case TruncateTable() | RepairTables() | CreateDatabase() | AlterDatabase():
                pass
            case DropDatabase(gone):
                names = [one for one in tables if one.database.lower() == gone.lower()]
            case AlterTable(table, clauses):
                names = (table, *(one.name for one in clauses if isinstance(one, RenameTo)))
            case CreateTable() | CreateLike() | CreateSelect():
                names, created = (change.table,), not (change.if_not_exists or change.or_replace)
            case DropTables() | RenameTables():
                names = named_by([change]) or ()
            case _:
                assert_never(change)
        for name in names:
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
