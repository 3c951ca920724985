"""The life of a captured table: the events that change its state, and the table of
transitions.

A table has a changelog (a Delta table with all its changes) and a mirror (one with its
current rows). A batch is a part of the log that a run captures at once; its changes are
captured into files, published to the changelogs and merged into the mirrors.

A table is *followed* from the first batch with a change or statement of it: it is
captured, published and merged. If the log does not have all its rows, the table has a
need: the rows are read from the source, in as many runs as necessary. Its changes in
the log are captured and published meanwhile, and merged together with these rows.

A table is *dropped* once the source has dropped it. Its captured changes are still
merged, and if a table is created under its name, that table is followed.

A table is *stopped* with a reason, a cure in words, the data that it lacks besides the
log (`Need`), and the place in the log. A stopped table is neither captured nor merged;
all other tables go on. `StoppedBy` says who stopped it, and so who starts it again:

- a *run* stops a table that lacks data of the source, or whose mirror a person wants
  written again. The next run starts it by itself;
- *Lockstep* quarantines a table that it cannot capture or write as it is. It waits for
  a person;
- a *person* pauses a table. A pause replaces any other reason, and no other reason
  replaces it.

A table may need a person's consent after it stopped. It then waits for the consent,
no matter who stopped it.

A capture starts a table again when it carries out an order. A person gives the order,
or a run gives it for a table that a run stopped. `supply.plan` decides how the table
starts again, and what is read for it.

The mirror changes within these states. After each write it shows a version of the
table's structure. It moves with a rename, is replaced when it is lost, is removed with
a dropped table, and begins a new generation when the lake and the ledger disagree. A
new generation has a new application id, so that its writes are numbered from one again.

The ledger (Lockstep's database in Postgres) keeps every event, and a table's state is
the result of applying them in order. When a batch is abandoned, its events are left
out, and the remaining ones are applied again from the first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from lockstep.pipeline.model.table_state import (
    Handover,
    StoppedTable,
    StopPlace,
    TableCondition,
    TableState,
)
from lockstep.pipeline.values.errors import Need, StoppedBy
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

# -- the events ------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Followed:
    """A batch captured rows, a statement or a structure of the table, into this
    changelog. `changelog`, `mirror`: folders in the lake; `mirror` is only used for a
    new table. `need`: ROWS if all rows are being read from the source from now on."""

    changelog: str
    changelog_generation: int
    mirror: str
    need: Need | None = None


@dataclass(frozen=True, slots=True)
class Loaded:
    """All rows are read from the source, and a batch captured the log past that read."""


@dataclass(frozen=True, slots=True)
class Dropped:
    """The table was dropped at the source. `stopped`: how far it was captured."""

    changelog: str
    changelog_generation: int
    mirror: str
    stopped: StopPlace


@dataclass(frozen=True, slots=True)
class TableStopped:
    """Somebody stopped the table. `stopped`: how far it was captured, or None if it was
    not. `position`: that place in words, or None if `stopped` says it."""

    by: StoppedBy
    reason: str
    hint: str
    stopped: StopPlace | None
    position: str | None = None
    need: Need | None = None


@dataclass(frozen=True, slots=True)
class Reloaded:
    """A person ordered that the mirror is written again. A followed table stops until
    the next run has done so."""

    reason: str
    hint: str
    stopped: StopPlace | None


@dataclass(frozen=True, slots=True)
class Rejoined:
    """A capture carried out the order to start the table again, so it is captured as
    far as all other tables."""


@dataclass(frozen=True, slots=True)
class MirrorWritten:
    """A write made the mirror show this version of the table's structure."""

    version: int


@dataclass(frozen=True, slots=True)
class MirrorHandedOver:
    """A ledger continues a mirror that another ledger made (`lockstep recover`).
    `delta_version`: the version at which it found the mirror; `version`: the version of
    the table's structure that the mirror showed."""

    generation: int
    mirror: str
    delta_version: int
    version: int


@dataclass(frozen=True, slots=True)
class MirrorReplaced:
    """The mirror was lost, or another program has taken its folder. The next write
    creates a new one in the folder `mirror`."""

    mirror: str


@dataclass(frozen=True, slots=True)
class MirrorRemoved:
    """The mirror of a dropped table was deleted."""


@dataclass(frozen=True, slots=True)
class LakeRestarted:
    """The lake and the ledger disagree about the table: its lake tables begin a new
    generation."""


@dataclass(frozen=True, slots=True)
class BatchAbandoned:
    """A batch was abandoned. The event changes nothing by itself: `state_after` applies
    the table's other events again from the first."""

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
"""Events of a mirror that a run records outside a capture."""

# -- the transitions -------------------------------------------------------------------

NEW: Final = None
"""The condition of a table that no batch has captured yet."""

_FOLLOWING: Final = (TableCondition.FOLLOWING,)
_STOPPED: Final = (TableCondition.STOPPED,)
_DROPPED: Final = (TableCondition.DROPPED,)
_ANY: Final = tuple(TableCondition)

ConditionAndEvent = tuple[TableCondition | None, type[Event]]


