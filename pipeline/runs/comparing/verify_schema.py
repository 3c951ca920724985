"""The history of structures, proven: folded again, and held against the server."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from time import perf_counter
from typing import Final

from pipeline.batch import Batch, BatchState
from pipeline.errors import NothingMatches
from pipeline.ports.ledger import Ledger
from pipeline.ports.source import Baseline
from pipeline.position import Coordinates
from pipeline.runs.begin import RunStart, place_to_go_on
from pipeline.runs.capturing.initial_schemas import quiet_baseline, structures_at
from pipeline.runs.capturing.logged_statements import (
    facts_of_server,
    recorded_statements,
    with_views,
)
from pipeline.runs.context import Workplace
from pipeline.schema.compare import disagreements
from pipeline.schema.history import Knowledge, SchemaStatement, SchemaVersion, VersionOrigin
from pipeline.schema.model import TableSchema
from pipeline.schema.refold import Disagreement, RecordedBatch, refold
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName

_ALL: Final = 1_000_000_000


@dataclass(frozen=True, slots=True)
class SchemaVerification:
    """`statements` were folded again, which made `versions`; `folded`: what came out
    otherwise. `at`: the place of the comparison; `compared` tables, of which `differing`
    are otherwise on the server ("what: history, server"); `unknown`: those whose structure
    the history says it does not know; `unseen`: not captured, and not shown to the account.
    """

    at: Coordinates
    statements: int
    versions: int
    folded: tuple[Disagreement, ...]
    compared: int
    differing: tuple[Disagreement, ...]
    unknown: tuple[SchemaVersion, ...]
    unseen: tuple[TableName, ...]
    seconds: float

    @property
    def equal(self) -> bool:
        return not self.folded and not self.differing


def verify_schema(work: Workplace) -> SchemaVerification:
    """Both proofs; writes nothing.

    `NothingMatches` before the first capture, `SourceMoving` where structures change faster
    than they can be read; and what would refuse the next run: then the server's log is not
    the one that was read.
    """
    clock = perf_counter()
    ledger, source = work.ledger, work.source.name
    cursor = ledger.cursors(source).captured
    if cursor is None or not ledger.has_history(source):
        raise NothingMatches(
            f"{source} has no history of structures yet", hint=f"`lockstep run --source {source}`"
        )
    run_start = place_to_go_on(work, cursor)
    batches = list(recorded(ledger, source))
    folding = facts_of_server(run_start.facts).lower_case_table_names
    folded = tuple(refold(batches, lower_case_table_names=folding))
    baseline, structures = _now(work, run_start)
    names = sorted({*(table.name for table in baseline.tables), *ledger.last_versions(source)})
    names = sorted({*names, *(version.table for version in structures.history.versions)})
    versions = {name: structures.version(name) for name in names}
    differing = list(_differing(work, baseline, versions))
    known = [version for version in versions.values() if version is not None]
    seen = {table.name for table in baseline.tables}
    unseen = [n for n in _missing(seen, versions) if not work.source.patterns.matches(n)]
    return SchemaVerification(
        at=baseline.high,
        statements=sum(len(batch.statements) for batch in batches),
        versions=sum(len(batch.versions) for batch in batches),
        folded=folded,
        compared=len(versions) - len(unseen),
        differing=tuple(differing),
        unknown=tuple(version for version in known if version.knowledge is Knowledge.UNKNOWN),
        unseen=tuple(unseen),
        seconds=perf_counter() - clock,
    )


# -- what is recorded -----------------------------------------------------------------------


def recorded(ledger: Ledger, source: str) -> Iterator[RecordedBatch]:
    """What each live batch recorded, in the order they were read."""
    statements: dict[int, list[SchemaStatement]] = defaultdict(list)
    for statement in recorded_statements(ledger, source):
        statements[statement.batch].append(statement)
    versions: dict[int, list[SchemaVersion]] = defaultdict(list)
    for table in ledger.last_versions(source):
        for version in ledger.schema_versions(source, table):
            versions[version.batch].append(version)
    batches = {
        batch.id: batch
        for batch in ledger.batches(source, limit=_ALL)
        if batch.state is not BatchState.ABANDONED and batch.end is not None
    }
    for number in sorted({*statements, *versions}):
        batch = batches[number]
        of_batch = sorted(versions[number], key=lambda one: (one.since, one.version))
        yield _recorded(ledger, batch, statements[number], of_batch, batches.values())


def _recorded(
    ledger: Ledger,
    batch: Batch,
    statements: Iterable[SchemaStatement],
    versions: list[SchemaVersion],
    batches: Iterable[Batch],
) -> RecordedBatch:
    told = tuple(statements), tuple(versions)
    if batch.predecessor is not None or (batch.catches_up and not told[0]):
        return RecordedBatch(batch.id, *told)
    start = batch.start.at
    origins = {
        version.origin
        for version in versions
        if version.since == start and version.statement is None
    }
    then = batch.id
    if VersionOrigin.CARRIED in origins:
        earlier = [one for one in batches if one.id < batch.id and _begins_before(one, batch)]
        # Where the one that read the place is gone, those before it recorded all that held there.
        covering = [one for one in earlier if one.end is not None and one.end.at >= start]
        then = max((one.id for one in covering or earlier), default=then)
    databases = ledger.databases_at(batch.source, batch=then, place=start)
    # A table that was read anew has a baseline of its own; a whole one has databases.
    whole = any(database.batch == batch.id and database.since == start for database in databases)
    return RecordedBatch(batch.id, *told, tuple(databases), whole=whole)


def _begins_before(earlier: Batch, batch: Batch) -> bool:
    """Whether it began, in the same server's log, where the batch begins or before."""
    at, end = batch.start.at, earlier.end
    if end is None or earlier.start.server_uuid != batch.start.server_uuid:
        return False
    if not at.file.base == earlier.start.at.file.base == end.at.file.base:
        return False
    return earlier.start.at <= at


