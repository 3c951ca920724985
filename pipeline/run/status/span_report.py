"""Gathers the facts for the page about a run, or about a span of the past. All of them
come from the ledger."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from lockstep.pipeline.model.batch import (
    Batch,
    BatchContent,
    BatchState,
    CapturedRows,
    RequestCounts,
)
from lockstep.pipeline.model.table_state import StoppedTable, TableEvent, TableEventKind
from lockstep.pipeline.ports.ledger import Ledger, Structures
from lockstep.pipeline.proof.proven import ComparisonRecord, open_differences
from lockstep.pipeline.replay.spans import Span, batches_in_span, begins_before, named_runs
from lockstep.pipeline.run.status.version_sets import ShownVersions, version_set_of
from lockstep.pipeline.run.stop_errors import stopped_tables
from lockstep.pipeline.run.unpruned_batches import (
    RUNS_HINT,
    batch_of_run,
    history_begin,
    no_run_sentence,
    pruned_clause,
    unpruned_batches,
)
from lockstep.pipeline.schema.effects import EMPTIED
from lockstep.pipeline.schema.history import SchemaStatement
from lockstep.pipeline.values.errors import SpanRefused
from lockstep.pipeline.values.intent import SettledWrite
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.shown import first_words
from lockstep.pipeline.values.table import TableName, patterns_of

_MOST_PLOTTED_BATCHES: Final = 40
"""Number of batches that are plotted for a run: its own, after as many earlier ones as
fill this number."""

_MOST_WORDS: Final = 40
"""Largest number of words and symbols of a statement that are shown."""

_EVENTS_OF_STATEMENTS: Final = (
    TableEventKind.CREATED,
    TableEventKind.CHANGED,
    TableEventKind.COPIED,
    TableEventKind.DROPPED,
)
"""Kinds of events that a statement in the log caused."""


@dataclass(frozen=True, slots=True)
class StructureChange:
    """An event of a table, such as an ALTER or a re-read, or a statement that left no
    event. `statement`: its text without literals; None if no statement caused the
    event. `effects`: sentences on what the statement did. `statement_id`: its id in the
    ledger."""

    event: TableEvent
    committed_at: datetime | None
    statement: str | None
    effects: tuple[str, ...]
    statement_id: int | None = None

    @classmethod
    def by_statement(cls, event: TableEvent, statement: SchemaStatement) -> StructureChange:
        return cls(
            event,
            statement.committed_at,
            first_words(statement.text, _MOST_WORDS),
            statement.effects_on(event.table),
            statement.id,
        )


@dataclass(frozen=True, slots=True)
class TableTotal:
    """The totals of one table over all batches of the report. `counts`: captured rows
    by operation; `rows_read`: number of rows that were read from MySQL; `size_bytes`:
    the size of its files; `last_write`: the last write of its mirror; `proof`: the
    comparison with MySQL that found its open difference, or else its newest one."""

    table: TableName
    counts: RowCounts
    rows_read: int
    size_bytes: int
    last_write: SettledWrite | None
    proof: ComparisonRecord | None


@dataclass(frozen=True, slots=True)
class SpanReport:
    """The report on a run or a span.

    - `title`: its name for people.
    - `batches`: its batches, oldest first, never empty.
    - `earlier_batches`: earlier batches that are plotted, too.
    - `captured_rows`: the rows of both.
    - `writes`: the finished writes of mirrors, oldest first.
    - `version_set`: the versions of mirrors after the last acknowledged batch.
    - `stopped_tables`, `proofs`: tables and results of comparisons as they are now.
    """

    source: str
    title: str
    created_at: datetime
    batches: tuple[Batch, ...]
    earlier_batches: tuple[Batch, ...]
    captured_rows: tuple[CapturedRows, ...]
    writes: tuple[SettledWrite, ...]
    structure_changes: tuple[StructureChange, ...]
    version_set: ShownVersions | None
    stopped_tables: tuple[StoppedTable, ...]
    proofs: tuple[ComparisonRecord, ...]

    @property
    def totals(self) -> tuple[TableTotal, ...]:
        """The totals by table, without the rows of `earlier_batches`."""
        batch_ids = {batch.id for batch in self.batches}
        captured_by_table: dict[TableName, list[CapturedRows]] = {}
        for captured in self.captured_rows:
            if captured.batch in batch_ids:
                captured_by_table.setdefault(captured.table, []).append(captured)
        last_writes = {write.intent.table: write for write in self.writes}
        oldest_first = sorted(self.proofs, key=lambda proof: proof.compared_at)
        proofs = {proof.table: proof for proof in oldest_first} | open_differences(self.proofs)
        return tuple(
            TableTotal(
                table,
                counts=sum((part.counts for part in parts), RowCounts()),
                rows_read=sum(part.rows_read for part in parts),
                size_bytes=sum(part.size for part in parts),
                last_write=last_writes.get(table),
                proof=proofs.get(table),
            )
            for table, parts in sorted(captured_by_table.items())
        )

    @property
    def counts(self) -> RowCounts:
        return sum((total.counts for total in self.totals), RowCounts())

    @property
    def request_counts(self) -> RequestCounts | None:
        """Requests to an object store; None if they were not counted."""
        requests = [batch.requests for batch in self.batches if batch.requests is not None]
        return sum(requests[1:], requests[0]) if requests else None


def report_of_run(ledger: Ledger, source: str, run: str | None, now: datetime) -> SpanReport:
    """Return the report on a run. `run`: None for the last run that captured anything.
    Raise `SpanRefused` if there is no such run."""
    newest = ledger.cursors(source).captured
    if newest is None:
        raise SpanRefused(
            f"{source}: nothing was captured yet", hint=f"`lockstep run --source {source}`"
        )
    if run is None:
        [batch] = ledger.live_batches(source, newest.batch, newest.batch)
    else:
        batch = batch_of_run(ledger, source, run)
    pruned_through = ledger.pruned_through(source)
    if run is not None and batch.id <= pruned_through:
        raise SpanRefused(no_run_sentence(ledger, source, run), hint=RUNS_HINT)
    own_batches: tuple[Batch, ...] = (batch,)
    if batch.run_id is not None:
        of_run = ledger.live_batches(source, pruned_through + 1, batch.id, run=batch.run_id)
        own_batches = tuple(other for other in of_run if other.token == batch.token)
    # Ids are counted over all sources, so only some of these ids are of this source.
    first_id = max(batch.id - 10 * _MOST_PLOTTED_BATCHES, pruned_through + 1)
    candidates = ledger.live_batches(source, first_id, batch.id)
    earlier_batches = tuple(
        other
        for other in candidates[-_MOST_PLOTTED_BATCHES:]
        if other.token != batch.token and other.end is not None
    )
    title = f"run {batch.run_id}" if batch.run_id else f"batch {batch.id}"
    return _report(ledger, source, title, own_batches, earlier_batches, now)


def report_of_span(ledger: Ledger, source: str, span: Span, now: datetime) -> SpanReport:
    """Return the report on all batches that a span touches. Raise `SpanRefused` if
    there are none, or if some of them were pruned."""
    runs = {run: batch_of_run(ledger, source, run).id for run in named_runs(span)}
    all_batches = unpruned_batches(ledger, source)
    pruned_through = ledger.pruned_through(source)  # the ledger has only this batch's end
    begin = history_begin(ledger, all_batches)
    batches = batches_in_span(span, all_batches, runs, begin=begin)
    end = all_batches[0].end
    if pruned_through and end is not None and begins_before(span, batches, pruned_through, end):
        raise SpanRefused(
            f"{span.since} is before the first batch on record{pruned_clause(ledger, source)}",
            hint=f"`--from {end.at}` or `--from earliest` begins with the first batch on record",
        )
    batches = tuple(batch for batch in batches if batch.id > pruned_through)
    if not batches:
        raise SpanRefused(
            f"{source}: nothing was committed from {span}",
            hint="`lockstep versions --list` lists the places of the last batches",
        )
    return _report(ledger, source, f"from {span}", batches, (), now)


def _report(
    ledger: Ledger,
    source: str,
    title: str,
    batches: tuple[Batch, ...],
    earlier_batches: tuple[Batch, ...],
    now: datetime,
) -> SpanReport:
    first, last = batches[0].id, batches[-1].id
    first_plotted = earlier_batches[0].id if earlier_batches else first
    acknowledged_batches = [batch for batch in batches if batch.state is BatchState.ACKNOWLEDGED]
    contents = ledger.contents(source, first_plotted, last)
    captured_rows = [part for content in contents for part in content.captured_rows()]
    tables = {part.table for part in captured_rows}
    # After a table was resumed, one write may merge much earlier batches too.
    writes = ledger.writes_within(source, first, last)
    return SpanReport(
        source=source,
        title=title,
        created_at=now,
        batches=batches,
        earlier_batches=earlier_batches,
        captured_rows=tuple(captured_rows),
        writes=tuple(write for write in writes if write.intended_at >= batches[0].created_at),
        structure_changes=_changes_of(ledger, source, first, last, contents),
        version_set=version_set_of(ledger, source, acknowledged_batches[-1])
        if acknowledged_batches
        else None,
        stopped_tables=stopped_tables(ledger.table_states(source), lambda _: True),
        proofs=tuple(proof for proof in ledger.proofs(source) if proof.table in tables),
    )


def _changes_of(
    ledger: Ledger, source: str, first: int, last: int, contents: Iterable[BatchContent]
) -> tuple[StructureChange, ...]:
    """Return the structure changes of these batches in the order of the log: their
    events, and their statements on captured tables that left none, because the table
    had no row yet, had stopped, or has the same rows as before."""
    scopes = ledger.capture_scopes(source)
    statements = ledger.statements_within(source, first, last)
    effects = {
        (statement.batch, effect.table, effect.words)
        for statement in statements
        for effect in statement.effects
    }
    changes = [
        (content.batch, change)
        for content in contents
        if content.batch >= first
        for change in structure_changes(ledger, source, content.events)
        # The event of a TRUNCATE names neither its statement nor its place.
        if change.event.kind is not TableEventKind.TRUNCATED
        or (content.batch, change.event.table, EMPTIED) not in effects
    ]
    with_event = {(change.statement_id, change.event.table) for _, change in changes}
    for statement in statements:
        patterns = patterns_of(scopes, statement.batch)
        for table, words in {effect.table: effect.words for effect in statement.effects}.items():
            if table is None or (statement.id, table) in with_event:
                continue
            if patterns is not None and not patterns.matches(table):
                continue
            kind = TableEventKind.TRUNCATED if words == EMPTIED else TableEventKind.CHANGED
            event = TableEvent(table, kind, 0, 0, statement.end)
            changes.append((statement.batch, StructureChange.by_statement(event, statement)))
    log_names = {statement.batch: statement.end.file.base for statement in statements}

    def log_order(pair: tuple[int, StructureChange]) -> tuple[int, bool, int, int]:
        # After a failover, an event that no statement made is at a place of the former
        # server's log: where the table got its structure.
        batch, place = pair[0], pair[1].event.place
        is_of_batch = place.file.base == log_names.get(batch)
        return batch, is_of_batch, place.file.number, place.offset

    return tuple(change for _, change in sorted(changes, key=log_order))


def structure_changes(
    ledger: Structures, source: str, events: Iterable[TableEvent]
) -> Iterator[StructureChange]:
    """Yield the events, each with the statement that caused it."""
    numbered_events = [
        (
            event,
            ledger.schema_version(source, event.table, event.version).statement_number
            if event.kind in _EVENTS_OF_STATEMENTS
            else None,
        )
        for event in events
    ]
    numbers = {number for _, number in numbered_events if number is not None}
    statements = ledger.statements(source, numbers)
    for event, number in numbered_events:
        if number is None:
            yield StructureChange(event, None, None, ())
        else:
            yield StructureChange.by_statement(event, statements[number])
