"""Databases, tables, columns and keys as a server holds them at one moment.

Not here: their JSON and fingerprints (`model_json`), reading them from statements (`statements`) or
changing them (`evolve`), what the log's decoder needs of them (`rows`). Comments and the statistics
of a table are no part of it, nor are CHECK constraints, partitions' bounds and the order of keys.

Words and spellings are those of information_schema of MySQL 9.7, for MariaDB too,
except where a docstring says otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pipeline.table import TableName

INTEGER_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
TEXTS: Final = ("tinytext", "text", "mediumtext", "longtext")
BLOBS: Final = ("tinyblob", "blob", "mediumblob", "longblob")
LARGE: Final = {
    name: (1 << 8 * count) - 1
    for family in (TEXTS, BLOBS)
    for count, name in enumerate(family, start=1)
}
"""TEXT and BLOB types → bytes that a value may have."""

GEOMETRIES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "geomcollection", "geometrycollection"}
    | {"multipoint", "multilinestring", "multipolygon"}
)


@dataclass(frozen=True, slots=True)
class LiteralDefault:
    """A constant whose value is known, as SELECT prints it in UTC: text without quotes, bytes as
    0x…, bits as b'…', numbers and moments in the column's own form."""

    text: str


@dataclass(frozen=True, slots=True)
class WrittenDefault:
    """A constant as a statement wrote it, or as a server shows it: which value it is in the
    column, only the server can tell."""

    text: str


@dataclass(frozen=True, slots=True)
class ExpressionDefault:
    """An expression as the statement wrote it; CURRENT_TIMESTAMP(n) in that form. Two
    servers, and two spellings, differ: only the statement's own text is kept."""

    text: str


Default = LiteralDefault | WrittenDefault | ExpressionDefault


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """One column. `type` is information_schema's data_type ("int", "varchar", "text", …;
    JSON of MariaDB is "longtext"). `length`: characters of CHAR and VARCHAR, bytes of
    BINARY and VARBINARY, bits of BIT, dimensions of VECTOR, fractional digits of a temporal type.
    `precision` and `scale`: of DECIMAL, and of FLOAT and DOUBLE if declared.
    `default` None is DEFAULT NULL and no default alike; `nullable` tells them apart.
    """

    name: str
    type: str
    nullable: bool = True
    length: int | None = None
    precision: int | None = None
    scale: int | None = None
    unsigned: bool = False
    zerofill: bool = False
    charset: str | None = None
    collation: str | None = None
    members: tuple[str, ...] = ()
    default: Default | None = None
    on_update: bool = False
    auto_increment: bool = False
    generated: str | None = None
    stored: bool = False
    invisible: bool = False
    srid: int | None = None
    compressed: bool = False
    system_period: str | None = None


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column with a prefix (characters or bytes; None: whole), or an expression."""

    column: str | None
    prefix: int | None = None
    expression: str | None = None
    descending: bool = False


@dataclass(frozen=True, slots=True)
class KeySchema:
    """`kind` is primary, unique, index, fulltext or spatial. `generated`: made for a
    foreign key by the server, which drops it when another key can serve. `hashed`: a UNIQUE
    of MariaDB over more than a key holds, for which each row has a column that is not shown.
    """

    name: str
    kind: str
    parts: tuple[KeyPart, ...]
    invisible: bool = False
    generated: bool = False
    hashed: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(part.column for part in self.parts if part.column is not None)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """`on_delete` and `on_update` are RESTRICT, CASCADE, SET NULL, NO ACTION or SET DEFAULT."""

    name: str
    columns: tuple[str, ...]
    references: TableName
    referenced: tuple[str, ...]
    on_delete: str = "NO ACTION"
    on_update: str = "NO ACTION"


@dataclass(frozen=True, slots=True)
class HiddenColumn:
    """A column that MySQL hides behind an expression in a key: its place among all columns of the
    table, from 0, and the key's name; None if it is not known which of several keys."""

    place: int
    key: str | None = None


