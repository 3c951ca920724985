"""Proves the history of structures in two ways: the recorded DDL statements are applied
again, and the newest versions are compared with the server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from time import perf_counter

from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.ports.ledger import Ledger, Structures
from lockstep.pipeline.ports.source import Baseline
from lockstep.pipeline.run.begin import RunStart, start_to_continue
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.initial_schemas import structures_at, undisturbed_baseline
from lockstep.pipeline.run.dump.logged_statements import (
    dialect_of,
    recorded_statements,
    with_existing_view,
)
from lockstep.pipeline.schema.compare import disagreements
from lockstep.pipeline.schema.history import (
    Knowledge,
    SchemaStatement,
    SchemaVersion,
    VersionOrigin,
)
from lockstep.pipeline.schema.history_check import Disagreement, RecordedBatch, follow_again
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.values.errors import NothingMatches
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class SchemaVerification:
    """The outcome of both proofs.

    - `at`: the place at which tables were compared with the server.
    - `history_disagreements`: versions that differ from what the recorded statements
      yield when they are applied again.
    - `server_disagreements`: tables whose structures differ from the server's at that
      place.
    - `unknown_versions`: versions whose structure the history does not have.
    - `unseen_tables`: tables that are not captured and that the server does not show
      this account.
    """

    at: Coordinates
    statement_count: int
    version_count: int
    history_disagreements: tuple[Disagreement, ...]
    compared_count: int
    server_disagreements: tuple[Disagreement, ...]
    unknown_versions: tuple[SchemaVersion, ...]
    unseen_tables: tuple[TableName, ...]
    seconds: float

    @property
    def equal(self) -> bool:
        return not self.history_disagreements and not self.server_disagreements


def verify_schema(ports: RunPorts) -> SchemaVerification:
    """Carry out both proofs; nothing is written.

    Raise `NothingMatches` before the first capture, and `SourceMoving` if structures
    change faster than they can be read. Raise the errors that would refuse the next
    run, if the server's log may not be the one that was read.
    """
    timer_start = perf_counter()
    ledger, source = ports.ledger, ports.source.name
    cursor = ledger.cursors(source).captured
    if cursor is None or not ledger.has_history(source):
        raise NothingMatches(
            f"{source} has no history of structures yet", hint=f"`lockstep run --source {source}`"
        )
    run_start = start_to_continue(ports, cursor)
    batches = list(recorded_batches(ledger, source))
    name_case = dialect_of(run_start.facts).lower_case_table_names
    history_disagreements = tuple(follow_again(batches, lower_case_table_names=name_case))
    baseline, structures = _server_and_history(ports, run_start)
    server_tables = {table.name for table in baseline.tables}
    history_tables = {version.table for version in structures.history.versions}
    versions = {
        name: structures.version(name)
        for name in sorted(server_tables | history_tables | ledger.last_versions(source).keys())
    }
    unknown_versions = [
        version
        for version in versions.values()
        if version is not None and version.knowledge is Knowledge.UNKNOWN
    ]
    missing_tables = _tables_not_shown(server_tables, versions)
    unseen_tables = [name for name in missing_tables if not ports.source.patterns.matches(name)]
    compared_tables = server_tables.union(
        missing_tables, (version.table for version in unknown_versions)
    ).difference(unseen_tables)
    return SchemaVerification(
        at=baseline.high,
        statement_count=sum(len(batch.statements) for batch in batches),
        version_count=sum(len(batch.versions) for batch in batches),
        history_disagreements=history_disagreements,
        compared_count=len(compared_tables),
        server_disagreements=tuple(_server_disagreements(ports, baseline, versions)),
        unknown_versions=tuple(unknown_versions),
        unseen_tables=tuple(unseen_tables),
        seconds=perf_counter() - timer_start,
    )


# -- the recorded history --------------------------------------------------------------


def recorded_batches(ledger: Ledger, source: str) -> Iterator[RecordedBatch]:
    """Yield what each batch recorded, in the order of capture, without abandoned
    batches."""
    statements: dict[int, list[SchemaStatement]] = defaultdict(list)
    for statement in recorded_statements(ledger, source):
        statements[statement.batch].append(statement)
    versions: dict[int, list[SchemaVersion]] = defaultdict(list)
    for table in ledger.last_versions(source):
        for version in ledger.schema_versions(source, table):
            versions[version.batch].append(version)
    batches = {
        batch.id: batch
        for batch in ledger.batches(source, limit=None)
        if batch.state is not BatchState.ABANDONED and batch.end is not None
    }
    for batch_id in sorted({*statements, *versions}):
        batch = batches[batch_id]
        sorted_versions = sorted(
            versions[batch_id], key=lambda version: (version.since, version.version)
        )
        yield _recorded_batch(
            ledger, batch, statements[batch_id], sorted_versions, batches.values()
        )


def _recorded_batch(
    ledger: Structures,
    batch: Batch,
    statements: Iterable[SchemaStatement],
    versions: list[SchemaVersion],
    batches: Iterable[Batch],
) -> RecordedBatch:
    """Return what `batch` recorded: these statements and versions. If it does not
    continue another batch, add the databases at its start, so that its statements can
    be applied without earlier batches. `batches`: all batches."""
    recorded = RecordedBatch(batch.id, tuple(statements), tuple(versions))
    if batch.continued_batch is not None or (batch.catches_up and not recorded.statements):
        return recorded
    start = batch.start.at
    origins = {
        version.origin
        for version in versions
        if version.since == start and version.statement_number is None
    }
    newest_batch = batch.id
    if VersionOrigin.CARRIED in origins:
        earlier = [other for other in batches if other.id < batch.id and _precedes(other, batch)]
        # If no batch that is left reaches `start`, the last earlier records are valid.
        covering = [other for other in earlier if other.end is not None and other.end.at >= start]
        newest_batch = max((other.id for other in covering or earlier), default=newest_batch)
    databases = ledger.databases_at(batch.source, batch=newest_batch, place=start)
    # The baseline of the whole server has databases; that of a re-read table has none.
    is_baseline = any(
        database.batch == batch.id and database.since == start for database in databases
    )
    return replace(recorded, databases=tuple(databases), has_all_tables=is_baseline)


def _precedes(earlier: Batch, batch: Batch) -> bool:
    """Return whether `earlier` begins at or before the start of `batch`, in the same
    server's log."""
    at, end = batch.start.at, earlier.end
    if end is None or earlier.start.server_uuid != batch.start.server_uuid:
        return False
    if not at.file.base == earlier.start.at.file.base == end.at.file.base:
        return False
    return earlier.start.at <= at


