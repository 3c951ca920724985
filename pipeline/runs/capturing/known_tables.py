"""The tables that a capture finds, those that it takes up again among them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from pipeline.coverage import past_ranges
from pipeline.position import Position
from pipeline.runs.agreement.foreign_mirrors import foreign_mirrors
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.context import Workplace
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableState


def tables_of(
    work: Workplace,
    start: Position,
    batch: int,
    active: Collection[TableName] = (),
    *,
    base: int = 0,
    before: int | None = None,
) -> CapturedTables:
    """The tables that the capture of `batch` from `start` on finds. `active`: those that it
    takes up again, or begins to load. `before`: what patterns left out counts up to that batch
    only, because the log behind it is read now."""
    source = work.source.name
    states = work.ledger.table_states(source)
    loads = {load.table: load.followed is not None for load in work.ledger.open_loads(source)}
    for table in active:
        loads.pop(table, None)
        if table in states:
            states[table] = _taken_up(states[table])
    there = filter(work.source.patterns.matches, work.server.engines())
    for table, why in foreign_mirrors(work, there).items():
        loads[table] = False
        if before is None:
            work.progress.note(why)
    past = [
        one
        for one in past_ranges(work.ledger.capture_scopes(source), batch, str(start))
        if before is None or one.last < before
    ]
    return CapturedTables(
        work.segments,
        source=source,
        batch=batch,
        base=base,
        states=states,
        past=past,
        updated=work.source.lake.updated_columns,
        loading=loads,
    )


def _taken_up(state: TableState) -> TableState:
    return replace(
        state,
        condition=TableCondition.ACTIVE,
        reason=None,
        hint=None,
        position=None,
        stopped=None,
        remedy=None,
    )
