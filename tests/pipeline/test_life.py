"""The life of a table: every event in every state, and two worlds of which one forgets a batch."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from pipeline.errors import Remedy
from pipeline.life import events
from pipeline.life.rules import TRANSITIONS, NotAllowed, replayed, step
from pipeline.position import Coordinates
from pipeline.table import TableName
from pipeline.table_state import Stopped, TableCondition, TableState
from tests.pages.lives import WORDS

ORDERS = TableName("shop", "orders")
CHANGELOG, MIRROR = "shop/shop/orders@changes", "shop/shop/orders"


def place(offset: int) -> Coordinates:
    return Coordinates.parse(f"binlog.000001:{offset}")


def followed(generation: int = 1) -> events.Followed:
    return events.Followed(CHANGELOG, generation, MIRROR)


def quarantine_event(
    stopped: Stopped | None, remedy: Remedy = Remedy.CATCH_UP
) -> events.Quarantined:
    return events.Quarantined("nobody understands it", "resume it", "there", remedy, stopped)


def in_state(life: TableCondition) -> TableState:
    state = step(ORDERS, None, followed())
    here = Stopped(1, place(10))
    match life:
        case TableCondition.LOADING:
            return step(ORDERS, state, events.LoadBegun(CHANGELOG, 1, MIRROR))
        case TableCondition.QUARANTINED:
            return step(ORDERS, state, quarantine_event(here))
        case TableCondition.PAUSED:
            return step(ORDERS, state, events.Paused("ada", "resume it", None, here))
        case TableCondition.DROPPED:
            return step(ORDERS, state, events.Dropped(CHANGELOG, 1, MIRROR, here))
        case _:
            return state


def test_a_reload_of_a_table_that_an_abandoned_batch_had_made_anew() -> None:
    """Without the batch it is dropped, and nobody reloads a dropped table."""
    here = Stopped(1, place(10))
    told: list[tuple[int | None, events.Event]] = [
        (1, followed()),
        (1, events.Dropped(CHANGELOG, 1, MIRROR, here)),
        (2, followed()),
        (None, events.Reloaded("ada", "wait", Stopped(2, place(20)))),
    ]
    state = replayed(ORDERS, told, {2: place(10)})
    assert state is not None
    assert (state.condition, state.stopped) == (TableCondition.DROPPED, here)


CAPTURED = (
    "rows",
    "back",
    "dropped",
    "back and dropped",
    "quarantined",
    "back and quarantined",
    "moved",
)
BETWEEN = ("pause", "quarantine", "reload", "write", "replace", "restart")

SAMPLES: tuple[events.Event, ...] = (
    followed(),
    events.LoadBegun(CHANGELOG, 2, MIRROR),
    events.Loaded(),
    events.Dropped(CHANGELOG, 1, MIRROR, Stopped(2, place(20))),
    quarantine_event(Stopped(2, place(20))),
    events.Paused("bob", "resume it", None, Stopped(2, place(20))),
    events.Reloaded("bob", "wait", Stopped(2, place(20))),
    events.Resumed(),
    events.Rejoined(),
    events.MirrorWritten(3),
    events.MirrorHandedOver(2, "shop/shop/other", 7, 3),
    events.MirrorReplaced(f"{MIRROR}@1-2"),
    events.MirrorRemoved(),
    events.LakeRestarted(),
    events.BatchAbandoned(1),
)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: type(event).__name__)
@pytest.mark.parametrize("life", [None, *TableCondition])
def test_a_step_goes_where_the_table_says(life: TableCondition | None, event: events.Event) -> None:
    """And what the table does not have is refused, by the name of a rule."""
    state = None if life is None else in_state(life)
    expected = TRANSITIONS.get((life, type(event)))
    if expected is None:
        with pytest.raises(NotAllowed) as refused:
            step(ORDERS, state, event)
        assert refused.value.rule.startswith("table_")
    else:
        assert step(ORDERS, state, event).condition is expected


def test_every_event_has_a_row_and_a_sample() -> None:
    kinds = {type(event) for event in SAMPLES}
    assert kinds == set(WORDS) == {event for _, event in TRANSITIONS}


def test_who_was_stopped_keeps_its_place_when_it_is_paused() -> None:
    """Reason and hint are the person's; the place in the log is the one it stopped at."""
    stopped = in_state(TableCondition.QUARANTINED)
    after = step(ORDERS, stopped, events.Paused("ada", "resume it", None, Stopped(5, place(90))))
    assert (after.stopped, after.position, after.reason) == (stopped.stopped, "there", "ada")


def test_a_table_paused_before_anything_was_captured_is_nowhere() -> None:
    state = step(
        ORDERS, in_state(TableCondition.ACTIVE), events.Paused("ada", "resume it", None, None)
    )
    assert (state.stopped, state.position) == (None, "nowhere in the log yet")


