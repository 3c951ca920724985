"""Capture: from the start to the end fixed beforehand, whole transactions into segments.

Belongs here: the order of a capture, and the one ledger transaction that makes it atomic.
Does not: where to start (`begin`), the loop over the dump (`reading`), decoding and
numbering (`segmenting`), anything after *captured*.
"""

from __future__ import annotations

from time import perf_counter

from pipeline.batch import CaptureRecord, Decision, Lease, RowCounts
from pipeline.bounds import RunBounds
from pipeline.coverage import past_ranges
from pipeline.errors import TransactionsMissing
from pipeline.position import GtidSet
from pipeline.preflight import require_ready
from pipeline.runs.begin import Begun, begin, repair
from pipeline.runs.captured import CapturedTables
from pipeline.runs.context import CaptureReport, Workplace
from pipeline.runs.reading import Reading
from pipeline.runs.segmenting import Segmenter
from pipeline.start import facts_json

DECISIONS_READ = 10_000
"""How many decisions back a change of patterns is noticed."""


def capture(work: Workplace, lease: Lease) -> CaptureReport:
    """One bounded capture; nothing is recorded unless all of it is."""
    clock = perf_counter()
    repaired = repair(work, lease)
    if work.ledger.unfinished(work.source.name):
        work.mirrors.prepare()
    if work.ledger.captured_cursor(work.source.name) is None:
        # A pipeline that works goes on capturing while Spark cannot start; one that never
        # worked says so before it writes anything.
        work.mirrors.require_ready()
    require_ready(work)
    begun = begin(work, lease)
    bounds = RunBounds.fixed(begun.facts, work.source.budget)
    start_seconds = perf_counter() - clock
    if begun.decision.predecessor is not None and bounds.reached(begun.start.at):
        _require_whole(work, bounds, begun, begun.start.gtid_set)
        return _idle(work, lease, begun, repaired, start_seconds)
    return _capture(work, lease, begun, bounds, repaired, start_seconds)


def _idle(
    work: Workplace, lease: Lease, begun: Begun, repaired: tuple[str, ...], seconds: float
) -> CaptureReport:
    reason = f"nothing was written to the log since {begun.start}"
    work.ledger.decide(lease, Decision("idle", "nothing-to-do", reason, facts_json(begun.facts)))
    return CaptureReport(
        batch=None,
        rule=begun.decision.rule.value,
        reason=reason,
        start=begun.start,
        end=begun.start,
        transactions=0,
        rows=0,
        log_bytes=0,
        counts={},
        set_aside=(),
        softened={},
        repaired=repaired,
        start_seconds=seconds,
        capture_seconds=0.0,
    )


def _capture(
    work: Workplace,
    lease: Lease,
    begun: Begun,
    bounds: RunBounds,
    repaired: tuple[str, ...],
    start_seconds: float,
) -> CaptureReport:
    clock = perf_counter()
    decision = begun.decision
    batch = work.ledger.begin_batch(
        lease,
        begun.start,
        predecessor=decision.predecessor,
        start_decision=None if decision.predecessor is not None else begun.decision_id,
    )
    source = work.source.name
    tables = CapturedTables(
        work.segments,
        source=source,
        batch=batch.id,
        states=work.ledger.table_states(source),
        versions=work.ledger.newest_versions(source),
        past=past_ranges(work.ledger.decisions(source, limit=DECISIONS_READ), begun.start.at),
    )
    segmenter = Segmenter(
        tables,
        batch=batch.id,
        base=batch.base,
        on_set_aside=lambda aside: work.progress.note(
            f"{aside.table} was set aside at {aside.position}: {aside.reason}"
        ),
    )
    prepared = {one.xid: one for one in work.ledger.open_prepared(source)}
    reading = Reading(work, segmenter, begun, bounds, prepared)
    reading.run()
    spent = reading.spent
    if spent is None:
        _require_whole(work, bounds, begun, reading.end.gtid_set)
    segments = tables.finish()
    kept = reading.buffer.prepared.seal(batch.id, reading.buffer.maps)
    work.ledger.record_capture(
        lease,
        batch.id,
        CaptureRecord(
            end=reading.end,
            witness=reading.witness,
            changes=segmenter.changes,
            transactions=reading.transactions,
            log_bytes=reading.log_bytes,
            segments=segments,
            versions=tuple(tables.new_versions),
            tables=tuple(tables.touched.values()),
            set_aside=tuple(tables.set_aside.values()),
            prepared=kept,
            ended=tuple(reading.buffer.prepared.ended),
        ),
    )
    if spent is not None:
        work.progress.note(f"the run ends at {reading.end}, before the log's end: {spent}")
    for column, count in segmenter.softened.items():
        work.progress.note(f"{count} zero or partial dates of {column} are NULL in the lake")
    return CaptureReport(
        batch=batch.id,
        rule=decision.rule.value,
        reason=decision.reason,
        start=begun.start,
        end=reading.end,
        transactions=reading.transactions,
        rows=sum((segment.counts for segment in segments), RowCounts()).total,
        log_bytes=reading.log_bytes,
        counts={segment.table: segment.counts for segment in segments},
        set_aside=tuple(tables.set_aside.values()),
        softened=segmenter.softened,
        repaired=repaired,
        start_seconds=start_seconds,
        capture_seconds=perf_counter() - clock,
    )


def _require_whole(work: Workplace, bounds: RunBounds, begun: Begun, read: GtidSet) -> None:
    """Every transaction the server had executed by the end was read, or purged."""
    if not bounds.unread(read, GtidSet.parse(begun.facts.gtid_purged)):
        return
    missing = bounds.unread(read, GtidSet.parse(work.server.facts().gtid_purged))
    if missing:
        raise TransactionsMissing(
            f"the server had executed {missing} when the run began, but its log up to "
            f"{bounds.end} does not hold them",
            hint="the log is not whole (restored backup, log filters, RESET?); nothing was "
            "recorded. Compare SHOW BINARY LOGS with the server's history",
        )
