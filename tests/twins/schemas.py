"""The history of structures, in memory: `pipeline.ports.schemas`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from pipeline.batch import Batch, BatchState, CaptureRecord
from pipeline.position import Coordinates
from pipeline.schema.history import (
    DatabaseVersion,
    Knowledge,
    SchemaStatement,
    SchemaVersion,
    VersionOrigin,
)
from pipeline.table import TableName
from resources.postgres.refusals import refusal, unknown_statement, unknown_version
from tests.twins.books import MemoryBooks, MemorySubject

_OUTCOMES = ("followed", "partly", "not understood")
_Until = Callable[[int, Coordinates], bool]
"""Whether what a batch recorded for a place is asked for."""


def _everything(batch: int, since: Coordinates) -> bool:
    """Up to the end of what is recorded."""
    return True


def _until(batch: int, place: Coordinates) -> _Until:
    last = (batch, place.file.number, place.offset)
    return lambda at, since: (at, since.file.number, since.offset) <= last


class MemorySchemas(MemorySubject):
    def has_history(self, source: str) -> bool:
        books = self.books
        if any(of == source and _live(books, one.batch) for of, one in books.databases):
            return True
        return any(
            version.origin is VersionOrigin.BASELINE and _live(books, version.batch)
            for (of, _), versions in books.versions.items()
            if of == source
            for version in versions
        )

    def last_versions(self, source: str) -> dict[TableName, int]:
        return {
            table: len(known) for (of, table), known in self.books.versions.items() if of == source
        }

    def schema_at(
        self, source: str, table: TableName, *, batch: int, place: Coordinates
    ) -> SchemaVersion | None:
        return self._schema_at(source, table, _until(batch, place))

    def newest_schema(self, source: str, table: TableName) -> SchemaVersion | None:
        return self._schema_at(source, table, _everything)

    def _schema_at(self, source: str, table: TableName, wanted: _Until) -> SchemaVersion | None:
        versions = self.schema_versions(source, table)
        found = [version for version in versions if wanted(version.batch, version.since)]
        return found[-1] if found else None

    def schemas_at(self, source: str, *, batch: int, place: Coordinates) -> list[SchemaVersion]:
        return self._schemas_at(source, _until(batch, place))

    def newest_schemas(self, source: str) -> list[SchemaVersion]:
        return self._schemas_at(source, _everything)

    def _schemas_at(self, source: str, wanted: _Until) -> list[SchemaVersion]:
        tables = sorted(table for of, table in self.books.versions if of == source)
        found = [self._schema_at(source, table, wanted) for table in tables]
        return [one for one in found if one is not None and one.knowledge is not Knowledge.DROPPED]

    def referring_schemas(self, source: str) -> list[SchemaVersion]:
        return [
            schema
            for schema in self.newest_schemas(source)
            if schema.schema and schema.schema.foreign_keys
        ]

    def schema_version(self, source: str, table: TableName, number: int) -> SchemaVersion:
        for known in self.books.versions.get((source, table), ()):
            if known.version == number:
                return known
        raise unknown_version(table, number)

    def schema_versions(self, source: str, table: TableName) -> list[SchemaVersion]:
        found = self.books.versions.get((source, table), ())
        return sorted((one for one in found if _live(self.books, one.batch)), key=_order)

    def databases(self, source: str) -> list[DatabaseVersion]:
        return self._databases_at(source, _everything)

    def databases_at(self, source: str, *, batch: int, place: Coordinates) -> list[DatabaseVersion]:
        return self._databases_at(source, _until(batch, place))

    def _databases_at(self, source: str, wanted: _Until) -> list[DatabaseVersion]:
        known = [one for of, one in self.books.databases if of == source]
        known = [one for one in known if _live(self.books, one.batch)]
        known.sort(key=lambda one: (one.batch, one.since.file.number, one.since.offset))
        found = {one.name: one for one in known if wanted(one.batch, one.since)}
        return [one for _, one in sorted(found.items()) if one.schema is not None]

    def schema_statements(
        self, source: str, *, limit: int = 100, after: int = 0
    ) -> list[SchemaStatement]:
        found = [one for of, one in self.books.statements.values() if of == source]
        return [one for one in found if one.id > after and _live(self.books, one.batch)][:limit]

    def statement(self, source: str, number: int) -> SchemaStatement:
        of, found = self.books.statements.get(number, ("", None))
        if found is None or of != source:
            raise unknown_statement(number)
        return found


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
        if told.outcome not in _OUTCOMES:
            raise refusal("schema_statements_outcome_known")
        number = len(books.statements) + 1
        numbers.append(number)
        books.statements[number] = (batch.source, replace(told, id=number, batch=batch.id))
    for database in history.databases:
        named = _number(numbers, database.statement, "database")
        stored = replace(database, statement=named, batch=batch.id)
        books.databases.append((batch.source, stored))
    for version in history.versions:
        _require_told(version)
        named = _number(numbers, version.statement, "table")
        _record_version(books, batch.source, replace(version, statement=named, batch=batch.id))


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


def _order(one: SchemaVersion) -> tuple[int, int, int, int]:
    return one.batch, one.since.file.number, one.since.offset, one.version


def _live(books: MemoryBooks, batch: int) -> bool:
    return books.batches[batch].state is not BatchState.ABANDONED
