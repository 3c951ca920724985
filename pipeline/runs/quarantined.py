"""Which tables are quarantined now, and why."""

from __future__ import annotations

from collections.abc import Mapping

from pipeline.errors import Remedy
from pipeline.runs.context import Workplace
from pipeline.table import TableName
from pipeline.table_state import STOPPED, Quarantine, TableState


def quarantined_tables(work: Workplace) -> tuple[Quarantine, ...]:
    """Every table of the source that is quarantined now, by the system or by a person; sorted."""
    return quarantines_of(work.ledger.table_states(work.source.name))


def quarantines_of(states: Mapping[TableName, TableState]) -> tuple[Quarantine, ...]:
    """A table that was dropped at the source is not: it has no changes that the lake lacks."""
    return tuple(
        Quarantine(
            table,
            state.reason or "",
            state.hint or "",
            _place(state),
            remedy=state.remedy or Remedy.CATCH_UP,
        )
        for table, state in sorted(states.items())
        if state.condition in STOPPED
    )


def _place(state: TableState) -> str:
    return state.position or (str(state.stopped.at) if state.stopped is not None else "")
