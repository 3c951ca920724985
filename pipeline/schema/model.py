"""The databases, tables, columns and keys of a server at one moment, and their form in
JSON.

The JSON is stored in the ledger (Lockstep's tables in Postgres) and in the lake, and
printed with `--json`. Comments, statistics, CHECK constraints, bounds of partitions and
the order of keys are left out. Words and spellings are those of MySQL 9.7's
information_schema, for MariaDB too, unless a docstring says otherwise.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final, Literal

from lockstep.pipeline.values.table import TableName

# information_schema's names of data types.
INTEGER_BITS: Final = {"tinyint": 8, "smallint": 16, "mediumint": 24, "int": 32, "bigint": 64}
SIZED_STRINGS: Final = frozenset({"char", "varchar", "binary", "varbinary"})
TEXT_FAMILY: Final = ("tinytext", "text", "mediumtext", "longtext")
CHARACTER_STRINGS: Final = frozenset({"char", "varchar", *TEXT_FAMILY})
BLOB_FAMILY: Final = ("tinyblob", "blob", "mediumblob", "longblob")
LOB_SIZES: Final = {
    name: (1 << 8 * count) - 1
    for family in (TEXT_FAMILY, BLOB_FAMILY)
    for count, name in enumerate(family, start=1)
}
"""TEXT and BLOB types → the largest number of bytes in a value."""

GEOMETRY_TYPES: Final = frozenset(
    {"geometry", "point", "linestring", "polygon", "geomcollection", "geometrycollection"}
    | {"multipoint", "multilinestring", "multipolygon"}
)


LOGS_LOWER_CASE: Final = 2
"""The value of `lower_case_table_names` with which a server keeps the case of names,
ignores it, and logs rows under the names in lower case."""


@dataclass(frozen=True, slots=True)
class ValueDefault:
    """A constant default whose value is known. `text`: the value as SELECT prints it in
    the time zone UTC; bytes as 0x…, bits as b'…'."""

    text: str


@dataclass(frozen=True, slots=True)
class WrittenDefault:
    """A constant default whose value only the server knows. `text`: the literal, as a
    statement wrote it or a server shows it."""

    text: str


@dataclass(frozen=True, slots=True)
class ExpressionDefault:
    """A default that is an expression. `text`: as the statement wrote it, since servers
    print expressions in different ways. Synonyms of CURRENT_TIMESTAMP(n) become
    CURRENT_TIMESTAMP(n), and CURRENT_TIMESTAMP for n = 0."""

    text: str


Default = ValueDefault | WrittenDefault | ExpressionDefault

_CURRENT_TIMESTAMP: Final = re.compile(
    r"(?:current_timestamp|now|localtime(?:stamp)?)(?:\s*\(\s*(\d?)\s*\))?", re.IGNORECASE
)


def now_digits(expression: str) -> int | None:
    """Return the fractional digits of CURRENT_TIMESTAMP(n) or a synonym; None for any
    other expression."""
    match = _CURRENT_TIMESTAMP.fullmatch(expression.strip())
    return None if match is None else int(match[1] or 0)


def now_expression(digits: int) -> str:
    """Return CURRENT_TIMESTAMP(n) as `ExpressionDefault` spells it."""
    return f"CURRENT_TIMESTAMP({digits})" if digits else "CURRENT_TIMESTAMP"


@dataclass(frozen=True, slots=True)
class ColumnSchema:
    """A column of a table.

    `type`: information_schema's data_type ("int", "varchar", "text", …; MariaDB's JSON
    is "longtext"). `length`: characters of CHAR and VARCHAR, bytes of BINARY and
    VARBINARY, bits of BIT, dimensions of VECTOR, fractional digits of a temporal type.
    `precision` and `scale`: of DECIMAL, and of FLOAT and DOUBLE if declared. `default`:
    None for DEFAULT NULL and for no default; `nullable` tells them apart. `on_update`:
    ON UPDATE CURRENT_TIMESTAMP. `generated`: the expression of a generated column,
    which is `stored` or virtual. `compressed`: MariaDB's COMPRESSED. `system_period`:
    "start" or "end" for MariaDB's AS ROW START and AS ROW END.
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
    """A column or an expression in a key. `prefix`: number of characters or bytes of
    the column that are indexed; None for the whole value."""

    column: str | None
    prefix: int | None = None
    expression: str | None = None
    descending: bool = False


