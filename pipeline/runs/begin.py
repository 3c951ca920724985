"""The beginning of a run: repair what the last one left, gather facts, decide the start.

Belongs here: everything before the first byte of the dump is asked for. Does not:
reading transactions (`capture`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from pipeline.batch import Batch, BatchState, Cursor, Lease
from pipeline.binlog.framing import FIRST_OFFSET
from pipeline.binlog.intake import events
from pipeline.binlog.scan import find_boundary, read_created, read_witness
from pipeline.changes.layout import application_id
from pipeline.errors import (
    NotAnEventBoundary,
    PositionPurged,
    SegmentsLost,
    StartUnreachable,
)
from pipeline.ports import ServerFacts
from pipeline.position import Coordinates, Position, Witness
from pipeline.runs.context import Workplace
from pipeline.start import Refusal, Start, WitnessReading, compare_witness, decide_start, recorded


@dataclass(frozen=True, slots=True)
class Begun:
    """A run that may read: its start, where that comes from, and the witness before it."""

    decision: Start
    decision_id: int
    start: Position
    witness: Witness | None
    facts: ServerFacts


def repair(work: Workplace, lease: Lease) -> tuple[str, ...]:
    """Settle what a dead run left: unfinished captures go, damaged ones too if nothing
    of them was used; a sentence for each."""
    notes = []
    captured = []
    for batch in work.ledger.unfinished(work.source.name):
        if batch.state is BatchState.CAPTURING:
            notes.append(_abandon(work, lease, batch, "its capture did not finish"))
        elif batch.state is BatchState.CAPTURED:
            captured.append(batch)
    damaged = next(
        ((at, why) for at, batch in enumerate(captured) if (why := _damage(work, batch))), None
    )
    if damaged is not None:
        first, why = damaged
        for batch in captured[first:]:
            _require_unused(work, batch, why)
        notes += [_abandon(work, lease, batch, why) for batch in reversed(captured[first:])]
    for note in notes:
        work.progress.note(note)
    return tuple(notes)


def _abandon(work: Workplace, lease: Lease, batch: Batch, why: str) -> str:
    files = work.segments.discard(work.source.name, batch.id)
    files += work.spool.discard(work.source.name, batch.id)
    work.ledger.abandon(lease, batch.id, why)
    return f"batch {batch.id} was abandoned: {why} ({files} files deleted)"


def _damage(work: Workplace, batch: Batch) -> str | None:
    states = work.ledger.table_states(work.source.name)
    for segment in work.ledger.segments(batch.id):
        wrong = work.segments.damaged(states[segment.table].changelog, segment.files)
        if wrong:
            return wrong[0]
    for prepared in work.ledger.open_prepared(batch.source):
        if prepared.batch == batch.id and prepared.file is not None:
            try:
                work.spool.open(batch.source, prepared.file).close()
            except SegmentsLost as error:
                return error.message
    return None


def _require_unused(work: Workplace, batch: Batch, why: str) -> None:
    """Neither merged in part nor published: both would keep what is about to go."""
    states = work.ledger.table_states(work.source.name)
    used = [str(write.intent.table) for write in work.ledger.settled(batch.source, batch.id)]
    for segment in work.ledger.segments(batch.id):
        state = states[segment.table]
        app_id = application_id(batch.source, state, "changelog")
        if (work.changelog.recorded(state.changelog, app_id) or 0) >= batch.id:
            used.append(str(segment.table))
    if used:
        raise SegmentsLost(
            f"captured files of batch {batch.id} are damaged ({why}), and {used[0]} already "
            "shows part of it",
            hint="restore the lake's folder _changes from a backup, then run again",
        )


def begin(work: Workplace, lease: Lease) -> Begun:
    """Facts → decision → ledger; the refusal is raised once it is recorded."""
    facts = work.server.facts()
    cursor = work.ledger.captured_cursor(work.source.name)
    witness = _read_witness(work, cursor, facts)
    decision = decide_start(cursor, work.source.start, facts, witness)
    entry = work.ledger.decide(lease, recorded(decision, facts, work.source.patterns))
    if isinstance(decision, Refusal):
        raise decision.error
    if cursor is not None and decision.predecessor is not None:
        return Begun(decision, entry.id, cursor.position, cursor.witness, facts)
    start, before = _proven(work, decision.at, facts)
    return Begun(decision, entry.id, start, before, facts)


def _read_witness(work: Workplace, cursor: Cursor | None, facts: ServerFacts) -> WitnessReading:
    if cursor is None or facts.server_uuid != cursor.position.server_uuid:
        return WitnessReading.NOT_READ
    at, witness = cursor.position.at, cursor.witness
    size = next((log.size for log in facts.binlogs if log.file == at.file), None)
    if size is None or at.offset > size:
        return WitnessReading.NOT_READ
    place = Coordinates(at.file, witness.offset)
    try:
        with _dump(work, Coordinates(at.file, FIRST_OFFSET)) as packets:
            created = read_created(packets)
    except PositionPurged:
        return WitnessReading.NOT_READ
    with _dump(work, place) as packets:
        try:
            found = read_witness(packets, witness.offset, created)
        except (NotAnEventBoundary, StartUnreachable):
            return WitnessReading.DIFFERENT
    return compare_witness(witness, found)


def _proven(
    work: Workplace, at: Coordinates, facts: ServerFacts
) -> tuple[Position, Witness | None]:
    """A chosen start, proven by a header scan and rewound to its transaction's beginning."""
    with _dump(work, Coordinates(at.file, FIRST_OFFSET)) as packets:
        boundary = find_boundary(packets, at)
    if boundary.rewound:
        work.progress.note(f"{at} lies inside a transaction; the run starts at {boundary.at}")
    return Position(boundary.at, boundary.gtid_set, facts.server_uuid), boundary.witness


@contextmanager
def _dump(work: Workplace, start: Coordinates) -> Iterator[Iterable[bytes]]:
    dump = work.server.dump(start)
    try:
        yield events(dump)
    finally:
        dump.close()
