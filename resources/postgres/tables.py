"""How tables stand, on Postgres: `pipeline.ports.tables`.

Belongs here: questions about states, and what goes with them (extents, handovers). Does not:
writing a state (`life_events`), orders (`orders`), writes to mirrors (`writes`).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

from pipeline.decisions import Lease
from pipeline.life.events import MirrorEvent
from pipeline.life.told import quarantine_event
from pipeline.table import TableName
from pipeline.table_state import Extent, Handover, Quarantine, TableState
from resources.postgres.life_events import captures_end, record, state
from resources.postgres.rows import Row, coordinates, of_coordinates, of_table, table
from resources.postgres.session import Books, Step


class PostgresTables(Books):
    def table_states(self, source: str) -> dict[TableName, TableState]:
        return {table(row): state(row) for row in self._all("table_states", source=source)}

    def partial(self, source: str) -> list[Extent]:
        return [_extent(row) for row in self._all("partial", source=source)]

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        with self._step(lease) as step:
            extents = [Extent(table, None) for table in sorted(tables)]
            record_extents(step, lease.source, batch, extents)

    def quarantine(self, lease: Lease, quarantined: Quarantine) -> None:
        with self._step(lease) as step:
            stopped = captures_end(step, lease.source)
            if stopped is not None and quarantined.at is not None:
                stopped = replace(stopped, at=quarantined.at)
            record(step, lease, [(quarantined.table, quarantine_event(quarantined, stopped))])
            count_behind(step, lease.source, quarantined.table)
            step.run("give_up", source=lease.source, **of_table(quarantined.table))

    def record_event(self, lease: Lease, table: TableName, event: MirrorEvent) -> TableState:
        with self._step(lease) as step:
            return record(step, lease, [(table, event)])[table]


# -- what other steps say of tables ------------------------------------------------------


def record_handovers(step: Step, source: str, batch: int, handovers: Sequence[Handover]) -> None:
    for handover in handovers:
        step.run("record_handover", source=source, batch=batch, **_of_handover(handover))


def record_extents(step: Step, source: str, batch: int, extents: Sequence[Extent]) -> None:
    step.insert("record_extents", [(source, batch, *_of_extent(extent)) for extent in extents])


def count_behind(step: Step, source: str, table: TableName) -> None:
    """Note from which batch on the table's mirror lacks what others have: of one that stops, or
    was behind already."""
    step.run("count_behind", source=source, **of_table(table))


# -- rows ------------------------------------------------------------------------------


def _of_handover(value: Handover) -> dict[str, Any]:
    return {
        **of_table(value.table),
        "generation": value.generation,
        "mirror": value.mirror,
        "delta_version": value.delta_version,
        "shows": value.shows,
        "before_generation": value.before.generation,
        "before_mirror": value.before.mirror,
    }


def _extent(row: Row) -> Extent:
    empty = None if row["empty_base"] is None else coordinates(row, "empty")
    return Extent(table(row), coordinates(row, "begins"), empty)


def _of_extent(value: Extent) -> tuple[Any, ...]:
    """In the order of the statement `record_extents`: name, begin, where it was empty."""
    places = (of_coordinates(at).values() for at in (value.begins, value.empty))
    return (*of_table(value.table).values(), *chain.from_iterable(places))
