"""The changelog's consumers on Postgres: `pipeline.ports.Consumers` over a session.

Belongs here: which transaction a call is, and the rows' values. The statements are in
`queries.sql`, the rules of order in `migrations/`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from psycopg2.extras import RealDictCursor

from pipeline.consumers import (
    Consumer,
    ConsumerStart,
    Delivery,
    DeliveryBounds,
    chosen_batches,
)
from pipeline.table import TableName
from resources.ledger_rules import refusal, unknown_consumer
from resources.postgres import rows
from resources.postgres.connection import Session
from resources.postgres.queries import query


class PostgresConsumers:
    """Shares the ledger's session; safe to use from several threads."""

    def __init__(self, session: Session) -> None:
        self._session = session

    def consumers(self, source: str) -> list[Consumer]:
        return self._session.read(lambda cursor: _consumers(cursor, source))

    def make_consumer(self, source: str, name: str, start: ConsumerStart) -> Consumer:
        def make(cursor: RealDictCursor, _: object) -> Consumer:
            values = {
                "source": source,
                "name": name,
                "start": "latest" if start == "latest" else "",
                "batch": start if isinstance(start, int) else None,
            }
            cursor.execute(query("source_key"), values)
            cursor.execute(query("make_consumer"), values)
            return next(made for made in _consumers(cursor, source) if made.name == name)

        return self._session.write(lambda _: None, make)

    def drop_consumer(self, source: str, name: str, *, author: str, reason: str) -> None:
        def drop(cursor: RealDictCursor, consumer: int) -> None:
            values = {"consumer": consumer, "author": author, "reason": reason}
            cursor.execute(query("drop_consumer"), values)

        self._session.write(_held(source, name), drop)

    def deliver(self, source: str, name: str, bounds: DeliveryBounds) -> Delivery | None:
        def give(cursor: RealDictCursor, consumer: int) -> Delivery | None:
            values: dict[str, Any] = {"source": source, "name": name, "consumer": consumer}
            cursor.execute(query("deliverable"), {**values, "limit": bounds.batches})
            waiting = [(row["id"], row["changes"]) for row in cursor.fetchall()]
            chosen = chosen_batches(waiting, bounds)
            if not chosen:
                return None
            ends = {"first_batch": chosen[0][0], "last_batch": chosen[-1][0]}
            cursor.execute(query("deliver"), {**values, **ends})
            return _out(cursor, source, name)[-1]

        return self._session.write(_held(source, name), give)

    def deliveries_out(self, source: str, name: str) -> list[Delivery]:
        return self._session.write(
            _held(source, name), lambda cursor, _: _out(cursor, source, name)
        )

    def ack_delivery(self, source: str, name: str, delivery: int) -> None:
        def ack(cursor: RealDictCursor, consumer: int) -> None:
            values = {"consumer": consumer, "delivery": delivery}
            cursor.execute(query("ack_delivery"), values)
            if cursor.rowcount == 0:
                raise refusal("deliveries_known")

        self._session.write(_held(source, name), ack)

    def roll_back(self, source: str, name: str, delivery: int | None = None) -> list[int]:
        def take_back(cursor: RealDictCursor, consumer: int) -> list[int]:
            values = {"consumer": consumer, "delivery": delivery}
            cursor.execute(query("roll_back_deliveries"), values)
            taken = sorted(row["id"] for row in cursor.fetchall())
            if delivery is not None and delivery not in taken:
                raise refusal("deliveries_known")
            return taken

        return self._session.write(_held(source, name), take_back)

    def retention_floor(self, source: str) -> int | None:
        def floor(cursor: RealDictCursor) -> int | None:
            cursor.execute(query("retention_floor"), {"source": source})
            (row,) = cursor.fetchall()
            found: int | None = row["floor"]
            return found

        return self._session.read(floor)


def _held(source: str, name: str) -> Callable[[RealDictCursor], int]:
    """Lock the consumer for this transaction; its id."""

    def hold(cursor: RealDictCursor) -> int:
        cursor.execute(query("lock_consumer"), {"source": source, "name": name})
        row = cursor.fetchone()
        if row is None:
            raise unknown_consumer(source, name)
        held: int = row["id"]
        return held

    return hold


def _consumers(cursor: RealDictCursor, source: str) -> list[Consumer]:
    cursor.execute(query("consumers"), {"source": source})
    return [Consumer(**row) for row in cursor.fetchall()]


def _out(cursor: RealDictCursor, source: str, name: str) -> list[Delivery]:
    cursor.execute(query("deliveries_out"), {"source": source, "name": name})
    return [_delivery(row) for row in cursor.fetchall()]


def _delivery(row: rows.Row) -> Delivery:
    tables = zip(row["databases"] or (), row["names"] or (), strict=True)
    return Delivery(
        id=row["id"],
        source=row["source"],
        consumer=row["consumer"],
        batches=tuple(row["batches"]),
        start=rows.position(row, "start"),
        end=rows.position(row, "end"),
        changes=row["changes"],
        tables=tuple(TableName(*table) for table in tables),
    )
