"""Whatever a consumer tries, in whatever order: what it acknowledged is every batch once, in
order."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from itertools import count

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lockstep.pipeline.values.consumers import Delivery, DeliveryBounds
from lockstep.pipeline.values.errors import ConsumerRefused
from tests.ledger.made import first_captured, next_captured
from tests.ledger.servers import Stand

_SOURCES = count(1)
NAME = "billing"

Step = tuple[str, int]
STEPS = st.lists(
    st.one_of(
        st.tuples(st.sampled_from(["run", "deliver", "roll back all"]), st.integers(1, 3)),
        st.tuples(st.sampled_from(["ack", "roll back"]), st.integers(0, 9)),
    ),
    max_size=30,
)


class Player:
    """Plays steps on a ledger; deliveries are named by their order."""

    def __init__(self, stand: Stand, source: str) -> None:
        self.stand = stand
        self.source = source
        self.batches: list[int] = []
        self.deliveries: list[Delivery] = []
        self.acknowledged: list[int] = []
        self.consumers = stand.consumers
        self.consumers.make_consumer(source, NAME, "earliest")

    def play(self, step: Step) -> None:
        action, number = step
        acts: dict[str, Callable[[int], object]] = {
            "run": self.run,
            "deliver": self.deliver,
            "ack": self.ack,
            "roll back": lambda _: self.consumers.roll_back(
                self.source, NAME, self._delivery(number)
            ),
            "roll back all": lambda _: self.consumers.roll_back(self.source, NAME),
        }
        with suppress(ConsumerRefused):
            acts[action](number)
        [view] = self.consumers.consumers(self.source)
        assert view.cursor == (self.acknowledged[-1] if self.acknowledged else None)
        assert self.acknowledged == self.batches[: len(self.acknowledged)]

    def run(self, number: int) -> None:
        ledger = self.stand.ledger
        for _ in range(number):
            with ledger.lock(self.source, "a test", None) as lease:
                captured = next_captured if self.batches else first_captured
                batch = captured(ledger, lease).id
                ledger.mark_merged(lease)
                ledger.acknowledge(lease, batch)
            self.batches.append(batch)

    def deliver(self, number: int) -> None:
        bounds = DeliveryBounds(max_batches=number)
        delivery = self.consumers.deliver(self.source, NAME, bounds)
        if delivery is not None:
            self.deliveries.append(delivery)

    def ack(self, number: int) -> None:
        self.consumers.ack_delivery(self.source, NAME, self._delivery(number))
        self.acknowledged += self.deliveries[number].batches

    def _delivery(self, number: int) -> int:
        return self.deliveries[number].id if number < len(self.deliveries) else 10**9


@given(STEPS)
@settings(max_examples=12, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_batch_is_acknowledged_once_in_order(stand: Stand, steps: list[Step]) -> None:
    """Steps out of order are refused; the cursor is the last batch of what was acknowledged."""
    player = Player(stand, f"consumed in any order {next(_SOURCES)}")
    for step in steps:
        player.play(step)
