"""The life of a captured table, as prose and as the table that is the code.

A table is *followed* from the first batch that has something of it: it is captured, published and
merged. If it has rows that are older than what was read of the log, or is to be read again, it has
a need: its rows are read from the source, in as many runs as it takes. What the log has of it
meanwhile is captured and published, and merged together with these rows.

The source may drop the table: it is *dropped*. What was captured of it is still merged, and if a
table is created under its name, it is followed again.

And it may be *stopped*, with a reason, a cure in words, what it lacks besides the log (`Need`) and
the place in the log. Nothing is captured of a stopped table, and nothing of it is merged; all other
tables go on. `StoppedBy` says who stopped it, and so who starts it again:

- a *run* leaves it to the next run, which starts it by itself: it lacks what only the source has,
  or a person has its mirror written again;
- *Lockstep* puts it in quarantine, because something about it cannot be captured or written as it
  is: it waits for a person;
- a *person* pauses it. That holds whatever else stopped the table before, or would stop it later.

A table starts again when a capture carries out an order, which a person gives, or a run for a
table that a run stopped. `supply.plan` decides how, and what is read for it.

The mirror has a life of its own below these states: it shows a version of the table's structure
after each write, moves with a rename, is replaced when it is lost, is removed with a dropped
table, and begins a new generation when the lake and the ledger disagree.

The ledger keeps every event. A table's state is what its events make of it, one after the other;
when a batch is abandoned, what it recorded never happened, and the others are applied again.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from lockstep.pipeline.model.table_state import (
    Handover,
    Stopped,
    StoppedTable,
    TableCondition,
    TableState,
)
from lockstep.pipeline.values.errors import Need, StoppedBy
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

# -- the events --------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Followed:
    """A batch captured rows, a statement or a structure of the table, into this changelog. `mirror`
    counts for a new table. `need`: ROWS if all rows are being read from the source from here on."""

    changelog: str
    changelog_generation: int
    mirror: str
    need: Need | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """All rows are read, and a batch captured the log up to the last of them."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """The table was dropped at the source."""

    changelog: str
    changelog_generation: int
    mirror: str
    stopped: Stopped


@dataclass(frozen=True, slots=True)
class TableStopped:
    """Somebody stopped the table. `position`: the place in words, None for that of `stopped`, which
    is None if nothing was captured yet."""

    by: StoppedBy
    reason: str
    hint: str
    stopped: Stopped | None
    position: str | None = None
    need: Need | None = None


@dataclass(frozen=True, slots=True)
class Reloaded:
    """A person ordered that the mirror is written again. A table that is followed stops until the
    next run does that."""

    reason: str
    hint: str
    stopped: Stopped | None


@dataclass(frozen=True, slots=True)
class Rejoined:
    """A capture carried out the order to start the table again: it is where the others are."""


@dataclass(frozen=True, slots=True)
class MirrorWritten:
    """The mirror shows that version of the table's structure."""

    version: int


@dataclass(frozen=True, slots=True)
class MirrorHandedOver:
    """A ledger continues a mirror that another ledger made (`lockstep recover`), and that was found
    at `delta_version` and showing `version`."""

    generation: int
    mirror: str
    delta_version: int
    version: int


@dataclass(frozen=True, slots=True)
class MirrorReplaced:
    """The mirror was lost, or is not Lockstep's any more: the next write makes another one, in that
    folder."""

    mirror: str


@dataclass(frozen=True, slots=True)
class MirrorRemoved:
    """The mirror of a dropped table was deleted."""


@dataclass(frozen=True, slots=True)
class LakeRestarted:
    """The lake and the ledger disagree about the table: its lake tables begin a new generation."""


@dataclass(frozen=True, slots=True)
class BatchAbandoned:
    """The batch never happened. The event changes nothing by itself: the table's other events are
    applied again from the first (`rules.replayed`)."""

    batch: int


Event = (
    Followed
    | Loaded
    | Dropped
    | TableStopped
    | Reloaded
    | Rejoined
    | MirrorWritten
    | MirrorHandedOver
    | MirrorReplaced
    | MirrorRemoved
    | LakeRestarted
    | BatchAbandoned
)

MirrorEvent = MirrorReplaced | MirrorRemoved | LakeRestarted
"""What a step of a run records of a mirror by itself."""


NEW: Final = None
"""A table of which no batch has had anything yet."""

_FOLLOWING: Final = (TableCondition.FOLLOWING,)
_STOPPED: Final = (TableCondition.STOPPED,)
_DROPPED: Final = (TableCondition.DROPPED,)
_ANY: Final = tuple(TableCondition)

