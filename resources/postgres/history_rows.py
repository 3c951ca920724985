"""The history of structures as rows, and rows as its values.

Belongs here: names of columns. Does not: SQL, connections; other rows (`rows`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from pipeline.position import Coordinates
from pipeline.schema.history import (
    DatabaseVersion,
    Knowledge,
    Origin,
    SchemaStatement,
    SchemaVersion,
)
from pipeline.schema.model import DatabaseSchema, TableSchema
from pipeline.schema.rows import schema_of
from pipeline.table import TableName, TableStructure
from resources.postgres.rows import Row, coordinates


def schema_version(row: Row) -> SchemaVersion:
    schema = None
    if row["schema"] is not None:
        schema = TableSchema.from_json(row["schema"])
    elif row["structure"] is not None:
        schema = schema_of(TableStructure.from_json(row["structure"]))
    columns = row["columns_from"]
    return SchemaVersion(
        table=TableName(row["database"], row["name"]),
        version=row["version"],
        since=coordinates(row, "since"),
        knowledge=Knowledge(row["knowledge"]),
        origin=Origin(row["origin"]),
        schema=schema,
        columns_from=None if columns is None else tuple(columns),
        statement=row["statement"],
        reason=row["reason"],
        generation=row["generation"],
        batch=row["batch"],
    )


def database_version(row: Row) -> DatabaseVersion:
    schema = None
    if row["charset"] is not None:
        schema = DatabaseSchema(row["name"], row["charset"], row["collation_name"])
    since = coordinates(row, "since")
    return DatabaseVersion(row["name"], since, schema, row["statement"], row["batch"])


def schema_statement(row: Row) -> SchemaStatement:
    return SchemaStatement(
        begin=coordinates(row, "begin"),
        end=coordinates(row, "end"),
        gtid=row["gtid"],
        committed_at=row["committed_at"],
        database=row["database"],
        text=row["text"],
        outcome=row["outcome"],
        effects=tuple(row["effects"]),
        context=row["context"],
        id=row["id"],
        batch=row["batch"],
    )


def of_version(
    source: str, batch: int, value: SchemaVersion, statement: int | None
) -> tuple[Any, ...]:
    """In the order of the statement `record_versions`."""
    known = value.schema is not None
    return (
        source,
        batch,
        value.table.database,
        value.table.name,
        value.version,
        *_place(value.since),
        value.knowledge.value,
        value.origin.value,
        json.dumps(value.schema.to_json()) if value.schema is not None else None,
        value.fingerprint if known else None,
        None if value.columns_from is None else list(value.columns_from),
        statement,
        value.reason,
        value.generation,
    )


def of_statement(source: str, batch: int, value: SchemaStatement) -> tuple[Any, ...]:
    """In the order of the statement `record_statements`."""
    return (
        source,
        batch,
        *_place(value.begin),
        *_place(value.end),
        value.gtid,
        value.committed_at,
        json.dumps(value.database),
        json.dumps(value.text),
        json.dumps(dict(value.context)),
        value.outcome,
        json.dumps(list(value.effects)),
    )


def of_database(
    source: str, batch: int, value: DatabaseVersion, statement: int | None
) -> tuple[Any, ...]:
    """In the order of the statement `record_databases`."""
    charset = value.schema.charset if value.schema is not None else None
    collation = value.schema.collation if value.schema is not None else None
    return (source, batch, value.name, *_place(value.since), charset, collation, statement)


def _place(value: Coordinates) -> Sequence[Any]:
    return value.file.base, value.file.number, value.offset
