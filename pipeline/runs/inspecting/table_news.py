"""What a run did, table by table, for whoever keeps a graph of tables beside Lockstep."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from pipeline.changes.lineage import own_comments
from pipeline.errors import LockstepError
from pipeline.ports.ledger import Ledger
from pipeline.runs.context import Workplace
from pipeline.runs.reports import CaptureReport, MergeReport, TableMerge
from pipeline.schema.model import TableSchema
from pipeline.table import TableName
from pipeline.table_state import TableEvent, TableState

NAMED: Final = 250
"""Tables that are told of; of more, those whose structure changed first."""

DESCRIBED: Final = 1_000
"""Columns, in all, that are told of; the tables behind them are told of without. Both keep what is
sent below a megabyte, which is what brokers take."""


@dataclass(frozen=True, slots=True)
class TableNews:
    """One table that a run read or wrote. `merge`: the last write of its mirror, None where there
    was none; `changed`: whether the changelog has changes of it. `schema` and `comments`: the
    source's, None and empty for tables beyond the limit of columns."""

    state: TableState
    merge: TableMerge | None
    changed: bool
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
    events = _events(ledger, source, captured, merged)
    merges: dict[TableName, list[TableMerge]] = {}
    for done in merged.merged if merged is not None else ():
        merges.setdefault(done.table, []).append(done)
    every = sorted({*merges, *events}, key=lambda table: (table not in events, table))
    chosen, states = every[:NAMED], ledger.table_states(source)
    news = []
    for table in chosen:
        if table in states:
            of = merges.get(table, [])
            changed = any(merge.counts.total for merge in of)
            news.append(TableNews(states[table], of[-1] if of else None, changed))
    return RunNews(tuple(_described(work, news, events)), len(every) - len(chosen))


def comments_of(
    work: Workplace, tables: Collection[TableName]
) -> Mapping[TableName, Mapping[str, str]]:
    """Comments on columns, as the source has them now, or none where it does not answer; and what
    the columns are that mirrors have besides."""
    found: Mapping[TableName, Mapping[str, str]] = {}
    with suppress(LockstepError):
        found = work.server.comments(tables) if tables else {}
    policies_of = work.source.policies_of
    return {table: own_comments(policies_of(table)) | {**found.get(table, {})} for table in tables}


def _described(
    work: Workplace, news: Sequence[TableNews], events: Mapping[TableName, TableEvent]
) -> Iterator[TableNews]:
    """With structures, as far as the columns go."""
    comments = comments_of(work, [one.table for one in news])
    left = DESCRIBED
    for one in news:
        event = events.get(one.table)
        number = one.merge.shows if one.merge is not None else event.version if event else None
        schema: TableSchema | None = None
        if left > 0 and number is not None:
            schema = work.ledger.schema_version(work.source.name, one.table, number).shown
        left -= len(schema.columns) if schema is not None else 0
        yield replace(one, schema=schema, comments=comments.get(one.table, {}))


def _events(
    ledger: Ledger, source: str, captured: CaptureReport | None, merged: MergeReport | None
) -> dict[TableName, TableEvent]:
    """Return the last event of each table in the batches of the run."""
    batches = set(merged.batches_merged) if merged is not None else set()
    if captured is not None and captured.batch is not None:
        batches.add(captured.batch)
    if not batches:
        return {}
    contents = ledger.contents(source, min(batches), max(batches))
    return {event.table: event for content in contents for event in content.events}