Moment = tuple[TableCondition | None, type[Event]]


def _from(
    lives: tuple[TableCondition, ...], event: type[Event], to: TableCondition
) -> dict[Moment, TableCondition]:
    return {(life, event): to for life in lives}


def _kept(lives: tuple[TableCondition, ...], *kinds: type[Event]) -> dict[Moment, TableCondition]:
    return {(life, event): life for life in lives for event in kinds}


TRANSITIONS: Final[Mapping[Moment, TableCondition]] = MappingProxyType(
    {
        (NEW, Followed): TableCondition.FOLLOWING,
        (NEW, Dropped): TableCondition.DROPPED,
    }
    | _from(_FOLLOWING + _DROPPED, Followed, TableCondition.FOLLOWING)
    | _from(_FOLLOWING + _DROPPED, Dropped, TableCondition.DROPPED)
    | _from(_ANY, TableStopped, TableCondition.STOPPED)
    | _from(_FOLLOWING, Reloaded, TableCondition.STOPPED)
    | _from(_FOLLOWING, Loaded, TableCondition.FOLLOWING)
    | _from(_STOPPED, Rejoined, TableCondition.FOLLOWING)
    # The other events leave a table in the state it is in.
    | _kept(_STOPPED, Followed, Dropped, Reloaded, LakeRestarted)
    | _kept(_ANY, MirrorWritten, MirrorReplaced, BatchAbandoned)
    | _kept(_FOLLOWING + _DROPPED, MirrorHandedOver)
    | _kept(_DROPPED, MirrorRemoved)
)
"""The next life; what has no row is refused."""

REFUSALS: Final[Mapping[type[Event], str]] = MappingProxyType(
    {
        Reloaded: "table_orders_reload_there",
        Rejoined: "table_orders_known",
        MirrorRemoved: "table_states_dropped",
        LakeRestarted: "table_states_anew",
    }
)
"""The ledger's rule that an event breaks which a table's state does not allow."""

ALWAYS_KEPT: Final = (TableStopped, Reloaded, LakeRestarted)
"""Events that are recorded outside a capture even if they change nothing: they change something
once a batch before them is abandoned."""

UNKNOWN_TABLE: Final = "table_states_known"
UNEXPECTED: Final = "table_states_life"


NOWHERE = "nowhere in the log yet"
_FIRST = (Followed, Dropped)
_NEEDS = (Need.CONSENT, Need.ROWS, Need.MIRROR, Need.COLUMNS)
"""The first of several supplies all that the others would."""


class NotAllowed(Exception):
    """The table of transitions has no row for an event; `rule` is the ledger's name for what it
    breaks."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


def step(table: TableName, state: TableState | None, event: Event) -> TableState:
    """Return the table's state after an event; the same object if nothing changes. `state`: None
    for a new table. Raise `NotAllowed` for an event that this state does not have."""
    life = TRANSITIONS.get((None if state is None else state.condition, type(event)))
    if life is None:
        unknown = UNKNOWN_TABLE if state is None else UNEXPECTED
        raise NotAllowed(REFUSALS.get(type(event), unknown))
    if state is None:
        assert isinstance(event, _FIRST), "no other event has a transition from NEW"
        state = TableState(table, TableCondition.FOLLOWING, 1, event.mirror, event.changelog)
    return _after(state, event, life)


def _after(state: TableState, event: Event, life: TableCondition) -> TableState:
    match event:
        case Followed(changelog, generation, _, need) if life is TableCondition.FOLLOWING:
            return replace(
                state.started(life),
                changelog=changelog,
                changelog_generation=generation,
                need=need or state.need,
            )
        case Dropped(changelog, generation, _, stopped) if life is TableCondition.DROPPED:
            return replace(
                state.started(life),
                changelog=changelog,
                changelog_generation=generation,
                stopped=stopped,
            )
        case Loaded() | Rejoined():
            return state.started(life)
        case TableStopped():
            return _stopped(state, event)
        case Reloaded(reason, hint, here):
            return _stopped(state, TableStopped(StoppedBy.RUN, reason, hint, here))
        case MirrorWritten(version):
            return replace(state, mirror_version=version)
        case MirrorHandedOver(generation, mirror, delta_version, version):
            moved = replace(state, generation=generation, mirror=mirror)
            return replace(moved, mirror_version=version, adopted=delta_version)
        case MirrorReplaced(mirror):
            lost = replace(state, mirror_version=None, adopted=None, mirror=mirror)
            return replace(lost, mirror_generation=state.mirror_generation + 1)
        case MirrorRemoved() if state.mirror_version is None:
            return state
        case MirrorRemoved() | LakeRestarted():
            lost = replace(state, mirror_version=None, adopted=None)
            return replace(lost, generation=state.generation + 1)
    return state


def _stopped(state: TableState, event: TableStopped) -> TableState:
    """A person's word holds over any other; else what stopped the table first."""
    person, before = event.by is StoppedBy.PERSON, state.condition
    if before is TableCondition.STOPPED and not person:
        return state
    stopped, needs = event.stopped, {state.need, event.need}
    if person and before is not TableCondition.FOLLOWING:
        stopped = state.stopped
    if person and before is TableCondition.DROPPED:
        needs.add(Need.ROWS)  # a table that is created while nobody follows it is in no log
    position = event.position or state.position or (str(stopped.at) if stopped else NOWHERE)
    return replace(
        state,
        condition=TableCondition.STOPPED,
        stopped_by=event.by,
        reason=event.reason,
        hint=event.hint,
        position=position,
        need=next((need for need in _NEEDS if need in needs), None),
        stopped=stopped,
    )


