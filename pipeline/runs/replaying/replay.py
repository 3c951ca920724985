"""Replay: the batches of a span once more, and nothing else moves.

Belongs here: the order of a replay, and what it reports. Does not: which batches those are
(`pipeline.replay.spans`), its steps (`recapture`, `revise`, `heal`), who waits (`waiting`).

Each batch is read again from the log where that is possible, else its changelog is all there is.
Files that hold something else, or are damaged, are replaced; then the mirrors are held against
their changelogs, key by key. So what is right already is not written, and a replay that is
repeated writes nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter

from pipeline.batch import Batch, BatchState
from pipeline.decisions import Decision, Lease
from pipeline.errors import BatchesWait, NothingMatches, SpanRefused
from pipeline.ports.source import ServerFacts
from pipeline.replay.spans import Span, batches_of, ends_early, runs_named
from pipeline.runs.agreement.claim import require_agreement, require_claim
from pipeline.runs.context import Workplace
from pipeline.runs.replaying import revise
from pipeline.runs.replaying.heal import Healed, heal
from pipeline.runs.replaying.recapture import AsRecorded, recapture, why_not_again
from pipeline.runs.replaying.revise import SegmentFound, Standing
from pipeline.runs.replaying.scratch import scratch_path
from pipeline.runs.replaying.settle import settle_replays
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
    ends, if the span goes on behind that. `committed`: whether it may have written."""

    span: Span
    batches: tuple[BatchReplayed, ...]
    tables: tuple[TableName, ...]
    mirrors: tuple[Healed, ...] = ()
    early: str | None = None
    committed: bool = False
    seconds: float = 0.0

    @property
    def segments(self) -> tuple[SegmentFound, ...]:
        return tuple(found for batch in self.batches for found in batch.segments)

    @property
    def differs(self) -> bool:
        """Whether the lake has, or had, something else than the span says."""
        standings = {segment.standing for segment in self.segments}
        wrong = not standings.isdisjoint({Standing.DIFFERENT, Standing.DAMAGED})
        return wrong or any(mirror.wrong for mirror in self.mirrors)

    @property
    def left(self) -> tuple[SegmentFound, ...]:
        """Damaged files that nothing could be put in the place of."""
        damaged = (segment for segment in self.segments if segment.standing is Standing.DAMAGED)
        return tuple(one for one in damaged if not one.replaced)


def plan_replay(
    work: Workplace, span: Span, only: frozenset[TableName] | None = None
) -> ReplayReport:
    """Which batches a replay would take, and whether the log still has them; changes nothing and
    needs no lease."""
    chosen = select(work, span)
    tables = _tables(work, chosen, only)
    facts = work.server.facts() if chosen else None
    batches = tuple(
        BatchReplayed(
            batch,
            None if facts is None else why_not_again(work, batch, facts),
            revision=work.ledger.revision_count(batch.id),
        )
        for batch in chosen
    )
    return ReplayReport(span, batches, tables, early=_early(work, span))


def replay(
    work: Workplace,
    lease: Lease,
    span: Span,
    only: frozenset[TableName] | None = None,
    *,
    commit: bool = True,
) -> ReplayReport:
    """Carry it out; without `commit` the same reading and comparing, and nothing is written.

    `BatchesWait` while captured batches are not merged, `SpanRefused` for a span outside of what
    was captured. Repeating it changes nothing; cut off, the next run or replay ends it.
    """
    clock = perf_counter()
    require_agreement(work)
    require_claim(work)
    for note in settle_replays(work, lease):
        work.progress.note(note)
    require_merged(work)
    chosen = select(work, span)
    tables = _tables(work, chosen, only)
    work.segments.clear(scratch_path(work.source.name))
    try:
        read = _Reading(work, only, *_facts(work, chosen))
        batches = [read.batch(one) for one in _told(work, chosen)]
        found = [segment for batch in batches for segment in batch.segments]
        revision = revise.begin(work, lease, found) if commit else None
        if revision is not None:
            revise.carry_out(work, lease, revision)
        mirrors = []
        for done, table in enumerate(tables, start=1):
            fresh = () if commit else [one for one in found if one.table == table]
            mirrors.append(heal(work, lease, table, chosen, commit=commit, fresh=fresh))
            work.progress.merge(done=done, total=len(tables), table=table)
    finally:
        if work.ledger.open_revision(work.source.name) is None:
            work.segments.clear(scratch_path(work.source.name))
    batches = [
        BatchReplayed(
            one.batch, one.as_recorded, one.segments, work.ledger.revision_count(one.batch.id)
        )
        for one in batches
    ]
    report = ReplayReport(
        span,
        tuple(batches),
        tables,
        tuple(mirrors),
        _early(work, span),
        commit,
        perf_counter() - clock,
    )
    if commit and chosen:
        work.ledger.decide(lease, _decision(report))
    return report