# -- the server --------------------------------------------------------------------------


def _now(work: Workplace, run_start: RunStart) -> tuple[Baseline, SchemaTracker]:
    """What the server has, and the newest versions followed to the same place."""
    structures = structures_at(work, run_start)
    baseline, between = quiet_baseline(work, run_start)
    for statement in between:
        structures.take(with_views(statement, structures.whole, work.server))
    return baseline, structures


def _differing(
    work: Workplace, baseline: Baseline, versions: dict[TableName, SchemaVersion | None]
) -> Iterator[Disagreement]:
    schemas = {schema.name: schema for schema in baseline.tables}
    for name, table in sorted(schemas.items()):
        version = versions[name]
        sentences = _sentences(version, table)
        if sentences:
            number = None if version is None else version.version
            yield Disagreement(baseline.high, sentences, name, number)
    for name in _missing(schemas.keys(), versions):
        version = versions[name]
        if version is not None and work.source.patterns.matches(name):
            told = baseline.unread.get(name, "the server does not show it")
            told = f"it is in the history, and {told}"
            yield Disagreement(baseline.high, (told,), name, version.version)


def _sentences(version: SchemaVersion | None, table: TableSchema) -> tuple[str, ...]:
    if version is None:
        return ("the server has it, and the history has nothing of it",)
    match version.knowledge:
        case Knowledge.DROPPED:
            return ("the server has it, and the history says that it was dropped",)
        case Knowledge.UNKNOWN:
            return ()
    assert version.schema is not None, "a known version has a schema"
    return tuple(disagreements(version.schema, table))


def _missing(
    seen: Iterable[TableName], versions: dict[TableName, SchemaVersion | None]
) -> list[TableName]:
    """Tables that the history has and the server does not show."""
    there = frozenset(seen)
    return [
        name
        for name, version in versions.items()
        if name not in there and version is not None and version.knowledge is Knowledge.KNOWN
    ]
