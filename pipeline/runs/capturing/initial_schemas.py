"""The structures that a reading begins with.

| the start | the structures |
|---|---|
| goes on behind the last batch, here or on another server | the newest versions |
| a place that some batch read, in the same log | what held there, recorded once more |
| any other, and the first | the server's, now, as far as no statement lies between |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from pipeline.batch import Batch, Cursor
from pipeline.changes.generations import next_generation
from pipeline.decisions import Continuity
from pipeline.ports.ledger import Ledger
from pipeline.ports.source import ServerFacts
from pipeline.position import Coordinates
from pipeline.runs.begin import RunStart, read_witness_of
from pipeline.runs.capturing.baseline_schemas import structures_of_server
from pipeline.runs.capturing.known_structures import Given, Newest
from pipeline.runs.capturing.logged_statements import facts_of_server
from pipeline.runs.context import Workplace
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
        return structures_of_server(work, run_start, folding)
    if _goes_on(run_start):
        tracker = _tracker(Newest(ledger, source), folding)
        _forget_places(tracker, ledger, source, run_start)
        return tracker
    covering = _covering(work, run_start)
    if covering is None or run_start.leave_out:
        # What is left out is not followed either: only the server tells what came of it.
        return structures_of_server(work, run_start, folding)
    return _from_history(ledger, source, covering, run_start.start.at, folding)


def _forget_places(
    tracker: SchemaTracker, ledger: Ledger, source: str, run_start: RunStart
) -> None:
    """On another server than before, hidden columns may stand elsewhere: a dump that was loaded
    there has not told their places."""
    cursor = ledger.captured_cursor(source)
    if cursor is None or cursor.position.server_uuid == run_start.start.server_uuid:
        return
    for version in ledger.schemas_at(source):
        if version.schema is not None and version.schema.hidden:
            placeless = replace(version.schema, hidden=())
            tracker.carry(version.table, replace(version, schema=placeless), run_start.start.at)


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
    then = {
        version.table: version for version in ledger.schemas_at(source, batch=batch.id, place=at)
    }
    databases = tuple(ledger.databases_at(source, batch=batch.id, place=at))
    return Given(ledger, source, then, databases, ledger.last_versions(source))


def _goes_on(run_start: RunStart) -> bool:
    decision = run_start.decision
    return decision.predecessor is not None or decision.continuity is Continuity.CONTIGUOUS


def _covering(work: Workplace, run_start: RunStart) -> Batch | None:
    """The batch that read the start's place. A log that was reset has the same places again,
    but not the same witness."""
    start = run_start.start
    batch = work.ledger.batch_covering(work.source.name, start.server_uuid, start.at)
    if batch is None or batch.end is None or batch.witness is None:
        return None
    cursor = Cursor(batch.id, batch.end, batch.witness)
    same = read_witness_of(work, cursor, run_start.facts) is WitnessReading.SAME
    return batch if same else None


def _from_history(
    ledger: Ledger, source: str, batch: Batch, at: Coordinates, folding: int
) -> SchemaTracker:
    """What held there; what is another now is recorded once more."""
    then = {
        version.table: version for version in ledger.schemas_at(source, batch=batch.id, place=at)
    }
    now = {schema.table: schema for schema in ledger.schemas_at(source)}
    databases = tuple(ledger.databases_at(source, batch=batch.id, place=at))
    known = Given(ledger, source, then, databases, ledger.last_versions(source))
    tracker = _tracker(known, folding)
    for table in sorted({*then, *now}):
        before, after = then.get(table), now.get(table)
        if before is not None and after is not None and before.version == after.version:
            continue
        tracker.carry(table, before, at)
    if databases != tuple(ledger.databases_at(source)):
        tracker.begin_with(
            (), (replace(database, since=at, statement=None) for database in databases)
        )
    return tracker
