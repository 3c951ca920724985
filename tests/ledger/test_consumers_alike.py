"""Whatever a consumer tries, in whatever order: both ledgers answer the same, and what it
acknowledged is every batch once, in order."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.consumers import Delivery, DeliveryBounds
from pipeline.errors import ConsumerRefused
from pipeline.ports.consumers import Consumers
from tests.ledger.made import first_captured, next_captured
from tests.ledger.servers import Stand, memory_stand

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
    """Plays steps on one stand. Batches and deliveries are named by their order, so that
    two stands' answers can be compared."""

    def __init__(self, stand: Stand, source: str) -> None:
        self.stand = stand
        self.source = source
        self.batches: list[int] = []
        self.deliveries: list[Delivery] = []
        self.acknowledged: list[int] = []
        self.consumers.make_consumer(source, NAME, "earliest")

    @property
    def consumers(self) -> Consumers:
        return self.stand.consumers

    def play(self, step: Step) -> object:
        action, number = step
        acts: dict[str, Callable[[int], object]] = {
            "run": self.run,
            "deliver": self.deliver,
            "ack": self.ack,
            "roll back": self.roll_back,
            "roll back all": lambda _: self._named(self.consumers.roll_back(self.source, NAME)),
        }
        try:
            answer = acts[action](number)
        except ConsumerRefused as refused:
            answer = (refused.message, refused.hint)
        (view,) = self.consumers.consumers(self.source)
        out = self.consumers.deliveries_out(self.source, NAME)
        return (
            answer,
            view.cursor and self.batches.index(view.cursor),
            (view.behind, view.changes, view.out),
            self._named([one.id for one in out]),
        )

    def run(self, number: int) -> object:
        ledger = self.stand.ledger
        for _ in range(number):
            with ledger.lock(self.source, "a test", None) as lease:
                captured = next_captured if self.batches else first_captured
                batch = captured(ledger, lease).id
                ledger.mark_merged(lease)
                ledger.acknowledge(lease, batch)
            self.batches.append(batch)
        return number

    def deliver(self, number: int) -> object:
        bounds = DeliveryBounds(max_batches=number)
        delivery = self.consumers.deliver(self.source, NAME, bounds)
        if delivery is None:
            return None
        self.deliveries.append(delivery)
        return [self.batches.index(batch) for batch in delivery.batches]

    def ack(self, number: int) -> object:
        delivery = self._delivery(number)
        self.consumers.ack_delivery(self.source, NAME, delivery)
        self.acknowledged += self.deliveries[number].batches
        return number

    def roll_back(self, number: int) -> object:
        taken = self.consumers.roll_back(self.source, NAME, self._delivery(number))
        return self._named(taken)

    def _delivery(self, number: int) -> int:
        return self.deliveries[number].id if number < len(self.deliveries) else 10**9

    def _named(self, ids: list[int]) -> list[int]:
        known = [delivery.id for delivery in self.deliveries]
        return [known.index(one) for one in ids]


@given(STEPS)
@settings(max_examples=12)
def test_both_ledgers_answer_the_same(embedded_stand: Stand, steps: list[Step]) -> None:
    """Step by step: the answer or the refusal, the cursor, what is out."""
    source = f"alike {next(_SOURCES)}"
    memory, postgres = Player(memory_stand(), source), Player(embedded_stand, source)
    for step in steps:
        assert memory.play(step) == postgres.play(step)
    for player in (memory, postgres):
        assert player.acknowledged == player.batches[: len(player.acknowledged)]
