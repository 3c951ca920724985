"""Acknowledge: the ledger alone decides; a click or a hope never does."""

from __future__ import annotations

from time import perf_counter

from pipeline.batch import BatchState, Requests
from pipeline.changes.layout import snapshot_path
from pipeline.decisions import Lease
from pipeline.life.events import MirrorRemoved
from pipeline.policies import DroppedTables
from pipeline.ports.ledger import content_of
from pipeline.runs.agreement.claim import require_claim
from pipeline.runs.capturing.table_extents import partial_tables
from pipeline.runs.context import Workplace
from pipeline.runs.cures import quarantines_of
from pipeline.runs.reports import AcknowledgeReport
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableEventKind


def acknowledge(work: Workplace, lease: Lease) -> AcknowledgeReport:
    """Acknowledge every merged batch, oldest first, up to the first that is not."""
    clock = perf_counter()
    require_claim(work)
    source = work.source.name
    done: list[int] = []
    held: dict[int, tuple[TableName, ...]] = {}
    noted: Requests | None = None
    for batch in work.ledger.unfinished(source):
        if batch.state is BatchState.MERGED and not held:
            end_dropped(work, lease, batch.id)
            asked = work.requests()
            since = asked - noted if asked is not None and noted is not None else asked
            work.ledger.acknowledge(lease, batch.id, since)
            noted = asked
            remove_ended(work, batch.id)
            remove_snapshots(work, batch.id)
            done.append(batch.id)
        elif batch.state is BatchState.CAPTURED:
            pending = work.ledger.pending(source).items()
            held[batch.id] = tuple(sorted(table for table, of in pending if batch.id in of))
    remove_dropped(work, lease)
    cursor = work.ledger.cursors(source).acknowledged
    return AcknowledgeReport(
        acknowledged=tuple(done),
        position=cursor.position if cursor else None,
        held=held,
        quarantined=quarantines_of(work.ledger.table_states(work.source.name)),
        seconds=perf_counter() - clock,
        partial=partial_tables(work.ledger, source, work.source.patterns),
    )


def end_dropped(work: Workplace, lease: Lease, batch: int) -> None:
    """With `dropped_tables = "drop"`, note that the mirrors of tables that this batch saw
    dropped are to go. One that later batches tell of is theirs to end: what they have of it is
    published under the generation it was captured in."""
    if not _some_mirror_goes(work):
        return
    ledger, source = work.ledger, work.source.name
    last = {event.table: event.kind for event in content_of(ledger, source, batch).events}
    dropped = {table for table, kind in last.items() if kind is TableEventKind.DROPPED}
    if not dropped:
        return
    dropped -= ledger.pending(source).keys()
    later = [one.id for one in ledger.unfinished(source) if one.id > batch]
    for number in later:
        dropped -= content_of(ledger, source, number).changed
    states = ledger.table_states(source)
    for table in sorted(dropped):
        goes = work.source.policies_of(table).dropped_tables is DroppedTables.DROP
        if goes and states[table].condition is TableCondition.DROPPED:
            ledger.record_event(lease, table, MirrorRemoved())


def remove_dropped(work: Workplace, lease: Lease) -> None:
    """Delete the mirrors that ended; again where that was cut off. Each run begins with it:
    what is made in their place is a folder that whoever hangs here has not opened."""
    if not _some_mirror_goes(work):
        return

    def held() -> None:
        work.ledger.require_held(lease)

    looked = work.ledger.looked(work.source.name)
    for state in work.ledger.table_states(work.source.name).values():
        goes = work.source.policies_of(state.table).dropped_tables is DroppedTables.DROP
        if goes and state.mirror_ended:
            work.mirrors.remove(state.mirror, held)
            if state.mirror in looked:
                work.ledger.note_looked(lease, {state.mirror: None})


def _some_mirror_goes(work: Workplace) -> bool:
    return any(one.dropped_tables is DroppedTables.DROP for one in work.source.all_policies)


def remove_ended(work: Workplace, batch: int) -> None:
    """Delete the rows of prepared transactions that an acknowledged batch saw ended: no
    batch reads them again."""
    for prepared in content_of(work.ledger, work.source.name, batch).ended:
        if prepared.file is not None:
            work.spool.remove(work.source.name, prepared.file)


def remove_snapshots(work: Workplace, batch: int) -> None:
    """Delete the rows that an acknowledged batch read from the source: its mirrors hold
    them."""
    for part in content_of(work.ledger, work.source.name, batch).snapshots:
        work.segments.remove(snapshot_path(work.source.name, part.table), part.files)