KeyKind = Literal["primary", "unique", "index", "fulltext", "spatial"]


@dataclass(frozen=True, slots=True)
class KeySchema:
    """A key. `generated`: the server added the key for a foreign key, and drops it when
    another key can serve. `hashed`: a UNIQUE of MariaDB that is longer than a key may
    be; each row has an invisible column with the values' hash."""

    name: str
    kind: KeyKind
    parts: tuple[KeyPart, ...]
    invisible: bool = False
    generated: bool = False
    hashed: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(part.column for part in self.parts if part.column is not None)


ReferentialAction = Literal["RESTRICT", "CASCADE", "SET NULL", "SET DEFAULT", "NO ACTION"]
ROW_CHANGING_ACTIONS: Final[frozenset[ReferentialAction]] = frozenset(
    {"CASCADE", "SET NULL", "SET DEFAULT"}
)
"""Actions of foreign keys that change rows of the child table, without row events."""


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key. `references`: the parent table; `referenced`: its columns."""

    name: str
    columns: tuple[str, ...]
    references: TableName
    referenced: tuple[str, ...]
    on_delete: ReferentialAction = "NO ACTION"
    on_update: ReferentialAction = "NO ACTION"


@dataclass(frozen=True, slots=True)
class ExpressionColumn:
    """The hidden column in which MySQL stores an expression of a key. `place`: its
    index among all columns of the table, hidden ones included. `key`: the key's name;
    None if the column may belong to several keys."""

    place: int
    key: str | None = None


@dataclass(frozen=True, slots=True)
class TableSchema:
    """A table. `columns` are in the order of the row images; the order of `keys` means
    nothing. `expression_columns`: one hidden column for each expression in the keys;
    empty if their places are unknown (`hidden_columns.hidden_places`). The functions
    of `compare` ignore them."""

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
    expression_columns: tuple[ExpressionColumn, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def column(self, name: str) -> ColumnSchema | None:
        return next((c for c in self.columns if c.name.lower() == name.lower()), None)

    def key(self, name: str) -> KeySchema | None:
        return next((k for k in self.keys if k.name.lower() == name.lower()), None)

    @property
    def primary_key(self) -> tuple[str, ...]:
        """Names of the primary key's columns; empty if there is no primary key."""
        return next((key.columns for key in self.keys if key.kind == "primary"), ())


RowChange = Literal["INSERT", "UPDATE", "DELETE"]


@dataclass(frozen=True, slots=True)
class TableAccess:
    """The tables that a trigger, a view or a statement changes and reads. `writes`:
    each changed table with the kinds of change. `with_names`: names that WITH clauses
    define. `reason`: why the tables cannot be read from the text; None if they can."""

    writes: tuple[tuple[TableName, tuple[RowChange, ...]], ...] = ()
    reads: tuple[TableName, ...] = ()
    with_names: tuple[TableName, ...] = ()
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class Trigger:
    """A trigger of a table. `code`: the tables of its body."""

    name: str
    table: TableName
    events: tuple[RowChange, ...]
    code: TableAccess


@dataclass(frozen=True, slots=True)
class View:
    """A view. `code`: the tables that its query reads."""

    name: str
    code: TableAccess


