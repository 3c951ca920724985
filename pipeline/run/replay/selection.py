"""Chooses the batches and tables of a replay. Only the ledger is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from lockstep.pipeline.model.batch import Batch, BatchTimes
from lockstep.pipeline.replay.spans import (
    Span,
    batches_in_span,
    begins_before,
    ends_early,
    named_runs,
    needed_id_ranges,
)
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.unpruned_batches import (
    batch_of_run,
    history_begin,
    reason_no_longer_shown,
    unpruned_batches,
)
from lockstep.pipeline.values.errors import NothingMatches, SpanRefused
from lockstep.pipeline.values.places import AtMoment, Earliest, Latest, OfRun, Place
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class Selection:
    """The acknowledged batches that a span touches, oldest first. `lake_end`: the end
    of the lake if the span ends after it; else None. `tables`: requested tables that
    have changes or events in these batches."""

    batches: tuple[Batch, ...]
    lake_end: str | None
    tables: tuple[TableName, ...]


def select_batches(
    ports: RunPorts, span: Span, requested: frozenset[TableName] | None = None
) -> Selection:
    """Choose the batches and tables. `requested`: the requested tables; None for all.
    Raise `SpanRefused` for a span outside of what was captured, `NothingMatches` for an
    unknown table."""
    ledger, source = ports.ledger, ports.source.name
    if requested is not None:
        _require_in_lake(ports, requested)
    runs = {run: batch_of_run(ledger, source, run).id for run in named_runs(span)}
    chain, times = _batches_and_times(ports, span, runs)
    in_span = batches_in_span(span, chain, runs, times, history_begin(ledger, chain))
    batches = _without_deleted(ports, span, in_span)
    lake_end = str(chain[-1].end) if ends_early(span, chain) else None
    if not batches:
        return Selection((), lake_end, ())
    tables = ledger.first_changes(source, batches[0].id, batches[-1].id).keys()
    tables_to_read = [
        table
        for table in sorted(tables if requested is None else tables & requested)
        if _may_be_read(ports, table, batches[0], is_requested=requested is not None)
    ]
    return Selection(batches, lake_end, tuple(tables_to_read))


def _require_in_lake(ports: RunPorts, tables: Iterable[TableName]) -> None:
    states = ports.ledger.table_states(ports.source.name)
    for table in sorted(tables):
        if table not in states:
            raise NothingMatches(
                f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
            )


def _may_be_read(ports: RunPorts, table: TableName, first: Batch, *, is_requested: bool) -> bool:
    """Return whether a table's changes may be read again. If the settings hide more of
    it now, hidden values would come back: raise `SpanRefused` if the table was
    requested by name, else leave it out."""
    reason = reason_no_longer_shown(ports.ledger, ports.source.name, table, first.id, from_log=True)
    if reason is None:
        return True
    if is_requested:
        raise SpanRefused(
            f"{table} cannot be read again from {first.start.at} on: {reason}",
            hint="begin after the run that re-read it, or name other tables",
        )
    ports.progress.note(f"{table} is left out: {reason}")
    return False


def _without_deleted(ports: RunPorts, span: Span, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
    """Return the batches whose changes were not deleted. Raise `SpanRefused` if the
    span begins before these; `earliest` begins with the first of them."""
    deletion = ports.ledger.deletion_notes(ports.source.name).newest
    if deletion is None:
        return batches
    if begins_before(span, batches, deletion.last_batch, deletion.end):
        raise SpanRefused(
            f"{span.since} lies before the changes that are kept: {deletion.sentence}",
            hint=f"`--from {deletion.end.at}` or `--from earliest` begins with the first that is "
            "kept",
        )
    return tuple(batch for batch in batches if batch.id > deletion.last_batch)


def _batches_and_times(
    ports: RunPorts, span: Span, runs: Mapping[str, int]
) -> tuple[Sequence[Batch], Sequence[BatchTimes] | None]:
    """Return acknowledged batches, oldest first, which include the span's. The second
    value is the times of all acknowledged batches if both ends of the span are moments,
    `earliest` or `latest`; else None."""
    ledger, source = ports.ledger, ports.source.name
    since, until = span.since, span.until
    if _is_moment(since) and _is_moment(until):
        times = [batch for batch in ledger.batch_times(source) if batch.is_acknowledged]
        ranges = needed_id_ranges(span, times) if times else []
        batches = {
            batch.id: batch
            for first_id, last_id in ranges
            for batch in ledger.live_batches(source, first_id, last_id)
        }
        return [batches[batch_id] for batch_id in sorted(batches)], times
    first = runs[since.run] if isinstance(since, OfRun) else 0
    last = runs[until.run] if isinstance(until, OfRun) else None
    return unpruned_batches(ledger, source, first, last), None


def _is_moment(place: Place) -> bool:
    return isinstance(place, AtMoment | Earliest | Latest)
