"""Capture: from the start to the end fixed beforehand, whole transactions into segments."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from time import perf_counter

from pipeline.batch import Batch, BatchState
from pipeline.bounds import RunBounds
from pipeline.decisions import AttemptOutcome, Decision, Lease
from pipeline.engines import why_refused
from pipeline.errors import LogStops, RowsNotRead, TableError, named, naming
from pipeline.json_values import to_json
from pipeline.places import AtCoordinates
from pipeline.position import Coordinates
from pipeline.preflight import require_ready
from pipeline.runs.agreement.claim import require_agreement, require_claim
from pipeline.runs.begin import RunStart, begin
from pipeline.runs.capturing.basis import Basis, basis_of, bounds_of
from pipeline.runs.capturing.batch_capture import BatchCapture
from pipeline.runs.capturing.log_reader import require_followed, require_whole
from pipeline.runs.capturing.renames import Renames
from pipeline.runs.capturing.segment_builder import Segmenter, SourceRows, put_part
from pipeline.runs.capturing.structure_proof import StructureProof, note_unproven, prove_structures
from pipeline.runs.capturing.table_changes import TakenUp
from pipeline.runs.capturing.table_extents import extents_of, met_in_log
from pipeline.runs.catch_up import catch_up
from pipeline.runs.context import Workplace
from pipeline.runs.cures import Reread, engine_hint, met
from pipeline.runs.expect import waiting_log
from pipeline.runs.loading.columns import read_columns
from pipeline.runs.loading.loads import begun_loads, give_up, load_tables, order_readings
from pipeline.runs.loading.part import AGAIN, PartRead, findings, read_part
from pipeline.runs.mirror_places import meetings
from pipeline.runs.past import follow_pasts
from pipeline.runs.repair import abandon, repair
from pipeline.runs.reports import CaptureReport, Refreshed, softened_lines
from pipeline.runs.reshaping import reshape
from pipeline.runs.wanted import TablePlans, due, plan_readings, plan_returns
from pipeline.schema.model import TableSchema
from pipeline.source_plan import PartOrder
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class _Misread:
    """What earlier tries to capture a batch found: tables that are quarantined where it begins,
    since the history did not have their structures, tables whose reading from the source began
    `again` for that, and structures of `parents` that are not captured, which hold from where the
    batch begins."""

    errors: Mapping[TableName, TableError] = field(default_factory=dict)
    again: frozenset[TableName] = frozenset()
    parents: Mapping[TableName, TableSchema] = field(default_factory=dict)


def capture(work: Workplace, lease: Lease) -> CaptureReport:
    """A bounded capture; nothing is recorded unless all of it is. Tables that it had to quarantine
    only to be read from the source are read by a second one at once."""
    with naming(work.source.name):
        if work.source.part is not None:
            return _with_part(work, lease, work.source.part)
        try:
            return _to_the_end(work, lease)
        except LogStops as error:
            return _up_to_stop(work, lease, error)


def _up_to_stop(work: Workplace, lease: Lease, error: LogStops) -> CaptureReport:
    """What lies before the place in the log that lets no run by, captured; where all of that is
    captured, nothing, if batches of an earlier run still have to be merged, else the error itself.
    So a run that dies behind this capture has nothing to remember."""
    before = Coordinates.parse(error.before) if error.before else None
    cursor = work.ledger.cursors(work.source.name).captured
    at = _captured_at(work)
    if before is not None and (at is None or at.file != before.file or at < before):
        end = replace(work.source, until=AtCoordinates(before))
        report = _capture_once(replace(work, source=end), lease)
        return replace(report, stopped=named(error, work.source.name))
    states = {batch.state for batch in work.ledger.unfinished(work.source.name)}
    if cursor is None or not states & {BatchState.CAPTURED, BatchState.MERGED}:
        raise error
    return CaptureReport(
        batch=None,
        rule="nothing-to-do",
        reason="what was captured before is merged first",
        start=cursor.position,
        end=cursor.position,
        short=True,
        stopped=named(error, work.source.name),
    )


def _to_the_end(work: Workplace, lease: Lease) -> CaptureReport:
    report = _capture_once(work, lease)
    owed = [quarantine for quarantine in report.quarantined if quarantine.by_itself]
    if not owed or work.source.until is not None:
        return report
    return report.followed_by(_capture_once(work, lease), {quarantine.table for quarantine in owed})


def _with_part(work: Workplace, lease: Lease, order: PartOrder) -> CaptureReport:
    """Rows of a table are read; then the log is captured up to the place that they are read behind,
    and from there on by a batch that begins with them."""
    plain = replace(work, source=replace(work.source, part=None))
    with closing(read_part(plain, order)) as part:
        before = _up_to(plain, lease, part)
        report = _capture_once(plain, lease, part)
        for line in findings(part):
            work.progress.note(line)
        found = Refreshed(part.table, part.rows.rows, part.gone.rows, part.left)
    report = replace(report, refreshed=found)
    return report if before is None else before.followed_by(report, ())


def _up_to(work: Workplace, lease: Lease, part: PartRead) -> CaptureReport | None:
    """The log before the part's low, captured; None where it was."""
    source, low, report = work.source, part.low, None
    if _captured_at(work) != low:
        source = replace(source, until=AtCoordinates(low))
        report = _capture_once(replace(work, source=source), lease)
    _require_at(part, _captured_at(work))
    return report


