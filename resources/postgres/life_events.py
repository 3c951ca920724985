"""Writes tables' states, always together with the event that led to the state.
`pipeline.model.life` says which event leads to which state."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Final

from lockstep.pipeline.model import life
from lockstep.pipeline.model.batch import BatchKind
from lockstep.pipeline.model.life import (
    ALWAYS_RECORDED,
    LifeEvent,
    NotAllowed,
    next_state,
    state_after,
)
from lockstep.pipeline.model.table_state import StopPlace, TableCondition, TableState
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import Need, StoppedBy
from lockstep.pipeline.values.table import TableName
from lockstep.resources.postgres.refusals import refusal
from lockstep.resources.postgres.rows import (
    Row,
    columns_of,
    coordinate_columns,
    coordinates_of,
    stop_place_of,
    table_arrays,
    table_columns,
    table_of,
    value_of,
)
from lockstep.resources.postgres.session import Transaction

EVENT_NAMES: Final[dict[type[life.Event], str]] = {
    life.Followed: "followed",
    life.Loaded: "loaded",
    life.Dropped: "dropped",
    life.TableStopped: "stopped",
    life.Reloaded: "reloaded",
    life.Rejoined: "rejoined",
    life.MirrorWritten: "mirror written",
    life.MirrorHandedOver: "mirror handed over",
    life.MirrorReplaced: "mirror replaced",
    life.MirrorRemoved: "mirror removed",
    life.LakeRestarted: "lake restarted",
    life.BatchAbandoned: "batch abandoned",
}
"""The names of events in the column `event`."""

_EVENT_CLASSES: Final = {name: event for event, name in EVENT_NAMES.items()}


def record_events(
    transaction: Transaction, lease: Lease, events: Iterable[LifeEvent], batch: int | None = None
) -> dict[TableName, TableState]:
    """Record events in order, with the states that they lead to, and return the tables'
    states. `batch`: the id of the batch whose capture caused them; None if none did."""
    event_list = list(events)
    states = _states_of(transaction, lease.source, {name for name, _ in event_list})
    changes: list[_StateChange] = []
    for name, event in event_list:
        before = states.get(name)
        try:
            after = states[name] = next_state(name, before, event)
        except NotAllowed as error:
            raise refusal(error.rule) from None
        # An event of `ALWAYS_RECORDED` is kept even if it changes nothing now: it does
        # change the state if an earlier batch is abandoned later.
        if after != before or (batch is None and isinstance(event, ALWAYS_RECORDED)):
            changes.append((after, event))
    _write_changes(transaction, lease, changes, batch)
    return states


def undo_batch(transaction: Transaction, lease: Lease, batch: int) -> None:
    """Set each table that an abandoned batch changed to the state to which the table's
    events of other batches lead."""
    history: dict[TableName, list[Row]] = {}
    for row in transaction.all("life_events_of_batch", source=lease.source, batch=batch):
        history.setdefault(table_of(row), []).append(row)
    batch_ids = {row["batch"] for rows in history.values() for row in rows}
    batch_ids |= {row["details"].get("stopped_batch") for rows in history.values() for row in rows}
    abandoned = transaction.all(
        "abandoned_among", source=lease.source, batches=sorted(batch_ids - {None})
    )
    begins = {row["id"]: coordinates_of(row, "start_") for row in abandoned}
    catching_up_ids = {row["id"] for row in abandoned if row["kind"] == BatchKind.CATCHING_UP}
    states = (
        state_after(name, [(row["batch"], event_of(row)) for row in rows], begins, catching_up_ids)
        for name, rows in history.items()
    )
    event = life.BatchAbandoned(batch)
    changes: list[_StateChange] = [(state, event) for state in states if state is not None]
    _write_changes(transaction, lease, changes, batch=None)
    transaction.run("note_missing_batches_of_source", source=lease.source)


_StateChange = tuple[TableState, life.Event]
"""A state, and the event that led to it."""


def _write_changes(
    transaction: Transaction, lease: Lease, changes: list[_StateChange], batch: int | None
) -> None:
    rows = [
        {
            "source": lease.source,
            **table_columns(state.table),
            "event": EVENT_NAMES[type(event)],
            "condition": state.condition,
            "batch": batch,
            "token": lease.token,
            "details": json.dumps(_event_fields(event)),
        }
        for state, event in changes
    ]
    # Postgres does not promise the order of returned rows; the highest id is the newest
    # event.
    newest_event_ids: dict[TableName, int] = {}
    for row in transaction.insert("record_events", rows):
        newest_event_ids[table_of(row)] = max(row["id"], newest_event_ids.get(table_of(row), 0))
    last_states = {state.table: state for state, _ in changes}
    states = [
        {
            "source": lease.source,
            **_state_columns(last_states[name]),
            "event": newest_event_ids[name],
        }
        for name in newest_event_ids
    ]
    transaction.insert("record_states", states)


def last_capture_end(transaction: Transaction, source: str) -> StopPlace | None:
    """Return the newest captured batch and where it ended; None before the first
    capture."""
    rows = transaction.all("last_capture_end", source=source)
    return StopPlace(rows[0]["id"], coordinates_of(rows[0], "end_")) if rows else None


def _states_of(
    transaction: Transaction, source: str, names: set[TableName]
) -> dict[TableName, TableState]:
    if not names:
        return {}
    rows = transaction.all("states_of", source=source, **table_arrays(names))
    return {table_of(row): state_of(row) for row in rows}


# -- rows ------------------------------------------------------------------------------


def state_of(row: Row) -> TableState:
    return value_of(
        TableState,
        row,
        table=table_of(row),
        condition=TableCondition(row["condition"]),
        stopped_by=None if row["stopped_by"] is None else StoppedBy(row["stopped_by"]),
        stopped=stop_place_of(row),
        need=None if row["need"] is None else Need(row["need"]),
    )


def _state_columns(value: TableState) -> dict[str, Any]:
    return {
        **columns_of(value),
        **table_columns(value.table),
        **_stop_place_columns(value.stopped),
    }


def _stop_place_columns(value: StopPlace | None) -> dict[str, Any]:
    batch, at = (None, None) if value is None else (value.batch, value.at)
    return {"stopped_batch": batch, **coordinate_columns(at, "stopped_")}


def _event_fields(event: life.Event) -> dict[str, Any]:
    """Return the event's fields for the JSON column `details`. A `StopPlace` has the
    same names there as in the columns of states."""
    values = {field.name: getattr(event, field.name) for field in fields(event)}
    if "stopped" in values:
        values |= _stop_place_columns(values.pop("stopped"))
    return values


def event_of(row: Row) -> life.Event:
    """Return the event of a row, the reverse of `_event_fields`."""
    values = dict(row["details"])
    if "stopped_batch" in values:
        stopped = stop_place_of(values)
        values = {key: value for key, value in values.items() if not key.startswith("stopped_")}
        values["stopped"] = stopped
    if values.get("need") is not None:
        values["need"] = Need(values["need"])
    if "by" in values:
        values["by"] = StoppedBy(values["by"])
    event: life.Event = _EVENT_CLASSES[row["event"]](**values)
    return event
