"""Reports the tables that a run read or wrote, for lineage events and other catalogs of
tables."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from lockstep.pipeline.mirror.lineage import own_comments
from lockstep.pipeline.model.table_state import TableEvent, TableState
from lockstep.pipeline.ports.ledger import Batches
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.reports import CaptureReport, MergeReport, TableMerge
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.table import TableName

MOST_TABLES: Final = 250
"""Largest number of tables that are reported. Tables with changed structures come
first."""

MOST_COLUMNS: Final = 1_000
"""Largest number of columns that are reported in total; further tables are reported
without columns. Both limits keep a message below one megabyte, which brokers accept."""


@dataclass(frozen=True, slots=True)
class TableNews:
    """One table that a run read or wrote. `merge`: the last write of its mirror, if
    any. `has_changed_rows`: some of its rows changed. `schema`: its structure, None
    beyond the limit of columns; `comments`: on its columns, by name."""

    state: TableState
    merge: TableMerge | None
    has_changed_rows: bool
    schema: TableSchema | None = None
    comments: Mapping[str, str] = field(default_factory=dict)

    @property
    def table(self) -> TableName:
        return self.state.table


@dataclass(frozen=True, slots=True)
class RunNews:
    """The reported tables of a run. `unreported_count`: number of tables beyond the
    limit."""

    tables: tuple[TableNews, ...]
    unreported_count: int = 0


def run_news(
    ports: RunPorts, capture_report: CaptureReport | None, merge_report: MergeReport | None
) -> RunNews:
    """Return the tables of a run, with their structures and comments up to the limit of
    columns: first those with events (such as an ALTER), then the others, by name."""
    ledger, source = ports.ledger, ports.source.name
    events = _last_events(ledger, source, capture_report, merge_report)
    merges: dict[TableName, list[TableMerge]] = {}
    for merge in merge_report.merges if merge_report is not None else ():
        merges.setdefault(merge.table, []).append(merge)
    tables = sorted({*merges, *events}, key=lambda table: (table not in events, table))
    states = ledger.table_states(source)
    reported_tables = [table for table in tables[:MOST_TABLES] if table in states]
    comments = comments_of(ports, reported_tables)
    news = []
    remaining_columns = MOST_COLUMNS
    for table in reported_tables:
        writes, event = merges.get(table, []), events.get(table)
        version = None if event is None else event.version
        if writes:
            version = writes[-1].shown_version
        schema: TableSchema | None = None
        if remaining_columns > 0 and version is not None:
            schema = ledger.schema_version(source, table, version).shown_schema
        if schema is not None:
            remaining_columns -= len(schema.columns)
        last_write = writes[-1] if writes else None
        has_changed_rows = any(write.counts.total for write in writes)
        news.append(TableNews(states[table], last_write, has_changed_rows, schema, comments[table]))
    return RunNews(tuple(news), max(len(tables) - MOST_TABLES, 0))


def comments_of(
    ports: RunPorts, tables: Collection[TableName]
) -> Mapping[TableName, Mapping[str, str]]:
    """Return the comments on columns, by table and column: from the source, if it
    answers, and for the columns that mirrors have in addition."""
    comments: Mapping[TableName, Mapping[str, str]] = {}
    with suppress(LockstepError):
        comments = ports.server.comments(tables) if tables else {}
    return {
        table: {**own_comments(ports.source.policies_of(table)), **comments.get(table, {})}
        for table in tables
    }


def _last_events(
    ledger: Batches,
    source: str,
    capture_report: CaptureReport | None,
    merge_report: MergeReport | None,
) -> dict[TableName, TableEvent]:
    """Return the last event of each table in the batches of the run."""
    batches = set(merge_report.merged_batches) if merge_report is not None else set()
    if capture_report is not None and capture_report.batch_id is not None:
        batches.add(capture_report.batch_id)
    if not batches:
        return {}
    contents = ledger.contents(source, min(batches), max(batches))
    return {event.table: event for content in contents for event in content.events}
