"""Replay: the batches of a span once more, and nothing else moves.

Each batch is read again from the log where that is possible, else its changelog is all there is.
Files that hold something else, or are damaged, are replaced; then the mirrors are held against
their changelogs, key by key. So what is right already is not written, and a replay that is
repeated writes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter

from pipeline.batch import Batch
from pipeline.changes.layout import scratch_path
from pipeline.decisions import Decision, Lease
from pipeline.ports.ledger import content_of
from pipeline.replay.spans import Span
from pipeline.runs.agreement.changelog_files import (
    Agreement,
    ChangelogTable,
    changelogs_of,
    set_right,
    source_table,
)
from pipeline.runs.agreement.claim import require_agreement, require_claim
from pipeline.runs.agreement.lake_logs import changelogs_parted
from pipeline.runs.context import Workplace, tables_done
from pipeline.runs.replaying import revise
from pipeline.runs.replaying.heal import Healed, heal
from pipeline.runs.replaying.recapture import (
    Selection,
    SpanFacts,
    recapture,
    require_merged,
    select,
)
from pipeline.runs.replaying.segments_found import (
    Details,
    SegmentComparison,
    SegmentFound,
    SegmentStanding,
)
from pipeline.runs.replaying.settle import settle_replays
from pipeline.segment import SourceTable
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class BatchReplayed:
    """One batch of the span. `as_recorded`: why the log does not tell it again; None where it was
    read, or would be. `segments`: what was found of it; nothing in a plan. `revision`: how often
    its files were replaced so far."""

    batch: Batch
    as_recorded: str | None
    segments: tuple[SegmentFound, ...] = ()
    revision: int = 0


@dataclass(frozen=True, slots=True)
class ReplayReport:
    """What a replay did, or would find. `tables`: those that it is about. `early`: where the lake
    ends, if the span goes on behind that. `committed`: whether it may have written. `changelogs`:
    those of these tables that list, or listed, other files than the ledger's."""

    span: Span
    batches: tuple[BatchReplayed, ...]
    tables: tuple[TableName, ...]
    mirrors: tuple[Healed, ...] = ()
    early: str | None = None
    committed: bool = False
    seconds: float = 0.0
    changelogs: tuple[Agreement, ...] = ()

    @property
    def segments(self) -> tuple[SegmentFound, ...]:
        return tuple(segment for batch in self.batches for segment in batch.segments)

    @property
    def differs(self) -> bool:
        """Whether the lake has, or had, something else than the span says."""
        standings = {segment.standing for segment in self.segments}
        wrong = not standings.isdisjoint({SegmentStanding.DIFFERENT, SegmentStanding.DAMAGED})
        return wrong or bool(self.changelogs) or any(mirror.wrong for mirror in self.mirrors)

    @property
    def wrong_changelogs(self) -> tuple[Agreement, ...]:
        """Changelogs that list other files than the ledger's still."""
        return tuple(one for one in self.changelogs if one.left is not None)

    @property
    def left(self) -> tuple[SegmentFound, ...]:
        """Damaged files that nothing could be put in the place of."""
        damaged = (
            segment for segment in self.segments if segment.standing is SegmentStanding.DAMAGED
        )
        return tuple(segment for segment in damaged if not segment.replaced)


def plan_replay(
    work: Workplace, span: Span, only: frozenset[TableName] | None = None
) -> ReplayReport:
    """Which batches a replay would take, and whether the log still has them; changes nothing and
    needs no lease."""
    chosen = select(work, span, only)
    if not chosen.batches:
        return ReplayReport(span, (), (), early=chosen.early)
    facts = SpanFacts.of(work, chosen.batches)
    batches = tuple(
        BatchReplayed(batch, facts.why_not(batch), revision=facts.marks.revised.get(batch.id, 0))
        for batch in chosen.batches
    )
    return ReplayReport(span, batches, chosen.tables, early=chosen.early)


def replay(
    work: Workplace,
    lease: Lease,
    span: Span,
    only: frozenset[TableName] | None = None,
    *,
    commit: bool = True,
    show_values: bool = False,
) -> ReplayReport:
    """Carry it out; without `commit` the same reading and comparing, and nothing is written, but
    it is told which rows differ, and with `show_values` in what.

    `BatchesWait` while captured batches are not merged, `SpanRefused` for a span outside of what
    was captured. Repeating it changes nothing; cut off, the next run or replay ends it.
    """
    clock = perf_counter()
    require_agreement(work)
    require_claim(work)
    for note in settle_replays(work, lease):
        work.progress.note(note)
    require_merged(work)
    if (parted := changelogs_parted(work)) is not None:
        raise parted
    chosen = select(work, span, only)
    if not chosen.batches:
        return ReplayReport(span, (), (), early=chosen.early, committed=commit)
    first, last = chosen.batches[0], chosen.batches[-1]
    work.progress.note(
        f"{len(chosen.batches)} batches are replayed, {first.id} to {last.id}: {first.start} to "
        f"{last.end}"
    )
    changelogs = _agreed(work, lease, chosen, commit=commit)
    work.segments.clear(scratch_path(work.source.name))
    try:
        details = None if commit else Details(show_values=show_values)
        comparison = SegmentComparison(work, only, details)
        facts = SpanFacts.of(work, chosen.batches)
        read = [_read(work, batch, only, facts, comparison) for batch in chosen.batches]
        found = [segment for _, _, segments in read for segment in segments]
        if commit and (waits := revise.waiting(work, found)):
            read = [(batch, why, _that_wait(some, waits)) for batch, why, some in read]
            found = [segment for _, _, segments in read for segment in segments]
        revision = revise.begin(work, lease, found) if commit else None
        if revision is not None:
            revise.carry_out(work, lease, revision)
            # What is listed now may be the last that a changelog lacked.
            changelogs = _latest(changelogs, _agreed(work, lease, chosen, commit=True))
        mirrors = []
        for done, table in enumerate(chosen.tables, start=1):
            fresh = () if commit else [segment for segment in found if segment.table == table]
            mirrors.append(heal(work, lease, table, chosen.batches, fresh=fresh, details=details))
            work.progress.tell(tables_done("merge", done, len(chosen.tables), table))
    finally:
        if work.ledger.revisions(work.source.name).open is None:
            work.segments.clear(scratch_path(work.source.name))
    counts = work.ledger.marks_within(work.source.name, first.id, last.id).revised
    report = ReplayReport(
        span,
        tuple(
            BatchReplayed(batch, why, some, counts.get(batch.id, 0)) for batch, why, some in read
        ),
        chosen.tables,
        tuple(mirrors),
        chosen.early,
        commit,
        perf_counter() - clock,
        changelogs,
    )
    if commit:
        work.ledger.decide(lease, _decision(report))
    return report


