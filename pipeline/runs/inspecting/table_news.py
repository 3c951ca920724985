"""What a run did, table by table, for whoever keeps a graph of tables beside Lockstep.

Belongs here: gathering it from the reports of the steps and from the ledger. Does not: in whose
words it is told (`resources.openlineage`), Dagster's events (`assets.table_news`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from pipeline.errors import LockstepError
from pipeline.ports.ledger import Ledger
from pipeline.runs.context import Workplace
from pipeline.runs.reports import CaptureReport, MergeReport, TableMerge
from pipeline.schema.model import TableSchema
from pipeline.schema.refold import logged_statement
from pipeline.schema.statements.changes import (
    AlterTable,
    Irrelevant,
    NotUnderstood,
    RenameTables,
    RenameTo,
    SchemaChange,
)
from pipeline.schema.statements.read import read_change
from pipeline.segment import RowCounts
from pipeline.table import TableName
from pipeline.table_state import TableEvent, TableEventKind, TableState

NAMED: Final = 250
"""Tables that are told of; of more, those whose structure changed first."""

DESCRIBED: Final = 1_000
"""Columns, in all, that are told of; the tables behind them are told of without. Both keep what is
sent below a megabyte, which is what brokers take."""


@dataclass(frozen=True, slots=True)
class TableNews:
    """One table. `merge`: the last write of its mirror, None where there was none; `counts` and
    `read` of all of them. `happened`: the last that did to its structure; `was`: the table it was
    renamed from, as it stands now. `schema` and `comments`: the source's, None and empty where
    nobody described it."""

    state: TableState
    merge: TableMerge | None
    counts: RowCounts
    read: int
    happened: TableEventKind | None = None
    was: TableState | None = None
    schema: TableSchema | None = None
    comments: Mapping[str, str] = field(default_factory=dict)

    @property
    def table(self) -> TableName:
        return self.state.table


@dataclass(frozen=True, slots=True)
class RunNews:
    """`unnamed`: how many more tables there are than are told of."""

    tables: tuple[TableNews, ...]
    unnamed: int = 0


def run_news(
    work: Workplace, captured: CaptureReport | None, merged: MergeReport | None
) -> RunNews:
    """The tables that changed, by name; empty where none did."""
    ledger, source = work.ledger, work.source.name
    events, names = _happened(ledger, source, captured, merged)
    merges: dict[TableName, list[TableMerge]] = {}
    for done in merged.merged if merged is not None else ():
        merges.setdefault(done.table, []).append(done)
    every = sorted({*merges, *events}, key=lambda table: (table not in events, table))
    chosen, states = every[:NAMED], ledger.table_states(source)
    news = [
        _news(states, table, merges.get(table, []), events.get(table), names.get(table))
        for table in chosen
        if table in states
    ]
    return RunNews(tuple(_described(work, news, events)), len(every) - len(chosen))


def _news(
    states: Mapping[TableName, TableState],
    table: TableName,
    merges: Sequence[TableMerge],
    event: TableEvent | None,
    was: TableName | None,
) -> TableNews:
    return TableNews(
        states[table],
        merges[-1] if merges else None,
        sum((merge.counts for merge in merges), RowCounts()),
        sum(merge.read for merge in merges),
        event.kind if event is not None else None,
        states.get(was) if was is not None else None,
    )


def _described(
    work: Workplace, news: Sequence[TableNews], events: Mapping[TableName, TableEvent]
) -> Iterator[TableNews]:
    """With structures, as far as the columns go."""
    comments: Mapping[TableName, Mapping[str, str]] = {}
    with suppress(LockstepError):
        comments = work.server.comments([one.table for one in news]) if news else {}
    left = DESCRIBED
    for one in news:
        event = events.get(one.table)
        number = one.merge.shows if one.merge is not None else event.version if event else None
        known = left > 0 and number is not None
        schema = _schema(work, one.table, number) if known and number is not None else None
        left -= len(schema.columns) if schema is not None else 0
        yield replace(one, schema=schema, comments=comments.get(one.table, {}))


def _schema(work: Workplace, table: TableName, number: int) -> TableSchema | None:
    return work.ledger.schema_version(work.source.name, table, number).schema


def _happened(
    ledger: Ledger, source: str, captured: CaptureReport | None, merged: MergeReport | None
) -> tuple[dict[TableName, TableEvent], dict[TableName, TableName]]:
    """The last event of each table in the batches of the run, and the names that tables had."""
    batches = set(merged.batches_merged) if merged is not None else set()
    if captured is not None and captured.batch is not None:
        batches.add(captured.batch)
    if not batches:
        return {}, {}
    events = ledger.events_within(source, min(batches), max(batches))
    statements: set[int] = set()
    for event in events:
        if event.kind is TableEventKind.DROPPED:  # a rename is one of these, too
            made_by = ledger.schema_version(source, event.table, event.version).statement
            statements |= set() if made_by is None else {made_by}
    names: dict[TableName, TableName] = {}
    for number in sorted(statements):
        logged = logged_statement(ledger.statement(source, number))
        read = read_change(logged.text, logged.context)
        if not isinstance(read, Irrelevant | NotUnderstood):
            names |= renamed(read)
    return {event.table: event for event in events}, names


def renamed(changes: Collection[SchemaChange]) -> dict[TableName, TableName]:
    """What tables were called before a statement, by what they are called behind it."""
    names: dict[TableName, TableName] = {}
    for change in changes:
        pairs: list[tuple[TableName, TableName]] = []
        if isinstance(change, RenameTables):
            pairs = list(change.pairs)
        if isinstance(change, AlterTable):
            to = [clause.name for clause in change.clauses if isinstance(clause, RenameTo)]
            pairs = [(change.table, name) for name in to]
        for before, after in pairs:
            names[after] = names.pop(before, before)
    return {after: before for after, before in names.items() if after != before}
