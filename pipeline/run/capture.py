"""Capture: write the transactions of a part of the log to segments (Parquet files by
table), as one batch. The end of this part is fixed before it is read.

Before that, stopped tables catch up in batches of their own, and rows that the log
lacks are read from MySQL.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from itertools import chain
from time import perf_counter

from lockstep.pipeline.check import require_ready
from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.model.load import SourceReading
from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.run.abandon import abandon
from lockstep.pipeline.run.agreement.claim import require_agreement, require_claim
from lockstep.pipeline.run.begin import RunStart, begin
from lockstep.pipeline.run.catch_up import catch_up
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.basis import basis_of, bounds_of
from lockstep.pipeline.run.dump.batch_capture import BatchCapture
from lockstep.pipeline.run.dump.initial_schemas import case_folding, spans_of_changes
from lockstep.pipeline.run.dump.log_reader import require_complete, require_prepared_after_start
from lockstep.pipeline.run.dump.logged_statements import statements_between
from lockstep.pipeline.run.dump.structure_proof import (
    StructureProof,
    note_unproven,
    prove_structures,
)
from lockstep.pipeline.run.dump.table_extents import partial_tables_at_start
from lockstep.pipeline.run.dump.tables_at_start import (
    DROPPED_IN_GAP,
    record_drops_in_gap,
    stops_at_start,
    tables_logged_otherwise,
    unsupported_tables,
)
from lockstep.pipeline.run.expected_log import waiting_log_bytes
from lockstep.pipeline.run.follow_pasts import follow_pasts
from lockstep.pipeline.run.left_out import left_out_now
from lockstep.pipeline.run.load.by_condition import (
    ConditionRead,
    leave_deletes_to_log,
    read_by_condition,
    repeat_hint,
    sentences_about_rows,
)
from lockstep.pipeline.run.load.loads import (
    load_tables,
    order_later_readings,
    read_columns,
    readings_to_follow,
    void_load,
)
from lockstep.pipeline.run.repair import repair
from lockstep.pipeline.run.reports import CaptureReport, RereadCounts, softened_lines
from lockstep.pipeline.run.reshaping import stop_reshaped_tables
from lockstep.pipeline.run.stop_errors import stop_at_cursor
from lockstep.pipeline.run.table_plans import TablePlans, plan_orders, plan_readings, record_orders
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.statements.changes import (
    AlterTable,
    CreateLike,
    RowsChange,
    renamed_pairs,
)
from lockstep.pipeline.schema.statements.read import Reading, read_change
from lockstep.pipeline.source_plan import RereadRows
from lockstep.pipeline.start.bounds import RunBounds
from lockstep.pipeline.values.decisions import AttemptOutcome, Decision, Lease
from lockstep.pipeline.values.errors import LogStops, RowsNotRead, TableError
from lockstep.pipeline.values.places import AtCoordinates
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class _MisreadTables:
    """The findings of earlier attempts to capture a batch. Each of these attempts
    decoded rows with a wrong structure.

    - `errors`: tables with a wrong structure. They are quarantined where the batch
      begins.
    - `restarted_loads`: tables whose reading from the source began again for this
      reason.
    - `parents`: the server's structures of uncaptured parents of foreign keys. They
      hold from the beginning of the batch on.
    """

    errors: Mapping[TableName, TableError] = field(default_factory=dict)
    restarted_loads: frozenset[TableName] = frozenset()
    parents: Mapping[TableName, TableSchema] = field(default_factory=dict)


def capture(ports: RunPorts, lease: Lease) -> CaptureReport:
    """Capture the log up to its present end, or up to the end that a person chose. If
    this stops tables that the next run would read from the source, read them at once by
    a second capture."""
    if ports.source.reread_rows is not None:
        return _capture_with_read(ports, lease, ports.source.reread_rows)
    try:
        return _capture_to_end(ports, lease)
    except LogStops as error:
        return _capture_up_to_stop(ports, lease, error)


def _capture_up_to_stop(ports: RunPorts, lease: Lease, error: LogStops) -> CaptureReport:
    """Capture the log before the event that no run can pass. If that is already
    captured, raise the error, unless batches still have to be merged or acknowledged:
    then return an empty report, so that this run still does that. The stop needs no
    record, because every later run meets the event again."""
    stop_place = Coordinates.parse(error.transaction_end) if error.transaction_end else None
    cursor = ports.ledger.cursors(ports.source.name).captured
    at = _captured_at(ports)
    # Nothing beyond the event was captured, so another file is an earlier file.
    if stop_place is not None and (at is None or at.file != stop_place.file or at < stop_place):
        source = replace(ports.source, until=AtCoordinates(stop_place))
        report = _capture_once(replace(ports, source=source), lease)
        return replace(report, stop_error=error)
    states = {batch.state for batch in ports.ledger.unfinished_batches(ports.source.name)}
    if cursor is None or not states & {BatchState.CAPTURED, BatchState.MERGED}:
        raise error
    return CaptureReport(
        batch_id=None,
        rule="nothing-to-do",
        reason="what was captured before is merged first",
        start=cursor.position,
        end=cursor.position,
        ended_early=True,
        stop_error=error,
    )


def _capture_to_end(ports: RunPorts, lease: Lease) -> CaptureReport:
    report = _capture_once(ports, lease)
    has_tables_to_read = any(stopped.starts_by_itself for stopped in report.quarantined)
    if not has_tables_to_read or ports.source.until is not None:
        return report
    return report.followed_by(_capture_once(ports, lease))


def _capture_with_read(ports: RunPorts, lease: Lease, order: RereadRows) -> CaptureReport:
    """Read rows of a table by a condition. Capture the log up to their low watermark,
    and then the log after it, in a batch that begins with these rows."""
    without_read = replace(ports, source=replace(ports.source, reread_rows=None))
    with closing(read_by_condition(without_read, order)) as read:
        report_before = _capture_up_to_read(without_read, lease, read)
        if report_before is not None and report_before.batch_id is not None:
            leave_deletes_to_log(ports, read, report_before.batch_id)
        report = _capture_once(without_read, lease, read)
        for line in sentences_about_rows(read):
            ports.progress.note(line)
        reread_counts = RereadCounts(
            read.table,
            read=read.matching_rows.row_count,
            gone=read.deleted_rows.row_count,
            left=read.unchecked_rows,
        )
    report = replace(report, reread_counts=reread_counts)
    return report if report_before is None else report_before.followed_by(report)


def _capture_up_to_read(ports: RunPorts, lease: Lease, read: ConditionRead) -> CaptureReport | None:
    """Capture the log up to the low watermark of the read rows, if that is not captured
    yet."""
    report = None
    if _captured_at(ports) != read.low:
        source = replace(ports.source, until=AtCoordinates(read.low))
        report = _capture_once(replace(ports, source=source), lease)
    _require_read_at(read, _captured_at(ports))
    return report


def _require_read_at(read: ConditionRead, at: Coordinates | None) -> None:
    if at != read.low:
        raise RowsNotRead(
            f"the log was captured up to {at}, and not to {read.low}, where {read.table} was read",
            hint=repeat_hint(read.table),
        )


def _captured_at(ports: RunPorts) -> Coordinates | None:
    cursor = ports.ledger.cursors(ports.source.name).captured
    return None if cursor is None else cursor.position.at


def _capture_once(
    ports: RunPorts, lease: Lease, read: ConditionRead | None = None
) -> CaptureReport:
    """Clean up after a dead run, let stopped tables catch up, and capture an ordinary
    batch. `read`: rows that were read by a condition, with which the batch begins."""
    timer_start = perf_counter()
    require_agreement(ports)
    repairs = repair(ports, lease)
    if ports.ledger.unfinished_batches(ports.source.name):
        ports.mirrors.prepare(waiting_log_bytes(ports.ledger, ports.source.name))
    if ports.ledger.cursors(ports.source.name).captured is None:
        # A source that was captured before goes on capturing while Spark cannot start.
        # The first run of a source fails here instead, before it writes anything.
        ports.mirrors.require_ready()
    invisible_tables = require_ready(ports.server, ports.ledger, ports.source)
    stop_at_cursor(ports, lease, left_out_now(ports).items())
    stop_reshaped_tables(ports, lease)
    past_report = follow_pasts(ports, lease)
    order_plans = plan_orders(ports, record_orders(ports, lease))
    for table in order_plans.wait_reasons:
        ports.progress.note(f"{table} waits: {order_plans.wait_sentence(table)}")
    catch_up_result = catch_up(ports, lease, order_plans)
    if catch_up_result is not None:
        order_plans = plan_orders(
            ports,
            record_orders(ports, lease),
            earlier_plans=order_plans,
            reason_without_log=catch_up_result if isinstance(catch_up_result, str) else "",
        )
    # The ordinary batch begins at the cursor. A table that still lacked changes from
    # before it would lose them.
    assert not order_plans.spans, "each table has caught up with the cursor"
    report = _capture_new_log(ports, lease, order_plans, timer_start, read)
    report = replace(report, repairs=repairs)
    states = ports.ledger.table_states(ports.source.name) if invisible_tables else {}
    for invisible in invisible_tables:
        state = states.get(invisible.table)
        # The log that was just read may have dropped or renamed the table.
        if state is not None and state.condition is not TableCondition.DROPPED:
            ports.progress.note(f"{invisible.table}: {invisible.reason}. {invisible.hint}")
    for report_before in (catch_up_result, past_report):
        if isinstance(report_before, CaptureReport):
            report = _joined_report(report_before, report)
    return report


def _joined_report(before: CaptureReport, report: CaptureReport) -> CaptureReport:
    """Return both reports as one. The decision about the start is that of the second
    batch, which is the ordinary one."""
    return replace(
        before.followed_by(report),
        rule=report.rule,
        reason=report.reason,
        start=report.start,
        continuity=report.continuity,
    )


def _capture_new_log(
    ports: RunPorts,
    lease: Lease,
    order_plans: TablePlans,
    timer_start: float,
    read: ConditionRead | None,
) -> CaptureReport:
    """Decide the start and capture a batch. Begin again as long as tables were decoded
    with a wrong structure. Capture nothing if the log has nothing new. `timer_start`:
    when the search for the start began."""
    result: CaptureReport | _MisreadTables = _MisreadTables()
    while isinstance(result, _MisreadTables):
        run_start = begin(ports, lease)
        if read is not None:
            _require_read_at(read, run_start.start.at)
        bounds = bounds_of(ports, run_start)
        start_seconds = perf_counter() - timer_start
        plans = plan_readings(ports, run_start, order_plans)
        # A start that a person chose is recorded by a batch, even by an empty one. But
        # a batch needs an anchor (the checksum of the event before its end), and an
        # empty batch without an event before its start has none.
        needs_batch = run_start.decision.continued_batch is None and run_start.anchor is not None
        has_work = needs_batch or read is not None or plans
        if not has_work and bounds.is_reached(run_start.start.at):
            require_complete(ports, run_start, bounds, run_start.start.gtid_set)
            result = _record_idle(ports, lease, run_start, bounds)
        else:
            result = _capture_batch(ports, lease, run_start, bounds, plans, read, misread=result)
    return replace(result, start_seconds=start_seconds)


def _record_idle(
    ports: RunPorts,
    lease: Lease,
    run_start: RunStart,
    bounds: RunBounds,
) -> CaptureReport:
    """Record in the ledger that there is nothing to capture, and return the report."""
    until, start = ports.source.until, run_start.start
    reason = f"nothing was written to the log since {start}"
    if until is not None:
        relation = "is" if bounds.end == start.at else "lies before"
        reason = f"nothing is read: the end {until} ({bounds.end}) {relation} the start {start}"
    facts = run_start.facts
    kind = AttemptOutcome.IDLE.value
    decision = Decision(kind, "nothing-to-do", reason, to_json(facts), head=facts.head)
    ports.ledger.decide(lease, decision)
    return CaptureReport(
        batch_id=None,
        rule=run_start.decision.rule.value,
        reason=reason,
        start=start,
        end=start,
        is_past_end=until is not None and bounds.end < facts.head,
        ended_early=until is not None,
    )


def _capture_batch(
    ports: RunPorts,
    lease: Lease,
    run_start: RunStart,
    bounds: RunBounds,
    plans: TablePlans,
    read: ConditionRead | None,
    misread: _MisreadTables,
) -> CaptureReport | _MisreadTables:
    """Capture a batch from the start to its end. If rows were decoded with a wrong
    structure, abandon the batch and return the findings."""
    timer_start = perf_counter()
    decision = run_start.decision
    batch = ports.ledger.begin_batch(
        lease,
        run_start.start,
        continued_batch=decision.continued_batch,
        start_decision=None if decision.continued_batch is not None else run_start.decision_id,
    )
    source_readings = [
        _with_misread_error(reading, misread.errors)
        for reading in _read_from_source(ports, lease, run_start, batch, plans)
    ]
    high_watermarks = [reading.high for reading in source_readings]
    if read is not None:
        high_watermarks.append(read.high)
    if high_watermarks:
        run_start = _extended_start(ports, run_start, max(high_watermarks))
    resumed_tables = [order.table for order in plans.resumed_orders]
    resumed_tables += [reading.table for reading in readings_to_follow(source_readings)]
    extents, basis = partial_tables_at_start(
        basis_of(ports, run_start, bounds, batch.id, resumed_tables, batch.sequence_before)
    )
    for parent, schema in misread.parents.items():
        newest = basis.structures.last_known_schema(parent)
        keys = () if newest is None else newest.foreign_keys
        basis.structures.record_server_schema(
            replace(schema, foreign_keys=keys), run_start.start.at
        )
    if ports.source.until is None:  # the log's end moved while tables were read
        basis = replace(basis, bounds=bounds_of(ports, basis.run_start))
    basis.tables.add_readings(source_readings)
    capture = BatchCapture(basis, batch, extents)
    log_reading = capture.reading
    engines = ports.server.engines()
    for table in record_drops_in_gap(basis, engines):
        ports.progress.note(f"{table}: {DROPPED_IN_GAP}")
    for table, error in stops_at_start(basis, engines):
        capture.table_changes.stop(table, run_start.start.at, error)
    for table, error in misread.errors.items():
        if basis.tables[table].takes(run_start.start.at):
            capture.table_changes.stop(table, run_start.start.at, error)
    for table, error in plans.new_consent_errors.items():
        capture.table_changes.stop(table, run_start.start.at, error)
    capture.rewrite(plans.changelog_origins)
    if read is not None:
        capture.put_condition_rows(read)
    log_reading.run()
    reached_limit = log_reading.reached_limit
    if reached_limit is None and ports.source.until is None:
        engines = ports.server.engines()
        for table, error in chain(
            unsupported_tables(basis, engines, at_end=True),
            tables_logged_otherwise(basis, engines),
        ):
            capture.table_changes.stop(table, log_reading.end.at, error)
    if reached_limit is None:
        require_complete(ports, basis.run_start, basis.bounds, log_reading.end.gtid_set)
    require_prepared_after_start(basis.run_start, log_reading)
    proof = prove_structures(capture, source_readings)
    if proof.errors:
        capture.drop()
        return _abandon_misread(ports, lease, batch, proof, misread, read)
    note_unproven(lease, capture, proof)
    record = capture.finish(
        end=log_reading.end,
        anchor=log_reading.anchor,
        by_gtid=log_reading.by_gtid,
        carried_out_orders=tuple(order.id for order in plans.resumed_orders),
    )
    # The folder is claimed as late as this, so that a first run which fails leaves it
    # unclaimed.
    require_claim(ports)
    ports.ledger.record_capture(lease, batch.id, record)
    if reached_limit is not None:
        ports.progress.note(
            f"the run ends at {log_reading.end}, before the log's end: {reached_limit}"
        )
    _note_differences(ports, capture)
    return capture.report(record, timer_start)


def _note_differences(ports: RunPorts, capture: BatchCapture) -> None:
    """Tell how the captured changes may differ from the server's rows."""
    log_reading, segmenter = capture.reading, capture.segmenter
    if swapped_count := log_reading.buffer.out_of_order_count:
        ports.progress.note(
            "this server's log has new transactions before "
            f"{pluralize(swapped_count, 'transaction')} that earlier runs read: rows that both "
            "changed may differ; `lockstep verify` compares them"
        )
    for line in (
        *log_reading.row_statements.passed_sentences(),
        *softened_lines(segmenter.nulled_counts, "zero or partial dates are NULL"),
        *softened_lines(
            segmenter.undefined_code_counts, "values hold codes that have no character: U+FFFD"
        ),
    ):
        ports.progress.note(line)


