"""The life of a captured table, as prose and as the table that is the code.

A table is *active* from the first batch that has something of it. Active tables are captured,
published and merged. One that has rows which are older than what was read of the log, or that is
to be read again, is *loading* first: its rows are read from the source, in as many runs as it
takes, and what the log has of it meanwhile is captured and published, and merged together with
them. It stops being active or loading in one of three ways:

- the source drops it: it is *dropped*. What was captured of it is still merged. A table that is
  made under its name makes it active again;
- something about it cannot be captured or written as it is: Lockstep puts it in *quarantine*,
  with a reason, a cure in words and as a value (`Remedy`), and the place in the log where it
  stopped. All other tables go on;
- a person *pauses* it, or has it reloaded, for which it stops.

A table comes back when a capture carries out an order: a person resumes it, or the next run does so
by itself where the remedy says so. How, and what is read for it, is decided
by `supply.plan`. Until then nothing is captured of it, and nothing that was captured is
merged.

Its mirror has a life of its own below these states: it shows a version of the table's structure
after each write, moves with a rename, is replaced when it is lost, is removed with a dropped
table, and begins a new generation when the lake and the ledger disagree.

The ledger keeps every event. A table's state is what its events make of it, one after the other;
when a batch is abandoned, what it said never happened, and the others are gone through again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from types import MappingProxyType
from typing import Final

from pipeline.errors import Remedy
from pipeline.life import events
from pipeline.position import Coordinates
from pipeline.table import TableName
from pipeline.table_state import (
    GOING,
    STOPPED,
    Handover,
    Quarantine,
    Stopped,
    TableCondition,
    TableState,
)

NEW: Final = None
"""A table that no batch had anything of yet."""

_ANY: Final = tuple(TableCondition)

Moment = tuple[TableCondition | None, type[events.Event]]


def _from(
    lives: tuple[TableCondition, ...], event: type[events.Event], to: TableCondition
) -> dict[Moment, TableCondition]:
    return {(life, event): to for life in lives}


def _kept(
    lives: tuple[TableCondition, ...], *kinds: type[events.Event]
) -> dict[Moment, TableCondition]:
    return {(life, event): life for life in lives for event in kinds}


TRANSITIONS: Final[Mapping[Moment, TableCondition]] = MappingProxyType(
    {
        (NEW, events.Followed): TableCondition.ACTIVE,
        (NEW, events.LoadBegun): TableCondition.LOADING,
        (NEW, events.Dropped): TableCondition.DROPPED,
    }
    | _from((TableCondition.ACTIVE, TableCondition.DROPPED), events.Followed, TableCondition.ACTIVE)
    | _kept((TableCondition.LOADING,), events.Followed)
    | _from(_ANY, events.LoadBegun, TableCondition.LOADING)
    | _from(_ANY, events.Loaded, TableCondition.ACTIVE)
    | _from(GOING, events.Dropped, TableCondition.DROPPED)
    | _from(GOING, events.Quarantined, TableCondition.QUARANTINED)
    | _from(_ANY, events.Paused, TableCondition.PAUSED)
    | _from((TableCondition.ACTIVE, TableCondition.LOADING), events.Reloaded, TableCondition.PAUSED)
    | _from(STOPPED, events.Rejoined, TableCondition.ACTIVE)
    # What follows leaves a table in the state it is in.
    | _kept(STOPPED, events.Followed, events.Dropped, events.Quarantined, events.Reloaded)
    | _kept(STOPPED, events.Resumed)
    | _kept(_ANY, events.MirrorWritten, events.MirrorReplaced, events.BatchAbandoned)
    | _kept(GOING, events.MirrorHandedOver)
    | _kept((TableCondition.DROPPED,), events.MirrorRemoved)
    | _kept(STOPPED, events.LakeRestarted)
)
"""The next life; what has no row is refused."""

REFUSALS: Final[Mapping[type[events.Event], str]] = MappingProxyType(
    {
        events.Resumed: "table_orders_resume_stopped",
        events.Reloaded: "table_orders_reload_there",
        events.Rejoined: "table_orders_known",
        events.MirrorRemoved: "table_states_dropped",
        events.LakeRestarted: "table_states_anew",
    }
)
"""The ledger's rule that an event breaks which a table's state does not allow."""

ALWAYS_KEPT: Final = (events.Quarantined, events.Paused, events.Reloaded, events.LakeRestarted)
"""What is written down outside a capture even where it changes nothing: it does change something
once a batch before it is abandoned."""

UNKNOWN_TABLE: Final = "table_states_known"
UNEXPECTED: Final = "table_states_life"


NOWHERE = "nowhere in the log yet"
_CAPTURED = (TableCondition.ACTIVE, TableCondition.LOADING)
_FIRST = (events.Followed, events.LoadBegun, events.Dropped)


class NotAllowed(Exception):
    """No row of the table allows that event; `rule` is the ledger's name for what it breaks."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