def _to_condition(
    conditions: tuple[TableCondition, ...], event: type[Event], condition_after: TableCondition
) -> dict[ConditionAndEvent, TableCondition]:
    return {(condition, event): condition_after for condition in conditions}


def _same_condition(
    conditions: tuple[TableCondition, ...], *kinds: type[Event]
) -> dict[ConditionAndEvent, TableCondition]:
    return {(condition, event): condition for condition in conditions for event in kinds}


TRANSITIONS: Final[Mapping[ConditionAndEvent, TableCondition]] = MappingProxyType(
    {(NEW, Followed): TableCondition.FOLLOWING, (NEW, Dropped): TableCondition.DROPPED}
    | _to_condition(_FOLLOWING + _DROPPED, Followed, TableCondition.FOLLOWING)
    | _to_condition(_FOLLOWING + _DROPPED, Dropped, TableCondition.DROPPED)
    | _to_condition(_ANY, TableStopped, TableCondition.STOPPED)
    | _to_condition(_FOLLOWING, Reloaded, TableCondition.STOPPED)
    | _to_condition(_FOLLOWING, Loaded, TableCondition.FOLLOWING)
    | _to_condition(_STOPPED, Rejoined, TableCondition.FOLLOWING)
    # The other events leave a table in the state it is in.
    | _same_condition(_STOPPED, Followed, Dropped, Reloaded, LakeRestarted)
    | _same_condition(_ANY, MirrorWritten, MirrorReplaced, BatchAbandoned)
    | _same_condition(_FOLLOWING + _DROPPED, MirrorHandedOver)
    | _same_condition(_DROPPED, MirrorRemoved)
)
"""The condition after an event, by the condition before it and the kind of event. An
event without a row is refused."""

REFUSALS: Final[Mapping[type[Event], str]] = MappingProxyType(
    {
        Reloaded: "table_orders_reload_there",
        Rejoined: "table_orders_known",
        MirrorRemoved: "table_states_dropped",
        LakeRestarted: "table_states_anew",
    }
)
"""For a kind of event, the database's name of the rule that refuses such an event if
the table's condition does not allow it."""

ALWAYS_RECORDED: Final = (TableStopped, Reloaded, LakeRestarted)
"""Events outside a capture that are recorded even if they change nothing now: they may
change the state if an earlier batch is abandoned and the events are applied again."""

UNKNOWN_TABLE: Final = "table_states_known"
UNEXPECTED_EVENT: Final = "table_states_life"

# -- a table's state -------------------------------------------------------------------

NOWHERE: Final = "nowhere in the log yet"

_FIRST: Final = (Followed, Dropped)
"""Events with which a table's life can begin."""

_NEEDS: Final = (Need.CONSENT, Need.ROWS, Need.STRUCTURE, Need.MIRROR, Need.COLUMNS)
"""Needs in the order of their extent: supplying one also supplies those after it."""


class NotAllowed(Exception):
    """The table of transitions has no row for an event in a condition. `rule`: the
    database's name for the broken rule."""

    def __init__(self, rule: str) -> None:
        super().__init__(rule)
        self.rule = rule


def next_state(table: TableName, state: TableState | None, event: Event) -> TableState:
    """Return the table's state after an event; the same object if nothing changes.
    `state`: None for a new table. Raise `NotAllowed` if the state does not allow the
    event."""
    condition = TRANSITIONS.get((None if state is None else state.condition, type(event)))
    if condition is None:
        general_rule = UNKNOWN_TABLE if state is None else UNEXPECTED_EVENT
        raise NotAllowed(REFUSALS.get(type(event), general_rule))
    if state is None:
        assert isinstance(event, _FIRST), "no other event has a transition from NEW"
        state = TableState(table, TableCondition.FOLLOWING, 1, event.mirror, event.changelog)
    return _changed_state(state, event, condition)


def _changed_state(state: TableState, event: Event, condition: TableCondition) -> TableState:
    match event:
        case Followed(changelog, generation, _, need) if condition is TableCondition.FOLLOWING:
            return replace(
                state.without_stop(condition),
                changelog=changelog,
                changelog_generation=generation,
                need=need or state.need,
            )
        case Dropped(changelog, generation, _, stopped) if condition is TableCondition.DROPPED:
            return replace(
                state.without_stop(condition),
                changelog=changelog,
                changelog_generation=generation,
                stopped=stopped,
            )
        case Loaded() | Rejoined():
            return state.without_stop(condition)
        case TableStopped():
            return _stopped_state(state, event)
        case Reloaded(reason, hint, stopped):
            return _stopped_state(state, TableStopped(StoppedBy.RUN, reason, hint, stopped))
        case MirrorWritten(version):
            return replace(state, mirror_schema_version=version)
        case MirrorHandedOver(generation, mirror, delta_version, version):
            return replace(
                state,
                generation=generation,
                mirror=mirror,
                mirror_schema_version=version,
                adopted_version=delta_version,
            )
        case MirrorReplaced(mirror):
            return replace(
                state,
                mirror=mirror,
                mirror_generation=state.mirror_generation + 1,
                mirror_schema_version=None,
                adopted_version=None,
            )
        case MirrorRemoved() if state.mirror_schema_version is None:
            return state  # there is no mirror, or it was removed before
        case MirrorRemoved() | LakeRestarted():
            return replace(
                state,
                generation=state.generation + 1,
                mirror_schema_version=None,
                adopted_version=None,
            )
    return state


