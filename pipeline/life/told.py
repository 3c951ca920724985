"""What a capture tells of the tables it touched, as events of their lives.

Belongs here: reading a `CaptureRecord` that way. Does not: what the events do (`step`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from pipeline.life import events
from pipeline.position import Coordinates
from pipeline.table import TableName
from pipeline.table_state import Handover, SetAside, Stopped, TableState
from pipeline.table_state import TableCondition as Life

Told = tuple[TableName, events.Event]


def capture_events(
    batch: int,
    start: Coordinates,
    end: Coordinates,
    *,
    rejoined: Iterable[TableName],
    tables: Sequence[TableState],
    handovers: Sequence[Handover],
    set_aside: Iterable[SetAside],
    loaded: Collection[TableName] = (),
) -> Iterator[Told]:
    """In the order in which they count. `rejoined`: tables whose orders the batch carried out;
    a table that stopped at no exact place stopped at the batch's `start`. `loaded`: tables whose
    rows are all read, and the log behind them too."""
    for table in rejoined:
        yield table, events.Rejoined()
    had = {one.table: one.before.mirror for one in handovers}
    for state in tables:
        told = state.changelog, state.changelog_generation, had.get(state.table, state.mirror)
        if state.condition is Life.ACTIVE:
            yield state.table, events.Followed(*told)
        elif state.condition is Life.LOADING:
            yield state.table, events.LoadBegun(*told)
        elif state.condition is Life.DROPPED:
            yield state.table, events.Dropped(*told, state.stopped or Stopped(batch, end))
    gone = {one.table for one in tables if one.condition is Life.DROPPED}
    for table in loaded:
        if table not in gone:
            yield table, events.Loaded()
    for one in handovers:
        moved = events.MirrorHandedOver(one.generation, one.mirror, one.delta_version, one.shows)
        yield one.table, moved
    for aside in set_aside:
        yield aside.table, quarantined(aside, Stopped(batch, aside.at or start))


def quarantined(aside: SetAside, stopped: Stopped | None) -> events.Quarantined:
    """The event of a table that is set aside."""
    return events.Quarantined(aside.reason, aside.hint, aside.position, aside.remedy, stopped)
