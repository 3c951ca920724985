"""What a capture tells of the tables it touched, as events of their lives.

Belongs here: reading a `CaptureRecord` that way. Does not: what the events do (`step`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from pipeline.life import events
from pipeline.position import Coordinates
from pipeline.table import TableName
from pipeline.table_state import Handover, Quarantine, Stopped, TableCondition, TableState

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
    """The event of a table that is quarantined."""
    return events.Quarantined(
        quarantined.reason, quarantined.hint, quarantined.position, quarantined.remedy, stopped
    )
