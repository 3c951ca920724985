"""Consumers of the changelog: where they begin, what is delivered to them, in order, once each,
also by several processes of one name."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from typing import cast

import hypothesis
import pytest
from hypothesis import strategies as st

from lockstep.pipeline.ports.ledger import Consumers, Ledger
from lockstep.pipeline.values.consumers import (
    BATCH_LIMIT,
    ConsumerStart,
    Delivery,
    DeliveryBounds,
    next_batches,
)
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import ConfigurationError, ConsumerRefused, ConsumerUnknown
from tests.ledger.consuming import ALL, NAME, acknowledged, given, refused
from tests.ledger.made import ORDERS, STOCK, following, next_captured
from tests.ledger.servers import Stand


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


# -- where they begin --------------------------------------------------------------------


def test_consumers_have_cursors_of_their_own(
    consumers: Consumers, billing: str, batches: list[int]
) -> None:
    """They are listed by name, and one's deliveries are nobody else's."""
    consumers.make_consumer(billing, "audit", "earliest")
    consumers.ack_delivery(billing, NAME, given(consumers, billing, ALL).id)
    assert [(consumer.name, consumer.cursor) for consumer in consumers.consumers(billing)] == [
        ("audit", None),
        (NAME, batches[-1]),
    ]


@pytest.mark.parametrize("start", ["earliest", "latest", "second"])
def test_where_a_consumer_begins(
    consumers: Consumers, source: str, batches: list[int], start: str
) -> None:
    """Before everything, behind the newest acknowledged batch, or behind a given one."""
    starts: dict[str, tuple[ConsumerStart, int | None, int | None]] = {
        "earliest": ("earliest", None, batches[0]),
        "latest": ("latest", batches[-1], None),
        "second": (batches[1], batches[1], batches[2]),
    }
    chosen, place, first = starts[start]
    made = consumers.make_consumer(source, NAME, chosen)
    assert (made.source, made.name, made.cursor, made.deliveries_out) == (source, NAME, place, 0)
    assert consumers.consumers(source) == [made]
    delivery = consumers.deliver(source, NAME, ALL)
    assert (delivery.first_batch if delivery else None) == first


def test_a_consumer_may_be_made_before_the_first_run(
    ledger: Ledger, consumers: Consumers, source: str
) -> None:
    """`latest` and `earliest` are the same then, and the first batch is theirs."""
    made = [consumers.make_consumer(source, name, "latest") for name in (NAME, "audit")]
    assert [one.cursor for one in made] == [None, None]
    assert consumers.deliver(source, NAME, ALL) is None
    with ledger.lock(source, "the first run", None) as lease:
        batch = acknowledged(ledger, lease, ORDERS)
    assert given(consumers, source, ALL).batches == (batch,)


def test_what_no_consumer_can_be_made_of(
    ledger: Ledger, lease: Lease, consumers: Consumers, billing: str
) -> None:
    """It is not made a second time, nor moved. It begins behind an acknowledged batch: neither one
    that nobody knows nor one that may still be abandoned; and at no moment, for only whole batches
    are delivered, so whoever names a moment learns how to name a batch."""
    waiting = next_captured(ledger, lease)
    moments = ("2026-11-29T12:29:00Z", "yesterday", "4", "")
    for name, start, rule in (
        (NAME, "latest", "consumers_name_once"),
        ("  ", "latest", "consumers_named"),
        ("audit", 10**9, "consumers_start"),
        ("audit", waiting.id, "consumers_start_acknowledged"),
        *(("audit", moment, "consumers_start") for moment in moments),
    ):
        with refused(consumers, billing, rule):
            consumers.make_consumer(billing, name, cast("ConsumerStart", start))


def test_an_unknown_consumer(consumers: Consumers, source: str, billing: str) -> None:
    """Each call says how one is made."""
    assert billing == source
    calls: list[Callable[[], object]] = [
        lambda: consumers.deliver(source, "audit", ALL),
        lambda: consumers.open_deliveries(source, "audit"),
        lambda: consumers.ack_delivery(source, "audit", 1),
        lambda: consumers.roll_back(source, "audit"),
        lambda: consumers.drop_consumer(source, "audit", author="ada", reason="unused"),
        lambda: consumers.deliver("another source", NAME, ALL),
    ]
    for call in calls:
        with pytest.raises(ConsumerUnknown) as unknown:
            call()
        assert "lockstep.make_consumer" in unknown.value.hint


def test_a_dropped_consumer_is_gone(consumers: Consumers, billing: str) -> None:
    """With what it had out; a later one of its name is another, with its own start."""
    before = given(consumers, billing)
    with refused(consumers, billing, "consumers_drop_explained"):
        consumers.drop_consumer(billing, NAME, author="ada", reason=" ")
    consumers.drop_consumer(billing, NAME, author="ada", reason="the project ended")
    assert consumers.consumers(billing) == []
    with pytest.raises(ConsumerUnknown):
        consumers.ack_delivery(billing, NAME, before.id)
    consumers.make_consumer(billing, NAME, "latest")
    with refused(consumers, billing, "deliveries_known"):
        consumers.ack_delivery(billing, NAME, before.id)
    assert consumers.deliver(billing, NAME, ALL) is None


# -- several processes -----------------------------------------------------------------


def test_processes_that_share_a_name_share_its_work(
    stand: Stand, lease: Lease, billing: str, batches: list[int]
) -> None:
    """Each batch is delivered to one of them, although all ask at once."""
    more = [acknowledged(stand.ledger, lease) for _ in range(16)]
    faces = (stand.consumers, stand.other_consumers)
    with ThreadPoolExecutor(4) as threads:
        out = list(threads.map(lambda number: given(faces[number % 2], billing), range(20)))
    assert sorted(one.batches for one in out) == [(batch,) for batch in (*batches, *more)]
    assert stand.consumers.open_deliveries(billing, NAME) == sorted(out, key=lambda one: one.id)


def test_one_of_two_acknowledgements_counts(stand: Stand, billing: str) -> None:
    """Whichever process comes second is told so."""
    delivery = given(stand.consumers, billing)

    def ack(face: Consumers) -> bool:
        try:
            face.ack_delivery(billing, NAME, delivery.id)
        except ConsumerRefused:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        counted = list(threads.map(ack, (stand.consumers, stand.other_consumers)))
    assert sorted(counted) == [False, True]


def test_a_rollback_meets_an_acknowledgement(stand: Stand, billing: str) -> None:
    """One of them happens; either way each batch is acknowledged once in the end."""
    first = given(stand.consumers, billing)

    def ack() -> bool:
        try:
            stand.consumers.ack_delivery(billing, NAME, first.id)
        except ConsumerRefused:
            return False
        return True

    with ThreadPoolExecutor(2) as threads:
        acked = threads.submit(ack)
        taken = threads.submit(stand.other_consumers.roll_back, billing, NAME)
        assert acked.result() == (taken.result() == [])
    assert stand.other_consumers.open_deliveries(billing, NAME) == []


# -- whatever a consumer tries, in whatever order ----------------------------------------


_SOURCES = count(1)

Step = tuple[str, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["run", "deliver", "roll back all"]), st.integers(1, 3)),
        st.tuples(st.sampled_from(["ack", "roll back"]), st.integers(0, 9)),
    ),
    max_size=30,
)


class Player:
    """Plays steps on a ledger, and knows what comes of them. Deliveries are named by their order;
    `out` are those that are neither acknowledged nor rolled back."""

    def __init__(self, stand: Stand, source: str) -> None:
        self.stand, self.source = stand, source
        self.batches: list[int] = []
        self.deliveries: list[Delivery] = []
        self.out: list[Delivery] = []
        self.acknowledged = 0
        self.consumers = stand.consumers
        self.consumers.make_consumer(source, NAME, "earliest")

    def play(self, step: Step) -> None:
        action, number = step
        acts: dict[str, Callable[[int], object]] = {
            "run": self.run,
            "deliver": self.deliver,
            "ack": self.ack,
            "roll back": self.roll_back,
            "roll back all": self.roll_back_all,
        }
        acts[action](number)
        [view] = self.consumers.consumers(self.source)
        behind = len(self.batches) - self.acknowledged
        cursor = self.batches[self.acknowledged - 1] if self.acknowledged else None
        told = view.cursor, view.batches_behind, view.changes_behind, view.deliveries_out
        assert told == (cursor, behind, 10 * behind, len(self.out))
        assert self.consumers.open_deliveries(self.source, NAME) == self.out

    def run(self, number: int) -> None:
        ledger = self.stand.ledger
        for _ in range(number):
            with ledger.lock(self.source, "a test", None) as lease:
                self.batches.append(acknowledged(ledger, lease, ORDERS))

    def deliver(self, number: int) -> None:
        begin = self.acknowledged + sum(len(one.batches) for one in self.out)
        bounds = DeliveryBounds(max_batches=number)
        delivery = self.consumers.deliver(self.source, NAME, bounds)
        given = () if delivery is None else delivery.batches
        assert given == tuple(self.batches[begin : begin + number])
        if delivery is not None:
            assert delivery.id not in {one.id for one in self.deliveries}
            self.deliveries.append(delivery)
            self.out.append(delivery)

    def ack(self, number: int) -> None:
        delivery = self._delivery(number)
        if self.out and self.out[0].id == delivery:
            self.consumers.ack_delivery(self.source, NAME, delivery)
            self.acknowledged += len(self.out.pop(0).batches)
            return
        with pytest.raises(ConsumerRefused):
            self.consumers.ack_delivery(self.source, NAME, delivery)

    def roll_back(self, number: int) -> None:
        """A delivery, with the later ones."""
        delivery = self._delivery(number)
        later = [one.id for one in self.out if one.id >= delivery]
        if delivery in later:
            assert self.consumers.roll_back(self.source, NAME, delivery) == later
            self.out = [one for one in self.out if one.id < delivery]
            return
        with pytest.raises(ConsumerRefused):
            self.consumers.roll_back(self.source, NAME, delivery)

    def roll_back_all(self, _: int) -> None:
        rolled_back = self.consumers.roll_back(self.source, NAME)
        assert rolled_back == [one.id for one in self.out]
        self.out = []

    def _delivery(self, number: int) -> int:
        return self.deliveries[number].id if number < len(self.deliveries) else 10**9


THREE_OUT = [("deliver", 1)] * 3


@hypothesis.given(STEPS)
@hypothesis.example([*THREE_OUT, ("roll back", 1), ("deliver", 1), ("ack", 0), ("ack", 3)])
@hypothesis.example(
    [*THREE_OUT, ("ack", 0), ("roll back all", 1), ("roll back all", 1), ("deliver", 3)]
)
@hypothesis.example([*THREE_OUT, ("ack", 1), ("ack", 0), ("ack", 0), ("ack", 1), ("roll back", 1)])
@hypothesis.settings(
    max_examples=12, suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
def test_every_batch_is_acknowledged_once_in_order(stand: Stand, steps: list[Step]) -> None:
    """Deliveries go on where the last one ended, several may be out, and what is rolled back is
    given again; steps out of order are refused."""
    player = Player(stand, f"consumed in any order {next(_SOURCES)}")
    for step in [("run", 4), *steps]:
        player.play(step)
