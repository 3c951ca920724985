"""Which batches a replay takes, and one of them read once more: the same range of the log, with the
tables and structures of then.

What a batch was captured with is taken from the ledger as far as it tells: structures, patterns,
the tables it has rows or events of. That this is all is not assumed. The same number of changes
must come of it, in the same segments under the same numbers, the same events, and no version of a
structure that is not recorded; else nothing of it is used.

Where one batch goes on in the log file that another ended in, the witness at the later end speaks
for the earlier one too: a file of the log only grows. Structures are those of the batch before,
unless one in between learnt any.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from pipeline.batch import Batch, BatchState, BatchTimes, Cursor
from pipeline.bounds import RunBounds
from pipeline.changes.layout import scratch_path
from pipeline.errors import BatchesWait, LockstepError, NothingMatches, Recovery, SpanRefused
from pipeline.gtid import GtidSet
from pipeline.places import AtMoment, Earliest, Latest, OfRun, Place
from pipeline.policies import Deletes, LakePolicies, Truncates
from pipeline.ports.ledger import Elsewhere, SpanMarks, content_of
from pipeline.ports.source import ServerFacts
from pipeline.replay.spans import Span, batches_of, ends_early, runs_named, wanted
from pipeline.runs.begin import RunStart, read_again_at, read_witness_of
from pipeline.runs.capturing.basis import Basis
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.initial_schemas import known_at, tracker_of
from pipeline.runs.capturing.log_reader import LogReading
from pipeline.runs.capturing.renames import whence
from pipeline.runs.capturing.segment_builder import Segmenter
from pipeline.runs.capturing.table_changes import RecordedBefore, Rules
from pipeline.runs.context import Workplace
from pipeline.runs.known_batches import batch_of_run, begins_before, known_batches, less_shown
from pipeline.schema.evolving.effects import Effect
from pipeline.schema.tracker import KnownStructures
from pipeline.segment import Segment
from pipeline.start.question import WitnessReading
from pipeline.supply.plan import FromMirror
from pipeline.table import TableName
from pipeline.table_state import TableEvent, TableEventKind, TableState


@dataclass(frozen=True, slots=True)
class Selection:
    """The acknowledged batches that a span touches, oldest first. `early`: where the lake ends,
    if the span goes on behind that. `tables`: those that they have something of, and that are
    asked for."""

    batches: tuple[Batch, ...]
    early: str | None
    tables: tuple[TableName, ...]


def select(work: Workplace, span: Span, only: frozenset[TableName] | None = None) -> Selection:
    """By the ledger alone. `SpanRefused` for a span outside of what was captured,
    `NothingMatches` for a table that is not known."""
    _require_known(work, only)
    runs = _runs(work, span)
    chain, times = _chain(work, span, runs)
    batches = batches_of(span, chain, runs, times)
    batches = _kept(work, span, batches)
    early = str(chain[-1].end) if ends_early(span, chain) else None
    if not batches:
        return Selection((), early, ())
    tables = work.ledger.touched(work.source.name, batches[0].id, batches[-1].id).keys()
    shown = [
        table
        for table in sorted(tables if only is None else tables & only)
        if _is_kept(work, table, batches[0], named=only is not None)
    ]
    return Selection(batches, early, tuple(shown))


def _is_kept(work: Workplace, table: TableName, first: Batch, *, named: bool) -> bool:
    """Whether a batch's changes of a table are kept. Where less of it is shown since, they would
    come back in clear: `SpanRefused` if the table was asked for."""
    why = less_shown(work.ledger, work.source.name, table, first.id, read_again=True)
    if why is not None and named:
        raise SpanRefused(
            f"{table} cannot be read again from {first.start.at} on: {why}",
            hint="begin behind the run that read it again, or name other tables",
        )
    if why is not None:
        work.progress.note(f"{table} is left out: {why}")
    return why is None


def require_merged(work: Workplace) -> None:
    """`BatchesWait` unless all that was captured is acknowledged."""
    waiting = [
        batch
        for batch in work.ledger.unfinished(work.source.name)
        if batch.state is not BatchState.CAPTURING
    ]
    if waiting:
        raise BatchesWait(
            f"batch {waiting[0].id} of {work.source.name} is captured and not merged: the mirrors "
            "do not show yet what they would be compared with",
            hint="`lockstep run` merges it; then repeat the command",
        )


def _kept(work: Workplace, span: Span, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
    """Those whose changes are kept: from `earliest` on, the first of those. `SpanRefused` where
    the span begins before them."""
    gone = work.ledger.forgotten(work.source.name).newest
    if gone is None or not begins_before(span, batches, gone.through, gone.end):
        return tuple(batch for batch in batches if gone is None or batch.id > gone.through)
    raise SpanRefused(
        f"{span.since} lies before the changes that are kept: {gone.told}",
        hint=f"`--from {gone.end.at}` or `--from earliest` begins with the first that is kept",
    )


def _chain(
    work: Workplace, span: Span, runs: Mapping[str, int]
) -> tuple[Sequence[Batch], Sequence[BatchTimes] | None]:
    """The acknowledged batches: all that are known, or of a span between moments those that it may
    be about, beside the times of all."""
    ledger, source = work.ledger, work.source.name
    since, until = span.since, span.until
    if _is_moment(since) and _is_moment(until):
        times = [one for one in ledger.batch_times(source) if one.acknowledged]
        ranges = wanted(span, times) if times else []
        found = {one.id: one for some in ranges for one in ledger.live_batches(source, *some)}
        return [found[number] for number in sorted(found)], times
    first = runs[since.run] if isinstance(since, OfRun) else 0
    last = runs[until.run] if isinstance(until, OfRun) else None
    return known_batches(ledger, source, first, last), None


def _is_moment(place: Place) -> bool:
    return isinstance(place, AtMoment | Earliest | Latest)


def _runs(work: Workplace, span: Span) -> dict[str, int]:
    ledger, source = work.ledger, work.source.name
    return {run: batch_of_run(ledger, source, run).id for run in runs_named(span)}


def _require_known(work: Workplace, only: frozenset[TableName] | None) -> None:
    known = work.ledger.table_states(work.source.name) if only else {}
    for table in sorted(only or ()):
        if table not in known:
            raise NothingMatches(
                f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
            )


_ELSEWHERE: Final = MappingProxyType(
    {
        Elsewhere.SOURCE: "it has rows that were read from the source",
        Elsewhere.PREPARED: "it has rows of an XA transaction that was prepared before it",
    }
)


@dataclass(slots=True)
class SpanFacts:
    """`server`: what it answered when the span was begun. `firsts`: the first batch that has
    anything of a table."""

    work: Workplace
    server: ServerFacts
    firsts: Mapping[TableName, int]
    marks: SpanMarks
    speaks: Mapping[int, Batch]
    _read: dict[int, WitnessReading] = field(default_factory=dict)
    _known: tuple[Batch, KnownStructures] | None = None

    @classmethod
    def of(cls, work: Workplace, chosen: Sequence[Batch]) -> SpanFacts:
        """Of batches in their order, at least one."""
        ledger, source = work.ledger, work.source.name
        last = chosen[-1].id
        return cls(
            work,
            work.server.facts(),
            ledger.touched(source, 1, last),
            ledger.marks_within(source, chosen[0].id, last),
            _speakers(chosen),
        )

    def why_not(self, batch: Batch) -> str | None:
        """Why the log cannot tell once more what a batch captured; None where nothing is known
        against it. Reads two events of each log file."""
        if batch.catches_up:
            return "it brought back tables that had stopped"
        if (elsewhere := self.marks.elsewhere.get(batch.id)) is not None:
            return _ELSEWHERE[elsewhere]
        if batch.start.server_uuid != self.server.server_uuid:
            return "another server answers than the one whose log it read"
        assert batch.end is not None, "it is acknowledged"
        there = {log.file for log in self.server.binlogs}
        for file in (batch.start.at.file, batch.end.at.file):
            if file not in there:
                return f"its log is gone from the server ({file})"
        readings = (self._witness(one) for one in (self.speaks.get(batch.id, batch), batch))
        if all(reading is not WitnessReading.SAME for reading in readings):
            return "the server's log is not the one that it read"
        return None

    def structures(self, batch: Batch) -> KnownStructures:
        if self._known is not None:
            before, known = self._known
            since = range(before.id, batch.id + 1)
            if since and self.marks.learnt.isdisjoint(since):
                return known
        known = known_at(self.work, batch, batch.start.at)
        self._known = batch, known
        return known

    def _witness(self, batch: Batch) -> WitnessReading:
        if batch.id not in self._read:
            assert batch.end is not None and batch.witness is not None, "it is acknowledged"
            cursor = Cursor(batch.id, batch.end, batch.witness)
            self._read[batch.id] = read_witness_of(self.work, cursor, self.server)
        return self._read[batch.id]


def _speakers(chosen: Sequence[Batch]) -> dict[int, Batch]:
    """The last batch that ends in the same file as each, and went on from its end."""
    found: dict[int, Batch] = {}
    for before, later in reversed(list(pairwise(chosen))):
        assert before.end is not None and later.end is not None, "they are acknowledged"
        if later.predecessor == before.id and later.end.at.file == before.end.at.file:
            found[before.id] = found.get(later.id, later)
    return found


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
    content = content_of(ledger, source, batch.id)
    recorded, events, captured = content.segments, content.events, content.changed
    tables = CapturedTables(
        work.segments,
        source=source,
        batch=batch.id,
        base=batch.base,
        states=_states_then(work, [table for table in captured if facts.firsts[table] < batch.id]),
        updated=partial(_says_updated, work, recorded),
        place=partial(scratch_path, source),
    )
    basis = Basis(
        then,
        _begun(work, batch, facts.server),
        RunBounds(batch.end.at, GtidSet()),
        batch.id,
        tables=tables,
        structures=tracker_of(
            work,
            facts.structures(batch),
            facts.server,
            recorded=RecordedBefore(ledger, source, batch.id),
        ),
        prepared={},
    )
    rules = Rules(
        work.clock,
        captured.__contains__,
        partial(_policies_then, work, events),
        lambda quarantined: None,
        shaping=work.shaping,
    )
    segmenter = Segmenter(
        tables, basis.structures, rules, copies=lambda effects, _: _copies_then(events, effects)
    )
    LogReading(basis, segmenter, keeps=True, warms=False).run()
    segments = tables.files.finish()
    other = _told_otherwise(batch, tables.changes, recorded, segments) or _happened_otherwise(
        events,
        tables.events,
        learnt=any(version.table in captured for version in basis.structures.history.versions),
    )
    return segments if other is None else other


def _as_then(work: Workplace, batch: Batch) -> Workplace:
    scopes = work.ledger.capture_scopes(work.source.name)
    then = [scope.patterns for scope in scopes if scope.batch <= batch.id]
    return replace(work, source=replace(work.source, patterns=then[-1])) if then else work


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
    return {table: states[table].started() for table in known}


def _says_updated(work: Workplace, recorded: Sequence[Segment], table: TableName) -> bool:
    files = [file for segment in recorded if segment.table == table for file in segment.files]
    if files:
        return any(file.updated for file in files)
    return work.source.policies_of(table).updated_columns


def _policies_then(work: Workplace, events: Sequence[TableEvent], table: TableName) -> LakePolicies:
    """The table's policies; but a TRUNCATE is ignored if it was then, which the record tells."""
    taken = any(event.table == table and event.kind is TableEventKind.TRUNCATED for event in events)
    truncates = Truncates.DELETE if taken else Truncates.IGNORE
    return replace(work.source.policies_of(table), deletes=Deletes.REMOVE, truncates=truncates)


def _copies_then(
    events: Sequence[TableEvent], effects: Sequence[Effect]
) -> Mapping[TableName, FromMirror]:
    """Where rows were copied inside the lake then, which the record tells."""
    was = {(event.table, event.origin) for event in events}
    return {
        table: FromMirror(origin)
        for table, origin in whence(effects).items()
        if (table, origin) in was
    }


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
