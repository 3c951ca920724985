"""The port `Consumers` (`pipeline.ports.ledger`) on Postgres. A consumer is a named
reader of a source's changelogs; each delivery gives it the changes of some batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lockstep.pipeline.values.consumers import (
    Consumer,
    ConsumerStart,
    Delivery,
    DeliveryBounds,
    next_batches,
)
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.refusals import refusal, unknown_consumer
from lockstep.resources.postgres.rows import Row, position_of
from lockstep.resources.postgres.session import LedgerPort, Transaction


class PostgresConsumers(LedgerPort):
    """The port `Consumers` over the ledger's session; safe to use from several threads."""

    def consumers(self, source: str) -> list[Consumer]:
        return [Consumer(**row) for row in self._all("consumers", source=source)]

    def make_consumer(self, source: str, name: str, start: ConsumerStart) -> Consumer:
        if isinstance(start, int):
            word, batch = "", start
        elif start in ("earliest", "latest"):
            word, batch = start, None
        else:
            raise refusal("consumers_start")
        with self._session.transaction("source_key", source=source) as (transaction, _):
            transaction.run("make_consumer", source=source, name=name, start=word, batch=batch)
            consumers = [Consumer(**row) for row in transaction.all("consumers", source=source)]
            return next(consumer for consumer in consumers if consumer.name == name)

    def drop_consumer(self, source: str, name: str, *, author: str, reason: str) -> None:
        with self._lock_consumer(source, name) as (transaction, consumer_id):
            transaction.run("drop_consumer", consumer=consumer_id, author=author, reason=reason)

    def deliver(self, source: str, name: str, bounds: DeliveryBounds) -> Delivery | None:
        with self._lock_consumer(source, name) as (transaction, consumer_id):
            rows = transaction.all(
                "deliverable", source=source, consumer=consumer_id, limit=bounds.most_batches
            )
            batches = next_batches([(row["id"], row["changes"]) for row in rows], bounds)
            if not batches:
                return None
            transaction.run(
                "deliver",
                source=source,
                consumer=consumer_id,
                first_batch=batches[0],
                last_batch=batches[-1],
            )
            return _open_deliveries(transaction, source, name)[-1]

    def open_deliveries(self, source: str, name: str) -> list[Delivery]:
        with self._lock_consumer(source, name) as (transaction, _):
            return _open_deliveries(transaction, source, name)

    def ack_delivery(self, source: str, name: str, delivery: int) -> None:
        with self._lock_consumer(source, name) as (transaction, consumer_id):
            transaction.run_or_refuse(
                "ack_delivery", "deliveries_known", consumer=consumer_id, delivery=delivery
            )

    def roll_back(self, source: str, name: str, delivery: int | None = None) -> list[int]:
        with self._lock_consumer(source, name) as (transaction, consumer_id):
            rows = transaction.all("roll_back_deliveries", consumer=consumer_id, delivery=delivery)
            rolled_back = sorted(row["id"] for row in rows)
            if delivery is not None and delivery not in rolled_back:
                raise refusal("deliveries_known")
            return rolled_back

    @contextmanager
    def _lock_consumer(self, source: str, name: str) -> Iterator[tuple[Transaction, int]]:
        """Open a transaction that locks the consumer, and yield it with the consumer's
        id. Raise `ConsumerUnknown` if the source has no consumer of that name."""
        with self._session.transaction("lock_consumer", source=source, name=name) as (
            transaction,
            rows,
        ):
            if not rows:
                raise unknown_consumer(source, name)
            yield transaction, rows[0]["id"]


def _open_deliveries(transaction: Transaction, source: str, name: str) -> list[Delivery]:
    """Return the consumer's deliveries that are neither acknowledged nor rolled back."""
    return [_delivery(row) for row in transaction.all("open_deliveries", source=source, name=name)]


def _delivery(row: Row) -> Delivery:
    tables = zip(row["databases"] or (), row["names"] or (), strict=True)
    return Delivery(
        id=row["id"],
        source=row["source"],
        consumer=row["consumer"],
        batches=tuple(row["batches"]),
        start=position_of(row, "start_"),
        end=position_of(row, "end_"),
        changes=row["changes"],
        tables=tuple(TableName(*table) for table in tables),
    )
