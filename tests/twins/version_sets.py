"""What an acknowledged batch shows, in memory: which version of each mirror, or why none."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.batch import Batch, BatchState
from pipeline.intent import Missing, MissingTable, SettledWrite, VersionSetEntry
from pipeline.life.events import Rejoined
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableEventKind, TableState
from tests.twins.books import ENDED, MERGEABLE, MemoryBooks, covers


def version_set_of(books: MemoryBooks, batch: Batch) -> Iterator[VersionSetEntry | MissingTable]:
    """Each table as of the batch, or why it cannot be read so."""
    told = _Told.of(books, batch)
    complete = _complete_before(books, batch)
    for (source, table), state in sorted(books.states.items()):
        if source != batch.source:
            continue
        writes = told.writes.get(table, [])
        before = [write for write in writes if write.intent.last_batch <= batch.id]
        across = [write.intent for write in writes if covers(write.intent, batch.id)]
        beyond = [intent.last_batch for intent in across if intent.last_batch > batch.id]
        if not before and not beyond and _unknown(books, source, table, batch.id):
            continue
        if _gone(told, state, batch.id):
            continue
        why = None if table in complete else _why(books, source, state, batch.id)
        if why is not None:
            yield MissingTable(table, why)
        elif beyond:
            yield MissingTable(table, Missing.TOGETHER, beyond[0])
        elif _lacks(told, table, writes):
            yield MissingTable(table, Missing.BEHIND)
        elif not before and state.adopted is not None:
            yield VersionSetEntry(table, state.mirror, state.adopted, None)
        elif not before:
            yield MissingTable(table, Missing.UNWRITTEN)
        else:
            yield books.written[max(write.intent.id for write in before)]


def _complete_before(books: MemoryBooks, batch: Batch) -> set[TableName]:
    """Return the tables that the set before a batch has, if the batch ends where that one ended: it
    catches up others."""
    if not batch.catches_up:
        return set()
    acknowledged = [one.id for one in books.of_source(batch.source, BatchState.ACKNOWLEDGED)]
    before = max((one for one in acknowledged if one < batch.id), default=0)
    entries = books.version_sets.get(before, ())
    return {one.table for one in entries if isinstance(one, VersionSetEntry)}


@dataclass(frozen=True, slots=True)
class _Told:
    """What a source's batches tell of its tables, as of one batch: the writes of each, the batches
    up to it that touched it, and all that its tables' events were, with their batch."""

    writes: dict[TableName, list[SettledWrite]]
    touched: dict[TableName, list[int]]
    events: dict[TableName, list[tuple[int, TableEventKind]]]

    @classmethod
    def of(cls, books: MemoryBooks, batch: Batch) -> _Told:
        made = cls(defaultdict(list), defaultdict(list), defaultdict(list))
        for number, write in books.settled.items():
            if books.intents[number][0] == batch.source:
                made.writes[write.intent.table].append(write)
        for one in books.of_source(batch.source, *ENDED):
            for event in books.events.get(one.id, ()):
                made.events[event.table].append((one.id, event.kind))
            if one.id <= batch.id:
                for table in books.touched(one.id):
                    made.touched[table].append(one.id)
        return made


def _unknown(books: MemoryBooks, source: str, table: TableName, batch: int) -> bool:
    """Whether nothing was told of the table yet."""
    told = books.lives.get((source, table), ())
    first = next((of for of, _ in told), None)
    return first is not None and first > batch


def _gone(told: _Told, state: TableState, batch: int) -> bool:
    """Whether the source had it no more: also where it is made anew in a later batch."""
    if state.condition is TableCondition.DROPPED:
        return state.stopped is None or state.stopped.batch <= batch
    events = told.events.get(state.table, [])
    before = [kind for number, kind in events if number <= batch]
    again = any(kind is TableEventKind.CREATED for number, kind in events if number > batch)
    return again and before[-1:] == [TableEventKind.DROPPED]


def _why(books: MemoryBooks, source: str, state: TableState, batch: int) -> Missing | None:
    """What its state says, or what batches say that were captured since."""
    if state.condition not in MERGEABLE:
        return Missing(state.condition.value)
    later = [
        one.id
        for one in books.of_source(source, BatchState.CAPTURED, BatchState.MERGED)
        if one.id > batch
    ]
    told = books.lives.get((source, state.table), ())
    rejoined = any(of in later and isinstance(event, Rejoined) for of, event in told)
    return Missing.LATER if rejoined else None


def _lacks(told: _Told, table: TableName, writes: list[SettledWrite]) -> bool:
    """Whether no write merged something of it up to there."""
    merged = [write.intent for write in writes if write.intent.step == "merge"]
    return any(
        not any(covers(intent, number) for intent in merged)
        for number in told.touched.get(table, [])
    )