def _require_at(part: PartRead, at: Coordinates | None) -> None:
    if at != part.low:
        raise RowsNotRead(
            f"the log was captured up to {at}, and not to {part.low}, where {part.table} was read",
            hint=AGAIN.format(part.table),
        )


def _captured_at(work: Workplace) -> Coordinates | None:
    cursor = work.ledger.cursors(work.source.name).captured
    return None if cursor is None else cursor.position.at


def _capture_once(work: Workplace, lease: Lease, part: PartRead | None = None) -> CaptureReport:
    clock = perf_counter()
    require_agreement(work)
    repaired = repair(work, lease)
    if work.ledger.unfinished(work.source.name):
        work.mirrors.prepare(waiting_log(work.ledger, work.source.name))
    if work.ledger.cursors(work.source.name).captured is None:
        # A pipeline that works goes on capturing while Spark cannot start; one that never
        # worked says so before it writes anything.
        work.mirrors.require_ready()
    require_ready(work)
    reshape(work, lease)
    past = follow_pasts(work, lease)
    returns = plan_returns(work, due(work, lease))
    for table in returns.waits:
        work.progress.note(f"{table} waits: {returns.waits_for(table)}")
    caught_up = catch_up(work, lease, returns)
    if caught_up is not None:
        without_log = caught_up if isinstance(caught_up, str) else ""
        returns = plan_returns(work, due(work, lease), without_log=without_log)
    # An ordinary batch reads on from the cursor: what a table lacks before that would be lost.
    assert not returns.spans, "what tables lack of the log was read before"
    report = _ordinary(work, lease, returns, repaired, clock, part)
    for before in (caught_up, past):
        if isinstance(before, CaptureReport):
            report = _after(before, report)
    return report


def _after(before: CaptureReport, report: CaptureReport) -> CaptureReport:
    """Return both as one, which is called as the ordinary batch after the one that caught up."""
    again = {quarantine.table for quarantine in before.quarantined if quarantine.by_itself}
    return replace(
        before.followed_by(report, again),
        rule=report.rule,
        reason=report.reason,
        start=report.start,
        continuity=report.continuity,
    )


def _ordinary(
    work: Workplace,
    lease: Lease,
    returns: TablePlans,
    repaired: tuple[str, ...],
    clock: float,
    part: PartRead | None,
    misread: _Misread | None = None,
) -> CaptureReport:
    run_start = begin(work, lease)
    if part is not None:
        _require_at(part, run_start.start.at)
    bounds = bounds_of(work, run_start)
    start_seconds = perf_counter() - clock
    plans = plan_readings(work, run_start, returns)
    # A start that was chosen is kept by a batch, unless no event stands before it that could be
    # the witness.
    goes_on = run_start.decision.predecessor is not None or run_start.witness is None
    if part is None and not plans and goes_on and bounds.reached(run_start.start.at):
        require_whole(work, run_start, bounds, run_start.start.gtid_set)
        return _idle(work, lease, run_start, bounds, repaired, start_seconds)
    report = _capture(
        work, lease, run_start, bounds, plans, repaired, start_seconds, part, misread or _Misread()
    )
    if isinstance(report, CaptureReport):
        return report
    return _ordinary(work, lease, returns, repaired, clock, part, report)


