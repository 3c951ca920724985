"""Replays a span of the log: captures and merges its batches again, while the cursors
(how far runs have read) stay where they are.

Each batch is read again from the log if the server still has that part, otherwise from
its changelogs (the captured changes in the lake). Files that differ or are damaged are
replaced. Then the mirrors (the Delta tables with the current rows) are compared with
their changelogs, key by key. Only corrections are written, so a repeated replay writes
nothing.

A batch is captured again from the same range of the log, with the tables and structures
of the first capture. The ledger knows the conditions of the first capture: structures,
patterns, and the tables that have rows or events in the batch. It may lack some of
them, so the result is checked. It must have as many changes, the same segments with the
same sequence numbers, the same events, and no structure version that is not recorded.
Otherwise the result is discarded.

Changes that are no longer shown are only counted, since the sequence numbers of all
tables depend on how many there are. Conditions on rows and hidden columns change that
number, and once a table is cleared, the ledger no longer says how it was shown then. So
its changes are counted as if the table had been shown whole. If the result is wrong,
they are counted again as the table's versions are recorded now.

The anchor of a batch is the checksum of the event at its end. If one batch continues in
the log file in which another ended, the later anchor proves the earlier end too,
because a binlog file only grows. The structures at a batch's start are kept for the
next batches until one records new ones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from time import perf_counter

from lockstep.pipeline.mirror.layout import scratch_path
from lockstep.pipeline.model.batch import Batch, BatchContent, BatchState
from lockstep.pipeline.model.table_state import TableEvent, TableEventKind, TableState
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.agreement.changelog_files import (
    ChangelogCheck,
    ChangelogTable,
    changelogs_of,
    correct_changelog,
    system_table,
)
from lockstep.pipeline.run.agreement.claim import require_agreement, require_claim
from lockstep.pipeline.run.agreement.lake_logs import unrecorded_commit_error
from lockstep.pipeline.run.begin import RunStart, start_at_known_place
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
from lockstep.pipeline.run.dump.segmenter import Segmenter
from lockstep.pipeline.run.dump.table_changes import TableChanges
from lockstep.pipeline.run.find_place import read_anchor_of
from lockstep.pipeline.run.progress import table_progress
from lockstep.pipeline.run.replay import revise
from lockstep.pipeline.run.replay.mirror_correction import MirrorCorrection, correct_mirror
from lockstep.pipeline.run.replay.segment_comparison import (
    Details,
    SegmentComparison,
    SegmentResult,
    SegmentStanding,
)
from lockstep.pipeline.run.replay.selection import Selection, select_batches
from lockstep.pipeline.run.replay.settle import settle_replays
from lockstep.pipeline.schema.effects import Effect
from lockstep.pipeline.schema.tracker import InitialStructures
from lockstep.pipeline.start.bounds import RunBounds
from lockstep.pipeline.start.question import AnchorReading
from lockstep.pipeline.supply import FromMirror
from lockstep.pipeline.values.decisions import Decision, Lease
from lockstep.pipeline.values.errors import BatchesWait, LockstepError, Recovery
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.policies import Deletes, LakePolicies, Truncates
from lockstep.pipeline.values.segment import Segment, SystemTable
from lockstep.pipeline.values.shown import batch_words, pluralize
from lockstep.pipeline.values.table import TableName, patterns_of


@dataclass(frozen=True, slots=True)
class ReplayedBatch:
    """One batch of the span. `reason_not_recaptured`: why it cannot be read from the
    log again; None if it was read again or, in a plan, would be. `segments`: the
    results of comparing its files; empty in a plan. `revision_count`: number of times
    that its files were replaced so far."""

    batch: Batch
    reason_not_recaptured: str | None
    segments: tuple[SegmentResult, ...] = ()
    revision_count: int = 0


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """The outcome or the plan of a replay. `lake_end`: the end of the lake; None unless
    the span ends after it. `committed`: the replay was allowed to write.
    `changelog_checks`: the results for changelogs of `tables` that list other files
    than the ledger records, or did so before the replay."""

    span: Span
    batches: tuple[ReplayedBatch, ...]
    tables: tuple[TableName, ...]
    mirrors: tuple[MirrorCorrection, ...] = ()
    lake_end: str | None = None
    committed: bool = False
    seconds: float = 0.0
    changelog_checks: tuple[ChangelogCheck, ...] = ()

    @property
    def segments(self) -> tuple[SegmentResult, ...]:
        return tuple(segment for batch in self.batches for segment in batch.segments)

    @property
    def has_differences(self) -> bool:
        """True if the replay found a difference between the lake and the span's
        changes, even one that it has corrected."""
        wrong = (SegmentStanding.DIFFERENT, SegmentStanding.DAMAGED)
        if self.changelog_checks or any(mirror.wrong for mirror in self.mirrors):
            return True
        return any(segment.standing in wrong for segment in self.segments)

    @property
    def wrong_changelogs(self) -> tuple[ChangelogCheck, ...]:
        """The changelogs that still list other files than the ledger records."""
        return tuple(
            changelog
            for changelog in self.changelog_checks
            if changelog.reason_not_corrected is not None
        )

    @property
    def unreplaced_segments(self) -> tuple[SegmentResult, ...]:
        """The segments whose files are damaged and could not be replaced."""
        damaged = SegmentStanding.DAMAGED
        return tuple(
            segment
            for segment in self.segments
            if segment.standing is damaged and not segment.has_replacement
        )


def plan_replay(
    ports: RunPorts, span: Span, only_tables: frozenset[TableName] | None = None
) -> ReplayReport:
    """Return the batches that a replay of the span would capture again, and whether the
    log still has them. `only_tables`: the tables to replay; None for all. Nothing is
    changed, and no lease is needed."""
    selection = select_batches(ports, span, only_tables)
    if not selection.batches:
        return ReplayReport(span, (), (), lake_end=selection.lake_end)
    facts = _SpanFacts(ports, selection.batches)
    batches = tuple(
        ReplayedBatch(
            batch,
            facts.reason_not_recaptured(batch) if _has_changes(ports, batch, selection) else None,
            revision_count=facts.special_batches.revision_counts.get(batch.id, 0),
        )
        for batch in selection.batches
    )
    return ReplayReport(span, batches, selection.tables, lake_end=selection.lake_end)


def replay(
    ports: RunPorts,
    lease: Lease,
    span: Span,
    only_tables: frozenset[TableName] | None = None,
    *,
    commit: bool = True,
    show_values: bool = False,
) -> ReplayReport:
    """Replay a span, and return the report. `only_tables`: the tables to replay; None
    for all. Without `commit`, the same data is read and compared, and the rows that
    differ are reported (with `show_values`, also their values), but nothing is written.

    Raise `BatchesWait` while captured batches are not merged, and `SpanRefused` for a
    span that is outside of what was captured. If the process dies, the next run or
    replay finishes its writes.
    """
    timer_start = perf_counter()
    require_agreement(ports)
    require_claim(ports)
    for note in settle_replays(ports, lease):
        ports.progress.note(note)
    _require_merged(ports)
    if (error := unrecorded_commit_error(ports)) is not None:
        raise error
    selection = select_batches(ports, span, only_tables)
    if not selection.batches:
        return ReplayReport(span, (), (), lake_end=selection.lake_end, committed=commit)
    changelogs = _correct_changelogs(ports, lease, selection, commit=commit)
    ports.segments.delete_folder(scratch_path(ports.source.name))
    try:
        details = None if commit else Details(show_values=show_values)
        comparison = SegmentComparison(ports, selection, details)
        facts = _SpanFacts(ports, selection.batches)
        compared_batches = [
            _compare_batch(ports, batch, selection, facts, comparison)
            for batch in selection.batches
        ]
        segments = [segment for batch in compared_batches for segment in batch.segments]
        reasons = revise.reasons_to_wait(ports, segments) if commit else {}
        batches = [_without_waiting_files(batch, reasons) for batch in compared_batches]
        results = [segment for batch in batches for segment in batch.segments]
        revision = revise.begin_revision(ports, lease, results) if commit else None
        if revision is not None:
            revise.carry_out_revision(ports, lease, revision)
            # The revision may have listed the last files that a changelog lacked.
            changelogs = _latest_checks(
                changelogs, _correct_changelogs(ports, lease, selection, commit=True)
            )
        unwritten_segments = () if commit else results
        mirrors = tuple(_correct_mirrors(ports, lease, selection, unwritten_segments, details))
    finally:
        if ports.ledger.revisions(ports.source.name).open is None:
            ports.segments.delete_folder(scratch_path(ports.source.name))
    first_id, last_id = selection.batches[0].id, selection.batches[-1].id
    counts = ports.ledger.special_batches(ports.source.name, first_id, last_id).revision_counts
    report = ReplayReport(
        span,
        batches=tuple(
            replace(replayed, revision_count=counts.get(replayed.batch.id, 0))
            for replayed in batches
        ),
        tables=selection.tables,
        mirrors=mirrors,
        lake_end=selection.lake_end,
        committed=commit,
        seconds=perf_counter() - timer_start,
        changelog_checks=changelogs,
    )
    if commit:
        ports.ledger.decide(lease, _decision(report))
    return report


def _correct_mirrors(
    ports: RunPorts,
    lease: Lease,
    selection: Selection,
    new_segments: Sequence[SegmentResult],
    details: Details | None,
) -> Iterator[MirrorCorrection]:
    """Correct the mirrors of the selected tables (`correct_mirror`), and yield the
    results."""
    for done_count, table in enumerate(selection.tables, start=1):
        segments = [segment for segment in new_segments if segment.table == table]
        yield correct_mirror(
            ports, lease, table, selection.batches_of(table), new_segments=segments, details=details
        )
        ports.progress.tell(table_progress("merge", done_count, len(selection.tables), table))


def _require_merged(ports: RunPorts) -> None:
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


def _without_waiting_files(
    batch: ReplayedBatch, reasons: Mapping[tuple[int, TableName, int], str]
) -> ReplayedBatch:
    """Return the batch without the new files of segments that must wait. `reasons`: why
    they must wait, by batch, table and version."""
    segments = []
    for segment in batch.segments:
        reason = reasons.get((segment.batch, segment.table, segment.schema_version))
        segments.append(
            segment if reason is None else replace(segment, new_files=(), reason_waiting=reason)
        )
    return replace(batch, segments=tuple(segments))


def _correct_changelogs(
    ports: RunPorts, lease: Lease, selection: Selection, *, commit: bool
) -> tuple[ChangelogCheck, ...]:
    """Correct the changelogs that list other files than the ledger records, and return
    the results. Each changelog is corrected as a whole, not only for the span, because
    another program's compaction may put rows of any batches into one file. Other
    foreign commits are left for the next run to report."""
    source = ports.source.name
    examined_versions = ports.ledger.examined_versions(source)
    states = ports.ledger.table_states(source)
    tables = [states[table] for table in selection.tables if table in states]
    system_tables = map(partial(system_table, source), SystemTable)
    checks = []
    for changelog in (
        *changelogs_of(source, tables),
        *(table for table in system_tables if _has_new_commits(ports, table, examined_versions)),
    ):
        folder = changelog.folder
        check = correct_changelog(
            ports, lease if commit else None, changelog, examined_versions.get(folder)
        )
        if check.difference or check.reason_not_corrected or check.commits:
            checks.append(check)
            ports.progress.note(f"{folder}: {check.sentence}")
        agrees = check.error is None and check.reason_not_corrected is None
        if commit and agrees and folder in examined_versions:
            ports.ledger.note_examined_versions(lease, {folder: check.version})
    return tuple(checks)


def _has_new_commits(
    ports: RunPorts, changelog: ChangelogTable, examined_versions: Mapping[str, int]
) -> bool:
    """Return whether the table has commits after the version that was examined last."""
    folder = changelog.folder
    return folder in examined_versions and not ports.changelog.is_newest_version(
        folder, examined_versions[folder]
    )


def _latest_checks(
    earlier_checks: Sequence[ChangelogCheck], later_checks: Sequence[ChangelogCheck]
) -> tuple[ChangelogCheck, ...]:
    """Return the newest result for each changelog. `earlier_checks`: before the
    revision; `later_checks`: after it, of the changelogs that are not correct yet. The
    revision corrected the others, unless they were corrected before it."""
    corrected = {
        check.changelog: replace(
            check, reason_not_corrected=None, is_revised=check.reason_not_corrected is not None
        )
        for check in earlier_checks
    }
    newest = {check.changelog: check for check in later_checks}
    return (*(corrected | newest).values(),)


def _has_changes(ports: RunPorts, batch: Batch, selection: Selection) -> bool:
    """Return whether changes of the batch are replayed."""
    segments = batch_content(ports.ledger, batch.source, batch.id).segments
    return any(selection.replays(segment.table, batch) for segment in segments)


def _compare_batch(
    ports: RunPorts,
    batch: Batch,
    selection: Selection,
    facts: _SpanFacts,
    comparison: SegmentComparison,
) -> ReplayedBatch:
    """Read a batch again and compare its files."""
    if not _has_changes(ports, batch, selection):
        return ReplayedBatch(batch, None)
    reason = None
    segments: tuple[Segment, ...] = ()
    try:
        segments = _recapture(ports, batch, facts, selection.hidden_tables(ports, batch))
    except _NotRecaptured as error:
        reason = error.reason
    results = comparison.compare(batch, segments)
    for segment in results:
        if segment.standing in (SegmentStanding.DIFFERENT, SegmentStanding.DAMAGED):
            problem = segment.why or segment.standing.value
            ports.progress.note(f"batch {batch.id}, {segment.table}: {problem}")
    return ReplayedBatch(batch, reason, tuple(results))


def _decision(report: ReplayReport) -> Decision:
    first, last = report.batches[0].batch, report.batches[-1].batch
    replaced_segments = [segment for segment in report.segments if segment.has_replacement]
    wrong = sum(mirror.wrong for mirror in report.mirrors)
    return Decision(
        "replay",
        "span-replayed",
        f"replayed {batch_words(first.id, last.id)} ({report.span}): "
        f"{pluralize(len(replaced_segments), 'segment')} replaced, "
        f"{pluralize(wrong, 'row')} of mirrors put right",
        {
            "batches": [first.id, last.id],
            "as_recorded": [
                batch.batch.id for batch in report.batches if batch.reason_not_recaptured
            ],
            "replaced": [
                f"{segment.batch} {segment.table} v{segment.schema_version}"
                for segment in replaced_segments
            ],
            "mirrors": {
                str(mirror.table): mirror.wrong for mirror in report.mirrors if mirror.wrong
            },
        },
    )


class _NotRecaptured(Exception):
    """A batch cannot be captured again. `reason`: why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class _SpanFacts:
    """The facts that a replay needs from the server and the ledger, read once for all
    its batches. `batches`: the batches in their order, at least one.

    `server_facts`: the server's state when the replay began. `first_batches`: each
    table's first batch with changes or events. `special_batches`: batches whose rows
    are not all in their range of the log, batches whose files were replaced, and
    batches that recorded structures.
    """

    def __init__(self, ports: RunPorts, batches: Sequence[Batch]) -> None:
        ledger, source = ports.ledger, ports.source.name
        self._ports = ports
        self.server_facts = ports.server.facts()
        self.first_batches = ledger.first_changes(source, 1, batches[-1].id)
        self.special_batches = ledger.special_batches(source, batches[0].id, batches[-1].id)
        self._later_anchors = _later_anchors(batches)
        self._anchor_readings: dict[int, AnchorReading] = {}
        self._last_structures: tuple[Batch, InitialStructures] | None = None

    def reason_not_recaptured(self, batch: Batch) -> str | None:
        """Return why a batch cannot be captured again from the log; None if it can.
        This reads up to two events of the log."""
        if (reason := self.special_batches.reason_not_in_log(batch)) is not None:
            return reason
        if batch.start.server_uuid != self.server_facts.server_uuid:
            return "it was captured from another server than the one that answers now"
        files = {log.file for log in self.server_facts.binlogs}
        for file in (batch.start.at.file, batch.captured_end.at.file):
            if file not in files:
                return f"its log is gone from the server ({file})"
        anchored_batches = (self._later_anchors.get(batch.id, batch), batch)
        if AnchorReading.SAME not in map(self._read_anchor, anchored_batches):
            return "the server's log is not the one that was captured"
        return None

    def structures(self, batch: Batch) -> InitialStructures:
        """Return the structures at a batch's start. If no batch since the last call
        recorded new ones, return the same as then."""
        if self._last_structures is not None:
            earlier_batch, structures = self._last_structures
            since = range(earlier_batch.id, batch.id + 1)
            if since and self.special_batches.with_structures.isdisjoint(since):
                return structures
        structures = structures_in_batch(self._ports, batch, batch.start.at)
        self._last_structures = batch, structures
        return structures

    def _read_anchor(self, batch: Batch) -> AnchorReading:
        if batch.id not in self._anchor_readings:
            self._anchor_readings[batch.id] = read_anchor_of(
                self._ports, batch.captured_cursor, self.server_facts
            )
        return self._anchor_readings[batch.id]


