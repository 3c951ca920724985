"""Deliveries to a consumer of the changelog: in order, once each, on every ledger."""

from __future__ import annotations

import pytest

from lockstep.pipeline.ports.ledger import Consumers, Ledger
from lockstep.pipeline.values.consumers import (
    BATCH_LIMIT,
    Delivery,
    DeliveryBounds,
    next_batches,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import ConfigurationError
from tests.ledger.consuming import ALL, NAME, acknowledged, given, refused
from tests.ledger.made import (
    ORDERS,
    STOCK,
    following,
    next_captured,
)


def test_a_delivery_tells_its_batches(
    ledger: Ledger, consumers: Consumers, billing: str, batches: list[int]
) -> None:
    """Ids, the log from the first one's start to the last one's end, changes and tables."""
    delivery = given(consumers, billing, DeliveryBounds(max_batches=3))
    recorded = {batch.id: batch for batch in ledger.batches(billing)}
    assert delivery == Delivery(
        id=delivery.id,
        source=billing,
        consumer=NAME,
        batches=tuple(batches[:3]),
        start=recorded[batches[0]].start,
        end=recorded[batches[2]].end or recorded[batches[2]].start,
        changes=30,
        tables=(ORDERS, STOCK),
    )
    assert (delivery.first_batch, delivery.last_batch) == (batches[0], batches[2])
    assert consumers.open_deliveries(billing, NAME) == [delivery]


def test_a_batch_without_changes_is_delivered_too(consumers: Consumers, billing: str) -> None:
    """The consumer's place in the log moves over what concerns no table."""
    given(consumers, billing)
    delivery = given(consumers, billing)
    assert (delivery.changes, delivery.tables) == (0, ())


def test_only_acknowledged_batches_are_delivered(
    ledger: Ledger, lease: Lease, consumers: Consumers, billing: str, batches: list[int]
) -> None:
    """A merged one is not, and neither is what comes after it."""
    next_captured(ledger, lease)
    ledger.mark_merged(lease)
    assert given(consumers, billing, ALL).batches == tuple(batches)
    following(ledger, lease)
    assert consumers.deliver(billing, NAME, ALL) is None


def test_abandoned_batches_are_passed_over(
    ledger: Ledger, lease: Lease, consumers: Consumers, billing: str, batches: list[int]
) -> None:
    """The batch that took an abandoned one's place is delivered in its place."""
    damaged = next_captured(ledger, lease, ORDERS)
    ledger.abandon(lease, damaged.id, "damaged")
    again = acknowledged(ledger, lease, STOCK)
    delivery = given(consumers, billing, ALL)
    assert (delivery.batches, delivery.tables) == ((*batches, again), (ORDERS, STOCK))


def test_a_delivery_keeps_its_bounds(
    consumers: Consumers, billing: str, batches: list[int]
) -> None:
    """Whole batches of at most so many changes, but one in any case."""
    sizes = [given(consumers, billing, DeliveryBounds(max_changes=limit)) for limit in (5, 15, 9)]
    assert [delivery.batches for delivery in sizes] == [
        (batches[0],),
        (batches[1], batches[2]),
        (batches[3],),
    ]


@pytest.mark.parametrize(
    ("bounds", "count"),
    [
        (ALL, BATCH_LIMIT),
        (DeliveryBounds(max_batches=2), 2),
        (DeliveryBounds(max_changes=1), 1),
        (DeliveryBounds(max_changes=30), 3),
        (DeliveryBounds(max_batches=10**9), BATCH_LIMIT),
    ],
)
def test_bounds_are_met_from_below(bounds: DeliveryBounds, count: int) -> None:
    """Of batches with ten changes each."""
    waiting = [(number, 10) for number in range(BATCH_LIMIT + 1)]
    assert len(next_batches(waiting, bounds)) == count


@pytest.mark.parametrize("bound", ["max_batches", "max_changes"])
@pytest.mark.parametrize("value", [0, -1])
def test_a_bound_of_nothing(bound: str, value: int) -> None:
    """It is refused by its name."""
    with pytest.raises(ConfigurationError, match=bound):
        DeliveryBounds(**{bound: value})


def test_another_consumer_s_delivery(consumers: Consumers, billing: str) -> None:
    """It is unknown to all others."""
    consumers.make_consumer(billing, "audit", "earliest")
    theirs = given(consumers, billing)
    for end in (consumers.ack_delivery, consumers.roll_back):
        with refused(consumers, billing, "deliveries_known"):
            end(billing, "audit", theirs.id)