def _with_misread_error(
    reading: SourceReading, errors: Mapping[TableName, TableError]
) -> SourceReading:
    """Return the reading. If its table is captured only from this reading on, and was
    decoded with a wrong structure, add the error."""
    is_followed = reading.load is not None and reading.load.followed_from is not None
    is_captured_before = reading.columns is not None or is_followed
    error = None if is_captured_before else errors.get(reading.table)
    return reading if error is None else replace(reading, error=error)


def _abandon_misread(
    ports: RunPorts,
    lease: Lease,
    batch: Batch,
    proof: StructureProof,
    earlier: _MisreadTables,
    read: ConditionRead | None,
) -> _MisreadTables:
    """Abandon the batch, and return the findings for its next attempt, in which the
    misread tables stop. If one of them is being read from the source, that reading
    begins again, but only once."""
    new_errors = proof.errors
    if read is not None and read.table in new_errors:
        reason = new_errors[read.table].reason
        raise RowsNotRead(f"{read.table}: {reason}", hint=repeat_hint(read.table))
    names = ", ".join(sorted(map(str, new_errors)))
    sentence = abandon(ports, lease, batch, f"the structure of {names} is not the history's")
    ports.progress.note(sentence)
    restarted_loads = set[TableName]()
    all_errors = {**earlier.errors, **new_errors}
    for load in ports.ledger.open_loads(ports.source.name):
        if load.table not in new_errors:
            continue
        reason = new_errors[load.table].reason
        void_load(ports, lease, load, reason)
        if load.table not in earlier.restarted_loads:
            ports.ledger.order_load(lease, load.table, author=load.author, reason=load.reason)
            ports.progress.note(f"{load.table} is read from the beginning again: {reason}")
            restarted_loads.add(load.table)
            del all_errors[load.table]
    return _MisreadTables(
        all_errors,
        earlier.restarted_loads | restarted_loads,
        {**earlier.parents, **proof.parent_schemas},
    )