def _that_wait(
    segments: Iterable[SegmentFound], waits: Mapping[tuple[int, TableName, int], str]
) -> tuple[SegmentFound, ...]:
    """These segments; those that wait without the files that were read again."""
    keys = ((one, (one.batch, one.table, one.schema_version)) for one in segments)
    return tuple(
        replace(one, fresh=(), waits=waits[key]) if key in waits else one for one, key in keys
    )


def _agreed(
    work: Workplace, lease: Lease, chosen: Selection, *, commit: bool
) -> tuple[Agreement, ...]:
    """Changelogs that list other files than were recorded are set right as a whole: a compaction
    puts rows of any batches into one file. Whatever else somebody did there the next run tells."""
    source = work.source.name
    looked, states = work.ledger.looked(source), work.ledger.table_states(source)
    tables = [states[table] for table in chosen.tables if table in states]
    found = []
    for changelog in (
        *changelogs_of(source, tables),
        *(
            one
            for one in map(partial(source_table, source), SourceTable)
            if _moved(work, one, looked)
        ),
    ):
        folder = changelog.folder
        agreement = set_right(work, lease if commit else None, changelog, looked.get(folder))
        if agreement.found or agreement.left or agreement.commits:
            found.append(agreement)
            work.progress.note(f"{folder}: {agreement.told}")
        if commit and agreement.error is None and agreement.left is None and folder in looked:
            work.ledger.note_looked(lease, {folder: agreement.version})
    return tuple(found)


def _moved(work: Workplace, changelog: ChangelogTable, looked: Mapping[str, int]) -> bool:
    folder = changelog.folder
    return folder in looked and not work.changelog.ends_at(folder, looked[folder])


def _latest(before: Sequence[Agreement], after: Sequence[Agreement]) -> tuple[Agreement, ...]:
    """The last word on each changelog. What nothing is said of any more was set right, by a
    revision where it was not before."""
    said = {one.changelog: one for one in after}
    told = {one.changelog: replace(one, left=None, revised=one.left is not None) for one in before}
    return (*{**told, **said}.values(),)


def _read(
    work: Workplace,
    batch: Batch,
    only: frozenset[TableName] | None,
    facts: SpanFacts,
    comparison: SegmentComparison,
) -> tuple[Batch, str | None, tuple[SegmentFound, ...]]:
    """Why the log does not tell the batch again, if it does not; and what was found of it."""
    segments = content_of(work.ledger, batch.source, batch.id).segments
    if not any(only is None or segment.table in only for segment in segments):
        return batch, None, ()
    read = recapture(work, batch, facts)
    why = read if isinstance(read, str) else None
    if why is not None:
        work.progress.note(f"batch {batch.id} is replayed from its changelog alone: {why}")
    found = comparison.found(batch, () if isinstance(read, str) else read)
    for one in found:
        if one.standing in (SegmentStanding.DIFFERENT, SegmentStanding.DAMAGED):
            said = one.why or one.standing.value
            work.progress.note(f"batch {batch.id}, {one.table}: {said}")
    return batch, why, tuple(found)


def _decision(report: ReplayReport) -> Decision:
    first, last = report.batches[0].batch, report.batches[-1].batch
    replaced = [segment for segment in report.segments if segment.replaced]
    wrong = sum(mirror.wrong for mirror in report.mirrors)
    return Decision(
        "replay",
        "span-replayed",
        f"batches {first.id} to {last.id} were replayed ({report.span}): {len(replaced)} segments "
        f"replaced, {wrong} rows of mirrors put right",
        {
            "batches": [first.id, last.id],
            "as_recorded": [batch.batch.id for batch in report.batches if batch.as_recorded],
            "replaced": [
                f"{segment.batch} {segment.table} v{segment.schema_version}" for segment in replaced
            ],
            "mirrors": {
                str(mirror.table): mirror.wrong for mirror in report.mirrors if mirror.wrong
            },
        },
    )
