"""The changelog's consumers in memory: `pipeline.ports.Consumers` over `MemoryBooks`.

The rules are those of `resources/postgres/migrations`, by the same names.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from pipeline.batch import Batch, BatchState
from pipeline.consumers import (
    Consumer,
    ConsumerStart,
    Delivery,
    DeliveryBounds,
    chosen_batches,
)
from resources.postgres.refusals import refusal, unknown_consumer
from tests.twins.books import MemoryBooks
from tests.twins.consumer_entries import ConsumerEntry, DeliveryEntry, DeliveryState

_UNFINISHED = (BatchState.CAPTURING, BatchState.CAPTURED, BatchState.MERGED)


class MemoryConsumers:
    """Consumers on books that several of them may share."""

    def __init__(self, clock: Callable[[], datetime], books: MemoryBooks) -> None:
        self._clock = clock
        self._books = books

    def consumers(self, source: str) -> list[Consumer]:
        with self._books.turn:
            return sorted(map(self._view, self._live(source)), key=lambda one: one.name)

    def make_consumer(self, source: str, name: str, start: ConsumerStart) -> Consumer:
        with self._books.transaction():
            if not name.strip():
                raise refusal("consumers_named")
            if any(one.name == name for one in self._live(source)):
                raise refusal("consumers_name_once")
            number = len(self._books.consumers) + 1
            begin = self._begin(source, start)
            made = ConsumerEntry(number, source, name, begin, self._clock())
            self._books.consumers[number] = made
            return self._view(made)

    def drop_consumer(self, source: str, name: str, *, author: str, reason: str) -> None:
        with self._books.transaction():
            consumer = self._known(source, name)
            if not reason.strip():
                raise refusal("consumers_drop_explained")
            self._books.consumers[consumer.id] = replace(consumer, dropped=True)

    def deliver(self, source: str, name: str, bounds: DeliveryBounds) -> Delivery | None:
        with self._books.transaction():
            consumer = self._known(source, name)
            unfinished = [one.id for one in self._books.of_source(source, *_UNFINISHED)]
            waiting = [
                (batch.id, batch.changes)
                for batch in self._behind(source, self._given(consumer))
                if not unfinished or batch.id < unfinished[0]
            ]
            chosen = tuple(batch for batch, _ in chosen_batches(waiting, bounds))
            if not chosen:
                return None
            number = self._books.next_number("delivery", len(self._books.deliveries))
            entry = DeliveryEntry(number, consumer.id, chosen)
            self._books.deliveries[number] = entry
            return self._delivery(consumer, entry)

    def deliveries_out(self, source: str, name: str) -> list[Delivery]:
        with self._books.turn:
            consumer = self._known(source, name)
            return [self._delivery(consumer, one) for one in self._out(consumer)]

    def ack_delivery(self, source: str, name: str, delivery: int) -> None:
        with self._books.transaction():
            consumer = self._known(source, name)
            entry = self._of(consumer, delivery)
            if self._out(consumer)[0].id != entry.id:
                raise refusal("deliveries_acknowledged_in_order")
            self._end(entry, DeliveryState.ACKNOWLEDGED)

    def roll_back(self, source: str, name: str, delivery: int | None = None) -> list[int]:
        with self._books.transaction():
            consumer = self._known(source, name)
            first = 0 if delivery is None else self._of(consumer, delivery).id
            taken = [one for one in self._out(consumer) if one.id >= first]
            for entry in taken:
                self._end(entry, DeliveryState.ROLLED_BACK)
            return [entry.id for entry in taken]

    # -- what the books say ----------------------------------------------------------

    def _live(self, source: str) -> list[ConsumerEntry]:
        entries = self._books.consumers.values()
        return [entry for entry in entries if entry.source == source and not entry.dropped]

    def _known(self, source: str, name: str) -> ConsumerEntry:
        for consumer in self._live(source):
            if consumer.name == name:
                return consumer
        raise unknown_consumer(source, name)

    def _begin(self, source: str, start: ConsumerStart) -> int | None:
        kept = self._books.forgotten_through(source)
        if start == "earliest":
            return kept or None
        if start == "latest":
            newest = self._books.of_source(source, BatchState.ACKNOWLEDGED)
            return newest[-1].id if newest else None
        batch = self._books.batches.get(start)
        if batch is None or batch.source != source:
            raise refusal("consumers_start")
        if batch.state is not BatchState.ACKNOWLEDGED:
            raise refusal("consumers_start_acknowledged")
        if start < kept:
            raise refusal("consumers_start_kept")
        return start

    def _ends(self, consumer: ConsumerEntry, *states: DeliveryState) -> int | None:
        entries = self._books.deliveries.values()
        return max(
            (
                entry.batches[-1]
                for entry in entries
                if entry.consumer == consumer.id and entry.state in states
            ),
            default=consumer.start_batch,
        )

    def cursors(self, source: str) -> dict[str, int | None]:
        """Of each consumer the newest batch that it is done with."""
        return {one.name: self._cursor(one) for one in self._live(source)}

    def _cursor(self, consumer: ConsumerEntry) -> int | None:
        return self._ends(consumer, DeliveryState.ACKNOWLEDGED)

    def _given(self, consumer: ConsumerEntry) -> int | None:
        return self._ends(consumer, DeliveryState.ACKNOWLEDGED, DeliveryState.OUT)

    def _behind(self, source: str, cursor: int | None) -> list[Batch]:
        batches = self._books.of_source(source, BatchState.ACKNOWLEDGED)
        return [batch for batch in batches if batch.id > (cursor or 0)]

    def _out(self, consumer: ConsumerEntry) -> list[DeliveryEntry]:
        return [
            delivery
            for delivery in self._books.deliveries.values()
            if delivery.consumer == consumer.id and delivery.state is DeliveryState.OUT
        ]

    def _of(self, consumer: ConsumerEntry, delivery: int) -> DeliveryEntry:
        """A delivery of this consumer that is out."""
        entry = self._books.deliveries.get(delivery)
        if entry is None or entry.consumer != consumer.id:
            raise refusal("deliveries_known")
        if entry.state is DeliveryState.ACKNOWLEDGED:
            raise refusal("deliveries_acknowledged_once")
        if entry.state is DeliveryState.ROLLED_BACK:
            raise refusal("deliveries_rolled_back_once")
        return entry

    def _end(self, entry: DeliveryEntry, state: DeliveryState) -> None:
        self._books.deliveries[entry.id] = replace(entry, state=state)

    def _view(self, consumer: ConsumerEntry) -> Consumer:
        cursor = self._cursor(consumer)
        behind = self._behind(consumer.source, cursor)
        return Consumer(
            source=consumer.source,
            name=consumer.name,
            cursor=cursor,
            behind=len(behind),
            changes=sum(batch.changes for batch in behind),
            out=len(self._out(consumer)),
            made_at=consumer.made_at,
        )

    def _delivery(self, consumer: ConsumerEntry, entry: DeliveryEntry) -> Delivery:
        batches = [self._books.batches[number] for number in entry.batches]
        end = batches[-1].end
        if end is None:
            raise refusal("batches_end_recorded")
        tables = {
            segment.table
            for number in entry.batches
            for segment in self._books.segments.get(number, ())
        }
        return Delivery(
            id=entry.id,
            source=consumer.source,
            consumer=consumer.name,
            batches=entry.batches,
            start=batches[0].start,
            end=end,
            changes=sum(batch.changes for batch in batches),
            tables=tuple(sorted(tables)),
        )
