"""Tables' lives in the memory ledger: events written down, and the states that they lead to.

Does not belong here: what events do, which is the product's `pipeline.life` as in Postgres.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from pipeline.batch import Batch, BatchState
from pipeline.life.rules import ALWAYS_KEPT
from pipeline.life.step import NotAllowed, replayed, step
from pipeline.life.told import Told
from pipeline.table import TableName
from pipeline.table_state import STOPPED, Stopped, TableCondition
from resources.postgres.refusals import refusal
from tests.twins.books import ENDED, MemoryBooks


def record(
    books: MemoryBooks, source: str, told: Iterable[Told], batch: Batch | None = None
) -> None:
    for table, event in told:
        key = (source, table)
        before = books.states.get(key)
        try:
            after = step(table, before, event)
        except NotAllowed as refused:
            raise refusal(refused.rule) from None
        if after == before and (batch is not None or not isinstance(event, ALWAYS_KEPT)):
            continue
        if batch is not None and batch.state is not BatchState.CAPTURING:
            raise refusal("table_life_while_capturing")
        if after.changelog_generation < 1:
            raise refusal("table_states_changelog_counts")
        known = [one.version for one in books.versions.get(key, ())]
        if after.mirror_version is not None and after.mirror_version not in known:
            raise refusal("table_states_mirror_version")
        number = None if batch is None else batch.id
        books.lives[key] = (*books.lives.get(key, ()), (number, event))
        books.states[key] = after


def forget(books: MemoryBooks, batch: Batch) -> None:
    """The batch is abandoned: its orders are open, each table is where its other events lead."""
    for number, entry in list(books.orders.items()):
        if entry.done_batch == batch.id:
            books.orders[number] = replace(entry, done_batch=None)
    abandoned = BatchState.ABANDONED
    begins = {one.id: one.start.at for one in books.of_source(batch.source, abandoned)}
    for (source, table), told in list(books.lives.items()):
        stopped = books.states[source, table].stopped
        touched = any(number == batch.id for number, _ in told)
        if source != batch.source or not (touched or (stopped and stopped.batch == batch.id)):
            continue
        state = replayed(table, told, begins)
        if state is not None:
            behind = books.states[source, table].behind
            books.states[source, table] = replace(state, behind=behind)
    for (source, table), state in list(books.states.items()):
        if source == batch.source and state.behind is not None:
            count_behind(books, source, table)


def count_behind(books: MemoryBooks, source: str, table: TableName) -> None:
    """Note from which batch on the table's mirror lacks what others have."""
    state = books.states[source, table]
    waits = (*STOPPED, TableCondition.LOADING)
    if state.behind is not None or state.condition in waits:
        behind = books.behind(source, table, state.behind)
        books.states[source, table] = replace(state, behind=behind)


def count_behind_of_loading(books: MemoryBooks, source: str) -> None:
    """What is captured of a table that is loading waits for its rows."""
    for (of, table), state in list(books.states.items()):
        if of == source and state.condition is TableCondition.LOADING:
            count_behind(books, source, table)


def captures_end(books: MemoryBooks, source: str) -> Stopped | None:
    """Where the captures are; None before the first."""
    captured = books.of_source(source, *ENDED)
    end = captured[-1].end if captured else None
    return None if end is None else Stopped(captured[-1].id, end.at)
