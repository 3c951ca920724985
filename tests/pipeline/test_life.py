"""The life of a table: every event in every state, two worlds of which one forgets a batch, and
that a table which waits for a person never starts without that person's word."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine

from lockstep.pipeline.model import life as events
from lockstep.pipeline.model.life import TRANSITIONS, NotAllowed, next_state, state_after
from lockstep.pipeline.model.table_state import StopPlace, TableCondition, TableState
from lockstep.pipeline.values.errors import Need, StoppedBy
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.pages.lives import WORDS

KEPT_NEEDS = (Need.ROWS, Need.STRUCTURE, Need.COLUMNS, Need.MIRROR, Need.CONSENT)

ORDERS = TableName("shop", "orders")
CHANGELOG, MIRROR = "shop/shop/orders@changes", "shop/shop/orders"


def place(offset: int) -> Coordinates:
    return Coordinates.parse(f"binlog.000001:{offset}")


def followed(generation: int = 1, need: Need | None = None) -> events.Followed:
    return events.Followed(CHANGELOG, generation, MIRROR, need)


def dropped(stopped: StopPlace) -> events.Dropped:
    return events.Dropped(CHANGELOG, 1, MIRROR, stopped)


def stop(
    by: StoppedBy, stopped: StopPlace | None, need: Need | None = None, reason: str = "a reason"
) -> events.TableStopped:
    position = None if by is StoppedBy.PERSON else "there"
    return events.TableStopped(by, reason, "resume it", stopped, position, need)


def in_state(life: TableCondition) -> TableState:
    state = next_state(ORDERS, None, followed())
    here = StopPlace(1, place(10))
    match life:
        case TableCondition.STOPPED:
            return next_state(ORDERS, state, stop(StoppedBy.SYSTEM, here))
        case TableCondition.DROPPED:
            return next_state(ORDERS, state, dropped(here))
        case TableCondition.FOLLOWING:
            return state


def test_what_an_abandoned_batch_told_of_a_table_did_not_happen() -> None:
    """One that it had made anew is dropped without it, and nobody reloads a dropped table; one that
    it saw first is still known; and one of which it alone had the log lacks its rows: nobody reads
    that part again."""
    here = StopPlace(1, place(10))
    told: list[tuple[int | None, events.Event]] = [
        (1, followed()),
        (1, dropped(here)),
        (2, followed()),
        (None, events.Reloaded("ada", "wait", StopPlace(2, place(20)))),
    ]
    state = state_after(ORDERS, told, {2: place(10)})
    assert state is not None
    assert (state.condition, state.stopped) == (TableCondition.DROPPED, here)
    told = [(1, dropped(here)), (None, stop(StoppedBy.SYSTEM, here))]
    state = state_after(ORDERS, told, {1: place(4)})
    assert state is not None
    assert (state.has_stopped, state.stopped) == (True, StopPlace(1, place(4)))
    states = [state_after(ORDERS, [(1, followed())], {1: place(4)}, alone) for alone in ((), {1})]
    assert [state and state.need for state in states] == [None, Need.ROWS]


CAPTURED = (
    "rows",
    "read",
    "loaded",
    "back",
    "dropped",
    "back and dropped",
    "left to the next",
    "quarantined",
    "back and quarantined",
    "moved",
)
BETWEEN = ("pause", "quarantine", "reload", "write", "replace", "restart")

SAMPLES: tuple[events.Event, ...] = (
    followed(),
    followed(2, Need.ROWS),
    events.Loaded(),
    dropped(StopPlace(2, place(20))),
    *(stop(by, StopPlace(2, place(20))) for by in StoppedBy),
    events.Reloaded("bob", "wait", StopPlace(2, place(20))),
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
            next_state(ORDERS, state, event)
        assert refused.value.rule.startswith("table_")
    else:
        assert next_state(ORDERS, state, event).condition is expected


def test_every_event_has_a_row_and_a_sample() -> None:
    kinds = {type(event) for event in SAMPLES}
    assert kinds == set(WORDS) == {event for _, event in TRANSITIONS}


def test_a_pause_takes_the_place_that_the_table_stopped_at() -> None:
    """Reason and hint are the person's. Before anything was captured that is nowhere; a dropped
    table lacks its rows then: if it is created meanwhile, nobody follows it."""
    here = StopPlace(1, place(10))
    pause = stop(StoppedBy.PERSON, StopPlace(5, place(90)), reason="ada")
    after = next_state(ORDERS, in_state(TableCondition.STOPPED), pause)
    assert (after.stopped, after.position, after.reason) == (here, "there", "ada")
    pause = stop(StoppedBy.PERSON, None)
    nowhere = next_state(ORDERS, in_state(TableCondition.FOLLOWING), pause)
    assert (nowhere.stopped, nowhere.position) == (None, "nowhere in the log yet")
    gone = next_state(ORDERS, in_state(TableCondition.DROPPED), pause)
    assert (gone.need, gone.stopped) == (Need.ROWS, here)


@pytest.mark.parametrize("later", [StoppedBy.RUN, StoppedBy.SYSTEM])
@pytest.mark.parametrize("first", StoppedBy)
def test_what_stopped_a_table_first_holds(first: StoppedBy, later: StoppedBy) -> None:
    """A run that leaves a table to the next one never takes the place of a person's word."""
    here = StopPlace(1, place(10))
    state = next_state(ORDERS, in_state(TableCondition.FOLLOWING), stop(first, here))
    assert next_state(ORDERS, state, stop(later, StopPlace(2, place(20)), Need.ROWS)) is state


