"""What people order about tables, on Postgres: one function a step, given a cursor.

Does not belong here: connections, and the rules of order, which the schema holds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from psycopg2.extras import RealDictCursor

from pipeline.decisions import Lease
from pipeline.errors import Remedy
from pipeline.schema.model import TableSchema
from pipeline.table import TableName
from pipeline.table_state import OrderKind, TableOrder
from resources.ledger_rules import paused, refusal, reloading
from resources.postgres import rows
from resources.postgres.queries import query


def open_orders(cursor: RealDictCursor, source: str) -> list[TableOrder]:
    cursor.execute(query("open_orders"), {"source": source})
    return [_order(row) for row in cursor.fetchall()]


def pause(
    cursor: RealDictCursor,
    lease: Lease,
    table: TableName,
    author: str,
    reason: str,
    remedy: Remedy | None,
) -> TableOrder:
    number = _give(cursor, lease, table, OrderKind.PAUSE, author, reason)
    told = paused(table, reason, author)
    _stop(cursor, lease, table, told, remedy=remedy, anyway=True)
    return _given(cursor, lease, number)


def reload(
    cursor: RealDictCursor, lease: Lease, table: TableName, author: str, reason: str
) -> TableOrder:
    number = _give(cursor, lease, table, OrderKind.RELOAD, author, reason)
    told = reloading(table, reason, author)
    _stop(cursor, lease, table, told, remedy=None, anyway=False)
    return _given(cursor, lease, number)


def _stop(
    cursor: RealDictCursor,
    lease: Lease,
    table: TableName,
    told: tuple[str, str],
    *,
    remedy: Remedy | None,
    anyway: bool,
) -> None:
    """The table is paused; one that is not active only if it is to be anyway."""
    reason, hint = told
    values: dict[str, Any] = {"source": lease.source, **rows.of_table(table)}
    values |= {"reason": reason, "hint": hint, "remedy": remedy, "anyway": anyway}
    cursor.execute(query("pause"), values)


def resume(
    cursor: RealDictCursor, lease: Lease, table: TableName, author: str, reason: str
) -> TableOrder:
    return _given(cursor, lease, _give(cursor, lease, table, OrderKind.RESUME, author, reason))


def release(
    cursor: RealDictCursor,
    lease: Lease,
    table: TableName,
    author: str,
    reason: str,
    schema: TableSchema | None,
    renames: Sequence[tuple[str, str]],
) -> TableOrder:
    number = _give(cursor, lease, table, OrderKind.RELEASE, author, reason, schema, renames)
    return _given(cursor, lease, number)


def carry_out(cursor: RealDictCursor, lease: Lease, batch: int, order: int) -> None:
    """The table is active again, by the batch that is being captured."""
    values = {"source": lease.source, "batch": batch, "order": order}
    cursor.execute(query("carry_out"), values)
    if cursor.rowcount == 0:
        raise refusal("table_orders_known")


def _give(
    cursor: RealDictCursor,
    lease: Lease,
    table: TableName,
    kind: OrderKind,
    author: str,
    reason: str,
    schema: TableSchema | None = None,
    renames: Sequence[tuple[str, str]] = (),
) -> int:
    values: dict[str, Any] = {
        "source": lease.source,
        "token": lease.token,
        **rows.of_table(table),
        "kind": kind.value,
        "author": author,
        "reason": reason,
        "schema": None if schema is None else json.dumps(schema.to_json()),
        "renames": json.dumps(list(renames)) if renames else None,
    }
    cursor.execute(query("order_table"), values)
    (made,) = cursor.fetchall()
    return int(made["id"])


def _given(cursor: RealDictCursor, lease: Lease, number: int) -> TableOrder:
    cursor.execute(query("the_order"), {"source": lease.source, "order": number})
    (row,) = cursor.fetchall()
    return _order(row)


def _order(row: rows.Row) -> TableOrder:
    return TableOrder(
        id=row["id"],
        table=rows.table(row),
        kind=OrderKind(row["kind"]),
        author=row["author"],
        reason=row["reason"],
        ordered_at=row["ordered_at"],
        stopped=rows.stopped(row),
        schema=None if row["schema"] is None else TableSchema.from_json(row["schema"]),
        renames=tuple((old, new) for old, new in row["renames"] or ()),
    )