def _idle(
    work: Workplace,
    lease: Lease,
    run_start: RunStart,
    bounds: RunBounds,
    repaired: tuple[str, ...],
    seconds: float,
) -> CaptureReport:
    until, start = work.source.until, run_start.start
    reason = f"nothing was written to the log since {start}"
    if until is not None:
        ends = "is" if bounds.end == start.at else "lies before"
        reason = f"nothing is read: the end {until} ({bounds.end}) {ends} the start {start}"
    facts = run_start.facts
    idle = AttemptOutcome.IDLE.value
    decision = Decision(idle, "nothing-to-do", reason, to_json(facts), head=facts.head)
    work.ledger.decide(lease, decision)
    return CaptureReport(
        batch=None,
        rule=run_start.decision.rule.value,
        reason=reason,
        start=run_start.start,
        end=run_start.start,
        repaired=repaired,
        start_seconds=seconds,
        end_is_behind=until is not None and bounds.end < facts.head,
        short=until is not None,
    )


def _capture(
    work: Workplace,
    lease: Lease,
    run_start: RunStart,
    bounds: RunBounds,
    plans: TablePlans,
    repaired: tuple[str, ...],
    start_seconds: float,
    part: PartRead | None,
    misread: _Misread,
) -> CaptureReport | _Misread:
    """A batch from the start to its end; or nothing of it is kept, since it misread tables."""
    clock = perf_counter()
    decision = run_start.decision
    batch = work.ledger.begin_batch(
        lease,
        run_start.start,
        predecessor=decision.predecessor,
        start_decision=None if decision.predecessor is not None else run_start.decision_id,
    )
    source = work.source.name
    rereads = [
        _unless_misread(reread, misread.errors)
        for reread in read_from_source(work, lease, run_start, batch, plans)
    ]
    highs = [reread.high for reread in rereads] + ([part.high] if part else [])
    if highs:
        run_start = _reaching(work, run_start, max(highs))
    taken_up = [order.table for order in plans.resumed]
    taken_up += [load.table for load in begun_loads(rereads)]
    extents, basis = extents_of(basis_of(work, run_start, bounds, batch.id, taken_up, batch.base))
    for parent, schema in misread.parents.items():
        known = basis.structures.last_known(parent)
        keys = () if known is None else known.foreign_keys
        basis.structures.adopt(replace(schema, foreign_keys=keys), run_start.start.at)
    if work.source.until is None:  # an end that a person fixed stays
        basis = replace(basis, bounds=bounds_of(work, basis.run_start))
    hides = work.shaping.hides
    rows = SourceRows(work.segments, source=source, batch=batch.id, hides=hides)
    capture = BatchCapture(
        basis,
        batch,
        TakenUp(rereads),
        source_rows=rows,
        copies=Renames(basis),
        extents=extents,
    )
    reading, segmenter = capture.reading, capture.segmenter
    _refuse_engines(basis, segmenter)
    _refuse_meetings(basis, segmenter)
    for table, error in misread.errors.items():
        if not segmenter.following.joining.waits(table):
            segmenter.following.quarantine(table, run_start.start.at, error)
    capture.rewrite(plans.rewritten)
    if part is not None:
        put_part(part, basis.tables, basis.structures, work.clock())
    reading.run()
    spent = reading.spent
    if spent is None:
        require_whole(work, basis.run_start, basis.bounds, reading.end.gtid_set)
    require_followed(basis.run_start, reading)
    left_open = work.ledger.unproven(work.source.name)
    proof = prove_structures(basis, reading, segmenter, rereads, left_open=left_open)
    if proof.misread:
        basis.tables.files.drop()
        rows.drop()
        return _given_up(work, lease, batch, proof, misread, part)
    note_unproven(work, lease, proof, left_open)
    record = capture.record(
        end=reading.end,
        witness=reading.witness,
        by_gtid=reading.by_gtid,
        orders_done=tuple(order.id for order in plans.resumed),
    )
    met_in_log(extents, basis)
    snapshots = tuple(segmenter.following.joining.snapshots)
    extents.read(part.table for part in snapshots if part.columns is None)
    record = replace(
        record,
        snapshots=snapshots,
        followed=tuple(segmenter.following.joining.followed),
        joined=tuple(segmenter.following.joining.joined),
        prepared=reading.buffer.prepared.seal(batch.id, reading.buffer.maps),
        ended=tuple(reading.buffer.prepared.ended),
        source_parts=rows.finish(record.history),
        extents=extents.changed(reading.end.at),
        set_witnesses=reading.last_of_sources.witnesses(work.server),
        scope=work.source.patterns,
    )
    # Not before: a first run that is refused leaves nothing behind.
    require_claim(work)
    work.ledger.record_capture(lease, batch.id, record)
    if spent is not None:
        work.progress.note(f"the run ends at {reading.end}, before the log's end: {spent}")
    if swapped := reading.buffer.out_of_order:
        work.progress.note(
            f"{swapped} transactions that were read before come after new ones in this server's "
            "log: rows that both changed may differ; `lockstep verify` compares them"
        )
    for line in (
        *reading.row_statements.lines(),
        *softened_lines(segmenter.softened, "zero or partial dates are NULL"),
        *softened_lines(segmenter.unknown, "values hold codes that have no character: U+FFFD"),
    ):
        work.progress.note(line)
    return capture.report(record, began=clock, start_seconds=start_seconds, repaired=repaired)


