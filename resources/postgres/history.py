"""The history of structures on Postgres: what the ledger is asked of it and told.

One function a question or a step, given a cursor of a transaction. Does not belong here:
connections, and the rules of order, which the schema holds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from psycopg2.extras import RealDictCursor, execute_values

from pipeline.batch import Batch, CaptureRecord
from pipeline.position import Coordinates, LogFile
from pipeline.schema.history import DatabaseVersion, SchemaStatement, SchemaVersion
from pipeline.table import TableName
from pipeline.table_state import SnapshotPart, TableEvent, TableEventKind
from resources.ledger_rules import refusal, unknown_statement, unknown_version
from resources.postgres import history_rows, rows
from resources.postgres.queries import query

LAST_BATCH = (1 << 63) - 1
LAST = Coordinates(LogFile("", (1 << 31) - 1), (1 << 63) - 1)
"""Behind every batch and place: what holds there is what is newest."""

_PAGE = 1000
"""Rows that one statement inserts."""


def _all(cursor: RealDictCursor, name: str, /, **values: Any) -> list[rows.Row]:
    cursor.execute(query(name), values)
    return list(cursor.fetchall())


def has_history(cursor: RealDictCursor, source: str) -> bool:
    (row,) = _all(cursor, "has_history", source=source)
    return bool(row["found"])


def last_versions(cursor: RealDictCursor, source: str) -> dict[TableName, int]:
    found = _all(cursor, "last_versions", source=source)
    return {rows.table(row): row["version"] for row in found}


def schema_at(
    cursor: RealDictCursor, source: str, table: TableName, batch: int, place: Coordinates
) -> SchemaVersion | None:
    values = {**rows.of_table(table), **rows.of_coordinates(place)}
    found = _all(cursor, "schema_at", source=source, batch=batch, **values)
    return history_rows.schema_version(found[0]) if found else None


def schemas_at(
    cursor: RealDictCursor, source: str, batch: int, place: Coordinates
) -> list[SchemaVersion]:
    values = rows.of_coordinates(place)
    found = _all(cursor, "schemas_at", source=source, batch=batch, **values)
    return [history_rows.schema_version(row) for row in found]


def referring_schemas(cursor: RealDictCursor, source: str) -> list[SchemaVersion]:
    found = _all(cursor, "referring_schemas", source=source)
    return [history_rows.schema_version(row) for row in found]


def schema_version(
    cursor: RealDictCursor, source: str, table: TableName, number: int
) -> SchemaVersion:
    values = rows.of_table(table)
    found = _all(cursor, "schema_version", source=source, version=number, **values)
    if not found:
        raise unknown_version(table, number)
    return history_rows.schema_version(found[0])


def schema_versions(cursor: RealDictCursor, source: str, table: TableName) -> list[SchemaVersion]:
    found = _all(cursor, "schema_versions", source=source, **rows.of_table(table))
    return [history_rows.schema_version(row) for row in found]


def databases_at(
    cursor: RealDictCursor, source: str, batch: int, place: Coordinates
) -> list[DatabaseVersion]:
    values = rows.of_coordinates(place)
    found = _all(cursor, "databases_at", source=source, batch=batch, **values)
    return [history_rows.database_version(row) for row in found]


def schema_statements(
    cursor: RealDictCursor, source: str, limit: int, after: int
) -> list[SchemaStatement]:
    found = _all(cursor, "schema_statements", source=source, limit=limit, after=after)
    return [history_rows.schema_statement(row) for row in found]


def statement(cursor: RealDictCursor, source: str, number: int) -> SchemaStatement:
    found = _all(cursor, "statement", source=source, number=number)
    if not found:
        raise unknown_statement(number)
    return history_rows.schema_statement(found[0])


def batch_covering(
    cursor: RealDictCursor, source: str, server_uuid: str, at: Coordinates
) -> Batch | None:
    values = {"server_uuid": server_uuid, **rows.of_coordinates(at)}
    found = _all(cursor, "batch_covering", source=source, **values)
    return rows.batch(found[0]) if found else None


def table_events(cursor: RealDictCursor, source: str, batch: int) -> list[TableEvent]:
    return [
        TableEvent(
            rows.table(row),
            TableEventKind(row["kind"]),
            row["sequence"],
            row["version"],
            rows.coordinates(row, "place"),
            row["reason"],
        )
        for row in _all(cursor, "table_events", source=source, batch=batch)
    ]


def snapshots(cursor: RealDictCursor, source: str, batch: int) -> list[SnapshotPart]:
    return [
        SnapshotPart(
            rows.table(row),
            row["version"],
            row["low_sequence"],
            rows.files(row),
            None if row["columns"] is None else tuple(row["columns"]),
        )
        for row in _all(cursor, "snapshots", source=source, batch=batch)
    ]


# -- what a capture records ------------------------------------------------------------


def record_history(cursor: RealDictCursor, source: str, batch: int, record: CaptureRecord) -> None:
    """Statements first: versions name them."""
    history = record.history
    statements = [history_rows.of_statement(source, batch, one) for one in history.statements]
    # Ids are given in the order of the rows.
    numbers = sorted(row["id"] for row in _insert(cursor, "record_statements", statements))
    databases = [
        history_rows.of_database(source, batch, one, _number(numbers, one.statement, "database"))
        for one in history.databases
    ]
    _insert(cursor, "record_databases", databases)
    versions = [
        history_rows.of_version(source, batch, one, _number(numbers, one.statement, "table"))
        for one in history.versions
    ]
    _insert(cursor, "record_versions", versions)


def _number(numbers: Sequence[int], index: int | None, kind: str) -> int | None:
    if index is not None and not 0 <= index < len(numbers):
        raise refusal(f"{kind}_versions_statement")
    return None if index is None else numbers[index]


def _insert(
    cursor: RealDictCursor, name: str, values: Sequence[tuple[Any, ...]]
) -> Sequence[rows.Row]:
    if not values:
        return ()
    returns = "returning" in query(name)
    found = execute_values(cursor, query(name), values, page_size=_PAGE, fetch=returns)
    return list(found or ())


def record_events(cursor: RealDictCursor, source: str, batch: int, record: CaptureRecord) -> None:
    """Events and snapshots; their tables, versions and states are recorded."""
    counted: dict[TableName, int] = {}
    for event in record.events:
        ordinal = counted.get(event.table, 0)
        counted[event.table] = ordinal + 1
        values = {"source": source, "batch": batch, "ordinal": ordinal, **rows.of_event(event)}
        cursor.execute(query("record_event"), values)
    for part in record.snapshots:
        values = {"source": source, "batch": batch, **rows.of_snapshot(part)}
        cursor.execute(query("record_snapshot"), values)
        (made,) = cursor.fetchall()
        for ordinal, file in enumerate(part.files):
            values = {"snapshot": made["id"], "ordinal": ordinal, **rows.of_file(file)}
            cursor.execute(query("record_snapshot_file"), values)