def test_a_table_that_an_abandoned_batch_saw_first_is_still_known() -> None:
    here = Stopped(1, place(10))
    told: list[tuple[int | None, events.Event]] = [
        (1, events.Dropped(CHANGELOG, 1, MIRROR, here)),
        (None, quarantine_event(here)),
    ]
    state = replayed(ORDERS, told, {1: place(4)})
    assert state is not None
    assert (state.condition, state.stopped) == (TableCondition.QUARANTINED, Stopped(1, place(4)))


@dataclass
class World:
    """A table, and batches that read the log one behind the other, 10 bytes each."""

    told: list[tuple[int | None, events.Event]] = field(default_factory=list)
    state: TableState | None = None
    begins: dict[int, Coordinates] = field(default_factory=dict)
    abandoned: dict[int, Coordinates] = field(default_factory=dict)
    end: int = 4

    def tell(self, event: events.Event, batch: int | None = None) -> bool:
        """Whether it is allowed; what a person or a step says outside a capture is kept even
        where it changes nothing."""
        try:
            after = step(ORDERS, self.state, event)
        except NotAllowed:
            return False
        if batch is None or after != self.state:
            self.told.append((batch, event))
        self.state = after
        return True

    def capture(self, number: int, what: str) -> None:
        self.begins[number] = place(self.end)
        self.end += 10
        dropped = events.Dropped(CHANGELOG, 1, MIRROR, Stopped(number, place(self.end)))
        quarantined = quarantine_event(Stopped(number, place(self.end - 5)), Remedy.RESNAPSHOT)
        moved = events.MirrorHandedOver(2, "shop/shop/other", 7, 3)
        told: dict[str, list[events.Event]] = {
            "rows": [followed(number)],
            "back": [events.Rejoined(), followed()],
            "dropped": [dropped],
            "back and dropped": [events.Rejoined(), dropped],
            "quarantined": [followed(), quarantined],
            "back and quarantined": [events.Rejoined(), quarantined],
            "moved": [followed(), moved],
        }
        for event in told[what]:
            self.tell(event, number)

    def act(self, kind: str) -> bool:
        """What happens to the table between two captures; whether it is allowed."""
        alive = [number for number in self.begins if number not in self.abandoned]
        here = Stopped(alive[-1], place(self.end)) if alive else None
        told: dict[str, list[events.Event]] = {
            "pause": [events.Paused("ada", "resume it", None, here)],
            "quarantine": [quarantine_event(here)],
            "reload": [events.Reloaded("ada", "wait", here)],
            "write": [events.MirrorWritten(2)],
            "replace": [events.MirrorReplaced(f"{MIRROR}@1-2")],
            "restart": [quarantine_event(here), events.LakeRestarted()],
        }
        return all(self.tell(event) for event in told[kind])

    def abandon(self, number: int) -> None:
        self.abandoned[number] = self.begins[number]
        self.end -= 10
        self.state = replayed(ORDERS, self.told, self.abandoned)

    @property
    def seen(self) -> TableState | None:
        """The state, without the number of the batch that a place is in."""
        if self.state is None or self.state.stopped is None:
            return self.state
        return replace(self.state, stopped=Stopped(0, self.state.stopped.at))


class LifeMachine(RuleBasedStateMachine):
    """A world that forgets batches, beside one that never had them."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.history: list[tuple[int, str]] = []
        self.open: int | None = None
        self._note(1, "rows")
        self.world.capture(1, "rows")

    def _note(self, number: int, what: str) -> None:
        self.history.append((number, what))

    @rule(what=st.sampled_from(CAPTURED))
    def capture(self, what: str) -> None:
        """The batch before is settled by that: only the newest is ever abandoned."""
        self.open = len(self.world.begins) + 1
        self._note(self.open, what)
        self.world.capture(self.open, what)

    @rule(kind=st.sampled_from(BETWEEN))
    def act(self, kind: str) -> None:
        if self.world.act(kind):
            self._note(0, kind)

    @precondition(lambda self: self.open is not None)
    @rule()
    def abandon(self) -> None:
        assert self.open is not None
        self.world.abandon(self.open)
        self.history = [one for one in self.history if one[0] != self.open]
        self.open = None
        other = World()
        for number, what in self.history:
            if number:
                other.capture(number, what)
            else:
                other.act(what)
        assert self.world.seen == other.seen

    @invariant()
    def is_whole(self) -> None:
        """What the database's constraints say of a row."""
        state = self.world.state
        assert state is not None
        told = (state.reason, state.hint, state.position)
        going = state.condition in (TableCondition.ACTIVE, TableCondition.DROPPED)
        assert all(one is None for one in told) if going else None not in told
        assert (state.stopped is None) or state.condition is not TableCondition.ACTIVE
        assert state.stopped is not None or state.condition is not TableCondition.DROPPED
        assert state.remedy is None or not going

    @invariant()
    def misses_nothing(self) -> None:
        """A table that stopped did so where the captures are, or before."""
        state = self.world.state
        if state is not None and state.stopped is not None:
            assert state.stopped.at <= place(self.world.end)


def test_an_abandoned_batch_never_happened() -> None:
    """What was told of the table meanwhile stays, at the place where the batch began."""
    run_machine(LifeMachine, settings=settings(max_examples=50, stateful_step_count=20))
