"""Keeps in Postgres how the structures of a MySQL source (columns, keys and character
sets of its tables and databases) changed, and the DDL that changed them."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from dataclasses import asdict
from typing import Any

from lockstep.pipeline.ports.ledger import LAST_BATCH, LAST_PLACE
from lockstep.pipeline.schema.history import (
    BatchHistory,
    DatabaseVersion,
    Knowledge,
    RecordedEffect,
    SchemaStatement,
    SchemaVersion,
    VersionOrigin,
    shown_as_from_json,
    shown_as_to_json,
)
from lockstep.pipeline.schema.model import (
    DatabaseSchema,
    code_from_json,
    code_to_json,
    schema_from_json,
    schema_to_json,
)
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.refusals import refusal, unknown_statement, unknown_version
from lockstep.resources.postgres.rows import (
    Row,
    columns_of,
    coordinate_columns,
    coordinates_of,
    table_arrays,
    table_columns,
    table_of,
    value_of,
)
from lockstep.resources.postgres.session import LedgerPort, Transaction


class PostgresSchemas(LedgerPort):
    """The port `Structures` (`pipeline.ports.ledger`), which describes each method, on
    Postgres."""

    def has_history(self, source: str) -> bool:
        return bool(self._only("has_history", source=source)["found"])

    def last_versions(self, source: str) -> dict[TableName, int]:
        return {table_of(row): row["version"] for row in self._all("last_versions", source=source)}

    def schema_at(
        self,
        source: str,
        table: TableName,
        *,
        batch: int = LAST_BATCH,
        place: Coordinates = LAST_PLACE,
    ) -> SchemaVersion | None:
        limits = {"batch": batch, **coordinate_columns(place)}
        row = self._first("schema_at", source=source, **table_columns(table), **limits)
        return None if row is None else _schema_version(row)

    def schemas_at(
        self,
        source: str,
        *,
        batch: int = LAST_BATCH,
        place: Coordinates = LAST_PLACE,
        referring: bool = False,
        shaped: bool = False,
    ) -> list[SchemaVersion]:
        limits = {"batch": batch, **coordinate_columns(place)}
        filters = {"referring": referring, "shaped": shaped}
        rows = self._all("schemas_at", source=source, **filters, **limits)
        return [_schema_version(row) for row in rows]

    def schema_versions(self, source: str, *tables: TableName) -> list[SchemaVersion]:
        if not tables:
            return []
        names = table_arrays(tables)
        return self._cached(_schema_version, "schema_versions", source=source, **names)

    def schema_version(self, source: str, table: TableName, number: int) -> SchemaVersion:
        keys = {"version": number, **table_columns(table)}
        for version in self._cached(_schema_version, "schema_version", source=source, **keys):
            return version
        raise unknown_version(table, number)

    def databases_at(
        self, source: str, *, batch: int = LAST_BATCH, place: Coordinates = LAST_PLACE
    ) -> list[DatabaseVersion]:
        rows = self._all("databases_at", source=source, batch=batch, **coordinate_columns(place))
        return [_database_version(row) for row in rows]

    def schema_statements(
        self, source: str, *, limit: int = 100, after: int = 0
    ) -> list[SchemaStatement]:
        rows = self._all("schema_statements", source=source, limit=limit, after=after)
        return [_schema_statement(row) for row in rows]

    def statements_within(self, source: str, first: int, last: int) -> list[SchemaStatement]:
        rows = self._all("statements_within", source=source, first=first, last=last)
        return [_schema_statement(row) for row in rows]

    def statements(self, source: str, numbers: Collection[int]) -> dict[int, SchemaStatement]:
        rows = self._all("statements", source=source, numbers=sorted(numbers)) if numbers else []
        statements = {row["id"]: _schema_statement(row) for row in rows}
        for missing in set(numbers) - statements.keys():
            raise unknown_statement(missing)
        return statements


def record_history(
    transaction: Transaction, source: str, batch: int, history: BatchHistory
) -> None:
    """Record the structures that a capture read; statements first, because versions
    refer to them. In the history, `statement_number` is an index into its statements;
    the ledger has the statement's id instead."""
    # The ids are drawn first: Postgres does not promise to number the rows of
    # an INSERT in their order, and statements are read back in the order of their ids.
    count = len(history.statements)
    rows = transaction.all("new_statement_ids", count=count) if count else []
    statement_ids = sorted(row["id"] for row in rows)
    keys = {"source": source, "batch": batch}
    statements = [
        {**_statement_columns(statement), **keys, "id": statement_id}
        for statement_id, statement in zip(statement_ids, history.statements, strict=True)
    ]
    transaction.insert("record_statements", statements)
    databases = [
        {
            **_database_columns(value),
            **keys,
            "statement": _statement_id(statement_ids, value.statement_number, "database"),
        }
        for value in history.databases
    ]
    transaction.insert("record_databases", databases)
    versions = [
        {
            **_version_columns(value),
            **keys,
            "statement": _statement_id(statement_ids, value.statement_number, "table"),
        }
        for value in history.versions
    ]
    transaction.insert("record_versions", versions)