def replayed(
    table: TableName,
    history: Iterable[tuple[int | None, Event]],
    abandoned: Mapping[int, Coordinates],
    catching_up: Collection[int] = (),
) -> TableState | None:
    """Return the state that a table's events lead to without those of abandoned batches; None
    without any event. `history`: each event with the batch that recorded it, if one did.
    `abandoned`: those batches, and where each began: a table that stopped in one stopped there.

    A table that an abandoned batch saw first stays known. If that was one of `catching_up`, the log
    that it read is not read again, and the table lacks its rows. An event that no longer fits,
    because it followed one of an abandoned batch, is skipped.
    """
    state: TableState | None = None
    for batch, event in history:
        if batch not in abandoned:
            with suppress(NotAllowed):
                state = step(table, state, _moved(event, abandoned))
        elif state is None and isinstance(event, _FIRST):
            need = event.need if isinstance(event, Followed) else None
            need = Need.ROWS if batch in catching_up else need
            seen = Followed(event.changelog, event.changelog_generation, event.mirror, need)
            state = step(table, None, seen)
    return state


def _moved(event: Event, abandoned: Mapping[int, Coordinates]) -> Event:
    """Return the event; a table that stopped in an abandoned batch stopped where that began."""
    if not isinstance(event, TableStopped | Reloaded) or event.stopped is None:
        return event
    stopped = event.stopped
    start = abandoned.get(stopped.batch, stopped.at)
    return replace(event, stopped=Stopped(stopped.batch, start))


Told = tuple[TableName, Event]


def capture_events(
    batch: int,
    start: Coordinates,
    end: Coordinates,
    *,
    rejoined: Iterable[TableName],
    tables: Sequence[TableState],
    handovers: Sequence[Handover],
    quarantined: Iterable[StoppedTable],
    loaded: Collection[TableName] = (),
) -> Iterator[Told]:
    """Yield what a batch records of tables, in the order in which it counts. `rejoined`: tables
    whose orders the batch carried out; `tables`: states at its end; `loaded`: tables whose rows are
    all read. A table that was quarantined at no exact place stopped at the batch's `start`."""
    for table in rejoined:
        yield table, Rejoined()
    before = {handover.table: handover.before.mirror for handover in handovers}
    for state in tables:
        mirror = before.get(state.table, state.mirror)
        place = state.changelog, state.changelog_generation, mirror
        if state.condition is TableCondition.FOLLOWING:
            yield state.table, Followed(*place, state.need)
        elif state.condition is TableCondition.DROPPED:
            yield state.table, Dropped(*place, state.stopped or Stopped(batch, end))
    dropped = {state.table for state in tables if state.condition is TableCondition.DROPPED}
    for table in loaded:
        if table not in dropped:
            yield table, Loaded()
    for handover in handovers:
        moved = MirrorHandedOver(
            handover.generation, handover.mirror, handover.delta_version, handover.shows
        )
        yield handover.table, moved
    for quarantine in quarantined:
        yield quarantine.table, quarantine_event(quarantine, Stopped(batch, quarantine.at or start))


def quarantine_event(quarantine: StoppedTable, stopped: Stopped | None) -> TableStopped:
    return TableStopped(
        quarantine.by,
        quarantine.reason,
        quarantine.hint,
        stopped,
        quarantine.position,
        quarantine.need,
    )
