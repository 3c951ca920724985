"""How tables stand, in memory: `pipeline.ports.tables`."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from pipeline.batch import Batch, BatchState, CaptureRecord
from pipeline.decisions import Lease
from pipeline.life.events import MirrorEvent
from pipeline.life.told import quarantined
from pipeline.table import TableName
from pipeline.table_state import Extent, SetAside, TableCondition, TableState
from resources.postgres.refusals import refusal
from tests.twins.books import UNFINISHED, MemoryBooks, MemorySubject
from tests.twins.lives import captures_end, count_behind, record


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
        gone = {one.table for one in states.values() if one.condition is TableCondition.DROPPED}
        return [
            one
            for table, (_, one) in sorted(found.items())
            if one.begins is not None and table not in gone
        ]

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        with self._step(lease) as books:
            known = books.batch(lease.source, batch)
            record_extents(books, known, [Extent(table, None) for table in tables])

    def set_aside(self, lease: Lease, set_aside: SetAside) -> None:
        with self._step(lease) as books:
            stopped = captures_end(books, lease.source)
            if stopped is not None and set_aside.at is not None:
                stopped = replace(stopped, at=set_aside.at)
            record(books, lease.source, [(set_aside.table, quarantined(set_aside, stopped))])
            count_behind(books, lease.source, set_aside.table)
            books.give_up(lease.source, set_aside.table)

    def record_event(self, lease: Lease, table: TableName, event: MirrorEvent) -> TableState:
        with self._step(lease) as books:
            record(books, lease.source, [(table, event)])
            return books.states[lease.source, table]


def record_handovers(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    """Mirrors that change hands in a capture."""
    if record.handovers and batch.state is not BatchState.CAPTURING:
        raise refusal("handovers_while_capturing")
    for one in record.handovers:
        if len(books.of_source(batch.source, *UNFINISHED)) > 1:
            raise refusal("handovers_alone")
        if one.generation != one.before.generation + 1:
            raise refusal("handovers_generation")
        if (one.shows is None) != (one.delta_version is None):
            raise refusal("handovers_whole")
        key = (batch.source, one.table)
        if key not in books.states:
            raise refusal("handovers_table")
        known = [version.version for version in books.versions.get(key, ())]
        if one.shows is not None and one.shows not in known:
            raise refusal("handovers_shows")
    books.handovers[batch.id] = record.handovers


def record_extents(books: MemoryBooks, batch: Batch, extents: Sequence[Extent]) -> None:
    for one in extents:
        if one.empty is not None and one.begins is None:
            raise refusal("extents_empty_of_partial")
        books.extents.append((batch.source, batch.id, one))