@pytest.mark.parametrize("need", [None, *KEPT_NEEDS])
@pytest.mark.parametrize("by", [StoppedBy.RUN, StoppedBy.SYSTEM])
def test_a_pause_holds_over_any_other_stop(by: StoppedBy, need: Need | None) -> None:
    """What the table lacks stays as it was; consent, too, is still asked for."""
    here = StopPlace(1, place(10))
    state = next_state(ORDERS, in_state(TableCondition.FOLLOWING), stop(by, here, need))
    after = next_state(ORDERS, state, stop(StoppedBy.PERSON, StopPlace(2, place(20))))
    assert (after.stopped_by, after.stopped, after.need) == (StoppedBy.PERSON, here, need)


@pytest.mark.parametrize("need", [None, *KEPT_NEEDS])
@pytest.mark.parametrize("by", StoppedBy)
def test_a_table_that_stops_while_it_is_read_lacks_its_rows(
    by: StoppedBy, need: Need | None
) -> None:
    reading = next_state(ORDERS, None, followed(need=Need.ROWS))
    after = next_state(ORDERS, reading, stop(by, StopPlace(1, place(10)), need))
    assert after.need is (Need.CONSENT if need is Need.CONSENT else Need.ROWS)


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
            after = next_state(ORDERS, self.state, event)
        except NotAllowed:
            return False
        if batch is None or after != self.state:
            self.told.append((batch, event))
        self.state = after
        return True

    def capture(self, number: int, what: str) -> None:
        self.begins[number] = place(self.end)
        self.end += 10
        gone = dropped(StopPlace(number, place(self.end)))
        here = StopPlace(number, place(self.end - 5))
        left, quarantined = stop(StoppedBy.RUN, here, Need.ROWS), stop(StoppedBy.SYSTEM, here)
        moved = events.MirrorHandedOver(2, "shop/shop/other", 7, 3)
        told: dict[str, list[events.Event]] = {
            "rows": [followed(number)],
            "read": [followed(need=Need.ROWS)],
            "loaded": [followed(), events.Loaded()],
            "back": [events.Rejoined(), followed()],
            "dropped": [gone],
            "back and dropped": [events.Rejoined(), gone],
            "left to the next": [followed(), left],
            "quarantined": [followed(), quarantined],
            "back and quarantined": [events.Rejoined(), quarantined],
            "moved": [followed(), moved],
        }
        for event in told[what]:
            self.tell(event, number)

    def act(self, kind: str) -> bool:
        """What happens to the table between two captures; whether it is allowed."""
        alive = [number for number in self.begins if number not in self.abandoned]
        here = StopPlace(alive[-1], place(self.end)) if alive else None
        told: dict[str, list[events.Event]] = {
            "pause": [stop(StoppedBy.PERSON, here)],
            "quarantine": [stop(StoppedBy.SYSTEM, here)],
            "reload": [events.Reloaded("ada", "wait", here)],
            "write": [events.MirrorWritten(2)],
            "replace": [events.MirrorReplaced(f"{MIRROR}@1-2")],
            "restart": [stop(StoppedBy.SYSTEM, here), events.LakeRestarted()],
        }
        return all(self.tell(event) for event in told[kind])

    def abandon(self, number: int) -> None:
        self.abandoned[number] = self.begins[number]
        self.end -= 10
        self.state = state_after(ORDERS, self.told, self.abandoned)

    @property
    def seen(self) -> TableState | None:
        """The state, without the number of the batch that a place is in."""
        if self.state is None or self.state.stopped is None:
            return self.state
        return replace(self.state, stopped=StopPlace(0, self.state.stopped.at))


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
        why = (state.stopped_by, state.reason, state.hint, state.position)
        assert None not in why if state.has_stopped else set(why) == {None}
        assert state.stopped is None or state.condition is not TableCondition.FOLLOWING
        assert state.stopped is not None or state.condition is not TableCondition.DROPPED
        assert state.need is None or state.condition is not TableCondition.DROPPED

    @invariant()
    def misses_nothing(self) -> None:
        """A table that stopped did so where the captures are, or before."""
        state = self.world.state
        if state is not None and state.stopped is not None:
            assert state.stopped.at <= place(self.world.end)