def _later_anchors(batches: Sequence[Batch]) -> dict[int, Batch]:
    """Return, for each batch, the last batch of the chain that continues from its end
    and ends in the same file: its anchor proves the same log file."""
    anchors: dict[int, Batch] = {}
    for before, later in reversed(list(pairwise(batches))):
        is_same_file = later.captured_end.at.file == before.captured_end.at.file
        if later.continued_batch == before.id and is_same_file:
            anchors[before.id] = anchors.get(later.id, later)
    return anchors


def _recapture(
    ports: RunPorts, batch: Batch, facts: _SpanFacts, hidden_tables: Set[TableName]
) -> tuple[Segment, ...]:
    """Capture the batch again and return its segments, whose files are in the scratch
    folder. Nothing else is written, and changes of `hidden_tables` are only counted.
    Raise `_NotRecaptured` if the batch cannot be captured again, or if the result
    differs from what was recorded."""
    if (reason := facts.reason_not_recaptured(batch)) is not None:
        raise _NotRecaptured(reason)
    try:
        if hidden_tables:
            with suppress(_NotRecaptured):
                return _capture_again(
                    ports, batch, facts, hidden_tables, unshaped_tables=hidden_tables
                )
        return _capture_again(ports, batch, facts, hidden_tables)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        raise _NotRecaptured(error.message) from error


