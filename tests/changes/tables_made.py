"""Table structures and their versions, made for tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from lockstep.pipeline.schema.history import Knowledge, SchemaVersion, VersionOrigin
from lockstep.pipeline.schema.model import ColumnSchema, KeyKind, KeyPart, KeySchema, TableSchema
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName

TABLE = TableName("shop", "people")
PLACE = Coordinates(LogFile("binlog", 1), 4)


def a_column(name: str, kind: str = "int", **more: Any) -> ColumnSchema:
    if kind == "varchar":
        more = {"length": 20, "charset": "utf8mb4", "collation": "utf8mb4_0900_ai_ci", **more}
    return ColumnSchema(name, kind, **more)


def a_key(*columns: str, name: str = "PRIMARY", kind: KeyKind = "primary") -> KeySchema:
    return KeySchema(name, kind, tuple(KeyPart(column) for column in columns))


def a_table(*columns: ColumnSchema, keys: Sequence[KeySchema] | None = None) -> TableSchema:
    """A table with the columns; its primary key is `id` unless `keys` says otherwise."""
    return TableSchema(TABLE, columns, (a_key("id"),) if keys is None else tuple(keys))


ID = a_column("id", nullable=False)


def a_version(
    number: int,
    schema: TableSchema | None,
    columns_from: Sequence[str | None] | None = None,
    origin: VersionOrigin = VersionOrigin.STATEMENT,
) -> SchemaVersion:
    return SchemaVersion(
        table=TABLE,
        version=number,
        since=PLACE,
        knowledge=Knowledge.DROPPED if schema is None else Knowledge.KNOWN,
        origin=origin,
        schema=schema,
        columns_from=None if columns_from is None else tuple(columns_from),
    )