def step(table: TableName, state: TableState | None, event: events.Event) -> TableState:
    """The table's state behind an event; None is a table that was never seen.

    The same state comes back where nothing changes. `NotAllowed` for an event that this state
    does not have.
    """
    life = TRANSITIONS.get((None if state is None else state.condition, type(event)))
    if life is None:
        unknown = UNKNOWN_TABLE if state is None else UNEXPECTED
        raise NotAllowed(REFUSALS.get(type(event), unknown))
    if state is None:
        assert isinstance(event, _FIRST), "the only ones for a new table"
        state = TableState(table, TableCondition.ACTIVE, 1, event.mirror, event.changelog)
    return _after(state, event, life)


def _after(state: TableState, event: events.Event, life: TableCondition) -> TableState:
    match event:
        case events.Followed(changelog, generation) | events.LoadBegun(changelog, generation) if (
            life in _CAPTURED
        ):
            return _going(state, life, changelog, generation)
        case events.Loaded() | events.Rejoined():
            return _going(state, life, state.changelog, state.changelog_generation)
        case events.Dropped(changelog, generation, _, stopped) if life is TableCondition.DROPPED:
            return _going(state, life, changelog, generation, stopped)
        case events.Quarantined(reason, hint, place, remedy, here) if state.condition is not life:
            return _stopped(state, life, (reason, hint, place), remedy, here)
        case events.Paused(reason, hint, remedy, here):
            return _paused(state, reason, hint, remedy, here)
        case events.Reloaded(reason, hint, here) if state.condition in _CAPTURED:
            return _paused(state, reason, hint, None, here)
        case events.MirrorWritten(version):
            return replace(state, mirror_version=version)
        case events.MirrorHandedOver(generation, mirror, delta_version, version):
            moved = replace(state, generation=generation, mirror=mirror)
            return replace(moved, mirror_version=version, adopted=delta_version)
        case events.MirrorReplaced(mirror):
            lost = replace(state, mirror_version=None, adopted=None, mirror=mirror)
            return replace(lost, mirror_generation=state.mirror_generation + 1)
        case events.MirrorRemoved() if state.mirror_version is None:
            return state
        case events.MirrorRemoved() | events.LakeRestarted():
            lost = replace(state, mirror_version=None, adopted=None)
            return replace(lost, generation=state.generation + 1)
    return state


def _going(
    state: TableState,
    life: TableCondition,
    changelog: str,
    generation: int,
    stopped: Stopped | None = None,
) -> TableState:
    """Active or dropped: whatever kept it out is over."""
    going = replace(state, condition=life, changelog=changelog, changelog_generation=generation)
    return replace(going, reason=None, hint=None, position=None, remedy=None, stopped=stopped)


def _paused(
    state: TableState, reason: str, hint: str, remedy: Remedy | None, here: Stopped | None
) -> TableState:
    stopped = here if state.condition in _CAPTURED else state.stopped
    position = state.position or (NOWHERE if stopped is None else str(stopped.at))
    return _stopped(state, TableCondition.PAUSED, (reason, hint, position), remedy, stopped)


