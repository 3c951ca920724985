"""Acknowledge: the ledger alone decides; a click or a hope never does."""

from __future__ import annotations

from time import perf_counter

from pipeline.batch import BatchState, Lease, SetAside, TableCondition
from pipeline.runs.context import AcknowledgeReport, Workplace
from pipeline.table import TableName


def acknowledge(work: Workplace, lease: Lease) -> AcknowledgeReport:
    """Acknowledge every merged batch, oldest first, up to the first that is not."""
    clock = perf_counter()
    source = work.source.name
    done: list[int] = []
    held: dict[int, tuple[TableName, ...]] = {}
    for batch in work.ledger.unfinished(source):
        if batch.state is BatchState.MERGED and not held:
            work.ledger.acknowledge(lease, batch.id)
            remove_ended(work, batch.id)
            done.append(batch.id)
        elif batch.state is BatchState.CAPTURED:
            held[batch.id] = _waited_for(work, batch.id)
    cursor = work.ledger.acknowledged_cursor(source)
    return AcknowledgeReport(
        acknowledged=tuple(done),
        position=cursor.position if cursor else None,
        held=held,
        set_aside=tables_set_aside(work),
        seconds=perf_counter() - clock,
    )


def remove_ended(work: Workplace, batch: int) -> None:
    """Delete the rows of prepared transactions that an acknowledged batch saw ended: no
    batch reads them again."""
    for prepared in work.ledger.ended_prepared(batch):
        if prepared.file is not None:
            work.spool.remove(work.source.name, prepared.file)


def _waited_for(work: Workplace, batch: int) -> tuple[TableName, ...]:
    pending = work.ledger.pending(work.source.name)
    return tuple(sorted(table for table, batches in pending.items() if batch in batches))


def tables_set_aside(work: Workplace) -> tuple[SetAside, ...]:
    """Every table of the source that is set aside now, sorted."""
    states = work.ledger.table_states(work.source.name)
    return tuple(
        SetAside(table, state.reason or "", state.hint or "", state.position or "")
        for table, state in sorted(states.items())
        if state.condition is not TableCondition.ACTIVE
    )