def _capture_again(
    ports: RunPorts,
    batch: Batch,
    facts: _SpanFacts,
    hidden_tables: Set[TableName],
    *,
    unshaped_tables: Set[TableName] = frozenset(),
) -> tuple[Segment, ...]:
    """Capture a batch again under the conditions of its first capture, and compare the
    result with what was recorded. `unshaped_tables`: tables that are counted as if they
    had been shown whole."""
    ledger, source = ports.ledger, ports.source.name
    ports = replace(ports, shaping=ports.shaping.without_rules_of(unshaped_tables))
    original = _ports_of_original(ports, batch)
    content = batch_content(ledger, source, batch.id)
    changed_tables = content.changed_tables
    tables = CapturedTables(
        ports.segments,
        source=source,
        batch_id=batch.id,
        last_sequence_before=batch.sequence_before,
        is_captured=lambda table: (
            original.source.patterns.matches(table) and table in changed_tables
        ),
        states=_original_states(ports, changed_tables, facts.first_batches, batch.id),
        policies_of=partial(_original_policies, ports, content),
        in_scratch_folder=True,
        counted_only=hidden_tables,
    )
    basis = Basis(
        original,
        _original_start(ports, batch, facts.server_facts),
        RunBounds(batch.captured_end.at, GtidSet()),
        tables=tables,
        structures=tracker_of(
            ports,
            facts.structures(batch),
            facts.server_facts,
            find_recorded=RecordedVersions(ledger, source, batch.id),
        ),
        prepared_transactions={},
    )
    table_changes = TableChanges(
        tables,
        basis.structures,
        ports.shaping,
        decide_copies=partial(_original_copies, content.events),
    )
    segmenter = Segmenter(
        tables, basis.structures, ports.shaping, table_changes, unshaped_tables=unshaped_tables
    )
    LogReading(basis, segmenter, keeps_all_prepared=True).run()
    segments = tables.finish()
    if tables.change_count != batch.changes:
        raise _NotRecaptured(
            f"the log has {pluralize(tables.change_count, 'change')} now where "
            f"{batch.changes} were captured"
        )
    shown_content = content.for_tables(changed_tables - hidden_tables)
    _require_same_sequences(shown_content.segments, segments)
    if any(
        version.table in shown_content.changed_tables
        for version in basis.structures.history.versions
    ):
        raise _NotRecaptured(
            "its statements would yield structures that are not in the recorded history"
        )
    events = [event for event in tables.events if event.table not in hidden_tables]
    if _comparable_events(shown_content.events) != _comparable_events(events):
        raise _NotRecaptured("its statements would affect the tables differently")
    return segments


