"""The port to consumers, the named readers of a source's changelogs. What a consumer
and a delivery are: `pipeline.values.consumers`."""

from __future__ import annotations

from typing import Protocol

from lockstep.pipeline.values.consumers import Consumer, ConsumerStart, Delivery, DeliveryBounds


class Consumers(Protocol):
    """The consumers that the ledger (Lockstep's database in Postgres) records.

    A caller need not hold the source's lease. Each call is one transaction that locks
    the row of its consumer, so several processes may read under one name. A method that
    is given a name raises `ConsumerUnknown` if no consumer has it, and
    `ConsumerRefused`, without changing anything, for a step out of order.
    """

    def consumers(self, source: str) -> list[Consumer]:
        """Return the consumers that are not dropped, by name."""

    def make_consumer(self, source: str, name: str, start: ConsumerStart) -> Consumer:
        """Make a consumer; the source need not have been captured yet."""

    def drop_consumer(self, source: str, name: str, *, author: str, reason: str) -> None:
        """Drop a consumer: its deliveries end, and changes that were only kept for it
        may be deleted. A later consumer of that name begins without its cursor."""

    def deliver(self, source: str, name: str, bounds: DeliveryBounds) -> Delivery | None:
        """Deliver the acknowledged batches after the last delivery, within the bounds.
        Return None if there are none. The delivery is open until it is acknowledged or
        rolled back."""

    def open_deliveries(self, source: str, name: str) -> list[Delivery]:
        """Return the deliveries that are neither acknowledged nor rolled back, oldest
        first."""

    def ack_delivery(self, source: str, name: str, delivery: int) -> None:
        """Acknowledge the oldest open delivery; the cursor moves to its end."""

    def roll_back(self, source: str, name: str, delivery: int | None = None) -> list[int]:
        """Roll back this delivery and the later open ones, or with None all open ones.
        Their batches are delivered again. Return the ids of these deliveries,
        ascending."""
