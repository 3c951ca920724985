"""The changelog's consumers and their cursors."""

from __future__ import annotations

from typing import Protocol

from lockstep.pipeline.values.consumers import Consumer, ConsumerStart, Delivery, DeliveryBounds


class Consumers(Protocol):
    """Named consumers of a source's changelog, each with a cursor of its own.

    No lease is needed. Each call is one transaction that locks the consumer it names, so
    processes may share a name. `ConsumerUnknown` if there is none of that name;
    `ConsumerRefused` for a step out of order, which changes nothing.
    """

    def consumers(self, source: str) -> list[Consumer]:
        """Return the consumers that are not dropped, by name."""

    def make_consumer(self, source: str, name: str, start: ConsumerStart) -> Consumer:
        """Make a consumer; the source need not have been captured yet."""

    def drop_consumer(self, source: str, name: str, *, author: str, reason: str) -> None:
        """Drop a consumer: its deliveries end, and the changes that it held back may be deleted. A
        later consumer of that name is another one."""

    def deliver(self, source: str, name: str, bounds: DeliveryBounds) -> Delivery | None:
        """Deliver the acknowledged batches after the last delivery, within the bounds; None if
        there are none. The delivery is out until it is acknowledged or rolled back."""

    def deliveries_out(self, source: str, name: str) -> list[Delivery]:
        """Return the deliveries that are neither acknowledged nor rolled back, oldest first."""

    def ack_delivery(self, source: str, name: str, delivery: int) -> None:
        """out → acknowledged, the oldest first; the cursor moves to its end."""

    def roll_back(self, source: str, name: str, delivery: int | None = None) -> list[int]:
        """out → rolled back: this delivery and later ones, or all. Return their ids, ascending;
        their batches are delivered again."""
