"""Parsed statements: a value for each statement, clause and element, with only what was written.

`pipeline.schema.evolve` applies them to a schema.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, StrEnum
from typing import ClassVar, Final, assert_never

from lockstep.pipeline.schema.model import KeyPart
from lockstep.pipeline.values.table import TableName

FIRST: Final = ""
"""Stands for FIRST where a column's position is a name: no column has an empty one."""


# -- clauses of ALTER TABLE ---------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DefineColumn:
    """ADD, CHANGE and MODIFY. `old`: None for ADD; for MODIFY the column's own name. `after`: a
    column's name, or FIRST; None for the column's place, or the end. `maybe`: IF [NOT] EXISTS."""

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
    """DROP of a part; the primary key is called PRIMARY."""

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
    """A clause that changes nothing in a `TableSchema`: ALGORITHM, LOCK, FORCE, ORDER BY, CHECK."""


EXCHANGE: Final = "EXCHANGE PARTITION"
"""The clause by which two tables exchange rows."""


@dataclass(frozen=True, slots=True)
class RowsChange:
    """A clause that may change rows without row events; `reason` names it."""

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
    """Codes in the changelog column `_ddl`: none may be renamed, new ones may be added."""

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
    """CREATE TABLE … SELECT, which is logged like this only in statement format."""

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
    """RENAME TABLE; the pairs are renamed one after the other."""

    kind: ClassVar = StatementKind.RENAME_TABLE
    pairs: tuple[tuple[TableName, TableName], ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class TruncateTable:
    kind: ClassVar = StatementKind.TRUNCATE_TABLE
    table: TableName


@dataclass(frozen=True, slots=True)
class AlterTable:
    """ALTER TABLE, and CREATE INDEX and DROP INDEX, which are clauses of it."""

    kind: ClassVar = StatementKind.ALTER_TABLE
    table: TableName
    clauses: tuple[Clause, ...]
    if_exists: bool = False


@dataclass(frozen=True, slots=True)
class RepairTables:
    """REPAIR TABLE: no event tells which rows a damaged table loses."""

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
    """A statement on the list of those that change no structure and no captured row."""

    kind: str


@dataclass(frozen=True, slots=True)
class NotUnderstood:
    """A statement that cannot be read. `may_touch`: tables that it may change; None: any table."""

    kind: ClassVar = StatementKind.NOT_UNDERSTOOD
    reason: str
    may_touch: tuple[TableName, ...] | None = None


_SURROGATES: Final = re.compile("[\ud800-\udfff]")
"""Bytes of the statement that could not be decoded."""


@dataclass(frozen=True, slots=True)
class Constant:
    """A literal. `kind`: string, number, hex, bits or null; date, time or timestamp if that word
    comes before it. TRUE and FALSE are numbers. `charset`: its introducer."""

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
    """An expression, as written. `now`: it is CURRENT_TIMESTAMP or a synonym, and `text` is that
    word with its digits."""

    text: str
    now: bool = False


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A data type under its name in information_schema. `length`: as declared. `sized`: a TEXT or
    BLOB with a length, which selects one of the four types."""

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
    """FOREIGN KEY, or REFERENCES of a column. `referenced`: empty for the primary key."""

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
    """PRIMARY KEY, UNIQUE, INDEX, FULLTEXT or SPATIAL. `name`: None if the server chooses it.
    `generated`: it is added for a foreign key. `hash`: USING HASH."""

    kind: str
    parts: tuple[KeyPart, ...]
    name: str | None = None
    invisible: bool = False
    if_not_exists: bool = False
    generated: bool = False
    hash: bool = False


@dataclass(frozen=True, slots=True)
class WrittenColumn:
    """A column's definition. `nullable`: None if neither NULL nor NOT NULL was written. `key`:
    "primary", "unique" or None; `unique_too`: it asks for both. `versioned`: it has WITH SYSTEM
    VERSIONING itself."""

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
    """Options of a table that are part of a `TableSchema`; None if not written."""

    engine: str | None = None
    charset: str | None = None
    collation: str | None = None
    row_format: str | None = None
    partitioned: bool | None = None
    system_versioned: bool | None = None


@dataclass(frozen=True, slots=True)
class WrittenPeriod:
    """MariaDB's PERIOD FOR an application-time period, whose two columns cannot be NULL."""

    columns: tuple[str, ...]


Element = WrittenColumn | WrittenKey | WrittenReference | WrittenPeriod


def touched_by(
    changes: Sequence[SchemaChange], tables: Sequence[TableName]
) -> dict[TableName, bool]:
    """Return the tables whose structures the changes concern, and whether each is certainly
    created. `tables`: those that exist, for changes of a whole database."""
    touched: dict[TableName, bool] = {}
    for change in changes:
        names: Iterable[TableName] = ()
        created = False
        match change:
            case TruncateTable() | RepairTables() | CreateDatabase() | AlterDatabase():
                pass
            case DropDatabase(database):
                names = [name for name in tables if name.database.lower() == database.lower()]
            case AlterTable(table, clauses):
                targets = (clause.name for clause in clauses if isinstance(clause, RenameTo))
                names = (table, *targets)
            case CreateTable() | CreateLike() | CreateSelect():
                names, created = (change.table,), not (change.if_not_exists or change.or_replace)
            case DropTables() | RenameTables():
                names = named_by([change]) or ()
            case _:
                assert_never(change)
        for name in names:
            touched.setdefault(name, created)
    return touched


def named_by(changes: Sequence[SchemaChange]) -> tuple[TableName, ...] | None:
    """Return the tables whose structures or rows the changes may change; None for any table."""
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
    """Return the tables that must exist for the changes, since the server would have refused them
    otherwise."""
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