def _ports_of_original(ports: RunPorts, batch: Batch) -> RunPorts:
    """Return the ports with the patterns that the batch was captured with."""
    patterns = patterns_of(ports.ledger.capture_scopes(ports.source.name), batch.id)
    if patterns is None:
        return ports
    return replace(ports, source=replace(ports.source, patterns=patterns))


def _original_start(ports: RunPorts, batch: Batch, facts: ServerFacts) -> RunStart:
    """Return where reading begins: at the batch's start, proven by the anchor at the
    end of the batch before it."""
    anchor = None
    if batch.previous_batch is not None:
        predecessors = ports.ledger.live_batches(
            ports.source.name, batch.previous_batch, batch.previous_batch
        )
        anchor = next((before.anchor for before in predecessors if before.end == batch.start), None)
    # A batch that started by its GTID set began at the start of a log file.
    # Transactions of the set that are in that file precede the batch.
    gtids_read = batch.start.gtid_set if batch.continued_batch is None else GtidSet()
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
        table: states[table].without_stop()
        for table in tables
        if first_batches[table] < batch or states[table].adopted_version is not None
    }


def _original_policies(ports: RunPorts, content: BatchContent, table: TableName) -> LakePolicies:
    """Return the table's policies, changed to what the first capture did. The recorded
    events show whether it followed or ignored a TRUNCATE; the recorded files show
    whether it listed the changed columns of updates."""
    followed_truncate = any(
        event.table == table and event.kind is TableEventKind.TRUNCATED for event in content.events
    )
    policies = replace(
        ports.source.policies_of(table),
        deletes=Deletes.REMOVE,
        truncates=Truncates.DELETE if followed_truncate else Truncates.IGNORE,
    )
    files = [
        file for segment in content.segments if segment.table == table for file in segment.files
    ]
    if files:
        policies = replace(policies, updated_columns=any(file.has_updated for file in files))
    return policies


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


# -- the comparison with what was recorded ---------------------------------------------


def _require_same_sequences(recorded: Sequence[Segment], segments: Sequence[Segment]) -> None:
    before, after = _sequences(recorded), _sequences(segments)
    for table, version in sorted(before.keys() | after.keys()):
        if before.get((table, version)) != after.get((table, version)):
            raise _NotRecaptured(
                f"the changes of {table} would have other sequence numbers than were recorded"
            )


def _sequences(segments: Sequence[Segment]) -> dict[tuple[TableName, int], tuple[object, ...]]:
    return {
        (segment.table, segment.schema_version): (
            segment.counts,
            segment.first_sequence,
            segment.last_sequence,
            sum(file.images for file in segment.files),
        )
        for segment in segments
    }


def _comparable_events(events: Sequence[TableEvent]) -> list[tuple[object, ...]]:
    return [
        (event.table, event.kind, event.sequence, event.version, event.place)
        for event in sorted(events, key=lambda event: event.table)
        if event.kind is not TableEventKind.REBUILT
    ]
