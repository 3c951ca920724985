"""The machine: what an event makes of a table.

Belongs here: one step, and a table's events gone through from the beginning. Does not: which
events are allowed (`rules`), writing them down (`resources.postgres`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace

from pipeline.errors import Remedy
from pipeline.life import events
from pipeline.life.rules import REFUSALS, TRANSITIONS, UNEXPECTED, UNKNOWN_TABLE
from pipeline.position import Coordinates
from pipeline.table import TableName
from pipeline.table_state import Stopped, TableCondition, TableState

NOWHERE = "nowhere in the log yet"
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
        case events.Followed(changelog, generation):
            if life in (TableCondition.ACTIVE, TableCondition.LOADING):
                return _going(state, life, changelog, generation, None)
        case events.LoadBegun(changelog, generation):
            return _going(state, life, changelog, generation, None)
        case events.Loaded():
            return _going(state, life, state.changelog, state.changelog_generation, None)
        case events.Dropped(changelog, generation, _, stopped):
            if life is TableCondition.DROPPED:
                return _going(state, life, changelog, generation, stopped)
        case events.Quarantined(reason, hint, position, remedy, stopped):
            if state.condition is not life:
                return replace(
                    state,
                    condition=life,
                    reason=reason,
                    hint=hint,
                    position=position,
                    remedy=_lacking(state, remedy),
                    stopped=stopped,
                )
        case events.Paused(reason, hint, remedy, stopped):
            return _paused(state, reason, hint, remedy, stopped)
        case events.Reloaded(reason, hint, stopped):
            if state.condition in (TableCondition.ACTIVE, TableCondition.LOADING):
                return _paused(state, reason, hint, None, stopped)
        case events.Rejoined():
            return _going(state, life, state.changelog, state.changelog_generation, None)
        case _:
            return _mirror_after(state, event)
    return state


def _going(
    state: TableState,
    life: TableCondition,
    changelog: str,
    generation: int,
    stopped: Stopped | None,
) -> TableState:
    """Active or dropped: whatever kept it out is over."""
    return replace(
        state,
        condition=life,
        changelog=changelog,
        changelog_generation=generation,
        reason=None,
        hint=None,
        position=None,
        remedy=None,
        stopped=stopped,
    )


def _paused(
    state: TableState, reason: str, hint: str, remedy: Remedy | None, here: Stopped | None
) -> TableState:
    going = state.condition in (TableCondition.ACTIVE, TableCondition.LOADING)
    stopped = here if going else state.stopped
    position = state.position or (NOWHERE if stopped is None else str(stopped.at))
    return replace(
        state,
        condition=TableCondition.PAUSED,
        reason=reason,
        hint=hint,
        position=position,
        remedy=_lacking(state, remedy),
        stopped=stopped,
    )


def _lacking(state: TableState, remedy: Remedy | None) -> Remedy | None:
    """What brings a table back that stops; one that was loading lacks rows of the source."""
    if state.condition is not TableCondition.LOADING or remedy is Remedy.RESNAPSHOT:
        return remedy
    return Remedy.RELEASED_RESNAPSHOT


def _mirror_after(state: TableState, event: events.Event) -> TableState:
    match event:
        case events.MirrorWritten(version):
            return replace(state, mirror_version=version)
        case events.MirrorHandedOver(generation, mirror, delta_version, version):
            return replace(
                state,
                generation=generation,
                mirror=mirror,
                mirror_version=version,
                adopted=delta_version,
            )
        case events.MirrorReplaced(mirror):
            number = state.mirror_generation + 1
            lost = replace(state, mirror_version=None, adopted=None)
            return replace(lost, mirror=mirror, mirror_generation=number)
        case events.MirrorRemoved() if state.mirror_version is None:
            return state
        case events.MirrorRemoved() | events.LakeRestarted():
            number = state.generation + 1
            return replace(state, generation=number, mirror_version=None, adopted=None)
        case _:
            return state


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
            return replace(event, stopped=_begin(stopped, abandoned))
        case _:
            return event


def _begin(stopped: Stopped, abandoned: Mapping[int, Coordinates]) -> Stopped:
    start = abandoned.get(stopped.batch)
    return stopped if start is None else Stopped(stopped.batch, start)
