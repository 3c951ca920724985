"""What people order about tables, in memory: `pipeline.ports.orders`.

And where that leaves the tables; what a capture quarantines is in `tables`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pipeline.batch import Batch, BatchState
from pipeline.decisions import Lease
from pipeline.errors import Remedy
from pipeline.life.events import Event, Paused, Released, Reloaded, Resumed
from pipeline.schema.model import TableSchema
from pipeline.table import TableName
from pipeline.table_state import (
    STOPPED,
    OrderKind,
    TableOrder,
    paused,
    reloading,
)
from resources.postgres.refusals import refusal
from tests.twins.books import MemoryBooks, MemorySubject, OrderEntry
from tests.twins.life_events import captures_end, count_behind, record


class MemoryOrders(MemorySubject):
    def open_orders(self, source: str) -> list[TableOrder]:
        return [
            replace(entry.order, stopped=state.stopped)
            for entry in self.books.orders.values()
            if entry.source == source and _is_open(self.books, entry)
            if (state := self.books.states[source, entry.order.table]).condition in STOPPED
        ]

    def pause_table(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        remedy: Remedy | None = None,
    ) -> TableOrder:
        return self._order(lease, table, OrderKind.PAUSE, author, reason, remedy=remedy)

    def reload_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        return self._order(lease, table, OrderKind.RELOAD, author, reason)

    def resume_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        return self._order(lease, table, OrderKind.RESUME, author, reason)

    def release_table(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        schema: TableSchema | None = None,
        renames: Sequence[tuple[str, str]] = (),
    ) -> TableOrder:
        return self._order(lease, table, OrderKind.RELEASE, author, reason, schema, renames)

    def _order(
        self,
        lease: Lease,
        table: TableName,
        kind: OrderKind,
        author: str,
        reason: str,
        schema: TableSchema | None = None,
        renames: Sequence[tuple[str, str]] = (),
        remedy: Remedy | None = None,
    ) -> TableOrder:
        with self._step(lease) as books:
            source = lease.source
            state = books.states.get((source, table))
            if state is None:
                raise refusal("table_orders_table")
            if not author.strip():
                raise refusal("table_orders_authored")
            if renames and schema is None:
                raise refusal("table_orders_renames_released")
            here = captures_end(books, source)
            told: dict[OrderKind, Event] = {
                OrderKind.PAUSE: Paused(*paused(table, reason, author), remedy, here),
                OrderKind.RELOAD: Reloaded(*reloading(table, reason, author), here),
                OrderKind.RESUME: Resumed(),
                OrderKind.RELEASE: Released(),
            }
            record(books, source, [(table, told[kind])])
            if kind in (OrderKind.PAUSE, OrderKind.RELOAD):
                count_behind(books, source, table)
            state = books.states[source, table]
            number = len(books.orders) + 1
            given = TableOrder(
                number,
                table,
                kind,
                author,
                reason,
                self._clock(),
                state.stopped,
                schema,
                tuple(renames),
            )
            books.orders[number] = OrderEntry(source, given)
            return given


def carry_out(books: MemoryBooks, batch: Batch, number: int) -> TableName:
    """The batch that is being captured carries the order out; its table."""
    entry = books.orders.get(number)
    if entry is None or entry.source != batch.source or entry.order.kind is OrderKind.PAUSE:
        raise refusal("table_orders_known")
    if entry.done_batch is not None:
        raise refusal("table_orders_done_once")
    if not _is_open(books, entry):
        raise refusal("table_orders_newest_counts")
    if batch.state is not BatchState.CAPTURING:
        raise refusal("table_orders_done_while_capturing")
    books.orders[number] = replace(entry, done_batch=batch.id)
    return entry.order.table


def _is_open(books: MemoryBooks, entry: OrderEntry) -> bool:
    newest = max(
        one.order.id
        for one in books.orders.values()
        if (one.source, one.order.table) == (entry.source, entry.order.table)
    )
    order = entry.order
    return order.kind is not OrderKind.PAUSE and entry.done_batch is None and order.id == newest