# -- the server ------------------------------------------------------------------------


def _server_and_history(ports: RunPorts, run_start: RunStart) -> tuple[Baseline, SchemaTracker]:
    """Return the server's structures, and the newest versions of the history brought to
    the same place."""
    structures = structures_at(ports, run_start)
    baseline, between = undisturbed_baseline(ports, run_start)
    for statement in between:
        structures.follow(with_existing_view(statement, structures.server_schema, ports.server))
    return baseline, structures


def _server_disagreements(
    ports: RunPorts, baseline: Baseline, versions: dict[TableName, SchemaVersion | None]
) -> Iterator[Disagreement]:
    """Yield a disagreement for each table whose newest version is not the server's
    structure."""
    schemas = {schema.name: schema for schema in baseline.tables}
    for name, schema in sorted(schemas.items()):
        version = versions[name]
        sentences = _disagreement_sentences(version, schema)
        if sentences:
            number = None if version is None else version.version
            yield Disagreement(baseline.high, sentences, name, number)
    for name in _tables_not_shown(schemas.keys(), versions):
        version = versions[name]
        if version is not None and ports.source.patterns.matches(name):
            reason = baseline.unread_tables.get(name, "the server does not show it")
            sentence = f"it is in the history, and {reason}"
            yield Disagreement(baseline.high, (sentence,), name, version.version)


def _disagreement_sentences(version: SchemaVersion | None, schema: TableSchema) -> tuple[str, ...]:
    if version is None:
        return ("the server has it, and the history does not",)
    match version.knowledge:
        case Knowledge.DROPPED:
            return ("the server has it, and the history says that it was dropped",)
        case Knowledge.UNKNOWN:
            return ()
    assert version.schema is not None, "a known version has a schema"
    return tuple(disagreements(version.schema, schema))


def _tables_not_shown(
    server_tables: Iterable[TableName], versions: dict[TableName, SchemaVersion | None]
) -> list[TableName]:
    """Return the tables that the history has and the server does not show."""
    server_tables = frozenset(server_tables)
    return [
        name
        for name, version in versions.items()
        if name not in server_tables
        and version is not None
        and version.knowledge is Knowledge.KNOWN
    ]
