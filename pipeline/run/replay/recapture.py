"""Chooses the batches of a replay, and captures a batch again: the same range of the
log, with the tables and structures of the first capture.

The ledger knows the conditions of the first capture: structures, patterns, and the
tables that have rows or events in the batch. Perhaps it does not know all of them, so
the result is checked. It must have as many changes, the same segments with the same
sequence numbers, the same events, and no structure version that is not recorded.
Otherwise the result is discarded.

The anchor of a batch is the checksum of the event at its end. If one batch continues in
the log file in which another ended, the later anchor proves the earlier end too,
because a binlog file only grows. The structures at a batch's start are kept for the
next batches until one records new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise
from types import MappingProxyType
from typing import Final

from lockstep.pipeline.model.batch import (
    Batch,
    BatchState,
    BatchTimes,
    Cursor,
    ExtraRows,
    SpecialBatches,
)
from lockstep.pipeline.model.table_state import TableEvent, TableEventKind, TableState
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.replay.spans import (
    Span,
    batches_in_span,
    ends_early,
    named_runs,
    needed_id_ranges,
)
from lockstep.pipeline.run.begin import RunStart, read_anchor_of, start_at_known_place
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.basis import Basis
from lockstep.pipeline.run.dump.captured_tables import CapturedTables
from lockstep.pipeline.run.dump.initial_schemas import (
    RecordedVersions,
    structures_in_batch,
    tracker_of,
)
from lockstep.pipeline.run.dump.log_reader import LogReading
from lockstep.pipeline.run.dump.renames import origins_by_table
from lockstep.pipeline.run.dump.segment_builder import Segmenter
from lockstep.pipeline.run.unpruned_batches import (
    batch_of_run,
    begins_before,
    reason_no_longer_shown,
    unpruned_batches,
)
from lockstep.pipeline.schema.effects import Effect
from lockstep.pipeline.schema.tracker import InitialStructures
from lockstep.pipeline.start.bounds import RunBounds
from lockstep.pipeline.start.question import AnchorReading
from lockstep.pipeline.supply.plan import FromMirror
from lockstep.pipeline.values.errors import (
    BatchesWait,
    LockstepError,
    NothingMatches,
    Recovery,
    SpanRefused,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import AtMoment, Earliest, Latest, OfRun, Place
from lockstep.pipeline.values.policies import Deletes, LakePolicies, Truncates
from lockstep.pipeline.values.segment import Segment
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class Selection:
    """The acknowledged batches that a span touches, oldest first. `lake_end`: the end
    of the lake if the span ends after it; else None. `tables`: requested tables that
    have changes or events in these batches."""

    batches: tuple[Batch, ...]
    lake_end: str | None
    tables: tuple[TableName, ...]


def select_batches(
    ports: RunPorts, span: Span, requested: frozenset[TableName] | None = None
) -> Selection:
    """Choose the batches and tables; only the ledger is read. `requested`: the
    requested tables; None for all. Raise `SpanRefused` for a span outside of what was
    captured, `NothingMatches` for an unknown table."""
    states = ports.ledger.table_states(ports.source.name) if requested else {}
    for table in sorted(requested or ()):
        if table not in states:
            raise NothingMatches(
                f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
            )
    ledger, source = ports.ledger, ports.source.name
    runs = {run: batch_of_run(ledger, source, run).id for run in named_runs(span)}
    chain, times = _batches_and_times(ports, span, runs)
    batches = batches_in_span(span, chain, runs, times)
    batches = _without_deleted(ports, span, batches)
    lake_end = str(chain[-1].end) if ends_early(span, chain) else None
    if not batches:
        return Selection((), lake_end, ())
    tables = ports.ledger.first_changes(ports.source.name, batches[0].id, batches[-1].id).keys()
    tables_to_read = [
        table
        for table in sorted(tables if requested is None else tables & requested)
        if _may_be_read(ports, table, batches[0], is_requested=requested is not None)
    ]
    return Selection(batches, lake_end, tuple(tables_to_read))


def _may_be_read(ports: RunPorts, table: TableName, first: Batch, *, is_requested: bool) -> bool:
    """Return whether a table's changes may be read again. If the settings hide more of
    it now, hidden values would come back: raise `SpanRefused` if the table was
    requested by name, else leave it out."""
    reason = reason_no_longer_shown(ports.ledger, ports.source.name, table, first.id, from_log=True)
    if reason is not None and is_requested:
        raise SpanRefused(
            f"{table} cannot be read again from {first.start.at} on: {reason}",
            hint="begin after the run that re-read it, or name other tables",
        )
    if reason is not None:
        ports.progress.note(f"{table} is left out: {reason}")
    return reason is None


def require_merged(ports: RunPorts) -> None:
    """Raise `BatchesWait` unless every captured batch is acknowledged."""
    waiting = [
        batch
        for batch in ports.ledger.unfinished_batches(ports.source.name)
        if batch.state is not BatchState.CAPTURING
    ]
    if waiting:
        raise BatchesWait(
            f"batch {waiting[0].id} of {ports.source.name} is captured but not merged: the mirrors "
            "cannot be compared with it yet",
            hint="`lockstep run` merges it; then repeat the command",
        )


def _without_deleted(ports: RunPorts, span: Span, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
    """Return the batches whose changes were not deleted. Raise `SpanRefused` if the
    span begins before these; `earliest` begins with the first of them."""
    deletion = ports.ledger.deletion_notes(ports.source.name).newest
    if deletion is None or not begins_before(span, batches, deletion.last_batch, deletion.end):
        return tuple(
            batch for batch in batches if deletion is None or batch.id > deletion.last_batch
        )
    sentence = deletion.sentence
    raise SpanRefused(
        f"{span.since} lies before the changes that are kept: {sentence}",
        hint=f"`--from {deletion.end.at}` or `--from earliest` begins with the first that is kept",
    )


def _batches_and_times(
    ports: RunPorts, span: Span, runs: Mapping[str, int]
) -> tuple[Sequence[Batch], Sequence[BatchTimes] | None]:
    """Return acknowledged batches, oldest first, which include the span's. The second
    value is the times of all acknowledged batches if both ends of the span are moments,
    `earliest` or `latest`; else None."""
    ledger, source = ports.ledger, ports.source.name
    since, until = span.since, span.until
    if _is_moment(since) and _is_moment(until):
        times = [batch for batch in ledger.batch_times(source) if batch.is_acknowledged]
        ranges = needed_id_ranges(span, times) if times else []
        batches = {
            batch.id: batch
            for first_id, last_id in ranges
            for batch in ledger.live_batches(source, first_id, last_id)
        }
        return [batches[batch_id] for batch_id in sorted(batches)], times
    first = runs[since.run] if isinstance(since, OfRun) else 0
    last = runs[until.run] if isinstance(until, OfRun) else None
    return unpruned_batches(ledger, source, first, last), None


def _is_moment(place: Place) -> bool:
    return isinstance(place, AtMoment | Earliest | Latest)


_ELSEWHERE: Final = MappingProxyType(
    {
        ExtraRows.SOURCE: "it has rows that were read from the source",
        ExtraRows.PREPARED: "it has rows of an XA transaction that was prepared before it",
    }
)


@dataclass(slots=True)
class SpanFacts:
    """The facts that a replay needs from the server and the ledger, read once for all
    its batches. `server_facts`: the server's state when the replay began.
    `first_batches`: each table's first batch with changes or events. `marks`: batches
    whose rows are not all in their range of the log, batches whose files were replaced,
    and batches that recorded structures. `later_anchors`: by batch, a later batch whose
    anchor proves the same log file."""

    ports: RunPorts
    server_facts: ServerFacts
    first_batches: Mapping[TableName, int]
    marks: SpecialBatches
    later_anchors: Mapping[int, Batch]
    _anchor_readings: dict[int, AnchorReading] = field(default_factory=dict)
    _last_structures: tuple[Batch, InitialStructures] | None = None

    @classmethod
    def of(cls, ports: RunPorts, batches: Sequence[Batch]) -> SpanFacts:
        """Gather the facts. `batches`: the batches in their order, at least one."""
        ledger, source = ports.ledger, ports.source.name
        last = batches[-1].id
        return cls(
            ports,
            ports.server.facts(),
            ledger.first_changes(source, 1, last),
            ledger.special_batches(source, batches[0].id, last),
            _later_anchors(batches),
        )

    def reason_not_recaptured(self, batch: Batch) -> str | None:
        """Return why a batch cannot be captured again from the log; None if it can.
        This reads up to two events of the log."""
        if batch.catches_up:
            return "it brought back tables that had stopped"
        if (elsewhere := self.marks.with_extra_rows.get(batch.id)) is not None:
            return _ELSEWHERE[elsewhere]
        if batch.start.server_uuid != self.server_facts.server_uuid:
            return "it was captured from another server than the one that answers now"
        assert batch.end is not None, "it is acknowledged"
        files = {log.file for log in self.server_facts.binlogs}
        for file in (batch.start.at.file, batch.end.at.file):
            if file not in files:
                return f"its log is gone from the server ({file})"
        readings = (
            self._read_anchor(end) for end in (self.later_anchors.get(batch.id, batch), batch)
        )
        if all(reading is not AnchorReading.SAME for reading in readings):
            return "the server's log is not the one that was captured"
        return None

    def structures(self, batch: Batch) -> InitialStructures:
        """Return the structures at a batch's start. Those read last are returned again
        if no batch since then recorded new ones."""
        if self._last_structures is not None:
            before, structures = self._last_structures
            since = range(before.id, batch.id + 1)
            if since and self.marks.with_structures.isdisjoint(since):
                return structures
        structures = structures_in_batch(self.ports, batch, batch.start.at)
        self._last_structures = batch, structures
        return structures

    def _read_anchor(self, batch: Batch) -> AnchorReading:
        if batch.id not in self._anchor_readings:
            assert batch.end is not None and batch.anchor is not None, "it is acknowledged"
            cursor = Cursor(batch.id, batch.end, batch.anchor)
            self._anchor_readings[batch.id] = read_anchor_of(self.ports, cursor, self.server_facts)
        return self._anchor_readings[batch.id]


def _later_anchors(batches: Sequence[Batch]) -> dict[int, Batch]:
    """Return, for each batch, the last batch of the chain that continues from its end
    and ends in the same file."""
    anchors: dict[int, Batch] = {}
    for before, later in reversed(list(pairwise(batches))):
        assert before.end is not None and later.end is not None, "they are acknowledged"
        if later.predecessor == before.id and later.end.at.file == before.end.at.file:
            anchors[before.id] = anchors.get(later.id, later)
    return anchors


def recapture(ports: RunPorts, batch: Batch, facts: SpanFacts) -> tuple[Segment, ...] | str:
    """Capture the batch again and return its segments, whose files are in the scratch
    folder; or return why it cannot be captured again. Nothing else is written."""
    if (reason := facts.reason_not_recaptured(batch)) is not None:
        return reason
    try:
        return _capture_again(ports, batch, facts)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        return error.message


def _capture_again(ports: RunPorts, batch: Batch, facts: SpanFacts) -> tuple[Segment, ...] | str:
    """Capture a batch again under the conditions of its first capture, and compare the
    result with what was recorded."""
    assert batch.end is not None, "it is acknowledged"
    ledger, source = ports.ledger, ports.source.name
    original = _ports_of_original(ports, batch)
    content = batch_content(ledger, source, batch.id)
    recorded_segments, events, changed_tables = (
        content.segments,
        content.events,
        content.changed_tables,
    )
    tables = CapturedTables(
        ports.segments,
        source=source,
        batch_id=batch.id,
        last_sequence_before=batch.base,
        is_captured=lambda table: (
            original.source.patterns.matches(table) and table in changed_tables
        ),
        states=_original_states(ports, changed_tables, facts.first_batches, batch.id),
        policies_of=partial(_original_policies, ports, events, recorded_segments),
        in_scratch_folder=True,
    )
    basis = Basis(
        original,
        _original_start(ports, batch, facts.server_facts),
        RunBounds(batch.end.at, GtidSet()),
        tables=tables,
        structures=tracker_of(
            ports,
            facts.structures(batch),
            facts.server_facts,
            recorded=RecordedVersions(ledger, source, batch.id),
        ),
        prepared_transactions={},
    )
    segmenter = Segmenter(
        tables, basis.structures, ports.shaping, decide_copies=partial(_original_copies, events)
    )
    LogReading(basis, segmenter, keeps_all_prepared=True, starts_spark=False).run()
    segments = tables.finish()
    mismatch = _reason_changes_differ(
        batch, tables.change_count, recorded_segments, segments
    ) or _reason_events_differ(
        events,
        tables.events,
        has_new_structures=any(
            version.table in changed_tables for version in basis.structures.history.versions
        ),
    )
    return segments if mismatch is None else mismatch


def _ports_of_original(ports: RunPorts, batch: Batch) -> RunPorts:
    """Return the ports with the patterns that the batch was captured with."""
    scopes = ports.ledger.capture_scopes(ports.source.name)
    patterns = [scope.patterns for scope in scopes if scope.batch <= batch.id]
    return (
        replace(ports, source=replace(ports.source, patterns=patterns[-1])) if patterns else ports
    )


def _original_start(ports: RunPorts, batch: Batch, facts: ServerFacts) -> RunStart:
    """Return where reading begins: at the batch's start, proven by its predecessor's
    anchor."""
    anchor = None
    if batch.follows is not None:
        predecessors = ports.ledger.live_batches(ports.source.name, batch.follows, batch.follows)
        anchor = (
            predecessors[0].anchor if predecessors and predecessors[0].end == batch.start else None
        )
    # A batch that started by its GTID set began at the start of a log file.
    # Transactions of the set that are in that file precede the batch.
    gtids_read = batch.start.gtid_set if batch.predecessor is None else GtidSet()
    reason = f"batch {batch.id} is read again"
    return start_at_known_place(
        batch.start, anchor, facts, reason, leave_out=gtids_read, by_gtid=batch.by_gtid
    )


def _original_states(
    ports: RunPorts, tables: Iterable[TableName], first_batches: Mapping[TableName, int], batch: int
) -> dict[TableName, TableState]:
    """Return the states of the tables that have changes or events in earlier batches,
    each with the condition FOLLOWING. A table that this ledger took over from the lake
    is included: its changes may begin with this batch."""
    states = ports.ledger.table_states(ports.source.name)
    return {
        table: states[table].as_started()
        for table in tables
        if first_batches[table] < batch or states[table].adopted_version is not None
    }


def _original_policies(
    ports: RunPorts,
    events: Sequence[TableEvent],
    recorded_segments: Sequence[Segment],
    table: TableName,
) -> LakePolicies:
    """Return the table's policies, changed to what the first capture did. The recorded
    events show whether it followed or ignored a TRUNCATE; the recorded files show
    whether it listed the changed columns of updates."""
    policies = replace(ports.source.policies_of(table), deletes=Deletes.REMOVE)
    files = [
        file for segment in recorded_segments if segment.table == table for file in segment.files
    ]
    if files:
        policies = replace(policies, updated_columns=any(file.has_updated for file in files))
    followed_truncate = any(
        event.table == table and event.kind is TableEventKind.TRUNCATED for event in events
    )
    truncates = Truncates.DELETE if followed_truncate else Truncates.IGNORE
    return replace(policies, truncates=truncates)


def _original_copies(
    events: Sequence[TableEvent], effects: Sequence[Effect]
) -> Mapping[TableName, FromMirror]:
    """Return the tables whose rows were copied from another mirror in the first
    capture, as the recorded events show."""
    copies = {(event.table, event.origin) for event in events}
    return {
        table: FromMirror(origin)
        for table, origin in origins_by_table(effects).items()
        if (table, origin) in copies
    }


# -- the comparison with what was recorded -----------------------------------------------------


def _reason_changes_differ(
    batch: Batch, changes: int, recorded_segments: Sequence[Segment], segments: Sequence[Segment]
) -> str | None:
    if changes != batch.changes:
        return f"the log has {changes} changes now where {batch.changes} were captured"
    before, after = (
        {
            (segment.table, segment.schema_version): _sequence_numbers(segment)
            for segment in captured
        }
        for captured in (recorded_segments, segments)
    )
    for table, version in sorted(before.keys() | after.keys()):
        if before.get((table, version)) != after.get((table, version)):
            return f"the changes of {table} would have other sequence numbers than were recorded"
    return None


def _sequence_numbers(segment: Segment) -> tuple[object, ...]:
    images = sum(file.images for file in segment.files)
    return segment.counts, segment.first_sequence, segment.last_sequence, images


def _reason_events_differ(
    recorded_events: Sequence[TableEvent], events: Sequence[TableEvent], *, has_new_structures: bool
) -> str | None:
    if has_new_structures:
        return "its statements would yield structures that are not in the recorded history"
    before, after = (
        [
            (event.table, event.kind, event.sequence, event.version, event.place)
            for event in sorted(captured, key=lambda event: event.table)
            if event.kind is not TableEventKind.REBUILT
        ]
        for captured in (recorded_events, events)
    )
    return None if before == after else "its statements would affect the tables differently"
