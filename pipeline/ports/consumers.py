"""The changelog's consumers and their cursors."""

from __future__ import annotations

from typing import Protocol

from pipeline.consumers import Consumer, ConsumerStart, Delivery, DeliveryBounds


class Consumers(Protocol):
    """Named consumers of a source's changelog, each with a cursor of its own.

    No lease is needed. Each call is one transaction that holds the consumer it names, so
    processes may share a name. `ConsumerUnknown` where there is none of that name;
    `ConsumerRefused` for a step out of order, which changes nothing.
    """

    def consumers(self, source: str) -> list[Consumer]:
        """Those that are not dropped, by name."""

    def make_consumer(self, source: str, name: str, start: ConsumerStart) -> Consumer:
        """A new one; the source need not have been captured yet."""

    def drop_consumer(self, source: str, name: str, *, author: str, reason: str) -> None:
        """A person gives a consumer up, and what it holds back. Its deliveries end with
        it; a later one of that name is another."""

    def deliver(self, source: str, name: str, bounds: DeliveryBounds) -> Delivery | None:
        """The acknowledged batches behind the last delivery, within the bounds; None
        without any. It is out until it ends."""

    def deliveries_out(self, source: str, name: str) -> list[Delivery]:
        """Neither acknowledged nor rolled back, oldest first."""

    def ack_delivery(self, source: str, name: str, delivery: int) -> None:
        """out → acknowledged, the oldest first; moves the cursor to its end."""

    def roll_back(self, source: str, name: str, delivery: int | None = None) -> list[int]:
        """out → rolled back: this delivery and later ones, or all; their ids, ascending.
        Their batches are delivered again."""
