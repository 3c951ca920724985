"""A check of the history: each recorded statement is followed again, and the result is
compared with the recorded versions.

Versions that no statement made (read from the server, from a TABLE_MAP or from a
person, or carried from an older position) are taken as recorded. Each table is reported
once: whatever follows from a wrong version is wrong too.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Final

from lockstep.pipeline.schema.compare import differences, with_unlogged_properties
from lockstep.pipeline.schema.context import ServerDialect, StatementContext
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.history import (
    REDACTED_KEY,
    DatabaseVersion,
    Knowledge,
    SchemaStatement,
    SchemaVersion,
)
from lockstep.pipeline.schema.model import schema_fingerprint
from lockstep.pipeline.schema.tracker import SchemaTracker, StructuresInMemory
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

_UNKNOWN_TIME: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class RecordedBatch:
    """The statements and versions of a batch (the part of the log that one run
    captured). `databases`: the databases that existed at its start; None if it
    continued the batch before. `has_all_tables`: the batch began with exactly the
    tables that the server had."""

    batch_id: int
    statements: tuple[SchemaStatement, ...]
    versions: tuple[SchemaVersion, ...]
    databases: tuple[DatabaseVersion, ...] | None = None
    has_all_tables: bool = False


@dataclass(frozen=True, slots=True)
class Disagreement:
    """A recorded version or statement that differs from the result of following it
    again. `table`: None if the outcome of the statement at `position` differs.
    `version`: the number of the recorded version; None if none is recorded."""

    json_keys: ClassVar = ("table", "version", "position as place", "differences")

    position: Coordinates
    differences: tuple[str, ...]
    table: TableName | None = None
    version: int | None = None


def follow_again(
    batches: Iterable[RecordedBatch], *, lower_case_table_names: int
) -> Iterator[Disagreement]:
    """Follow the recorded statements again, and yield each disagreement, in the order
    of the log. `batches`: in the order in which they were captured, without abandoned
    ones."""
    versions = defaultdict[TableName, list[SchemaVersion]](list)
    reported: set[TableName] = set()
    structures = StructuresInMemory(versions_of=versions.__getitem__)
    for batch in batches:
        if batch.databases is not None:
            structures.database_versions = batch.databases
        if batch.has_all_tables:
            structures.tables.clear()
        for disagreement in _disagreements_of_batch(batch, structures, lower_case_table_names):
            if disagreement.table is None or disagreement.table not in reported:
                yield disagreement
            if disagreement.table is not None:
                reported.add(disagreement.table)
        for version in batch.versions:
            structures.tables[version.table] = version
            versions[version.table].append(version)


def _disagreements_of_batch(
    batch: RecordedBatch, structures: StructuresInMemory, lower_case_table_names: int
) -> Iterator[Disagreement]:
    """Follow a batch's statements again. Versions before its first statement are taken
    as recorded; later ones that no statement made are taken at their positions."""
    by_statement: dict[int, dict[TableName, SchemaVersion]] = {}
    without_statement: list[SchemaVersion] = []
    for version in batch.versions:
        if version.statement_number is None:
            without_statement.append(version)
        else:
            by_statement.setdefault(version.statement_number, {})[version.table] = version
    first_end = batch.statements[0].end if batch.statements else None
    for version in without_statement:
        if first_end is None or version.since < first_end:
            structures.tables[version.table] = version
    if first_end is None:
        return
    without_statement = [version for version in without_statement if version.since >= first_end]
    tracker = SchemaTracker(structures, lower_case_table_names=lower_case_table_names)
    for statement in batch.statements:
        versions = by_statement.get(statement.id, {})
        while without_statement and without_statement[0].since < statement.end:
            _take_as_recorded(tracker, without_statement.pop(0))
        if statement.context.get(REDACTED_KEY):
            # The values were removed from its text, so it cannot be followed.
            for version in versions.values():
                tracker.continue_with(version)
            continue
        yield from _disagreements_of_statement(tracker, statement, versions)
    newest = (*structures.database_versions, *tracker.history.databases)
    databases = {database.name: database for database in newest}
    structures.database_versions = tuple(databases.values())


def _take_as_recorded(tracker: SchemaTracker, version: SchemaVersion) -> None:
    if version.schema is None:
        tracker.continue_with(version)
    else:
        tracker.record_server_schema(version.schema, version.since)


def _disagreements_of_statement(
    tracker: SchemaTracker, statement: SchemaStatement, recorded: Mapping[TableName, SchemaVersion]
) -> Iterator[Disagreement]:
    """Follow one statement again. `recorded`: the versions that are recorded for it."""
    unknown_before = {table for table in recorded if _is_unknown(tracker.version(table))}
    before = tracker.history
    tracker.follow(logged_statement(statement))
    after = tracker.history
    recorded_again = after.statements[len(before.statements) :]
    outcome = recorded_again[0].outcome if recorded_again else "of no effect"
    if outcome != statement.outcome:
        outcomes = f'"{statement.outcome}" as recorded, "{outcome}" when followed again'
        yield Disagreement(statement.end, (f"outcome of the statement: {outcomes}",))
    followed = {version.table: version for version in after.versions[len(before.versions) :]}
    for table in sorted({*followed, *recorded}):
        followed_version, recorded_version = followed.get(table), recorded.get(table)
        if recorded_version is not None:
            is_gap = _is_unknown(followed_version) or (
                followed_version is None and table in unknown_before
            )
            if is_gap and recorded_version.knowledge is Knowledge.KNOWN:
                # The run read it from the server at this position, which cannot be
                # repeated.
                _take_as_recorded(tracker, recorded_version)
                continue
            if _is_unknown(recorded_version) and not _is_unknown(followed_version):
                # The settings of that time could not be applied to the structure. A
                # statement that could not be followed is reported above, by its
                # outcome.
                tracker.continue_with(recorded_version)
                continue
        sentences = tuple(_version_differences(recorded_version, followed_version))
        if sentences:
            number = None if recorded_version is None else recorded_version.version
            yield Disagreement(statement.end, sentences, table, number)


def _is_unknown(version: SchemaVersion | None) -> bool:
    return version is not None and version.knowledge is Knowledge.UNKNOWN


def _version_differences(
    recorded: SchemaVersion | None, followed: SchemaVersion | None
) -> Iterator[str]:
    if recorded is None:
        yield "the statement changes it, but no version is recorded"
    elif followed is None:
        yield "a version is recorded, but the statement does not change it"
    elif recorded.schema is None or followed.schema is None:
        if recorded.knowledge is not followed.knowledge:
            knowledge = followed.knowledge
            yield f"it is recorded as {recorded.knowledge}; followed again, it is {knowledge}"
    else:
        schema = with_unlogged_properties(followed.schema, recorded.schema)
        if schema_fingerprint(recorded.schema) != schema_fingerprint(schema):
            sentences = differences(recorded.schema, schema)
            yield from sentences or (
                "the fingerprints differ, but all compared properties are equal",
            )
        if recorded.columns_from != followed.columns_from:
            origins, new_origins = map(_columns_from_text, (recorded, followed))
            yield f"columns come from: {origins} as recorded, {new_origins} when followed again"


def _columns_from_text(version: SchemaVersion) -> str:
    if version.columns_from is None:
        return "nowhere"
    return "(" + " ".join(name or "new" for name in version.columns_from) + ")"


def logged_statement(statement: SchemaStatement) -> LoggedStatement:
    """Return a recorded statement as `SchemaTracker.follow` takes it. `executed_at` is
    its commit time, since no structure depends on it."""
    moment = statement.committed_at or _UNKNOWN_TIME
    return LoggedStatement(
        text=statement.text,
        context=read_stored_context(statement.context),
        begin=statement.begin,
        end=statement.end,
        gtid=statement.gtid,
        committed_at=moment,
        executed_at=moment,
    )


def read_stored_context(stored: Mapping[str, Any]) -> StatementContext:
    """Return the `StatementContext` in a `SchemaStatement.context`; unknown keys are
    ignored."""
    facts = ServerDialect(**_fields_of(ServerDialect, stored.get("facts", {})))
    return StatementContext(**{**_fields_of(StatementContext, stored), "facts": facts})


def _fields_of(dataclass_type: type[Any], stored: Mapping[str, Any]) -> dict[str, Any]:
    names = {field.name for field in fields(dataclass_type)}
    return {name: value for name, value in stored.items() if name in names}
