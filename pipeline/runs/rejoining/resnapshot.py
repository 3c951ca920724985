"""Tables that are read from the source in one piece, because the log cannot tell all of it.

A table that a run could not follow by the log alone is quarantined there, and read by the
next one: before the end of that run is fixed, so that the log up to the reading's high
watermark is part of it. What the log holds of the table behind the low watermark wins.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from pipeline.changes.layout import snapshot_path
from pipeline.decisions import Lease
from pipeline.errors import (
    BY_ITSELF,
    StructureMoved,
    TableError,
)
from pipeline.retries import TABLE_READ
from pipeline.row_groups import row_groups
from pipeline.runs.context import Workplace
from pipeline.runs.cures import refusal
from pipeline.runs.rejoining.rejoin import why_owed
from pipeline.runs.reread import Reread
from pipeline.schema.model import TableSchema
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


Wanted = tuple[int, tuple[str, ...]]
"""A version of a table, and columns of it."""


def reread_columns(
    work: Workplace,
    orders: Sequence[TableOrder],
    batch: int,
    wanted: Callable[[TableOrder, TableSchema], Wanted | None],
) -> tuple[list[Reread], dict[TableName, str]]:
    """Read new columns of tables by key; their values are durable in files of the batch. And the
    tables of which all must be read, each with the reason. `wanted`: what is enough of a table,
    asked once its structure is known."""
    rereads, whole = list[Reread](), dict[TableName, str]()
    for order in orders:
        reread = _columns_of(work, order, batch, wanted)
        if reread is None:
            whole[order.table] = order.reason or order.kind.value
        else:
            rereads.append(reread)
    return rereads, whole


def _columns_of(
    work: Workplace,
    order: TableOrder,
    batch: int,
    wanted: Callable[[TableOrder, TableSchema], Wanted | None],
) -> Reread | None:
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
        enough = wanted(order, baseline.tables[0]) if baseline.tables else None
        if enough is None:
            return None
        schema, (version, columns) = baseline.tables[0], enough
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
