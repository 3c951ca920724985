"""Replays a span of the log: captures and merges its batches again, while the cursors
(how far runs have read) stay where they are.

Each batch is read again from the log if the server still has that part, otherwise from
its changelogs (the captured changes in the lake). Files that differ or are damaged are
replaced. Then the mirrors (the Delta tables with the current rows) are compared with
their changelogs, key by key. Only corrections are written, so a repeated replay writes
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from lockstep.pipeline.mirror.layout import scratch_path
from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.ports.ledger import batch_content
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
from lockstep.pipeline.run.context import RunPorts, table_progress
from lockstep.pipeline.run.replay import revise
from lockstep.pipeline.run.replay.mirror_correction import MirrorCorrection, correct_mirror
from lockstep.pipeline.run.replay.recapture import NotRecaptured, SpanFacts, recapture
from lockstep.pipeline.run.replay.segment_comparison import (
    Details,
    SegmentComparison,
    SegmentResult,
    SegmentStanding,
)
from lockstep.pipeline.run.replay.selection import Selection, select_batches
from lockstep.pipeline.run.replay.settle import settle_replays
from lockstep.pipeline.values.decisions import Decision, Lease
from lockstep.pipeline.values.errors import BatchesWait
from lockstep.pipeline.values.segment import Segment, SystemTable
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName


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
    `changelog_checks`: the results for changelogs of `tables` that list other files than
    the ledger records, or did so before the replay."""

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
        damaged_segments = (
            segment for segment in self.segments if segment.standing is SegmentStanding.DAMAGED
        )
        return tuple(segment for segment in damaged_segments if not segment.is_replaced)


def plan_replay(
    ports: RunPorts, span: Span, only_tables: frozenset[TableName] | None = None
) -> ReplayReport:
    """Return the batches that a replay of the span would capture again, and whether the
    log still has them. `only_tables`: the tables to replay; None for all. Nothing is
    changed, and no lease is needed."""
    selection = select_batches(ports, span, only_tables)
    if not selection.batches:
        return ReplayReport(span, (), (), lake_end=selection.lake_end)
    facts = SpanFacts(ports, selection.batches)
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
    first, last = selection.batches[0], selection.batches[-1]
    ports.progress.note(
        f"{len(selection.batches)} batches are replayed, {first.id} to {last.id}: {first.start} to "
        f"{last.end}"
    )
    changelogs = _correct_changelogs(ports, lease, selection, commit=commit)
    ports.segments.delete_folder(scratch_path(ports.source.name))
    try:
        details = None if commit else Details(show_values=show_values)
        comparison = SegmentComparison(ports, selection, details)
        facts = SpanFacts(ports, selection.batches)
        compared = [
            _compare_batch(ports, batch, selection, facts, comparison)
            for batch in selection.batches
        ]
        segments = [segment for batch in compared for segment in batch.segments]
        reasons = revise.reasons_to_wait(ports, segments) if commit else {}
        batches = [_without_waiting_files(batch, reasons) for batch in compared]
        results = [segment for batch in batches for segment in batch.segments]
        revision = revise.begin_revision(ports, lease, results) if commit else None
        if revision is not None:
            revise.carry_out_revision(ports, lease, revision)
            # The revision may have listed the last files that a changelog lacked.
            changelogs = _latest_checks(
                changelogs, _correct_changelogs(ports, lease, selection, commit=True)
            )
        mirrors = []
        for done_count, table in enumerate(selection.tables, start=1):
            new_segments = (
                () if commit else [segment for segment in results if segment.table == table]
            )
            mirrors.append(
                correct_mirror(
                    ports,
                    lease,
                    table,
                    selection.batches_of(table),
                    new_segments=new_segments,
                    details=details,
                )
            )
            ports.progress.tell(table_progress("merge", done_count, len(selection.tables), table))
    finally:
        if ports.ledger.revisions(ports.source.name).open is None:
            ports.segments.delete_folder(scratch_path(ports.source.name))
    counts = ports.ledger.special_batches(ports.source.name, first.id, last.id).revision_counts
    report = ReplayReport(
        span,
        batches=tuple(
            replace(replayed, revision_count=counts.get(replayed.batch.id, 0))
            for replayed in batches
        ),
        tables=selection.tables,
        mirrors=tuple(mirrors),
        lake_end=selection.lake_end,
        committed=commit,
        seconds=perf_counter() - timer_start,
        changelog_checks=changelogs,
    )
    if commit:
        ports.ledger.decide(lease, _decision(report))
    return report


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
    facts: SpanFacts,
    comparison: SegmentComparison,
) -> ReplayedBatch:
    """Read a batch again and compare its files."""
    if not _has_changes(ports, batch, selection):
        return ReplayedBatch(batch, None)
    reason = None
    segments: tuple[Segment, ...] = ()
    try:
        segments = recapture(ports, batch, facts, selection.hidden_tables(ports, batch))
    except NotRecaptured as error:
        reason = error.reason
        ports.progress.note(f"batch {batch.id} is replayed from its changelog alone: {reason}")
    results = comparison.compare(batch, segments)
    for segment in results:
        if segment.standing in (SegmentStanding.DIFFERENT, SegmentStanding.DAMAGED):
            problem = segment.why or segment.standing.value
            ports.progress.note(f"batch {batch.id}, {segment.table}: {problem}")
    return ReplayedBatch(batch, reason, tuple(results))


def _decision(report: ReplayReport) -> Decision:
    first, last = report.batches[0].batch, report.batches[-1].batch
    replaced_segments = [segment for segment in report.segments if segment.is_replaced]
    wrong = sum(mirror.wrong for mirror in report.mirrors)
    return Decision(
        "replay",
        "span-replayed",
        f"batches {first.id} to {last.id} were replayed ({report.span}): "
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
