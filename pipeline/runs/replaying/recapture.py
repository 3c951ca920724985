"""One batch read once more: the same range of the log, with the tables and structures of then.

What a batch was captured with is taken from the ledger as far as it tells: structures, patterns,
the tables it has rows or events of. That this is all is not assumed. The same number of changes
must come of it, in the same segments under the same numbers, the same events, and no version of a
structure that is not recorded; else nothing of it is used.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial

from pipeline.batch import Batch
from pipeline.bounds import RunBounds
from pipeline.changes.layout import scratch_path
from pipeline.errors import LockstepError, Recovery
from pipeline.gtid import GtidSet
from pipeline.ports.source import ServerFacts
from pipeline.runs.begin import RunStart, read_again_at
from pipeline.runs.capturing.basis import Basis
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.initial_schemas import tracker_of
from pipeline.runs.capturing.log_reader import LogReading
from pipeline.runs.capturing.segment_builder import Segmenter
from pipeline.runs.capturing.table_changes import RecordedBefore, Rules
from pipeline.runs.context import Workplace
from pipeline.runs.replaying.selection import SpanFacts
from pipeline.segment import Segment
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableEvent, TableEventKind, TableState


def recapture(work: Workplace, batch: Batch, facts: SpanFacts) -> tuple[Segment, ...] | str:
    """The batch's segments once more, their files in the scratch folder; or why it cannot be read
    again, so that its changelog is all there is. Writes nothing else."""
    if (why := facts.why_not(batch)) is not None:
        return why
    try:
        return _recaptured(work, batch, facts)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        return error.message


def _recaptured(work: Workplace, batch: Batch, facts: SpanFacts) -> tuple[Segment, ...] | str:
    assert batch.end is not None, "it is acknowledged"
    ledger, source = work.ledger, work.source.name
    then = _as_then(work, batch)
    recorded = ledger.segments(batch.id)
    events = ledger.table_events(source, batch.id)
    captured = {segment.table for segment in recorded} | {event.table for event in events}
    tables = CapturedTables(
        work.segments,
        source=source,
        batch=batch.id,
        base=batch.base,
        states=_states_then(work, [table for table in captured if facts.firsts[table] < batch.id]),
        updated=_says_updated(work, recorded),
        place=partial(scratch_path, source),
    )
    basis = Basis(
        then,
        _begun(work, batch, facts.server),
        RunBounds(batch.end.at, GtidSet()),
        batch.id,
        tables=tables,
        structures=tracker_of(
            facts.structures(batch),
            facts.server,
            recorded=RecordedBefore(ledger, source, batch.id),
        ),
        prepared={},
    )
    rules = Rules(work.clock, captured.__contains__, work.source.lake, lambda quarantined: None)
    segmenter = Segmenter(tables, basis.structures, rules)
    LogReading(basis, segmenter, keeps=True, warms=False).run()
    segments = tables.files.finish()
    other = _told_otherwise(batch, tables.changes, recorded, segments) or _happened_otherwise(
        events,
        tables.events,
        learnt=any(version.table in captured for version in basis.structures.history.versions),
    )
    return segments if other is None else other


def _as_then(work: Workplace, batch: Batch) -> Workplace:
    scopes = [
        scope for scope in work.ledger.capture_scopes(work.source.name) if scope.batch <= batch.id
    ]
    if not scopes:
        return work
    return replace(work, source=replace(work.source, patterns=scopes[-1].patterns))


def _begun(work: Workplace, batch: Batch, facts: ServerFacts) -> RunStart:
    witness = None
    if batch.follows is not None:
        before = work.ledger.live_batches(work.source.name, batch.follows, batch.follows)
        witness = before[0].witness if before and before[0].end == batch.start else None
    # One that went on by GTIDs began at a file's beginning, before transactions of its set.
    known = batch.start.gtid_set if batch.predecessor is None else GtidSet()
    why = f"batch {batch.id} is read again"
    return read_again_at(batch.start, witness, facts, why, leave_out=known, by_gtid=batch.by_gtid)


def _states_then(work: Workplace, known: Iterable[TableName]) -> dict[TableName, TableState]:
    """Those of the tables that the lake had something of before, all captured."""
    states = work.ledger.table_states(work.source.name)
    return {
        table: replace(states[table], condition=TableCondition.ACTIVE, stopped=None)
        for table in known
    }


def _says_updated(work: Workplace, recorded: Sequence[Segment]) -> bool:
    files = [file for segment in recorded for file in segment.files]
    return any(file.updated for file in files) if files else work.source.lake.updated_columns


# -- whether it is what was recorded -----------------------------------------------------------


def _told_otherwise(
    batch: Batch, changes: int, recorded: Sequence[Segment], segments: Sequence[Segment]
) -> str | None:
    if changes != batch.changes:
        return f"the log has {changes} changes now where {batch.changes} were captured"
    before, after = (
        {(segment.table, segment.schema_version): _numbers(segment) for segment in some}
        for some in (recorded, segments)
    )
    for key in sorted(before.keys() | after.keys()):
        if before.get(key) != after.get(key):
            return f"the changes of {key[0]} would have other numbers than they were given"
    return None


def _numbers(segment: Segment) -> tuple[object, ...]:
    images = sum(file.images for file in segment.files)
    return segment.counts, segment.first_sequence, segment.last_sequence, images


def _happened_otherwise(
    recorded: Sequence[TableEvent], events: Sequence[TableEvent], *, learnt: bool
) -> str | None:
    if learnt:
        return "its statements would give structures that are not in the recorded history"
    before, after = (
        [
            (event.table, event.kind, event.sequence, event.version, event.place)
            for event in sorted(some, key=lambda one: one.table)
            if event.kind is not TableEventKind.REBUILT
        ]
        for some in (recorded, events)
    )
    return None if before == after else "its statements would do something else to the tables"
