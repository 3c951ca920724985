"""Parsed statements: a class for each kind of statement, clause and table element.

Their values contain only what was written. `pipeline.schema.evolve` adds the server's
defaults when it applies them to a schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from itertools import chain
from typing import ClassVar, Final, Literal, assert_never

from lockstep.pipeline.schema.model import KeyKind, KeyPart, ReferentialAction
from lockstep.pipeline.values.table import TableName

FIRST: Final = ""
"""`DefineColumn.after` for the position FIRST; no column has an empty name."""


# -- clauses of ALTER TABLE ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DefineColumn:
    """ADD, CHANGE or MODIFY COLUMN. `old`: the column's name before the change; None
    for ADD. `after`: the name in AFTER, or FIRST; None if no position was written.
    `has_if_clause`: IF [NOT] EXISTS was written."""

    old: str | None
    column: WrittenColumn
    after: str | None = None
    has_if_clause: bool = False


class ElementKind(Enum):
    """Kind of the element of a table that a clause drops, renames, hides or shows."""

    COLUMN = 1
    KEY = 2
    FOREIGN_KEY = 3
    CONSTRAINT = 4
    """DROP CONSTRAINT does not say whether it means a key, a foreign key or a CHECK."""


@dataclass(frozen=True, slots=True)
class DropElement:
    """DROP COLUMN, INDEX, FOREIGN KEY or CONSTRAINT. `name`: PRIMARY for the primary
    key."""

    kind: ElementKind
    name: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RenameElement:
    """RENAME COLUMN or RENAME INDEX."""

    kind: ElementKind
    old: str
    new: str
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class SetVisibility:
    """ALTER COLUMN or ALTER INDEX with VISIBLE or INVISIBLE."""

    kind: ElementKind
    name: str
    invisible: bool


@dataclass(frozen=True, slots=True)
class AlterDefault:
    """ALTER COLUMN with SET DEFAULT, or with DROP DEFAULT (`default` is None)."""

    name: str
    default: Constant | WrittenExpression | None
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class AddElement:
    """ADD of a key, a foreign key or a period."""

    element: WrittenKey | WrittenReference | WrittenPeriod


@dataclass(frozen=True, slots=True)
class RenameTo:
    """RENAME TO. `name`: the table's new name."""

    name: TableName


@dataclass(frozen=True, slots=True)
class ConvertCharset:
    """CONVERT TO CHARACTER SET. `charset`: None for DEFAULT, the database's."""

    charset: str | None
    collation: str | None


@dataclass(frozen=True, slots=True)
class SetOptions:
    options: WrittenOptions


@dataclass(frozen=True, slots=True)
class NeutralClause:
    """A clause that changes nothing in a `TableSchema`: ALGORITHM, LOCK, FORCE, ORDER
    BY, CHECK."""


EXCHANGE: Final = "EXCHANGE PARTITION"
"""The clause by which a partition and another table exchange rows."""


@dataclass(frozen=True, slots=True)
class RowsChange:
    """A clause that may change rows without row events. `name`: the clause, such as
    DROP PARTITION. `other_table`: the table with which EXCHANGE PARTITION exchanges
    rows."""

    name: str
    other_table: TableName | None = None


Clause = (
    DefineColumn
    | DropElement
    | RenameElement
    | AlterDefault
    | SetVisibility
    | AddElement
    | RenameTo
    | ConvertCharset
    | SetOptions
    | NeutralClause
    | RowsChange
)


# -- statements -------------------------------------------------------------------