def _unless_misread(reread: Reread, misread: Mapping[TableName, TableError]) -> Reread:
    """A table that was to begin with what was read of it is quarantined at that place."""
    begins = reread.columns is None and (reread.load is None or reread.load.followed is None)
    error = misread.get(reread.table) if begins else None
    return reread if error is None else replace(reread, error=error)


def _given_up(
    work: Workplace,
    lease: Lease,
    batch: Batch,
    proof: StructureProof,
    before: _Misread,
    part: PartRead | None,
) -> _Misread:
    """Nothing of the batch counts, and it is read once more without the tables that were misread.
    Those that are read from the source begin that again, once."""
    found = proof.misread
    if part is not None and part.table in found:
        raise RowsNotRead(
            f"{part.table}: {found[part.table].reason}", hint=AGAIN.format(part.table)
        )
    names = ", ".join(sorted(map(str, found)))
    why = f"the structure of {names} is not the history's"
    work.progress.note(abandon(work, lease, batch, why))
    again, errors = set[TableName](), {**before.errors, **found}
    for load in work.ledger.open_loads(work.source.name):
        if load.table not in found:
            continue
        give_up(work, lease, load, found[load.table].reason)
        if load.table not in before.again:
            work.ledger.order_load(lease, load.table, author=load.author, reason=load.reason)
            work.progress.note(
                f"{load.table} is read from the beginning again: {errors.pop(load.table).reason}"
            )
            again.add(load.table)
    return _Misread(errors, before.again | again, {**before.parents, **proof.parents})


def _refuse_engines(basis: Basis, segmenter: Segmenter) -> None:
    """No statement need tell a table's engine: a session has a default of its own, and a
    server takes another one where that is missing. The server says which it took."""
    for table, engine in basis.work.server.engines().items():
        why = why_refused(engine)
        if why is not None and segmenter.wanted(table):
            error = TableError(why, hint=engine_hint(table))
            segmenter.following.quarantine(table, basis.run_start.start.at, error)


def _refuse_meetings(basis: Basis, segmenter: Segmenter) -> None:
    """Tables whose mirrors would lie where that of another one lies go no further."""
    work = basis.work
    if not work.source.mirrors.rules:
        return
    states = work.ledger.table_states(work.source.name)
    there = filter(work.source.patterns.matches, work.server.engines())
    for table, other in meetings(work, states, there).items():
        if segmenter.wanted(table):
            name, known = work.source.mirror_name(table), table in states
            error = met(table, other, name, known=known)
            segmenter.following.quarantine(table, basis.run_start.start.at, error)


def _reaching(work: Workplace, run_start: RunStart, highest: Coordinates) -> RunStart:
    """The same start, for a run that does not end before what was read from the source is
    whole."""
    known = highest if run_start.known_until is None else max(run_start.known_until, highest)
    return replace(run_start, facts=work.server.facts(), known_until=known)


def read_from_source(
    work: Workplace, lease: Lease, run_start: RunStart, batch: Batch, plans: TablePlans
) -> list[Reread]:
    """Tables of which the log alone cannot tell all, or some of their columns."""
    if work.source.until is not None:
        order_readings(work, lease, plans)
        return []  # they wait for a run whose end nobody fixed
    columns, plans = read_columns(work, plans, batch.id)
    return [*columns, *load_tables(work, lease, run_start, plans)]