def _stopped(
    state: TableState,
    life: TableCondition,
    told: tuple[str, str, str],
    remedy: Remedy | None,
    stopped: Stopped | None,
) -> TableState:
    """`told`: reason, hint and position. One that was loading lacks rows of the source."""
    lacks_rows = remedy in (Remedy.RESNAPSHOT, Remedy.CONSENT)
    if state.condition is TableCondition.LOADING and not lacks_rows:
        remedy = Remedy.RESUMED_RESNAPSHOT
    reason, hint, position = told
    kept_out = replace(state, condition=life, reason=reason, hint=hint, position=position)
    return replace(kept_out, remedy=remedy, stopped=stopped)


def replayed(
    table: TableName,
    told: Iterable[tuple[int | None, events.Event]],
    abandoned: Mapping[int, Coordinates],
) -> TableState | None:
    """What all events of a table make of it, without those that a batch told which never
    happened; None without any. `told`: each with the batch that told it, if one did.
    `abandoned`: those batches, and where each began: what stopped in one of them stopped there.
    A table that such a batch saw first is still known; what was said of the table as that batch
    had left it, and cannot be said of it now, is passed over.
    """
    state: TableState | None = None
    for batch, event in told:
        if batch not in abandoned:
            with suppress(NotAllowed):
                state = step(table, state, _moved(event, abandoned))
        elif state is None and isinstance(event, _FIRST):
            kind = events.LoadBegun if isinstance(event, events.LoadBegun) else events.Followed
            seen = kind(event.changelog, event.changelog_generation, event.mirror)
            state = step(table, None, seen)
    return state


def _moved(event: events.Event, abandoned: Mapping[int, Coordinates]) -> events.Event:
    """The event, stopped where the batch began that it stopped in, if that never happened."""
    match event:
        case (
            events.Quarantined(stopped=Stopped() as stopped)
            | events.Paused(stopped=Stopped() as stopped)
            | events.Reloaded(stopped=Stopped() as stopped)
        ):
            start = abandoned.get(stopped.batch, stopped.at)
            return replace(event, stopped=Stopped(stopped.batch, start))
        case _:
            return event


Told = tuple[TableName, events.Event]


def capture_events(
    batch: int,
    start: Coordinates,
    end: Coordinates,
    *,
    rejoined: Iterable[TableName],
    tables: Sequence[TableState],
    handovers: Sequence[Handover],
    quarantined: Iterable[Quarantine],
    loaded: Collection[TableName] = (),
) -> Iterator[Told]:
    """In the order in which they count. `rejoined`: tables whose orders the batch carried out;
    a table that stopped at no exact place stopped at the batch's `start`. `loaded`: tables whose
    rows are all read, and the log behind them too."""
    for table in rejoined:
        yield table, events.Rejoined()
    had = {handover.table: handover.before.mirror for handover in handovers}
    for state in tables:
        told = state.changelog, state.changelog_generation, had.get(state.table, state.mirror)
        if state.condition is TableCondition.ACTIVE:
            yield state.table, events.Followed(*told)
        elif state.condition is TableCondition.LOADING:
            yield state.table, events.LoadBegun(*told)
        elif state.condition is TableCondition.DROPPED:
            yield state.table, events.Dropped(*told, state.stopped or Stopped(batch, end))
    gone = {one.table for one in tables if one.condition is TableCondition.DROPPED}
    for table in loaded:
        if table not in gone:
            yield table, events.Loaded()
    for handover in handovers:
        moved = events.MirrorHandedOver(
            handover.generation, handover.mirror, handover.delta_version, handover.shows
        )
        yield handover.table, moved
    for stopped in quarantined:
        yield stopped.table, quarantine_event(stopped, Stopped(batch, stopped.at or start))


def quarantine_event(quarantined: Quarantine, stopped: Stopped | None) -> events.Quarantined:
    return events.Quarantined(
        quarantined.reason, quarantined.hint, quarantined.position, quarantined.remedy, stopped
    )