def _extended_start(ports: RunPorts, run_start: RunStart, end: Coordinates) -> RunStart:
    """Return the start with new facts of the server, so that the run can end at the
    log's present end, and must not end before `end`, the highest watermark of the rows
    that were read from the source."""
    known_until = end if run_start.known_until is None else max(run_start.known_until, end)
    return replace(run_start, facts=ports.server.facts(), known_until=known_until)


def _read_from_source(
    ports: RunPorts, lease: Lease, run_start: RunStart, batch: Batch, plans: TablePlans
) -> list[SourceReading]:
    """Read the rows and columns that the tables need from the server, by their plans. A
    run with `--until` reads none, and orders that the next run does."""
    if ports.source.until is not None:
        order_later_readings(ports, lease, plans)
        return []
    find_altered = _LogOfAlterations(ports, run_start).hiding_tables
    column_readings, plans = read_columns(ports, plans, batch.id, find_altered)
    return [*column_readings, *load_tables(ports, lease, run_start, plans, find_altered)]


@dataclass(slots=True)
class _LogOfAlterations:
    """The statements in this run's log, up to the log's end when it was last asked, after
    which a table may have hidden values under names that show them. Each part of the log
    is read once."""

    ports: RunPorts
    run_start: RunStart
    _altering_statements: list[LoggedStatement] = field(default_factory=list)
    """Statements that may have changed columns or names of tables."""
    _naming_statements: list[LoggedStatement] = field(default_factory=list)
    """Those of them that may have given a table its name, or created it LIKE another."""
    _exchanged_tables: set[TableName] = field(default_factory=set)
    """Tables that exchanged rows with another table, where the settings hide values of
    one of the two; names as the server compares them."""
    _read_until: Coordinates | None = None

    def hiding_tables(self, names: Collection[TableName]) -> frozenset[TableName]:
        """Return those of some tables that must not be read from the server before the
        log of this run: only once it is followed is it known what the settings hide of
        their rows. A statement altered the columns of a table that hides some, or gave
        a table its name, created it LIKE another one, or exchanged its rows. If part of
        the log was skipped, any of them may have got its name there."""
        if not names:
            return frozenset()
        ports, run_start = self.ports, self.run_start
        versions = ports.ledger.schemas_at(ports.source.name, shaped=True)
        shaped = {version.table for version in versions}
        if not shaped and not ports.shaping.has_rules:
            return frozenset()
        if not run_start.decision.continues_log and ports.ledger.has_history(ports.source.name):
            return frozenset(names)
        fold_case, head = case_folding(run_start.facts), ports.server.facts().head
        begin = self._read_until or run_start.start.at
        for statement in statements_between(ports, run_start, begin, head):
            changes = read_change(statement.text, statement.context)
            if not _keeps_columns(changes):
                self._altering_statements.append(statement)
            if _may_give_name(changes):
                self._naming_statements.append(statement)
            for pair in _exchanged_pairs(changes):
                if any(map(ports.shaping.rules_of, pair)):
                    self._exchanged_tables.update(map(fold_case, pair))
        self._read_until = head
        tables = sorted(names)
        altered = {
            table
            for table in spans_of_changes(self._altering_statements, tables, fold_case)
            if table in shaped or ports.shaping.rules_of(table) is not None
        }
        named = spans_of_changes(self._naming_statements, tables, fold_case).keys()
        exchanged = {name for name in names if fold_case(name) in self._exchanged_tables}
        return frozenset(names) & (altered | named | exchanged)


def _may_give_name(changes: Reading) -> bool:
    """Return whether a statement may give a table another name, or create one LIKE
    another."""
    return (
        not isinstance(changes, tuple)
        or bool(renamed_pairs(changes))
        or any(isinstance(change, CreateLike) for change in changes)
    )


def _exchanged_pairs(changes: Reading) -> Iterator[tuple[TableName, TableName]]:
    """Yield the pairs of tables that exchanged rows by EXCHANGE PARTITION."""
    if not isinstance(changes, tuple):
        return
    for change in changes:
        if isinstance(change, AlterTable):
            for clause in change.clauses:
                if isinstance(clause, RowsChange) and clause.other_table is not None:
                    yield change.table, clause.other_table


def _keeps_columns(changes: Reading) -> bool:
    return isinstance(changes, tuple) and all(
        isinstance(change, AlterTable) and change.keeps_columns for change in changes
    )
