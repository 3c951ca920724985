"""Tables that are read from the source in one piece, because the log cannot tell all of it.

A table that a run could not follow by the log alone is quarantined there, and read by the
next one: before the end of that run is fixed, so that the log up to the reading's high
watermark is part of it. What the log holds of the table behind the low watermark wins.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.changes.layout import snapshot_path
from pipeline.changes.lineage import ColumnsRead
from pipeline.decisions import Lease
from pipeline.errors import (
    BY_ITSELF,
    Remedy,
    StructureMoved,
    TableError,
)
from pipeline.retries import TABLE_READ
from pipeline.row_groups import row_groups
from pipeline.runs.context import Workplace
from pipeline.runs.cures import Reread, refusal
from pipeline.runs.merging.job import lineage_over, versions_between
from pipeline.runs.rejoining.rejoin import goes_on, remedy_of, why_owed
from pipeline.schema.history import SchemaVersion
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import row_structure
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableCondition, TableOrder, TableState


def due(work: Workplace, lease: Lease) -> list[TableOrder]:
    """Open orders for tables that still match, those that the last run left among them."""
    source = work.source.name
    for state in _left(work, work.ledger.open_orders(source)):
        reason = why_owed(state)
        work.ledger.order_table(
            lease, state.table, OrderKind.RELEASE, author="lockstep", reason=reason
        )
    return _matching(work, work.ledger.open_orders(source))


def foreseen_orders(work: Workplace) -> list[TableOrder]:
    """What `due` would give, found out without writing anything."""
    source, now = work.source.name, work.clock()
    orders = work.ledger.open_orders(source)
    orders += [
        TableOrder(
            0, state.table, OrderKind.RELEASE, "lockstep", why_owed(state), now, state.stopped
        )
        for state in _left(work, orders)
    ]
    return _matching(work, orders)


def _left(work: Workplace, orders: Sequence[TableOrder]) -> list[TableState]:
    """Tables that a run left for the next one to read, and nobody ordered back yet."""
    ordered = {order.table for order in orders}
    return [
        state
        for table, state in work.ledger.table_states(work.source.name).items()
        if state.condition is TableCondition.QUARANTINED
        and state.remedy in BY_ITSELF
        and table not in ordered
    ]


def _matching(work: Workplace, orders: Sequence[TableOrder]) -> list[TableOrder]:
    return [order for order in orders if work.source.patterns.matches(order.table)]


def reread_columns(
    work: Workplace, orders: Sequence[TableOrder], batch: int
) -> tuple[list[Reread], dict[TableName, str]]:
    """Read new columns of tables by key; their values are durable in files of the batch. And the
    tables of which all must be read, each with the reason."""
    rereads, whole = list[Reread](), dict[TableName, str]()
    for order in orders:
        reread = _columns_of(work, order, batch)
        if reread is None:
            whole[order.table] = order.reason or order.kind.value
        else:
            rereads.append(reread)
    return rereads, whole


def _columns_of(work: Workplace, order: TableOrder, batch: int) -> Reread | None:
    """None where that is not enough, or the table kept being altered."""
    why = order.reason or order.kind.value
    for _ in TABLE_READ.tries():
        try:
            baseline = work.server.baseline([order.table])
        except StructureMoved:
            continue
        except TableError as error:
            head = work.server.facts().head
            return Reread(order.table, why, None, head, head, error=error)
        found = enough(work, order, baseline.tables[0]) if baseline.tables else None
        if found is None:
            return None
        schema, (version, columns) = baseline.tables[0], found
        read = Reread(
            order.table, why, schema, baseline.low, baseline.high, columns=columns, version=version
        )
        try:
            return _read(work, read, schema, batch)
        except StructureMoved:
            continue
        except TableError as error:
            return replace(read, error=error)
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


MOST = 2
"""All of a table is read where more than one of so many of its columns would be."""


def enough(
    work: Workplace, order: TableOrder, schema: TableSchema
) -> tuple[int, tuple[str, ...]] | None:
    """The columns that the mirror lacks of a table that is built like that now, and the version
    of the log's end; None where all of the table is to be read."""
    state = work.ledger.table_states(work.source.name)[order.table]
    newest = _newest(work, order.table)
    structure = row_structure(schema)
    if newest is None or newest.schema is None or row_structure(newest.schema) != structure:
        return None
    if state.mirror_version is None or not structure.primary_key or not goes_on(work, state):
        return None
    if remedy_of(state) is not Remedy.BACKFILL:
        return None  # it was quarantined once more, for something else
    try:
        versions = versions_between(work, order.table, state.mirror_version, newest.version)
        line = lineage_over(work, versions, read=ColumnsRead(newest.version))
    except TableError:
        return None
    others = len(structure.columns) - len(structure.primary_key)
    if line.reread or not line.asked or line.key_of(line.versions) != structure.primary_key:
        return None
    return None if MOST * len(line.asked) > others else (newest.version, line.asked)


def _newest(work: Workplace, table: TableName) -> SchemaVersion | None:
    """What the history says of the table where the batches end."""
    source = work.source.name
    cursor = work.ledger.captured_cursor(source)
    if cursor is None:
        return None
    return work.ledger.schema_at(source, table, batch=cursor.batch, place=cursor.position.at)