class StatementKind(StrEnum):
    """A statement's kind. The changelog (the Delta table with every change) stores it
    in the column `_ddl`, so no value may be renamed; new ones may be added."""

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
    """CREATE TABLE … SELECT. Servers log this text only for a session in statement
    format."""

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
    """RENAME TABLE. `pairs`: old and new names. The server carries out the renames one
    after the other."""

    kind: ClassVar = StatementKind.RENAME_TABLE
    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTable:
    kind: ClassVar = StatementKind.TRUNCATE_TABLE
    table: TableName


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE. CREATE INDEX and DROP INDEX are read as clauses of it."""

    kind: ClassVar = StatementKind.ALTER_TABLE
    table: TableName
    clauses: tuple[Clause, ...]
    if_exists: bool = False

    @property
    def new_names(self) -> tuple[TableName, ...]:
        """The names that RENAME TO gives the table."""
        return tuple(clause.name for clause in self.clauses if isinstance(clause, RenameTo))

    @property
    def keeps_columns(self) -> bool:
        """True if no clause adds, drops, renames, moves or retypes a column, or renames
        the table."""
        return all(
            clause.kind is not ElementKind.COLUMN
            if isinstance(clause, DropElement | RenameElement)
            else not isinstance(clause, DefineColumn | RenameTo | ConvertCharset)
            for clause in self.clauses
        )


@dataclass(frozen=True, slots=True)
class RepairTables:
    """REPAIR TABLE, which may delete rows of a damaged table without logging them."""

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
    """A statement that changes no structure and no captured row."""

    first_words: str


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A statement that cannot be read. `possible_tables`: the tables that it may
    change; None if it may change any table."""

    kind: ClassVar = StatementKind.NOT_UNDERSTOOD
    reason: str
    possible_tables: tuple[TableName, ...] | None = None


# -- what was written in statements and clauses ----------------------------------------


_SURROGATES: Final = re.compile("[\ud800-\udfff]")
"""Surrogates stand for bytes of the statement that could not be decoded."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. `kind`: string, number, hex, bits or null; date, time or timestamp for
    literals such as DATE'…'. TRUE and FALSE are the numbers 1 and 0. `charset`: latin1
    for _latin1'…'."""

    kind: str
    text: str = ""
    charset: str | None = None

    @property
    def as_sql(self) -> str:
        introducer = f"_{self.charset} " if self.charset else ""
        quoted = "'" + _SURROGATES.sub("?", self.text).replace("'", "''") + "'"
        match self.kind:
            case "number":
                return self.text
            case "string":
                return f"{introducer}{quoted}"
            case "hex":
                return f"{introducer}x{quoted}"
            case "bits":
                return f"{introducer}b{quoted}"
            case _:
                return f"{self.kind} {quoted}"


@dataclass(frozen=True, slots=True)
class WrittenExpression:
    """An expression, as written; a synonym of CURRENT_TIMESTAMP as CURRENT_TIMESTAMP or
    CURRENT_TIMESTAMP(n)."""

    text: str


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A data type as written. `name`: as in information_schema. `length`: the number in
    parentheses, which counts characters, bytes, bits, dimensions or fractional digits;
    for TEXT(n) and BLOB(n) the server picks the smallest type for n. `binary`: the
    attribute BINARY. `serial`: SERIAL, which also makes a key. `check_json`: MariaDB's
    JSON, which is a LONGTEXT with a CHECK. `compressed`: MariaDB's COMPRESSED."""

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
    serial: bool = False
    check_json: bool = False
    compressed: bool = False


@dataclass(frozen=True, slots=True)
class WrittenReference:
    """FOREIGN KEY, or REFERENCES in a column's definition. `references`: the parent
    table. `referenced`: the parent's columns; empty if they are omitted, for its
    primary key."""

    columns: tuple[str, ...]
    references: TableName
    referenced: tuple[str, ...]
    name: str | None = None
    index_name: str | None = None
    on_delete: ReferentialAction | None = None
    on_update: ReferentialAction | None = None
    if_not_exists: bool = False


@dataclass(frozen=True, slots=True)
class WrittenKey:
    """A key. `name`: None if the server chooses it. `generated`: the server adds the
    key for a foreign key. `uses_hash`: USING HASH."""

    kind: KeyKind
    parts: tuple[KeyPart, ...]
    name: str | None = None
    invisible: bool = False
    if_not_exists: bool = False
    generated: bool = False
    uses_hash: bool = False


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """A column's definition. `nullable`: None if neither NULL nor NOT NULL was written.
    `on_update`: ON UPDATE CURRENT_TIMESTAMP. `generated`: the expression of a generated
    column. `is_also_unique`: PRIMARY KEY and UNIQUE were both written. `system_period`:
    "start" for AS ROW START, "end" for AS ROW END. `system_versioned`: WITH SYSTEM
    VERSIONING."""

    name: str
    type: WrittenType
    nullable: bool | None = None
    default: Constant | WrittenExpression | None = None
    on_update: bool = False
    auto_increment: bool = False
    generated: str | None = None
    stored: bool = False
    invisible: bool = False
    key: Literal["primary", "unique"] | None = None
    is_also_unique: bool = False
    reference: WrittenReference | None = None
    srid: int | None = None
    system_period: str | None = None
    system_versioned: bool = False


