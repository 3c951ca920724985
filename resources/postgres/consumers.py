"""The port `Consumers` (`pipeline.ports.consumers`) on Postgres. A consumer is a named
reader of a source's changelogs; each delivery gives it the changes of some batches."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from lockstep.pipeline.values.consumers import (
    Consumer,
    ConsumerStart,
    Delivery,
    DeliveryBounds,
    chosen_batches,
)
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.refusals import refusal, unknown_consumer
from lockstep.resources.postgres.rows import Row, position
from lockstep.resources.postgres.session import Step, Subject


class PostgresConsumers(Subject):
    """The port `Consumers` over the ledger's session; safe to use from several threads."""

    def consumers(self, source: str) -> list[Consumer]:
        return [Consumer(**row) for row in self._all("consumers", source=source)]

    def make_consumer(self, source: str, name: str, start: ConsumerStart) -> Consumer:
        with self._session.step("source_key", source=source) as (step, _):
            step.run(
                "make_consumer",
                source=source,
                name=name,
                start="" if isinstance(start, int) else start,
                batch=start if isinstance(start, int) else None,
            )
            consumers = [Consumer(**row) for row in step.all("consumers", source=source)]
            return next(consumer for consumer in consumers if consumer.name == name)

    def drop_consumer(self, source: str, name: str, *, author: str, reason: str) -> None:
        with self._held(source, name) as (step, consumer):
            step.run("drop_consumer", consumer=consumer, author=author, reason=reason)

    def deliver(self, source: str, name: str, bounds: DeliveryBounds) -> Delivery | None:
        with self._held(source, name) as (step, consumer):
            rows = step.all("deliverable", source=source, consumer=consumer, limit=bounds.batches)
            chosen = chosen_batches([(row["id"], row["changes"]) for row in rows], bounds)
            if not chosen:
                return None
            ends = {"first_batch": chosen[0][0], "last_batch": chosen[-1][0]}
            step.run("deliver", source=source, consumer=consumer, **ends)
            return _out(step, source, name)[-1]

    def deliveries_out(self, source: str, name: str) -> list[Delivery]:
        with self._held(source, name) as (step, _):
            return _out(step, source, name)

    def ack_delivery(self, source: str, name: str, delivery: int) -> None:
        with self._held(source, name) as (step, consumer):
            step.must("ack_delivery", "deliveries_known", consumer=consumer, delivery=delivery)

    def roll_back(self, source: str, name: str, delivery: int | None = None) -> list[int]:
        with self._held(source, name) as (step, consumer):
            rows = step.all("roll_back_deliveries", consumer=consumer, delivery=delivery)
            taken = sorted(row["id"] for row in rows)
            if delivery is not None and delivery not in taken:
                raise refusal("deliveries_known")
            return taken

    @contextmanager
    def _held(self, source: str, name: str) -> Iterator[tuple[Step, int]]:
        """Open a transaction that locks the consumer, and yield it with the consumer's
        id. Raise `ConsumerUnknown` if the source has no consumer of that name."""
        with self._session.step("lock_consumer", source=source, name=name) as (step, rows):
            if not rows:
                raise unknown_consumer(source, name)
            yield step, rows[0]["id"]


def _out(step: Step, source: str, name: str) -> list[Delivery]:
    """Return the consumer's deliveries that are neither acknowledged nor rolled back."""
    return [_delivery(row) for row in step.all("deliveries_out", source=source, name=name)]


def _delivery(row: Row) -> Delivery:
    tables = zip(row["databases"] or (), row["names"] or (), strict=True)
    return Delivery(
        id=row["id"],
        source=row["source"],
        consumer=row["consumer"],
        batches=tuple(row["batches"]),
        start=position(row, "start"),
        end=position(row, "end"),
        changes=row["changes"],
        tables=tuple(TableName(*table) for table in tables),
    )