@dataclass(frozen=True, slots=True)
class DatabaseCode:
    """Triggers and views of a database. `triggers`: None if Lockstep's account may not
    see them. `tables`: names of the base tables of a system database; the history does
    not have their structures."""

    triggers: tuple[Trigger, ...] | None = ()
    views: tuple[View, ...] = ()
    tables: tuple[str, ...] = ()

    def view(self, name: str) -> View | None:
        return next((view for view in self.views if view.name.lower() == name.lower()), None)


@dataclass(frozen=True, slots=True)
class DatabaseSchema:
    """A database. `charset`, `collation`: the defaults of its tables. `code`: its
    triggers and views; None if they are unknown."""

    name: str
    charset: str
    collation: str
    code: DatabaseCode | None = None


@dataclass(frozen=True, slots=True)
class ServerSchema:
    """The databases and tables of a server, by the names that `fold_case` returns.
    `unknown_tables`: tables that may exist, and whose structure is unknown."""

    databases: Mapping[str, DatabaseSchema] = field(default_factory=dict)
    tables: Mapping[TableName, TableSchema] = field(default_factory=dict)
    unknown_tables: frozenset[TableName] = frozenset()
    lower_case_table_names: int = 0

    def fold_case(self, name: TableName) -> TableName:
        """Return a table's name as a key of `tables`: in lower case if the server
        ignores case."""
        if self.lower_case_table_names == 0:
            return name
        return TableName(name.database.lower(), name.name.lower())

    def fold_database(self, name: str) -> str:
        """Return a database's name as a key of `databases`."""
        return self.fold_case(TableName(name, "")).database

    def database(self, name: str) -> DatabaseSchema | None:
        return self.databases.get(self.fold_database(name))

    def table(self, name: TableName) -> TableSchema | None:
        return self.tables.get(self.fold_case(name))

    def is_unknown(self, name: TableName) -> bool:
        return self.fold_case(name) in self.unknown_tables

    def with_database(self, database: DatabaseSchema) -> ServerSchema:
        key = self.fold_database(database.name)
        return replace(self, databases={**self.databases, key: database})

    def without_database(self, name: str) -> ServerSchema:
        key = self.fold_database(name)
        return replace(
            self,
            databases={n: d for n, d in self.databases.items() if n != key},
            tables={n: t for n, t in self.tables.items() if n.database != key},
            unknown_tables=frozenset(n for n in self.unknown_tables if n.database != key),
        )

    def with_table(self, table: TableSchema) -> ServerSchema:
        key = self.fold_case(table.name)
        return replace(
            self, tables={**self.tables, key: table}, unknown_tables=self.unknown_tables - {key}
        )

    def without_table(self, name: TableName) -> ServerSchema:
        key = self.fold_case(name)
        tables = {n: t for n, t in self.tables.items() if n != key}
        return replace(self, tables=tables, unknown_tables=self.unknown_tables - {key})

    def with_unknown_tables(self, *names: TableName) -> ServerSchema:
        """Return the schema in which these tables may exist, with unknown structures."""
        tables, unknown_tables = dict(self.tables), set(self.unknown_tables)
        for key in map(self.fold_case, names):
            tables.pop(key, None)
            unknown_tables.add(key)
        return replace(self, tables=tables, unknown_tables=frozenset(unknown_tables))


# -- as JSON, and fingerprints ---------------------------------------------------------


_DEFAULT_CLASSES: Final[dict[str, type[Default]]] = {
    "value": ValueDefault,
    "written": WrittenDefault,
    "expression": ExpressionDefault,
}
_DEFAULT_WORDS: Final = {default: word for word, default in _DEFAULT_CLASSES.items()}
_FIELDS: Final[Mapping[type, tuple[tuple[str, Any], ...]]] = {
    dataclass_type: tuple((field.name, field.default) for field in fields(dataclass_type))
    for dataclass_type in (
        *(TableSchema, ColumnSchema, KeySchema, KeyPart, ForeignKey, ExpressionColumn),
        *(DatabaseCode, Trigger, View, TableAccess),
    )
}
_SCALAR_TYPES: Final = frozenset((str, int, bool, type(None)))


