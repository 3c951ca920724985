"""The history of structures in the memory ledger, and what happens to tables in a batch.

The rules are those of `resources/postgres/migrations`, by the same names. Does not
belong here: tables' states (`entries`), what people order (`orders`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipeline.batch import Batch, BatchState, CaptureRecord
from pipeline.position import Coordinates
from pipeline.schema.history import (
    DatabaseVersion,
    Knowledge,
    Origin,
    SchemaStatement,
    SchemaVersion,
)
from pipeline.table import TableName
from pipeline.table_state import TableEvent, TableEventKind
from resources.ledger_rules import refusal, unknown_statement, unknown_version
from resources.memory.books import ENDED, MemoryBooks

OUTCOMES = ("followed", "partly", "not understood")
Until = Callable[[int, Coordinates], bool]
"""Whether what a batch recorded for a place is asked for."""

_EXPLAINED = (TableEventKind.REREAD, TableEventKind.REBUILT)


def everything(batch: int, since: Coordinates) -> bool:
    """Up to the end of what is recorded."""
    return True


def until(batch: int, place: Coordinates) -> Until:
    last = (batch, place.file.number, place.offset)
    return lambda at, since: (at, since.file.number, since.offset) <= last


def versions_of(books: MemoryBooks, source: str, table: TableName) -> list[SchemaVersion]:
    """Those of live batches, in the order of their places."""
    found = books.versions.get((source, table), ())
    return sorted((one for one in found if _live(books, one.batch)), key=_order)


def schema_at(
    books: MemoryBooks, source: str, table: TableName, wanted: Until
) -> SchemaVersion | None:
    versions = versions_of(books, source, table)
    found = [one for one in versions if wanted(one.batch, one.since)]
    return found[-1] if found else None


def schemas_at(books: MemoryBooks, source: str, wanted: Until) -> list[SchemaVersion]:
    tables = sorted(table for of, table in books.versions if of == source)
    found = [schema_at(books, source, table, wanted) for table in tables]
    return [one for one in found if one is not None and one.knowledge is not Knowledge.DROPPED]


def schema_version(books: MemoryBooks, source: str, table: TableName, number: int) -> SchemaVersion:
    for known in books.versions.get((source, table), ()):
        if known.version == number:
            return known
    raise unknown_version(table, number)


def databases_at(books: MemoryBooks, source: str, wanted: Until) -> list[DatabaseVersion]:
    found: dict[str, DatabaseVersion] = {}
    known = [one for of, one in books.databases if of == source and _live(books, one.batch)]
    for one in sorted(known, key=lambda one: (one.batch, one.since.file.number, one.since.offset)):
        if wanted(one.batch, one.since):
            found[one.name] = one
    return [one for _, one in sorted(found.items()) if one.schema is not None]


def statements(books: MemoryBooks, source: str) -> list[SchemaStatement]:
    return [
        one for of, one in books.statements.values() if of == source and _live(books, one.batch)
    ]


def statement(books: MemoryBooks, source: str, number: int) -> SchemaStatement:
    of, found = books.statements.get(number, ("", None))
    if found is None or of != source:
        raise unknown_statement(number)
    return found


def has_history(books: MemoryBooks, source: str) -> bool:
    if any(of == source and _live(books, one.batch) for of, one in books.databases):
        return True
    return any(
        one.origin is Origin.BASELINE and _live(books, one.batch)
        for (of, _), versions in books.versions.items()
        if of == source
        for one in versions
    )


def batch_covering(
    books: MemoryBooks, source: str, server_uuid: str, at: Coordinates
) -> Batch | None:
    for batch in reversed(books.of_source(source, *ENDED)):
        start, end = batch.start, batch.end
        if end is None or end.server_uuid != server_uuid or batch.catches_up:
            continue
        same = start.at.file.base == at.file.base == end.at.file.base
        if same and start.at <= at <= end.at:
            return batch
    return None


# -- what a capture records ------------------------------------------------------------


def record_history(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    history, capturing = record.history, batch.state is BatchState.CAPTURING
    if not capturing and history.versions:
        raise refusal("table_versions_while_capturing")
    if not capturing and history.statements:
        raise refusal("schema_statements_while_capturing")
    if not capturing and history.databases:
        raise refusal("database_versions_while_capturing")
    numbers: list[int] = []
    for told in history.statements:
        if told.outcome not in OUTCOMES:
            raise refusal("schema_statements_outcome_known")
        number = len(books.statements) + 1
        numbers.append(number)
        books.statements[number] = (batch.source, replace(told, id=number, batch=batch.id))
    for database in history.databases:
        named = _number(numbers, database.statement, "database")
        stored = replace(database, statement=named, batch=batch.id)
        books.databases.append((batch.source, stored))
    for one in history.versions:
        _require_told(one)
        named = _number(numbers, one.statement, "table")
        _record_version(books, batch.source, replace(one, statement=named, batch=batch.id))


def _number(numbers: list[int], index: int | None, kind: str) -> int | None:
    if index is not None and not 0 <= index < len(numbers):
        raise refusal(f"{kind}_versions_statement")
    return None if index is None else numbers[index]


def _require_told(one: SchemaVersion) -> None:
    if one.generation < 1:
        raise refusal("table_versions_generation_counts")
    if one.columns_from is not None and one.knowledge is not Knowledge.KNOWN:
        raise refusal("table_versions_columns_told")
    if (one.reason is not None) != (one.knowledge is Knowledge.UNKNOWN):
        raise refusal("table_versions_unknown_explained")


def _record_version(books: MemoryBooks, source: str, one: SchemaVersion) -> None:
    key = (source, one.table)
    known = books.versions.get(key, ())
    if one.version < 1:
        raise refusal("table_versions_number_counts")
    if one.version <= len(known):
        raise refusal("table_versions_pk")
    if one.version != len(known) + 1:
        raise refusal("table_versions_no_gap")
    books.versions[key] = (*known, one)


def record_events(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    """Events and snapshots; their tables, versions and states are recorded."""
    capturing = batch.state is BatchState.CAPTURING
    if record.events and not capturing:
        raise refusal("table_events_while_capturing")
    if record.snapshots and not capturing:
        raise refusal("snapshots_while_capturing")
    before: dict[TableName, TableEvent] = {}
    for event in record.events:
        _require_recorded(books, batch, event.table, event.version, "table_events")
        if event.kind in _EXPLAINED and event.reason is None:
            raise refusal("table_events_reread_explained")
        if event.table in before and event.sequence < before[event.table].sequence:
            raise refusal("table_events_ascend")
        before[event.table] = event
    for part in record.snapshots:
        _require_recorded(books, batch, part.table, part.version, "snapshots")
    if len({part.table for part in record.snapshots}) < len(record.snapshots):
        raise refusal("snapshots_once")
    numbers = [event.sequence for event in record.events]
    numbers += [part.low_sequence for part in record.snapshots]
    if any(not batch.base <= one <= batch.base + record.changes for one in numbers):
        raise refusal("batches_sequences_within")
    books.events[batch.id] = tuple(sorted(record.events, key=lambda event: event.table))
    books.snapshots[batch.id] = tuple(sorted(record.snapshots, key=lambda part: part.table))


def _require_recorded(
    books: MemoryBooks, batch: Batch, table: TableName, number: int, what: str
) -> None:
    if (batch.source, table) not in books.states:
        raise refusal(f"{what}_table")
    if number not in [one.version for one in books.versions.get((batch.source, table), ())]:
        raise refusal(f"{what}_version")


def _order(one: SchemaVersion) -> tuple[int, int, int, int]:
    return one.batch, one.since.file.number, one.since.offset, one.version


def _live(books: MemoryBooks, batch: int) -> bool:
    return books.batches[batch].state is not BatchState.ABANDONED