def test_an_abandoned_batch_never_happened() -> None:
    """What was told of the table meanwhile stays, at the place where the batch began."""
    run_machine(LifeMachine, settings=settings(max_examples=50, stateful_step_count=20))


class WordMachine(RuleBasedStateMachine):
    """A table, runs that start whatever may start, and a person who pauses, resumes and reloads it.
    An order is carried out by a batch, and open again if that is abandoned."""

    def __init__(self) -> None:
        super().__init__()
        self.world = World()
        self.world.capture(1, "rows")
        self.newest: int | None = None
        self.ordered = self.ordered_before = False
        """Whether a person's order is open, and was before the newest batch."""
        self.paused = self.paused_before = False
        """Whether a person paused the table and no batch has carried an order out since."""

    @property
    def state(self) -> TableState:
        assert self.world.state is not None
        return self.world.state

    @property
    def waits(self) -> bool:
        """Whether the table waits for a person's word."""
        return self.state.stopped_by not in (None, StoppedBy.RUN) and not self.ordered

    @rule(
        what=st.sampled_from(
            ("rows", "read", "loaded", "dropped", "left to the next", "quarantined")
        )
    )
    def run(self, what: str) -> None:
        """A run starts what a run stopped, and what a person ordered."""
        before, waited = self.state, self.waits
        self.ordered_before, self.paused_before = self.ordered, self.paused
        self.newest = len(self.world.begins) + 1
        if before.has_stopped and not waited:
            self.world.begins[self.newest] = place(self.world.end)
            assert self.world.tell(events.Rejoined(), self.newest)
            self.ordered = self.paused = False
        self.world.capture(self.newest, what)
        assert not waited or self.state == before

    @rule(kind=st.sampled_from(("quarantine", "write", "replace", "restart")))
    def act(self, kind: str) -> None:
        waited = self.waits
        self.world.act(kind)
        assert not waited or self.waits

    @rule()
    def pause(self) -> None:
        self.world.act("pause")
        self.paused = self.paused_before = True
        self.ordered = self.ordered_before = False

    @precondition(lambda self: self.state.has_stopped)
    @rule()
    def resume(self) -> None:
        self.ordered = self.ordered_before = True

    @rule()
    def reload(self) -> None:
        if self.world.act("reload"):
            self.ordered = self.ordered_before = True

    @precondition(lambda self: self.newest is not None)
    @rule()
    def abandon(self) -> None:
        assert self.newest is not None
        self.world.abandon(self.newest)
        self.newest = None
        self.ordered, self.paused = self.ordered_before, self.paused_before

    @invariant()
    def a_pause_holds(self) -> None:
        assert not self.paused or self.state.stopped_by is StoppedBy.PERSON


def test_no_table_starts_without_the_word_that_it_waits_for() -> None:
    """A table that a person paused, or that Lockstep put in quarantine, stays stopped whatever
    runs, stops and abandoned batches come, until a person orders it back."""
    run_machine(WordMachine, settings=settings(max_examples=100, stateful_step_count=20))
