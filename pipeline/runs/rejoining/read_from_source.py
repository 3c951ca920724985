"""All that a capture reads from the source before it reads the log.

Belongs here: which tables are read whole, and which by columns. Does not: reading columns
(`resnapshot`), reading tables (`loading`), joining either with the log (`capturing.snapshot_join`).
"""

from __future__ import annotations

from pipeline.batch import Batch
from pipeline.decisions import Lease
from pipeline.runs.begin import RunStart
from pipeline.runs.context import Workplace
from pipeline.runs.loading.due import LoadReason, new_tables, order_new
from pipeline.runs.loading.loads import load_tables
from pipeline.runs.rejoining.column_backfill import enough
from pipeline.runs.rejoining.log_reach import TablesResumed
from pipeline.runs.rejoining.rejoin import Backfill
from pipeline.runs.rejoining.resnapshot import reread_columns
from pipeline.runs.reread import Reread


def read_from_source(
    work: Workplace, lease: Lease, run_start: RunStart, batch: Batch, back: TablesResumed
) -> list[Reread]:
    """Tables of which the log alone cannot tell all, or some of their columns."""
    if work.source.until is not None:
        order_new(work, lease, run_start)
        return []  # they wait for a run whose end nobody fixed
    columns = [order for order in back.read if isinstance(back.ways[order.table], Backfill)]
    rereads, whole = reread_columns(
        work, columns, batch.id, lambda order, schema: enough(work, order, schema)
    )
    done = {reread.table for reread in rereads}
    wanted = {
        order.table: LoadReason(
            whole.get(order.table) or back.why.get(order.table) or order.reason or order.kind.value,
            order.author,
        )
        for order in back.read
        if order.table not in done
    }
    return [*rereads, *load_tables(work, lease, run_start, new_tables(work, run_start) | wanted)]