def _stopped_state(state: TableState, event: TableStopped) -> TableState:
    """Return the stopped state. A person's reason replaces any other reason. The reason
    of an event that needs consent replaces any reason but a person's. Otherwise the
    first reason stays."""
    is_by_person = event.by is StoppedBy.PERSON
    condition_before = state.condition
    if condition_before is TableCondition.STOPPED and not is_by_person:
        if event.need is not Need.CONSENT:
            return state
        waiting = replace(state, need=Need.CONSENT, hint=event.hint)
        if state.stopped_by is StoppedBy.PERSON:
            return waiting
        return replace(waiting, stopped_by=event.by, reason=event.reason)
    stopped = event.stopped
    needs = {state.need, event.need}
    if is_by_person and condition_before is not TableCondition.FOLLOWING:
        stopped = state.stopped
    if is_by_person and condition_before is TableCondition.DROPPED:
        needs.add(Need.ROWS)  # a table created under its name meanwhile would not be captured
    position = event.position or state.position or (str(stopped.at) if stopped else NOWHERE)
    return replace(
        state,
        condition=TableCondition.STOPPED,
        stopped_by=event.by,
        reason=event.reason,
        hint=state.hint if state.need is Need.CONSENT else event.hint,
        position=position,
        need=next((need for need in _NEEDS if need in needs), None),
        stopped=stopped,
    )


def state_after(
    table: TableName,
    history: Iterable[tuple[int | None, Event]],
    abandoned: Mapping[int, Coordinates],
    catching_up: Collection[int] = (),
) -> TableState | None:
    """Return the state after all of a table's events except those of abandoned batches;
    None if there is no event. `history`: each event with the batch that recorded it, or
    None if it was recorded outside a capture. `abandoned`: each abandoned batch with
    its start, which becomes the place of a table that stopped in the batch.

    A table that was first seen by an abandoned batch stays known. If that batch is one
    of `catching_up`, the part of the log that it read is not read again, so the table
    needs its rows. Without the abandoned events before it, the state may no longer
    allow an event; then the event is skipped.
    """
    state: TableState | None = None
    for batch, event in history:
        if batch not in abandoned:
            with suppress(NotAllowed):
                state = next_state(table, state, _with_place_before_abandoned(event, abandoned))
        elif state is None and isinstance(event, _FIRST):
            need = event.need if isinstance(event, Followed) else None
            if batch in catching_up:
                need = Need.ROWS
            first_seen = Followed(event.changelog, event.changelog_generation, event.mirror, need)
            state = next_state(table, None, first_seen)
    return state


def _with_place_before_abandoned(event: Event, abandoned: Mapping[int, Coordinates]) -> Event:
    """Return the event. If it stops a table in an abandoned batch, the place where the
    table stopped becomes the start of that batch."""
    if not isinstance(event, TableStopped | Reloaded) or event.stopped is None:
        return event
    stopped = event.stopped
    start = abandoned.get(stopped.batch, stopped.at)
    return replace(event, stopped=StopPlace(stopped.batch, start))


# -- the events of a capture -----------------------------------------------------------

LifeEvent = tuple[TableName, Event]


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
) -> Iterator[LifeEvent]:
    """Yield the events that a batch records of tables, in the order in which they are
    applied. `rejoined`: tables whose orders the batch carried out; `tables`: states at
    its end; `loaded`: tables whose rows are all read. A quarantined table without an
    exact place stopped at the batch's `start`."""
    for table in rejoined:
        yield table, Rejoined()
    mirrors_before = {handover.table: handover.state_before.mirror for handover in handovers}
    for state in tables:
        mirror = mirrors_before.get(state.table, state.mirror)
        folders = state.changelog, state.changelog_generation, mirror
        if state.condition is TableCondition.FOLLOWING:
            yield state.table, Followed(*folders, state.need)
        elif state.condition is TableCondition.DROPPED:
            yield state.table, Dropped(*folders, state.stopped or StopPlace(batch, end))
    dropped = {state.table for state in tables if state.condition is TableCondition.DROPPED}
    for table in loaded:
        if table not in dropped:
            yield table, Loaded()
    for handover in handovers:
        event = MirrorHandedOver(
            handover.generation, handover.mirror, handover.delta_version, handover.shown_version
        )
        yield handover.table, event
    for quarantine in quarantined:
        stopped = StopPlace(batch, quarantine.at or start)
        yield quarantine.table, quarantine_event(quarantine, stopped)


def quarantine_event(quarantine: StoppedTable, stopped: StopPlace | None) -> TableStopped:
    """Return the event that stops the table. `stopped`: how far it was captured."""
    return TableStopped(
        quarantine.by,
        quarantine.reason,
        quarantine.hint,
        stopped,
        quarantine.position,
        quarantine.need,
    )