def schema_to_json(schema: TableSchema) -> dict[str, Any]:
    """Return a table as JSON values, without fields that have their default."""
    data: dict[str, Any] = _json_value(schema)
    return data


def schema_from_json(data: Mapping[str, Any]) -> TableSchema:
    return TableSchema(
        **{
            **data,
            "name": TableName(**data["name"]),
            "columns": tuple(map(_column_from_json, data["columns"])),
            "keys": tuple(map(_key_from_json, data.get("keys", ()))),
            "foreign_keys": tuple(map(_foreign_key_from_json, data.get("foreign_keys", ()))),
            "expression_columns": tuple(
                ExpressionColumn(**column) for column in data.get("expression_columns", ())
            ),
        }
    )


def code_to_json(code: DatabaseCode) -> dict[str, Any]:
    data: dict[str, Any] = _json_value(code)
    return data


def code_from_json(data: Mapping[str, Any]) -> DatabaseCode:
    triggers = data.get("triggers", ())
    return DatabaseCode(
        None if triggers is None else tuple(map(_trigger_from_json, triggers)),
        tuple(
            View(view["name"], _access_from_json(view["code"])) for view in data.get("views", ())
        ),
        tuple(data.get("tables", ())),
    )


def schema_fingerprint(schema: TableSchema) -> str:
    """Return 16 hexadecimal digits of a hash over the schema. The table's name and the
    order of its keys do not count. Hidden columns do not count either, since no
    statement says at which places they are."""
    keys = sorted(json.dumps(_json_value(key), sort_keys=True) for key in schema.keys)
    data = {**schema_to_json(schema), "name": None, "keys": keys}
    data.pop("expression_columns", None)
    text = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def _json_value(value: Any) -> Any:
    """Return a part of a schema as JSON values, without fields that have their default.
    Types are looked up in dictionaries, since a large server's schema has several
    hundred thousand values."""
    value_type = type(value)
    if value_type in _SCALAR_TYPES:
        return value
    if value_type is tuple:
        return [_json_value(item) for item in value]
    if value_type in _DEFAULT_WORDS:
        return [_DEFAULT_WORDS[value_type], value.text]
    if value_type is TableName:
        return {"database": value.database, "name": value.name}
    data = {}
    for name, default in _FIELDS[value_type]:
        part = getattr(value, name)
        if part is not default and part != default:
            data[name] = part if type(part) in _SCALAR_TYPES else _json_value(part)
    return data


def _column_from_json(data: Mapping[str, Any]) -> ColumnSchema:
    members = tuple(data.get("members", ()))
    return ColumnSchema(**{**data, "members": members, "default": _default_from_json(data)})


def _default_from_json(data: Mapping[str, Any]) -> Default | None:
    if data.get("default") is None:
        return None
    word, text = data["default"]
    return _DEFAULT_CLASSES[word](text)


def _key_from_json(data: Mapping[str, Any]) -> KeySchema:
    return KeySchema(**{**data, "parts": tuple(KeyPart(**part) for part in data["parts"])})


def _foreign_key_from_json(data: Mapping[str, Any]) -> ForeignKey:
    return ForeignKey(
        **{
            **data,
            "columns": tuple(data["columns"]),
            "references": TableName(**data["references"]),
            "referenced": tuple(data["referenced"]),
        }
    )


def _trigger_from_json(data: Mapping[str, Any]) -> Trigger:
    table, events = TableName(**data["table"]), tuple(data["events"])
    return Trigger(data["name"], table, events, _access_from_json(data["code"]))


def _access_from_json(data: Mapping[str, Any]) -> TableAccess:
    return TableAccess(
        tuple((TableName(**table), tuple(events)) for table, events in data.get("writes", ())),
        tuple(TableName(**table) for table in data.get("reads", ())),
        tuple(TableName(**table) for table in data.get("with_names", ())),
        data.get("reason"),
    )
