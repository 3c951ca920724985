"""Read only the new columns of a table from MySQL, by key: its other values are in the mirror and
in the log. If the table's structure is not that of the history, or keeps being altered, all of its
rows are read instead."""

from __future__ import annotations

from dataclasses import replace

from lockstep.pipeline.mirror.layout import snapshot_path
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.stop_errors import Reread, refusal
from lockstep.pipeline.run.table_plans import TablePlans
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.supply.plan import ColumnsRead, NewColumns
from lockstep.pipeline.values.errors import StructureMoved, TableError
from lockstep.pipeline.values.retries import TABLE_READ
from lockstep.pipeline.values.row_groups import row_groups
from lockstep.pipeline.values.table import TableName


def read_columns(work: Workplace, plans: TablePlans, batch: int) -> tuple[list[Reread], TablePlans]:
    """Read the columns that the plans ask for into durable files of the batch. Return what was
    read, and the plans of all other tables."""
    rereads, remaining = list[Reread](), dict(plans.plans)
    for table, plan in plans.plans.items():
        if plan.besides is None or not isinstance(plan.besides.supply, ColumnsRead):
            continue
        reread = _columns_of(work, table, plan.besides.supply.columns, plan.besides.reason, batch)
        if reread is None:
            remaining[table] = plan.with_rows
        else:
            rereads.append(reread)
            del remaining[table]
    return rereads, replace(plans, plans=remaining)


def _columns_of(
    work: Workplace, table: TableName, columns: NewColumns, why: str, batch: int
) -> Reread | None:
    """Return what was read; None if all rows have to be read instead."""
    version = work.ledger.schema_version(work.source.name, table, columns.version)
    for _ in TABLE_READ.tries():
        try:
            baseline = work.server.baseline([table])
        except StructureMoved:
            continue
        except TableError as error:
            head = work.server.facts().head
            return Reread(table, why, None, head, head, error=error)
        schema = baseline.tables[0] if baseline.tables else None
        if schema is None or version.schema is None:
            return None
        if row_structure(version.schema) != row_structure(schema):
            return None
        reread = Reread(
            table,
            why,
            schema,
            baseline.low,
            baseline.high,
            columns=columns.names,
            version=columns.version,
        )
        try:
            return _read(work, reread, schema, batch)
        except StructureMoved:
            continue
        except TableError as error:
            return replace(reread, error=error)
    return None


def _read(work: Workplace, reread: Reread, schema: TableSchema, batch: int) -> Reread:
    if (refused := refusal(schema)) is not None:
        raise refused
    names = ", ".join(reread.columns or ())
    work.progress.note(f"{reread.table} is read from the source, only {names} by key: {reread.why}")
    with work.server.snapshot(schema, reread.columns) as rows:
        writer = work.segments.open(
            snapshot_path(work.source.name, reread.table),
            batch=batch,
            schema_version=0,
            schema=rows.schema,
        )
        try:
            for group in row_groups(rows.batches):
                writer.write(group)
        except (TableError, StructureMoved):
            writer.drop(0)
            raise
        return replace(reread, low=rows.low, high=rows.high, files=writer.close())