@dataclass(frozen=True, slots=True)
class WrittenOptions:
    """The table options that a `TableSchema` contains. An option is None if it was not
    written."""

    engine: str | None = None
    charset: str | None = None
    collation: str | None = None
    row_format: str | None = None
    partitioned: bool | None = None
    system_versioned: bool | None = None


@dataclass(frozen=True, slots=True)
class WrittenPeriod:
    """MariaDB's PERIOD FOR an application-time period. Its two columns cannot be
    NULL."""

    columns: tuple[str, ...]


Element = WrittenColumn | WrittenKey | WrittenReference | WrittenPeriod


# -- the tables that changes concern -------------------------------------------------


def restructured_tables(
    changes: Sequence[SchemaChange], tables: Sequence[TableName]
) -> dict[TableName, bool]:
    """Return the tables whose structures may change, each with True if the changes
    create a table that cannot have existed before. `tables`: all existing tables; those
    of a database that is dropped or replaced are dropped with it."""
    is_new_by_table: dict[TableName, bool] = {}
    for change in changes:
        names: Iterable[TableName]
        is_new = False
        match change:
            case CreateTable() | CreateLike() | CreateSelect():
                names = [change.table]
                is_new = not (change.if_not_exists or change.or_replace)
            case AlterTable(table):
                names = [table, *change.new_names]
            case DropTables():
                names = change.tables
            case RenameTables(pairs):
                names = chain.from_iterable(pairs)
            case DropDatabase(database) | CreateDatabase(database, or_replace=True):
                names = [name for name in tables if name.database.lower() == database.lower()]
            case TruncateTable() | RepairTables() | CreateDatabase() | AlterDatabase():
                names = ()
            case _:
                assert_never(change)
        for name in names:
            is_new_by_table.setdefault(name, is_new)
    return is_new_by_table


def affected_tables(changes: Sequence[SchemaChange]) -> tuple[TableName, ...] | None:
    """Return the tables whose structures or rows may change; None if any table may
    change."""
    affected: list[TableName] = []
    for change in changes:
        match change:
            case AlterDatabase() | DropDatabase() | CreateDatabase(or_replace=True):
                return None
            case DropTables(tables) | RepairTables(tables):
                affected += tables
            case RenameTables(pairs):
                affected += chain.from_iterable(pairs)
            case AlterTable(table, clauses):
                affected += (table, *change.new_names)
                affected += (
                    clause.other_table
                    for clause in clauses
                    if isinstance(clause, RowsChange) and clause.other_table is not None
                )
            case CreateDatabase():
                pass
            case CreateTable() | CreateLike() | CreateSelect() | TruncateTable():
                affected.append(change.table)
            case _:
                assert_never(change)
    return tuple(dict.fromkeys(affected))


def renamed_pairs(changes: Sequence[SchemaChange]) -> tuple[tuple[TableName, TableName], ...]:
    """Return the old and the new name of each table that the changes rename, in the
    order in which the server carries the renames out."""
    pairs: list[tuple[TableName, TableName]] = []
    for change in changes:
        if isinstance(change, RenameTables):
            pairs += change.pairs
        elif isinstance(change, AlterTable):
            pairs += ((change.table, name) for name in change.new_names)
    return tuple(pairs)


def required_tables(changes: Sequence[SchemaChange]) -> tuple[TableName, ...]:
    """Return the tables that must have existed before the changes: without one of them,
    the server would have refused the statement."""
    required: list[TableName] = []
    for change in changes:
        match change:
            case DropTables() | RenameTables() | AlterTable() if change.if_exists:
                pass
            case DropTables(tables) | RepairTables(tables):
                required += tables
            case RenameTables(pairs):
                new_names = set[TableName]()
                for old, new in pairs:
                    if old not in new_names:
                        required.append(old)
                    new_names.add(new)
            case AlterTable() | TruncateTable():
                required.append(change.table)
            case CreateLike():
                required.append(change.like)
    return tuple(required)
