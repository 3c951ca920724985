"""What people order about tables, on Postgres: `pipeline.ports.orders`.

Belongs here: the orders. Does not: what becomes of their tables (`tables`).
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from pipeline.decisions import Lease
from pipeline.errors import Remedy
from pipeline.life.events import Paused, Released, Reloaded, Resumed
from pipeline.schema.model import TableSchema
from pipeline.schema.model_json import schema_from_json, schema_to_json
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableOrder, paused, reloading
from resources.postgres.life_events import captures_end, record
from resources.postgres.refusals import refusal
from resources.postgres.rows import Row, of_table, stopped, table
from resources.postgres.session import Books, Step
from resources.postgres.tables import count_behind


class PostgresOrders(Books):
    def open_orders(self, source: str) -> list[TableOrder]:
        return [_order(row) for row in self._all("open_orders", source=source)]

    def pause_table(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        remedy: Remedy | None = None,
    ) -> TableOrder:
        with self._step(lease) as step:
            number = _give(step, lease, table, OrderKind.PAUSE, author, reason)
            why, hint = paused(table, reason, author)
            _stop(step, lease, table, Paused(why, hint, remedy, captures_end(step, lease.source)))
            return _given(step, lease, number)

    def reload_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        with self._step(lease) as step:
            number = _give(step, lease, table, OrderKind.RELOAD, author, reason)
            why, hint = reloading(table, reason, author)
            _stop(step, lease, table, Reloaded(why, hint, captures_end(step, lease.source)))
            return _given(step, lease, number)

    def resume_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        with self._step(lease) as step:
            number = _give(step, lease, table, OrderKind.RESUME, author, reason)
            record(step, lease, [(table, Resumed())])
            return _given(step, lease, number)

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
        with self._step(lease) as step:
            kind = OrderKind.RELEASE
            number = _give(step, lease, table, kind, author, reason, schema, renames)
            record(step, lease, [(table, Released())])
            return _given(step, lease, number)


def carry_out(step: Step, source: str, batch: int, order: int) -> TableName:
    """The batch that is being captured carries the order out; its table."""
    rows = step.all("carry_out", source=source, batch=batch, order=order)
    if not rows:
        raise refusal("table_orders_known")
    return table(rows[0])


def _stop(step: Step, lease: Lease, table: TableName, event: Paused | Reloaded) -> None:
    record(step, lease, [(table, event)])
    count_behind(step, lease.source, table)


def _give(
    step: Step,
    lease: Lease,
    table: TableName,
    kind: OrderKind,
    author: str,
    reason: str,
    schema: TableSchema | None = None,
    renames: Sequence[tuple[str, str]] = (),
) -> int:
    row = step.only(
        "order_table",
        source=lease.source,
        token=lease.token,
        **of_table(table),
        kind=kind.value,
        author=author,
        reason=reason,
        schema=None if schema is None else json.dumps(schema_to_json(schema)),
        renames=json.dumps(list(renames)) if renames else None,
    )
    return int(row["id"])


def _given(step: Step, lease: Lease, number: int) -> TableOrder:
    return _order(step.only("the_order", source=lease.source, order=number))


def _order(row: Row) -> TableOrder:
    return TableOrder(
        id=row["id"],
        table=table(row),
        kind=OrderKind(row["kind"]),
        author=row["author"],
        reason=row["reason"],
        ordered_at=row["ordered_at"],
        stopped=stopped(row),
        schema=None if row["schema"] is None else schema_from_json(row["schema"]),
        renames=tuple((old, new) for old, new in row["renames"] or ()),
    )
