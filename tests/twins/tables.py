"""How tables stand, in memory: `pipeline.ports.tables`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pipeline.batch import Batch, BatchState, CaptureRecord
from pipeline.decisions import Lease
from pipeline.life.events import MirrorEvent
from pipeline.life.told import quarantine_event
from pipeline.table import TableName
from pipeline.table_state import Extent, Quarantine, TableCondition, TableState
from resources.postgres.refusals import refusal
from tests.twins.books import UNFINISHED, MemoryBooks, MemorySubject
from tests.twins.life_events import captures_end, count_behind, record


class MemoryTables(MemorySubject):
    def table_states(self, source: str) -> dict[TableName, TableState]:
        found = {table: state for (of, table), state in self.books.states.items() if of == source}
        return dict(sorted(found.items()))

    def partial(self, source: str) -> list[Extent]:
        """The newest word on each table, of the newest live batch that has one."""
        found: dict[TableName, tuple[int, Extent]] = {}
        for of, number, one in self.books.extents:
            live = of == source and self.books.batches[number].state is not BatchState.ABANDONED
            if live and number >= found.get(one.table, (0, one))[0]:
                found[one.table] = (number, one)
        states = self.table_states(source)
        gone = {
            state.table for state in states.values() if state.condition is TableCondition.DROPPED
        }
        return [
            one
            for table, (_, one) in sorted(found.items())
            if one.begins is not None and table not in gone
        ]

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        with self._step(lease) as books:
            known = books.batch(lease.source, batch)
            record_extents(books, known, [Extent(table, None) for table in tables])

    def quarantine(self, lease: Lease, quarantined: Quarantine) -> None:
        with self._step(lease) as books:
            stopped = captures_end(books, lease.source)
            if stopped is not None and quarantined.at is not None:
                stopped = replace(stopped, at=quarantined.at)
            record(
                books, lease.source, [(quarantined.table, quarantine_event(quarantined, stopped))]
            )
            count_behind(books, lease.source, quarantined.table)
            books.give_up(lease.source, quarantined.table)

    def record_event(self, lease: Lease, table: TableName, event: MirrorEvent) -> TableState:
        with self._step(lease) as books:
            record(books, lease.source, [(table, event)])
            return books.states[lease.source, table]


def record_handovers(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    """Mirrors that change hands in a capture."""
    if record.handovers and batch.state is not BatchState.CAPTURING:
        raise refusal("handovers_while_capturing")
    for handover in record.handovers:
        if len(books.of_source(batch.source, *UNFINISHED)) > 1:
            raise refusal("handovers_alone")
        if handover.generation != handover.before.generation + 1:
            raise refusal("handovers_generation")
        if (handover.shows is None) != (handover.delta_version is None):
            raise refusal("handovers_whole")
        key = (batch.source, handover.table)
        if key not in books.states:
            raise refusal("handovers_table")
        known = [version.version for version in books.versions.get(key, ())]
        if handover.shows is not None and handover.shows not in known:
            raise refusal("handovers_shows")
    books.handovers[batch.id] = record.handovers


def record_extents(books: MemoryBooks, batch: Batch, extents: Sequence[Extent]) -> None:
    for extent in extents:
        if extent.empty is not None and extent.begins is None:
            raise refusal("extents_empty_of_partial")
        books.extents.append((batch.source, batch.id, extent))