def require_merged(work: Workplace) -> None:
    """`BatchesWait` unless all that was captured is acknowledged."""
    waiting = [
        one
        for one in work.ledger.unfinished(work.source.name)
        if one.state is not BatchState.CAPTURING
    ]
    if waiting:
        raise BatchesWait(
            f"batch {waiting[0].id} of {work.source.name} is captured and not merged: the mirrors "
            "do not show yet what a replay would compare them with",
            hint="`lockstep run` merges it; then repeat the replay",
        )


def select(work: Workplace, span: Span) -> tuple[Batch, ...]:
    """The acknowledged batches that the span touches, by the ledger alone."""
    ledger, source = work.ledger, work.source.name
    runs: dict[str, int] = {}
    for run in runs_named(span):
        batch = ledger.captured_by(source, run)
        if batch is None:
            raise SpanRefused(
                f"no batch of {source} was captured by a run {run}",
                hint="`lockstep status --json` shows the runs of the last batches",
            )
        runs[run] = batch.id
    return batches_of(span, _chain(work), runs)


def _chain(work: Workplace) -> list[Batch]:
    cursor = work.ledger.acknowledged_cursor(work.source.name)
    return [] if cursor is None else work.ledger.live_batches(work.source.name, 1, cursor.batch)


def _early(work: Workplace, span: Span) -> str | None:
    chain = _chain(work)
    return str(chain[-1].end) if ends_early(span, chain) else None


def _tables(
    work: Workplace, chosen: Sequence[Batch], only: frozenset[TableName] | None
) -> tuple[TableName, ...]:
    """Those that the batches have something of; `NothingMatches` for one that is not known."""
    known = work.ledger.table_states(work.source.name)
    for table in sorted(only or ()):
        if table not in known:
            raise NothingMatches(
                f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
            )
    found = set()
    for batch in chosen:
        found |= {segment.table for segment in work.ledger.segments(batch.id)}
        found |= {event.table for event in work.ledger.table_events(batch.source, batch.id)}
    return tuple(sorted(found if only is None else found & only))


def _told(work: Workplace, chosen: Sequence[Batch]) -> Sequence[Batch]:
    if chosen:
        first, last = chosen[0], chosen[-1]
        work.progress.note(
            f"{len(chosen)} batches are replayed, {first.id} to {last.id}: {first.start} to "
            f"{last.end}"
        )
    return chosen


def _facts(
    work: Workplace, chosen: Sequence[Batch]
) -> tuple[ServerFacts | None, Mapping[TableName, int]]:
    """The server's, asked once; and the first batch of each table of the span."""
    if not chosen:
        return None, {}
    known = {
        table: work.ledger.batches_of(work.source.name, table)
        for table in _tables(work, chosen, None)
    }
    return work.server.facts(), {table: found[0].id for table, found in known.items()}


@dataclass(frozen=True, slots=True)
class _Reading:
    """What all batches of a span are read with."""

    work: Workplace
    only: frozenset[TableName] | None
    facts: ServerFacts | None
    firsts: Mapping[TableName, int]

    def batch(self, batch: Batch) -> BatchReplayed:
        work, only = self.work, self.only
        segments = work.ledger.segments(batch.id)
        if self.facts is None or not any(only is None or s.table in only for s in segments):
            return BatchReplayed(batch, None)
        read = recapture(work, batch, self.facts, self.firsts)
        why = read.why if isinstance(read, AsRecorded) else None
        if why is not None:
            work.progress.note(f"batch {batch.id} is replayed from its changelog alone: {why}")
        found = revise.compare(work, read, only)
        for one in found:
            if one.standing in (Standing.DIFFERENT, Standing.DAMAGED):
                said = one.why or one.standing.value
                work.progress.note(f"batch {batch.id}, {one.table}: {said}")
        return BatchReplayed(batch, why, tuple(found))


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
            "replaced": [f"{one.batch} {one.table} v{one.schema_version}" for one in replaced],
            "mirrors": {
                str(mirror.table): mirror.wrong for mirror in report.mirrors if mirror.wrong
            },
        },
    )
