"""Catching up: stopped tables are captured from the log, each from the place where it
stopped.

They get a separate batch between two ordinary ones. It begins where the first of its
tables stopped, or at the start of the batch that contains this place. It ends where the
newest batch ended, and the next ordinary batch continues from there. Only its tables
are captured. Their structures are those that were recorded at the first reading, unless
a person gave a structure, or Lockstep now follows a statement that it could not follow
then. Its changes get new, higher sequence numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter

from lockstep.pipeline.model.batch import Batch, BatchKind, Cursor
from lockstep.pipeline.model.table_state import StoppedTable, Supplier, TableOrder
from lockstep.pipeline.run.abandon import abandon
from lockstep.pipeline.run.begin import start_at_known_place
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.basis import Basis, tables_of
from lockstep.pipeline.run.dump.batch_capture import BatchCapture
from lockstep.pipeline.run.dump.captured_tables import CapturedTables, ReturningTable
from lockstep.pipeline.run.dump.initial_schemas import (
    RecordedVersions,
    structures_in_batch,
    tracker_of,
)
from lockstep.pipeline.run.dump.structure_proof import note_unproven, prove_structures
from lockstep.pipeline.run.reports import CaptureReport
from lockstep.pipeline.run.stop_errors import (
    NEXT_RUN_READS_HINT,
    reread_error,
    resume_reads_hint,
    waits_for_rows,
)
from lockstep.pipeline.run.table_plans import TablePlans
from lockstep.pipeline.schema.history import SchemaVersion
from lockstep.pipeline.start.bounds import RunBounds
from lockstep.pipeline.supply import ColumnsFromServer, FromChangelog, RowsFromServer, Supply
from lockstep.pipeline.values.decisions import START_KIND, Continuity, Decision, Lease
from lockstep.pipeline.values.errors import (
    LockstepError,
    Need,
    Recovery,
    SchemaUnknownAt,
    StoppedBy,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.table import TableName


def catch_up(ports: RunPorts, lease: Lease, plans: TablePlans) -> CaptureReport | str | None:
    """Capture a batch with the changes that the tables of `plans.spans` lack. Return
    None if there are no such tables. If the log cannot be read or decoded as planned,
    abandon the batch and return a sentence that says why."""
    first, cursor = plans.first_span, plans.cursor
    if first is None or cursor is None:
        return None
    timer_start = perf_counter()
    for order in plans.catch_up_orders:
        low = plans.spans[order.table].low
        ports.progress.note(
            f"{order.table} catches up through the log, from {low} to {cursor.position.at}"
        )
    names = ", ".join(sorted(map(str, plans.spans)))
    verb = "catches" if len(plans.spans) == 1 else "catch"
    reason = f"{names} stopped and {verb} up alone, from {first.start} to {cursor.position}"
    details = {"batch": first.batch.id}
    batch = begin_catching_up(ports, lease, first.start, cursor, reason, details)
    try:
        return _capture_missing_changes(ports, lease, plans, batch, reason, timer_start)
    except LockstepError as error:
        if error.recovery is Recovery.RETRY:
            raise
        abandon(ports, lease, batch, error.message)
        return f"the log cannot supply what it lacks: {error.message}"


def begin_catching_up(
    ports: RunPorts,
    lease: Lease,
    start: Position,
    cursor: Cursor,
    reason: str,
    details: Mapping[str, object],
) -> Batch:
    """Record the decision to capture some tables from `start` to the cursor, and begin
    the batch. `details`: more facts for the record."""
    details = {"from": str(start), "to": str(cursor.position), **details}
    decision = Decision(
        START_KIND,
        BatchKind.CATCHING_UP.value,
        reason,
        details,
        previous_batch=cursor.batch,
        continuity=Continuity.CONTIGUOUS,
    )
    entry = ports.ledger.decide(lease, decision)
    return ports.ledger.begin_batch(
        lease, start, continued_batch=None, start_decision=entry.id, kind=BatchKind.CATCHING_UP
    )


def read_proven(lease: Lease, capture: BatchCapture) -> None:
    """Read the log of a batch, and compare its structures with the server's. Raise
    `SchemaUnknownAt` if a table was decoded with a wrong structure."""
    capture.reading.run()
    proof = prove_structures(capture)
    if proof.errors:
        table, error = next(iter(proof.errors.items()))
        raise SchemaUnknownAt(f"{table}: {error.reason}", hint=error.hint)
    note_unproven(lease, capture, proof)


def _tables_with_supply(plans: TablePlans, kind: type[Supply]) -> dict[TableName, str]:
    """Return the tables that catch up and also need this supply, each with the reason."""
    reasons, spans = plans.tables_supplied(kind), plans.spans
    return {table: reasons[table] for table in reasons if table in spans}


def _capture_missing_changes(
    ports: RunPorts, lease: Lease, plans: TablePlans, batch: Batch, reason: str, timer_start: float
) -> CaptureReport:
    first, cursor, facts = plans.first_span, plans.cursor, plans.facts
    assert first is not None and cursor is not None and facts is not None
    stop_batches = [
        order.stopped.batch for order in plans.catch_up_orders if order.stopped is not None
    ]
    resumed_tables = [order.table for order in plans.catch_up_orders]
    basis = Basis(
        ports,
        start_at_known_place(first.start, first.anchor, facts, reason, by_gtid=cursor.by_gtid),
        RunBounds(cursor.position.at, GtidSet()),
        tables=tables_of(
            ports,
            batch.start,
            batch.id,
            resumed_tables,
            last_sequence_before=batch.sequence_before,
            first_caught_up_batch=min(stop_batches, default=0),
        ),
        structures=tracker_of(
            ports,
            structures_in_batch(ports, first.batch, first.start.at),
            facts,
            find_recorded=RecordedVersions(ports.ledger, ports.source.name, first.batch.id),
        ),
        prepared_transactions=plans.prepared_transactions,
    )
    # Values of these tables that the log lacks are read from the server by the next
    # capture.
    completed_tables = {
        **_tables_with_supply(plans, ColumnsFromServer),
        **_tables_with_supply(plans, RowsFromServer),
    }
    returning_tables = [
        ReturningTable(order, plans.spans[order.table].low, _version_at(ports, order, plans))
        for order in plans.catch_up_orders
    ]
    basis.tables.add_returning(returning_tables, completed_later=completed_tables)
    capture = BatchCapture(basis, batch)
    read_proven(lease, capture)
    origins = plans.changelog_origins
    capture.rewrite({table: origins[table] for table in origins.keys() & plans.spans.keys()})
    record = capture.finish(
        end=cursor.position,
        anchor=cursor.anchor,
        by_gtid=cursor.by_gtid,
        carried_out_orders=tuple(order.id for order in plans.catch_up_orders),
    )
    record = replace(
        record,
        history=record.history.for_tables(plans.spans),
        stopped_tables=_quarantines(plans, basis.tables, cursor),
    )
    ports.ledger.record_capture(lease, batch.id, record)
    return capture.report(record, timer_start)


def _version_at(ports: RunPorts, order: TableOrder, plans: TablePlans) -> SchemaVersion | None:
    """Return the version of a table's structure at the place where it stopped. It is
    looked up, because statements alone do not lead to a structure that was read from
    the source."""
    span = plans.spans[order.table]
    return _version_of_last_catch_up(ports, order) or ports.ledger.schema_at(
        ports.source.name, order.table, batch=span.batch.id, place=span.low
    )


def _version_of_last_catch_up(ports: RunPorts, order: TableOrder) -> SchemaVersion | None:
    """Return the version of the structure that an earlier catching up recorded, if the
    table stopped again in that batch."""
    stopped, source = order.stopped, ports.source.name
    if stopped is None:
        return None
    for batch in ports.ledger.live_batches(source, stopped.batch, stopped.batch):
        version = ports.ledger.schema_at(source, order.table, batch=batch.id, place=stopped.at)
        if batch.catches_up and version is not None and version.batch == batch.id:
            return version
    return None


def _quarantines(
    plans: TablePlans, tables: CapturedTables, cursor: Cursor
) -> tuple[StoppedTable, ...]:
    """Return the tables that this batch quarantines.

    - A table that stopped at the same place again is read from the source by the next
      run. It waits for a person if the reading needs consent, or if a person ordered
      the changelog as its supply.
    - A table that also needs another supply, and stopped before it had that, is read
      from the source: by the next run, or once a person resumes it if the error waits
      for a person.
    - A table that lacks rows or columns after catching up is read from the source by
      the next run.
    """
    quarantines = tables.quarantines
    for order in plans.catch_up_orders:
        table, quarantine = order.table, quarantines.get(order.table)
        if quarantine is None or quarantine.need is Need.CONSENT:
            continue
        made_no_progress = quarantine.at is not None and not plans.spans[table].low < quarantine.at
        if order.supplier is Supplier.CHANGELOG:
            if made_no_progress or quarantine.starts_by_itself:
                hint = resume_reads_hint(table)
                quarantines[table] = _read_after_resume(quarantine, hint)
        elif made_no_progress:
            quarantines[table] = StoppedTable.of(
                table, reread_error(quarantine.reason), quarantine.position, quarantine.at
            )
    doubts = {table.name: table.doubt_reason for table in tables if table.doubt_reason is not None}
    lacking_rows = {**_tables_with_supply(plans, RowsFromServer), **doubts}
    lacking_columns = _tables_with_supply(plans, ColumnsFromServer)
    errors = {table: reread_error(reason) for table, reason in lacking_rows.items()}
    for table, reason in lacking_columns.items():
        errors[table] = reread_error(reason, Need.COLUMNS)
    for table in quarantines.keys() & {*errors, *_tables_with_supply(plans, FromChangelog)}:
        if not waits_for_rows(quarantines[table]):
            quarantines[table] = _with_rows_needed(quarantines[table])
    at = cursor.position.at
    for table, error in errors.items():
        quarantines.setdefault(table, StoppedTable.of(table, error, str(at), at))
    return tuple(quarantines.values())


def _with_rows_needed(quarantine: StoppedTable) -> StoppedTable:
    """Return the quarantine of a table that stopped before its other supply was used.
    All of its rows are read from the source."""
    if quarantine.starts_by_itself:
        return replace(quarantine, hint=NEXT_RUN_READS_HINT, need=Need.ROWS)
    return _read_after_resume(quarantine, f"{quarantine.hint}; resumed, it is read from the source")


def _read_after_resume(quarantine: StoppedTable, hint: str) -> StoppedTable:
    """Return the quarantine of a table that waits for a person and is read from the
    source then."""
    return replace(quarantine, hint=hint, need=Need.ROWS, by=StoppedBy.SYSTEM)
