"""Acknowledge: move the source's position past each batch that is merged into all
mirrors (the Delta tables with the current rows).

The ledger (in Postgres) alone decides which batches are merged. Files that only
unacknowledged batches need are deleted afterwards: spooled rows of prepared XA
transactions, and rows that were read from MySQL.
"""

from __future__ import annotations

from functools import partial
from time import perf_counter

from lockstep.pipeline.mirror.layout import snapshot_path
from lockstep.pipeline.model.batch import BatchState, RequestCounts
from lockstep.pipeline.model.life import MirrorRemoved
from lockstep.pipeline.model.table_state import TableCondition, TableEventKind
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.run.agreement.claim import require_claim
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.table_extents import partial_tables
from lockstep.pipeline.run.reports import AcknowledgeReport
from lockstep.pipeline.run.stop_errors import stopped_tables
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.policies import DroppedTables
from lockstep.pipeline.values.table import TableName


def acknowledge(ports: RunPorts, lease: Lease) -> AcknowledgeReport:
    """Acknowledge the merged batches in their order, up to the first that is not
    merged."""
    timer_start = perf_counter()
    require_claim(ports)
    source = ports.source.name
    acknowledged_batches: list[int] = []
    waiting_tables: dict[int, tuple[TableName, ...]] = {}
    recorded_requests = RequestCounts(0, 0)
    for batch in ports.ledger.unfinished_batches(source):
        if batch.state is BatchState.MERGED and not waiting_tables:
            end_dropped_mirrors(ports, lease, batch.id)
            all_requests = ports.count_requests()
            new_requests = all_requests and all_requests - recorded_requests
            ports.ledger.acknowledge(lease, batch.id, new_requests)
            recorded_requests = all_requests or recorded_requests
            # After the ledger's record. If the run dies in between, `repair` deletes
            # these files.
            remove_spooled_rows(ports, batch.id)
            remove_snapshots(ports, batch.id)
            acknowledged_batches.append(batch.id)
        elif batch.state is BatchState.CAPTURED:
            pending = ports.ledger.pending_batches(source).items()
            tables = (table for table, batches in pending if batch.id in batches)
            waiting_tables[batch.id] = tuple(sorted(tables))
    remove_dropped_mirrors(ports, lease)
    cursor = ports.ledger.cursors(source).acknowledged
    return AcknowledgeReport(
        acknowledged_batches=tuple(acknowledged_batches),
        position=cursor.position if cursor else None,
        waiting_tables=waiting_tables,
        quarantined=stopped_tables(
            ports.ledger.table_states(source), ports.source.patterns.matches
        ),
        seconds=perf_counter() - timer_start,
        partial_tables=partial_tables(ports.ledger, source, ports.source.patterns),
    )


def end_dropped_mirrors(ports: RunPorts, lease: Lease, batch_id: int) -> None:
    """Record which mirrors are to be deleted, because their tables were dropped in this
    batch and the policy is `dropped_tables = "drop"`. If a later batch has changes of
    the table, the mirror is deleted after that batch instead: these changes are
    published under the generation (a number in the paths of mirror and changelog) in
    which they were captured."""
    if not _deletes_some_mirrors(ports):
        return
    ledger, source = ports.ledger, ports.source.name
    last_kinds = {
        event.table: event.kind for event in batch_content(ledger, source, batch_id).events
    }
    dropped = {table for table, kind in last_kinds.items() if kind is TableEventKind.DROPPED}
    if not dropped:
        return
    dropped -= ledger.pending_batches(source).keys()
    for later in ledger.unfinished_batches(source):
        if later.id > batch_id:
            dropped -= batch_content(ledger, source, later.id).changed_tables
    states = ledger.table_states(source)
    for table in sorted(dropped):
        if _deletes_mirror(ports, table) and states[table].condition is TableCondition.DROPPED:
            ledger.record_event(lease, table, MirrorRemoved())


def remove_dropped_mirrors(ports: RunPorts, lease: Lease) -> None:
    """Delete the mirrors that `end_dropped_mirrors` recorded. Each run also does this
    when it begins, to finish an interrupted deletion. A process that hangs here cannot
    delete a new mirror in the same folder: `remove` deletes only what was there before
    it asked whether the lease is still held."""
    if not _deletes_some_mirrors(ports):
        return
    examined_versions = ports.ledger.examined_versions(ports.source.name)
    for state in ports.ledger.table_states(ports.source.name).values():
        if _deletes_mirror(ports, state.table) and state.is_mirror_removed:
            ports.mirrors.remove(state.mirror, partial(ports.ledger.require_held, lease))
            if state.mirror in examined_versions:
                ports.ledger.note_examined_versions(lease, {state.mirror: None})


def _deletes_some_mirrors(ports: RunPorts) -> bool:
    return any(
        policies.dropped_tables is DroppedTables.DROP for policies in ports.source.all_policies
    )


def _deletes_mirror(ports: RunPorts, table: TableName) -> bool:
    return ports.source.policies_of(table).dropped_tables is DroppedTables.DROP


def remove_spooled_rows(ports: RunPorts, batch_id: int) -> None:
    """Delete the spooled rows of XA transactions that were committed or rolled back in
    an acknowledged batch. No batch reads them again."""
    for prepared in batch_content(ports.ledger, ports.source.name, batch_id).ended_transactions:
        if prepared.file is not None:
            ports.spool.remove(ports.source.name, prepared.file)


def remove_snapshots(ports: RunPorts, batch_id: int) -> None:
    """Delete the files of rows that an acknowledged batch read from the source. The
    mirrors have these rows."""
    for snapshot in batch_content(ports.ledger, ports.source.name, batch_id).snapshots:
        ports.segments.remove(snapshot_path(ports.source.name, snapshot.table), snapshot.files)
