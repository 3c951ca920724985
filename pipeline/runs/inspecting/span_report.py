"""What a run, or a span of the past, brought: everything a page about it shows. The ledger alone is
asked."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pipeline.batch import Batch, BatchState, CapturedRows, Requests
from pipeline.errors import SpanRefused
from pipeline.intent import SettledWrite
from pipeline.ports.ledger import Ledger
from pipeline.proof.proven import TableProof
from pipeline.replay.spans import Span, batches_of, runs_named
from pipeline.runs.cures import quarantines_of
from pipeline.runs.inspecting.version_sets import ShownVersions, version_set_of
from pipeline.runs.known_batches import (
    RUNS,
    batch_of_run,
    begins_before,
    but_known,
    known_batches,
    no_such_run,
)
from pipeline.segment import RowCounts
from pipeline.shown import first_words
from pipeline.table import TableName
from pipeline.table_state import Quarantine, TableEvent, TableEventKind

_BESIDE: Final = 40
"""Batches that are plotted together with a run: its own, and those before it."""

_WORDS: Final = 40
"""Words and symbols of a statement."""

_BY_STATEMENT: Final = (
    TableEventKind.CREATED,
    TableEventKind.CHANGED,
    TableEventKind.COPIED,
    TableEventKind.DROPPED,
)


@dataclass(frozen=True, slots=True)
class StructureChange:
    """Something that happened to a table between its changes. `statement`: without its literals;
    None where no statement did it. `effects`: a sentence each."""

    event: TableEvent
    committed_at: datetime | None
    statement: str | None
    effects: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class TableTotal:
    """What all batches together have of one table. `written`: the last write of its mirror."""

    table: TableName
    counts: RowCounts
    read: int
    size: int
    written: SettledWrite | None
    proof: TableProof | None


@dataclass(frozen=True, slots=True)
class SpanReport:
    """`about`: the run or the span, as a person names it. `batches`, oldest first, never empty;
    `rows` of them, and `before` of those that are plotted beside a run. `shown`: the version set
    of the last of them that is acknowledged. `stopped` and the tables' proofs are those of now."""

    source: str
    about: str
    made_at: datetime
    batches: tuple[Batch, ...]
    before: tuple[Batch, ...]
    rows: tuple[CapturedRows, ...]
    writes: tuple[SettledWrite, ...]
    changes: tuple[StructureChange, ...]
    shown: ShownVersions | None
    stopped: tuple[Quarantine, ...]
    proofs: tuple[TableProof, ...]

    @property
    def totals(self) -> tuple[TableTotal, ...]:
        """By name; the rows of `before` are not among them."""
        numbers = {batch.id for batch in self.batches}
        rows: dict[TableName, list[CapturedRows]] = {}
        for row in self.rows:
            if row.batch in numbers:
                rows.setdefault(row.table, []).append(row)
        written = {write.intent.table: write for write in self.writes}
        proofs: dict[TableName, TableProof] = {}
        for proof in self.proofs:
            proofs.setdefault(proof.table, proof)
        return tuple(
            TableTotal(
                table,
                sum((one.counts for one in those), RowCounts()),
                sum(one.read for one in those),
                sum(one.size for one in those),
                written.get(table),
                proofs.get(table),
            )
            for table, those in sorted(rows.items())
        )

    @property
    def counts(self) -> RowCounts:
        return sum((total.counts for total in self.totals), RowCounts())

    @property
    def requests(self) -> Requests | None:
        """To an object store; None where nothing is known of it."""
        told = [batch.requests for batch in self.batches if batch.requests is not None]
        return sum(told[1:], told[0]) if told else None


def report_of_run(ledger: Ledger, source: str, run: str | None, now: datetime) -> SpanReport:
    """What one run captured; the last one that captured anything, for None. `SpanRefused` where
    there is none."""
    newest = ledger.cursors(source).captured
    if newest is None:
        raise SpanRefused(
            f"{source}: nothing was captured yet", hint=f"`lockstep run --source {source}`"
        )
    if run is None:
        [batch] = ledger.live_batches(source, newest.batch, newest.batch)
    else:
        batch = batch_of_run(ledger, source, run)
    pruned = ledger.pruned_through(source)
    if run is not None and batch.id <= pruned:
        raise SpanRefused(no_such_run(ledger, source, run), hint=RUNS)
    near = ledger.live_batches(source, max(batch.id - 10 * _BESIDE, pruned + 1), batch.id)
    own = tuple(one for one in near if one.token == batch.token)
    before = tuple(one for one in near if one.token != batch.token and one.end is not None)
    about = f"run {batch.dagster_run}" if batch.dagster_run else f"batch {batch.id}"
    return _report(ledger, source, about, own, before[-(_BESIDE - len(own)) :], now)


def report_of_span(ledger: Ledger, source: str, span: Span, now: datetime) -> SpanReport:
    """What was captured between two places, in whole batches. `SpanRefused` where nothing was."""
    runs = {run: batch_of_run(ledger, source, run).id for run in runs_named(span)}
    chain, pruned = known_batches(ledger, source), ledger.pruned_through(source)
    batches = batches_of(span, chain, runs)
    end = chain[0].end
    if pruned and end is not None and begins_before(span, batches, pruned, end):
        raise SpanRefused(
            f"{span.since} lies before what is known{but_known(ledger, source)}",
            hint=f"`--from {end.at}` or `--from earliest` begins with the first that is",
        )
    batches = tuple(batch for batch in batches if batch.id > pruned)
    if not batches:
        raise SpanRefused(
            f"{source}: nothing was committed from {span}",
            hint="`lockstep versions --list` lists the places of the last batches",
        )
    return _report(ledger, source, f"from {span}", batches, (), now)


def _report(
    ledger: Ledger,
    source: str,
    about: str,
    batches: tuple[Batch, ...],
    before: tuple[Batch, ...],
    now: datetime,
) -> SpanReport:
    first, last = batches[0].id, batches[-1].id
    plotted = before[0].id if before else first
    done = [batch for batch in batches if batch.state is BatchState.ACKNOWLEDGED]
    contents = ledger.contents(source, plotted, last)
    rows = [row for content in contents for row in content.rows()]
    events = (event for one in contents if one.batch >= first for event in one.events)
    tables = {row.table for row in rows}
    # A table that came back was written for batches of long ago.
    writes = ledger.writes_within(source, first, last)
    return SpanReport(
        source=source,
        about=about,
        made_at=now,
        batches=batches,
        before=before,
        rows=tuple(rows),
        writes=tuple(write for write in writes if write.intended_at >= batches[0].created_at),
        changes=tuple(_changes(ledger, source, events)),
        shown=version_set_of(ledger, source, done[-1]) if done else None,
        stopped=quarantines_of(ledger.table_states(source)),
        proofs=tuple(proof for proof in ledger.proofs(source) if proof.table in tables),
    )


def _changes(
    ledger: Ledger, source: str, events: Iterable[TableEvent]
) -> Iterable[StructureChange]:
    for event in events:
        number = None
        if event.kind in _BY_STATEMENT:
            number = ledger.schema_version(source, event.table, event.version).statement
        if number is None:
            yield StructureChange(event, None, None, ())
            continue
        statement = ledger.statements(source, [number])[number]
        own = tuple(one for one in statement.effects if one.startswith(f"{event.table}:"))
        yield StructureChange(
            event,
            statement.committed_at,
            first_words(statement.text, _WORDS),
            own or statement.effects,
        )