def _statement_id(statement_ids: Sequence[int], index: int | None, kind: str) -> int | None:
    """Return the ledger's id of the statement that led to a version. `statement_ids`:
    the ids of the history's statements; `index`: the statement's index among them, None
    if the version has no statement. `kind`: the version is one of a "table" or a
    "database"."""
    if index is None:
        return None
    if not 0 <= index < len(statement_ids):
        # The name of the constraint that this would break.
        raise refusal(f"{kind}_versions_statement")
    return statement_ids[index]


def _schema_version(row: Row) -> SchemaVersion:
    schema, columns = row["schema"], row["columns_from"]
    return value_of(
        SchemaVersion,
        row,
        table=table_of(row),
        since=coordinates_of(row, "since_"),
        knowledge=Knowledge(row["knowledge"]),
        origin=VersionOrigin(row["origin"]),
        schema=None if schema is None else schema_from_json(schema),
        columns_from=None if columns is None else tuple(columns),
        statement_number=row["statement"],
        shown_as=None if row["shown_as"] is None else shown_as_from_json(row["shown_as"]),
    )


def _database_version(row: Row) -> DatabaseVersion:
    schema = None
    if row["charset"] is not None:
        code = None if row["code"] is None else code_from_json(row["code"])
        schema = DatabaseSchema(row["name"], row["charset"], row["collation_name"], code)
    since = coordinates_of(row, "since_")
    return DatabaseVersion(row["name"], since, schema, row["statement"], row["batch"])


def _schema_statement(row: Row) -> SchemaStatement:
    begin, end = coordinates_of(row, "begin_"), coordinates_of(row, "end_")
    effects = tuple(
        RecordedEffect(effect["table"] and TableName(**effect["table"]), effect["words"])
        for effect in row["effects"]
    )
    return value_of(SchemaStatement, row, begin=begin, end=end, effects=effects)


def effects_json(statement: SchemaStatement) -> str:
    """Return the statement's effects as the ledger stores them."""
    return json.dumps([asdict(effect) for effect in statement.effects])


def _version_columns(value: SchemaVersion) -> dict[str, Any]:
    schema, shown_as = value.schema, value.shown_as
    return {
        **columns_of(value),
        **table_columns(value.table),
        **coordinate_columns(value.since, "since_"),
        "schema": None if schema is None else json.dumps(schema_to_json(schema)),
        "fingerprint": None if schema is None else value.fingerprint,
        "columns_from": None if value.columns_from is None else list(value.columns_from),
        "shown_as": None if shown_as is None else json.dumps(shown_as_to_json(shown_as)),
    }


def _statement_columns(value: SchemaStatement) -> dict[str, Any]:
    return {
        **columns_of(value),
        **coordinate_columns(value.begin, "begin_"),
        **coordinate_columns(value.end, "end_"),
        # As JSON, because these texts may contain characters that the type text
        # refuses, such as NUL.
        "database": json.dumps(value.database),
        "text": json.dumps(value.text),
        "context": json.dumps(dict(value.context)),
        "effects": effects_json(value),
    }


def _database_columns(value: DatabaseVersion) -> dict[str, Any]:
    charset = collation = code = None
    if value.schema is not None:
        charset, collation = value.schema.charset, value.schema.collation
        if value.schema.code is not None:
            code = json.dumps(code_to_json(value.schema.code))
    schema = {"charset": charset, "collation_name": collation, "code": code}
    return {"name": value.name, **coordinate_columns(value.since, "since_"), **schema}
