"""Acknowledge: move the source's position past each batch that is merged into all
mirrors (the Delta tables with the current rows).

The ledger (in Postgres) alone decides which batches are merged. Files that nobody needs
once a batch is acknowledged are then deleted.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import takewhile
from time import perf_counter

from lockstep.pipeline.mirror.layout import snapshot_path
from lockstep.pipeline.model.batch import Batch, BatchContent, BatchState, RequestCounts
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
    unfinished_batches = ports.ledger.unfinished_batches(source)
    acknowledged_batches: list[int] = []
    recorded_requests = RequestCounts(0, 0)
    for batch in takewhile(lambda batch: batch.state is BatchState.MERGED, unfinished_batches):
        content = batch_content(ports.ledger, source, batch.id)
        _record_mirrors_to_remove(ports, lease, content)
        new_requests = None
        all_requests = ports.count_requests()
        if all_requests is not None:
            # A request counts for one batch only.
            new_requests = all_requests - recorded_requests
            recorded_requests = all_requests
        ports.ledger.acknowledge(lease, batch.id, new_requests)
        # If the run dies before this, `repair` deletes the files.
        remove_unneeded_files(ports, content)
        acknowledged_batches.append(batch.id)
    remove_dropped_mirrors(ports, lease)
    cursor = ports.ledger.cursors(source).acknowledged
    return AcknowledgeReport(
        acknowledged_batches=tuple(acknowledged_batches),
        position=cursor.position if cursor else None,
        waiting_batches=_waiting_batches(ports, unfinished_batches),
        quarantined=stopped_tables(
            ports.ledger.table_states(source), ports.source.patterns.matches
        ),
        seconds=perf_counter() - timer_start,
        partial_tables=partial_tables(ports.ledger, source, ports.source.patterns),
    )


def _waiting_batches(
    ports: RunPorts, unfinished_batches: Sequence[Batch]
) -> dict[int, tuple[TableName, ...]]:
    """Return the captured batches, each with the tables whose mirrors still lack it."""
    captured = [batch.id for batch in unfinished_batches if batch.state is BatchState.CAPTURED]
    pending = ports.ledger.pending_batches(ports.source.name) if captured else {}
    return {
        batch_id: tuple(sorted(table for table, batches in pending.items() if batch_id in batches))
        for batch_id in captured
    }


def _record_mirrors_to_remove(ports: RunPorts, lease: Lease, content: BatchContent) -> None:
    """Record which mirrors are to be deleted, because their tables were dropped in the
    batch with this content and the policy is `dropped_tables = "drop"`. If a later
    batch has changes of the table, the mirror is deleted after that batch instead:
    these changes were captured for the present generation (a number in the paths of
    mirror and changelog), and a deletion begins a new one."""
    ledger, source = ports.ledger, ports.source.name
    last_kinds = {event.table: event.kind for event in content.events}
    dropped = {
        table
        for table, kind in last_kinds.items()
        if kind is TableEventKind.DROPPED and _deletes_mirror(ports, table)
    }
    if not dropped:
        return
    dropped -= ledger.pending_batches(source).keys()
    for later in ledger.unfinished_batches(source):
        if later.id > content.batch:
            dropped -= batch_content(ledger, source, later.id).changed_tables
    states = ledger.table_states(source)
    for table in sorted(dropped):
        if states[table].condition is TableCondition.DROPPED:
            ledger.record_event(lease, table, MirrorRemoved())


def remove_dropped_mirrors(ports: RunPorts, lease: Lease) -> None:
    """Delete the mirrors that `_record_mirrors_to_remove` recorded. Each run also does
    this when it begins, to finish an interrupted deletion. A process that hangs here
    cannot delete a new mirror in the same folder: `remove` opens the folder, checks the
    lease, and deletes only what is in the folder that it opened."""
    ledger, source = ports.ledger, ports.source.name
    mirrors = [
        state.mirror
        for state in ledger.table_states(source).values()
        if state.is_mirror_removed and _deletes_mirror(ports, state.table)
    ]
    examined_versions = ledger.examined_versions(source) if mirrors else {}
    for mirror in mirrors:
        ports.mirrors.remove(mirror, partial(ledger.require_held, lease))
        if mirror in examined_versions:
            ledger.note_examined_versions(lease, {mirror: None})


def _deletes_mirror(ports: RunPorts, table: TableName) -> bool:
    return ports.source.policies_of(table).dropped_tables is DroppedTables.DROP


def remove_unneeded_files(ports: RunPorts, content: BatchContent) -> None:
    """Delete the files that are no longer needed once the batch with this content is
    acknowledged: spooled rows of XA transactions that it saw committed or rolled back,
    and rows that it read from the source, which the mirrors now have."""
    source = ports.source.name
    for transaction in content.ended_transactions:
        if transaction.file is not None:
            ports.spool.delete_file(source, transaction.file)
    for snapshot in content.snapshots:
        ports.segments.delete_files(snapshot_path(source, snapshot.table), snapshot.files)