@dataclass(frozen=True, slots=True)
class TableSchema:
    """`columns` in the order of the row images; `keys` in no order that means anything. `hidden`:
    one for each expression in the keys, where their places are known (`hidden_columns`); no part
    of what is compared."""

    name: TableName
    columns: tuple[ColumnSchema, ...]
    keys: tuple[KeySchema, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    charset: str | None = None
    collation: str | None = None
    engine: str = "InnoDB"
    row_format: str | None = None
    partitioned: bool = False
    system_versioned: bool = False
    hidden: tuple[HiddenColumn, ...] = ()

    def column(self, name: str) -> ColumnSchema | None:
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)

    def key(self, name: str) -> KeySchema | None:
        return next((k for k in self.keys if k.name.lower() == name.lower()), None)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of the primary key's columns; none where there is no such key."""
        return next((key.columns for key in self.keys if key.kind == "primary"), ())


@dataclass(frozen=True, slots=True)
class RowCode:
    """The tables that a trigger changes, each with the kinds of change (INSERT, UPDATE, DELETE),
    and those that it or a view reads; `own`: names that it may define itself. `reason`: why its
    text does not tell."""

    writes: tuple[tuple[TableName, tuple[str, ...]], ...] = ()
    reads: tuple[TableName, ...] = ()
    own: tuple[TableName, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Trigger:
    name: str
    table: TableName
    events: tuple[str, ...]
    code: RowCode


@dataclass(frozen=True, slots=True)
class View:
    name: str
    code: RowCode


@dataclass(frozen=True, slots=True)
class DatabaseCode:
    """Triggers and views of a database. `triggers` None: the account may not see them. `tables`:
    base tables of a system database, of which the history has no structure."""

    triggers: tuple[Trigger, ...] | None = ()
    views: tuple[View, ...] = ()
    tables: tuple[str, ...] = ()

    def view(self, name: str) -> View | None:
        return next((view for view in self.views if view.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """A database and what its tables inherit. `code`: its triggers and views, None where nothing
    is known of them."""

    name: str
    charset: str
    collation: str
    code: DatabaseCode | None = None


@dataclass(frozen=True, slots=True)
class ServerSchema:
    """All a server holds. Databases and tables are keyed by `fold`ed names; `unknown` are
    tables that may be there, and whose structure nobody here knows."""

    databases: Mapping[str, DatabaseSchema] = field(default_factory=dict)
    tables: Mapping[TableName, TableSchema] = field(default_factory=dict)
    unknown: frozenset[TableName] = frozenset()
    lower_case_table_names: int = 0

    def fold(self, name: TableName) -> TableName:
        if self.lower_case_table_names == 0:
            return name
        return TableName(name.database.lower(), name.name.lower())

    def database(self, name: str) -> DatabaseSchema | None:
        return self.databases.get(self.fold(TableName(name, "")).database)

    def table(self, name: TableName) -> TableSchema | None:
        return self.tables.get(self.fold(name))

    def with_database(self, database: DatabaseSchema) -> ServerSchema:
        key = self.fold(TableName(database.name, "")).database
        return replace(self, databases={**self.databases, key: database})

    def without_database(self, name: str) -> ServerSchema:
        gone = self.fold(TableName(name, "")).database
        return replace(
            self,
            databases={n: d for n, d in self.databases.items() if n != gone},
            tables={n: t for n, t in self.tables.items() if n.database != gone},
            unknown=frozenset(n for n in self.unknown if n.database != gone),
        )

    def with_table(self, table: TableSchema) -> ServerSchema:
        key = self.fold(table.name)
        return replace(self, tables={**self.tables, key: table}, unknown=self.unknown - {key})

    def without_table(self, name: TableName) -> ServerSchema:
        gone = self.fold(name)
        tables = {n: t for n, t in self.tables.items() if n != gone}
        return replace(self, tables=tables, unknown=self.unknown - {gone})

    def with_unknown(self, name: TableName) -> ServerSchema:
        """Whether the table is there, and what it looks like, nobody here knows."""
        bare = self.without_table(name)
        return replace(bare, unknown=bare.unknown | {self.fold(name)})
