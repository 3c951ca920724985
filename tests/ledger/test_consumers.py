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


def test_only_acknowledged_batches_are_delivered(
    ledger: Ledger, lease: Lease, consumers: Consumers, billing: str, batches: list[int]
) -> None:
    """Whole ones of at most so many changes, but one in any case; the batch that took an abandoned
    one's place is delivered in its place. A merged one is not, and neither is what comes after it;
    a delivery is its consumer's alone."""
    damaged = next_captured(ledger, lease, ORDERS)
    ledger.abandon(lease, damaged.id, "damaged")
    again = acknowledged(ledger, lease, STOCK)
    next_captured(ledger, lease)
    ledger.mark_merged(lease)
    following(ledger, lease)
    sizes = [given(consumers, billing, DeliveryBounds(max_changes=limit)) for limit in (5, 15, 99)]
    assert [(one.batches, one.changes, one.tables) for one in sizes] == [
        ((batches[0],), 20, (ORDERS, STOCK)),
        ((batches[1], batches[2]), 10, (STOCK,)),
        ((batches[3], again), 20, (ORDERS, STOCK)),
    ]
    assert consumers.deliver(billing, NAME, ALL) is None
    consumers.make_consumer(billing, "audit", "earliest")
    for end in (consumers.ack_delivery, consumers.roll_back):
        with refused(consumers, billing, "deliveries_known"):
            end(billing, "audit", sizes[0].id)


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
