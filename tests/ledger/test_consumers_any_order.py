"""Whatever a consumer tries, in whatever order: it is given every batch once, in order, and what it
may not do is refused and changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from lockstep.pipeline.values.consumers import Delivery, DeliveryBounds
from lockstep.pipeline.values.errors import ConsumerRefused
from tests.ledger.consuming import NAME, acknowledged
from tests.ledger.made import ORDERS
from tests.ledger.servers import Stand

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


@given(STEPS)
@example([*THREE_OUT, ("roll back", 1), ("deliver", 1), ("ack", 0), ("ack", 3)])
@example([*THREE_OUT, ("ack", 0), ("roll back all", 1), ("roll back all", 1), ("deliver", 3)])
@example([*THREE_OUT, ("ack", 1), ("ack", 0), ("ack", 0), ("ack", 1), ("roll back", 1)])
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_batch_is_acknowledged_once_in_order(stand: Stand, steps: list[Step]) -> None:
    """Deliveries go on where the last one ended, several may be out, and what is rolled back is
    given again; steps out of order are refused."""
    player = Player(stand, f"consumed in any order {next(_SOURCES)}")
    for step in [("run", 4), *steps]:
        player.play(step)
