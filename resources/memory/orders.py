"""What people order about tables in the memory ledger, and where that leaves the tables.

The rules are those of `resources/postgres/migrations`, by the same names. Does not
belong here: what a capture sets aside (`entries`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from pipeline.batch import Batch, BatchState
from pipeline.errors import Remedy
from pipeline.schema.model import TableSchema
from pipeline.table import TableName
from pipeline.table_state import (
    OrderKind,
    Stopped,
    TableCondition,
    TableOrder,
    TableState,
)
from resources.ledger_rules import paused, refusal, reloading
from resources.memory.books import ENDED, MemoryBooks, OrderEntry

_ASIDE = (TableCondition.PAUSED, TableCondition.QUARANTINED)
_FITS = {
    OrderKind.PAUSE: (tuple(TableCondition), "table_orders_known"),
    OrderKind.RESUME: ((TableCondition.PAUSED,), "table_orders_resume_paused"),
    OrderKind.RELEASE: ((TableCondition.QUARANTINED,), "table_orders_release_quarantined"),
    OrderKind.RELOAD: ((TableCondition.ACTIVE, *_ASIDE), "table_orders_reload_there"),
}


def open_orders(books: MemoryBooks, source: str) -> list[TableOrder]:
    return [
        replace(entry.order, stopped=books.states[source, entry.order.table].stopped)
        for entry in books.orders.values()
        if entry.source == source and _is_open(books, entry)
    ]


def order(
    books: MemoryBooks,
    source: str,
    table: TableName,
    kind: OrderKind,
    *,
    author: str,
    reason: str,
    now: datetime,
    schema: TableSchema | None = None,
    renames: Sequence[tuple[str, str]] = (),
    remedy: Remedy | None = None,
) -> TableOrder:
    state = books.states.get((source, table))
    if state is None:
        raise refusal("table_orders_table")
    if not author.strip():
        raise refusal("table_orders_authored")
    if renames and schema is None:
        raise refusal("table_orders_renames_released")
    conditions, rule = _FITS[kind]
    if state.condition not in conditions:
        raise refusal(rule)
    if kind is OrderKind.PAUSE:
        told = paused(table, reason, author)
        state = books.states[source, table] = _paused(books, source, state, told, remedy)
    elif kind is OrderKind.RELOAD and state.condition is TableCondition.ACTIVE:
        told = reloading(table, reason, author)
        state = books.states[source, table] = _paused(books, source, state, told, None)
    number = len(books.orders) + 1
    given = TableOrder(
        number, table, kind, author, reason, now, state.stopped, schema, tuple(renames)
    )
    books.orders[number] = OrderEntry(source, given)
    return given


def _paused(
    books: MemoryBooks,
    source: str,
    state: TableState,
    told: tuple[str, str],
    remedy: Remedy | None,
) -> TableState:
    stopped = state.stopped
    if state.condition is TableCondition.ACTIVE:
        captured = books.of_source(source, *ENDED)
        end = captured[-1].end if captured else None
        stopped = None if end is None else Stopped(captured[-1].id, end.at)
    reason, hint = told
    at = "nowhere in the log yet" if stopped is None else str(stopped.at)
    return replace(
        state,
        condition=TableCondition.PAUSED,
        reason=reason,
        hint=hint,
        position=state.position or at,
        stopped=stopped,
        behind=books.behind(source, state.table, state.behind),
        remedy=remedy,
    )


def carry_out(books: MemoryBooks, batch: Batch, number: int) -> None:
    """The table is active again, by the batch that is being captured."""
    entry = books.orders.get(number)
    if entry is None or entry.source != batch.source or entry.order.kind is OrderKind.PAUSE:
        raise refusal("table_orders_known")
    if entry.done_batch is not None:
        raise refusal("table_orders_done_once")
    if not _is_open(books, entry):
        raise refusal("table_orders_newest_counts")
    if batch.state is not BatchState.CAPTURING:
        raise refusal("table_orders_done_while_capturing")
    key = (batch.source, entry.order.table)
    before = books.states[key]
    books.orders[number] = replace(entry, done_batch=batch.id, before=before)
    books.states[key] = replace(
        before,
        condition=TableCondition.ACTIVE,
        reason=None,
        hint=None,
        position=None,
        stopped=None,
        remedy=None,
    )


def abandon_states(books: MemoryBooks, batch: Batch) -> None:
    """Orders that the batch carried out are open again, and their tables stand where they
    stood; what it dropped is there again; other tables that stopped in it stopped at its
    start."""
    for number, entry in list(books.orders.items()):
        if entry.done_batch == batch.id and entry.before is not None:
            key = (batch.source, entry.order.table)
            books.states[key] = _stands_again(books.states[key], entry.before)
            books.orders[number] = replace(entry, done_batch=None, before=None)
    for key, state in list(books.states.items()):
        if key[0] != batch.source:
            continue
        if state.stopped is not None and state.stopped.batch == batch.id:
            books.states[key] = state = _stopped_before(state, batch)
        if state.behind is not None:
            behind = books.behind(batch.source, state.table, state.behind)
            books.states[key] = replace(state, behind=behind)


def _stands_again(now: TableState, before: TableState) -> TableState:
    if now.condition in (TableCondition.QUARANTINED, TableCondition.PAUSED):
        return replace(now, stopped=before.stopped)
    return replace(
        now,
        condition=before.condition,
        reason=before.reason,
        hint=before.hint,
        position=before.position,
        stopped=before.stopped,
        remedy=before.remedy,
    )


def _stopped_before(state: TableState, batch: Batch) -> TableState:
    if state.condition is TableCondition.DROPPED:
        return replace(state, condition=TableCondition.ACTIVE, stopped=None)
    return replace(state, stopped=Stopped(batch.id, batch.start.at))


def _is_open(books: MemoryBooks, entry: OrderEntry) -> bool:
    newest = max(
        one.order.id
        for one in books.orders.values()
        if (one.source, one.order.table) == (entry.source, entry.order.table)
    )
    order = entry.order
    return order.kind is not OrderKind.PAUSE and entry.done_batch is None and order.id == newest
