"""The structures that a reading begins with.

Belongs here: whether the history knows them, or the server must be asked, and what a
server's answer says about an earlier place. Does not: following statements
(`pipeline.schema.tracker`).

| the start | the structures |
|---|---|
| goes on behind the last batch, here or on another server | the newest versions |
| a place that some batch read, in the same log | what held there, recorded once more |
| any other, and the first | the server's, now, as far as no statement lies between |
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

from pipeline.batch import Batch, Cursor
from pipeline.binlog.transactions.buffer import TransactionBuffer
from pipeline.binlog.transactions.limits import Limits
from pipeline.changes.generations import next_generation
from pipeline.decisions import Continuity
from pipeline.errors import LogStops, SourceMoving
from pipeline.gtid import GtidSet
from pipeline.ports.ledger import Ledger
from pipeline.ports.source import Baseline, ServerFacts
from pipeline.position import Coordinates
from pipeline.retries import STRUCTURES
from pipeline.runs.agreement.obstacles import with_way_on
from pipeline.runs.begin import RunStart, read_witness_of
from pipeline.runs.capturing.logged_statements import facts_of, logged_statements
from pipeline.runs.context import Workplace
from pipeline.schema import context
from pipeline.schema.history import DatabaseVersion, Knowledge, Origin, SchemaVersion
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from pipeline.schema.statements.read import read_change
from pipeline.schema.statements.touched import Touched, touched_by
from pipeline.schema.tracker import Later, SchemaTracker
from pipeline.schema.versions import KnownStructures, Recorded
from pipeline.start.question import WitnessReading
from pipeline.table import TableName


def structures_at(work: Workplace, run_start: RunStart) -> SchemaTracker:
    """A tracker that knows what holds at the start. `SourceMoving` where structures change
    faster than they can be read."""
    ledger, source = work.ledger, work.source.name
    folding = facts_of_server(run_start.facts).lower_case_table_names
    if not ledger.has_history(source):
        return _from_server(work, run_start, folding)
    if _goes_on(run_start):
        return SchemaTracker(
            _Newest(ledger, source), lower_case_table_names=folding, generation=next_generation
        )
    covering = _covering(work, run_start)
    if covering is None or run_start.leave_out:
        # What is left out is not followed either: only the server tells what came of it.
        return _from_server(work, run_start, folding)
    return _from_history(ledger, source, covering, run_start.start.at, folding)


def _tracker(
    known: KnownStructures, folding: int, later: Mapping[TableName, Later] | None = None
) -> SchemaTracker:
    return SchemaTracker(
        known, lower_case_table_names=folding, generation=next_generation, later=later
    )


def structures_behind(
    known: KnownStructures, facts: ServerFacts, recorded: Recorded
) -> SchemaTracker:
    """A tracker that begins with what held at some place of before."""
    return SchemaTracker(
        known,
        lower_case_table_names=facts_of_server(facts).lower_case_table_names,
        generation=next_generation,
        recorded=recorded,
    )


def known_at(work: Workplace, batch: Batch, at: Coordinates) -> KnownStructures:
    """What held at a place that the batch began or ended at."""
    ledger, source = work.ledger, work.source.name
    then = {one.table: one for one in ledger.schemas_at(source, batch=batch.id, place=at)}
    databases = tuple(ledger.databases_at(source, batch=batch.id, place=at))
    return _Given(ledger, source, then, databases, ledger.last_versions(source))


def facts_of_server(facts: ServerFacts) -> context.ServerDialect:
    """What the context of a statement needs of the server."""
    return facts_of(facts.version, facts.flavour, facts.settings)


def _goes_on(run_start: RunStart) -> bool:
    decision = run_start.decision
    return decision.predecessor is not None or decision.continuity is Continuity.CONTIGUOUS


def _covering(work: Workplace, run_start: RunStart) -> Batch | None:
    """The batch that read the start's place. A log that was reset has the same places again,
    but not the same witness."""
    start = run_start.start
    found = work.ledger.batch_covering(work.source.name, start.server_uuid, start.at)
    if found is None or found.end is None or found.witness is None:
        return None
    cursor = Cursor(found.id, found.end, found.witness)
    same = read_witness_of(work, cursor, run_start.facts) is WitnessReading.SAME
    return found if same else None


# -- from the history ---------------------------------------------------------------------


class _Newest:
    """`KnownStructures`: where a chain goes on."""

    def __init__(self, ledger: Ledger, source: str) -> None:
        self._ledger, self._source = ledger, source

    def one(self, table: TableName) -> SchemaVersion | None:
        return self._ledger.newest_schema(self._source, table)

    def all(self) -> Sequence[SchemaVersion]:
        return self._ledger.newest_schemas(self._source)

    def referring(self) -> Sequence[SchemaVersion]:
        return self._ledger.referring_schemas(self._source)

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        return self._ledger.schema_versions(self._source, table)

    def databases(self) -> Sequence[DatabaseVersion]:
        return self._ledger.databases(self._source)

    def last_number(self, table: TableName) -> int:
        return self._numbers.get(table, 0)

    @cached_property
    def _numbers(self) -> dict[TableName, int]:
        return self._ledger.last_versions(self._source)


@dataclass(frozen=True, slots=True)
class _Given:
    """`KnownStructures`: what holds at hand, the rest in the ledger."""

    ledger: Ledger
    source: str
    holds: dict[TableName, SchemaVersion]
    schemas: tuple[DatabaseVersion, ...]
    numbers: dict[TableName, int] = field(default_factory=dict)

    def one(self, table: TableName) -> SchemaVersion | None:
        return self.holds.get(table)

    def all(self) -> Sequence[SchemaVersion]:
        return [hold for hold in self.holds.values() if hold.knowledge is not Knowledge.DROPPED]

    def referring(self) -> Sequence[SchemaVersion]:
        return [one for one in self.all() if one.schema is not None and one.schema.foreign_keys]

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        return self.ledger.schema_versions(self.source, table)

    def databases(self) -> Sequence[DatabaseVersion]:
        return self.schemas

    def last_number(self, table: TableName) -> int:
        return self.numbers.get(table, 0)


def _from_history(
    ledger: Ledger, source: str, batch: Batch, at: Coordinates, folding: int
) -> SchemaTracker:
    """What held there; what is another now is recorded once more."""
    then = {one.table: one for one in ledger.schemas_at(source, batch=batch.id, place=at)}
    now = {schema.table: schema for schema in ledger.newest_schemas(source)}
    databases = tuple(ledger.databases_at(source, batch=batch.id, place=at))
    known = _Given(ledger, source, then, databases, ledger.last_versions(source))
    tracker = _tracker(known, folding)
    for table in sorted({*then, *now}):
        before, after = then.get(table), now.get(table)
        if before is not None and after is not None and before.version == after.version:
            continue
        tracker.carry(table, before, at)
    if databases != tuple(ledger.databases(source)):
        tracker.begin_with(
            (), (replace(database, since=at, statement=None) for database in databases)
        )
    return tracker


# -- from the server ----------------------------------------------------------------------


def _from_server(work: Workplace, run_start: RunStart, folding: int) -> SchemaTracker:
    baseline, between = quiet_baseline(work, run_start)
    return _seeded(work, baseline, between, run_start.start.at, folding)


def quiet_baseline(work: Workplace, run_start: RunStart) -> tuple[Baseline, list[LoggedStatement]]:
    """The server's structures, and the statements between the start and them, of which none came
    while they were read; `SourceMoving`."""
    for _ in STRUCTURES.tries():
        baseline = work.server.baseline()
        between = list(_statements_between(work, run_start, run_start.start.at, baseline.high))
        if not any(_moves(one, baseline) for one in between):
            return baseline, between
    raise SourceMoving(
        "the structures of the source's tables kept changing while they were read",
        hint="run again when the schema changes are over",
    )


def _moves(logged: LoggedStatement, baseline: Baseline) -> bool:
    """Whether a statement may have come while the structures were read."""
    if logged.end <= baseline.low:
        return False
    if logged.gtid and GtidSet.parse(baseline.low_set).contains(GtidSet.parse(logged.gtid)):
        return False
    return not isinstance(read_change(logged.text, logged.context), Irrelevant)


def _statements_between(
    work: Workplace, run_start: RunStart, start: Coordinates, end: Coordinates
) -> Iterator[LoggedStatement]:
    """The statements between two places of the log that may change a structure."""
    if start >= end:
        return
    facts = facts_of_server(run_start.facts)
    dump = work.server.dump(start)
    buffer = TransactionBuffer(
        start,
        begins=dump.begins,
        wants=lambda _: False,
        spool=work.spool,
        limits=Limits(end),
        leave_out=run_start.leave_out,
    )
    buffer.prepared.rowless = True
    try:
        for received in dump:
            buffer.put(received)
            while (run := buffer.get()) is not None:
                yield from logged_statements(run, facts)
                buffer.ack()
            if buffer.stopped or buffer.ended:
                break
    except LogStops as error:
        raise with_way_on(error, work.server, end) from error
    finally:
        dump.close()


def _seeded(
    work: Workplace,
    baseline: Baseline,
    between: Sequence[LoggedStatement],
    start: Coordinates,
    folding: int,
) -> SchemaTracker:
    """What the server has, and for tables that statements behind the start changed, from the
    last of those on."""
    touched = touched_between(between, [table.name for table in baseline.tables])
    versions: dict[TableName, SchemaVersion] = {}
    later: dict[TableName, Later] = {}
    for schema in baseline.tables:
        found = touched.pop(schema.name, None)
        if found is None:
            versions[schema.name] = SchemaVersion(
                schema.name, 1, start, Knowledge.KNOWN, Origin.BASELINE, schema
            )
            continue
        later[schema.name] = Later(found.last, schema)
        if not found.created:
            versions[schema.name] = _unknown(schema.name, start, found.last)
    for name, found in touched.items():
        if not found.created:
            versions[name] = _unknown(name, start, found.last)
    databases = tuple(
        DatabaseVersion(database.name, start, database) for database in baseline.databases
    )
    numbers = work.ledger.last_versions(work.source.name)
    source = work.source.name
    known = _Given(work.ledger, source, versions, databases, numbers)
    tracker = SchemaTracker(
        known, lower_case_table_names=folding, generation=next_generation, later=later
    )
    tracker.begin_with(versions.values(), databases)
    for newest in work.ledger.newest_schemas(source):
        if newest.table not in versions and newest.table not in later:
            tracker.carry(newest.table, None, start)
    return tracker


def _unknown(table: TableName, start: Coordinates, until: Coordinates) -> SchemaVersion:
    why = f"statements up to {until} changed it, and nobody recorded what it was before them"
    return SchemaVersion(table, 1, start, Knowledge.UNKNOWN, Origin.BASELINE, reason=why)


def touched_between(
    between: Iterable[LoggedStatement], tables: Sequence[TableName]
) -> dict[TableName, Touched]:
    """Which tables the statements changed: where the last one ends, and whether the first
    one made it."""
    found: dict[TableName, Touched] = {}
    for logged in between:
        read = read_change(logged.text, logged.context)
        if isinstance(read, Irrelevant):
            continue
        if isinstance(read, NotUnderstood):
            names = dict.fromkeys(tables if read.may_touch is None else read.may_touch, False)
        else:
            names = touched_by(read, tables)
        for name, created in names.items():
            first = found.get(name)
            found[name] = Touched(logged.end, created if first is None else first.created)
    return found
