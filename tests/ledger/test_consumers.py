"""Deliveries to a consumer of the changelog: in order, once each, on every ledger."""

from __future__ import annotations

import pytest

from lockstep.pipeline.ports.consumers import Consumers
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.values.consumers import (
    BATCH_LIMIT,
    Delivery,
    DeliveryBounds,
    next_batches,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import ConfigurationError
from tests.ledger.consuming import ALL, NAME, acknowledged, cursor, given, refused
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


def test_deliveries_go_on_where_the_last_one_ended(
    consumers: Consumers, billing: str, batches: list[int]
) -> None:
    """Several may be out; together they hold each batch once, and then there is nothing."""
    out = [given(consumers, billing) for _ in batches]
    assert [delivery.batches for delivery in out] == [(batch,) for batch in batches]
    assert consumers.deliver(billing, NAME, ALL) is None
    assert consumers.open_deliveries(billing, NAME) == out


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


# -- how it ends -----------------------------------------------------------------------


def test_an_acknowledgement_moves_the_cursor(
    consumers: Consumers, billing: str, batches: list[int]
) -> None:
    """To the delivery's end, whatever else is out; the view counts what is behind."""
    first, second = (given(consumers, billing) for _ in range(2))
    assert cursor(consumers, billing) is None
    consumers.ack_delivery(billing, NAME, first.id)
    (view,) = consumers.consumers(billing)
    assert (view.cursor, view.behind, view.changes, view.out) == (batches[0], 3, 20, 1)
    consumers.ack_delivery(billing, NAME, second.id)
    assert cursor(consumers, billing) == batches[1]


def test_an_unknown_delivery(consumers: Consumers, billing: str) -> None:
    """Neither one that nobody has nor another consumer's."""
    consumers.make_consumer(billing + "2", NAME, "earliest")
    theirs = given(consumers, billing)
    for unknown in (theirs.id + 1000, 0, -1):
        with refused(consumers, billing, "deliveries_known"):
            consumers.ack_delivery(billing, NAME, unknown)
        with refused(consumers, billing, "deliveries_known"):
            consumers.roll_back(billing, NAME, unknown)
    with refused(consumers, billing + "2", "deliveries_known"):
        consumers.ack_delivery(billing + "2", NAME, theirs.id)
    with refused(consumers, billing + "2", "deliveries_known"):
        consumers.roll_back(billing + "2", NAME, theirs.id)


def test_everything_out_is_rolled_back(
    consumers: Consumers, billing: str, batches: list[int]
) -> None:
    """And given again, in other portions, under new ids; what is acknowledged is not."""
    out = [given(consumers, billing) for _ in range(3)]
    consumers.ack_delivery(billing, NAME, out[0].id)
    assert consumers.roll_back(billing, NAME) == [out[1].id, out[2].id]
    assert consumers.roll_back(billing, NAME) == []
    again = given(consumers, billing, ALL)
    assert again.batches == tuple(batches[1:])
    assert again.id not in [one.id for one in out]


def test_a_rollback_takes_later_ones_with_it(
    consumers: Consumers, billing: str, batches: list[int]
) -> None:
    """Earlier ones stay out and are acknowledged as before."""
    first, second, third = (given(consumers, billing) for _ in range(3))
    assert consumers.roll_back(billing, NAME, second.id) == [second.id, third.id]
    again = given(consumers, billing)
    assert again.batches == (batches[1],)
    assert consumers.open_deliveries(billing, NAME) == [first, again]
    consumers.ack_delivery(billing, NAME, first.id)
    consumers.ack_delivery(billing, NAME, again.id)
    assert cursor(consumers, billing) == batches[1]
