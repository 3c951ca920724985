"""Chooses the batches and tables of a replay. Only the ledger is read.

Changes that are no longer shown are left out: a replay would bring back values that
were cleared from the lake, or will be. This holds for the changes of a table in all
batches up to the one after which its settings showed less, even if their files are
missing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from lockstep.pipeline.model.batch import Batch, BatchTimes
from lockstep.pipeline.ports.ledger import batch_content
from lockstep.pipeline.replay.spans import (
    Span,
    batches_in_span,
    begins_before,
    ends_early,
    named_runs,
    needed_id_ranges,
)
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.reshaping import new_tightenings
from lockstep.pipeline.run.unpruned_batches import (
    HiddenChanges,
    batch_of_run,
    hidden_changes,
    history_begin,
    unpruned_batches,
)
from lockstep.pipeline.values.errors import NothingMatches, SpanRefused
from lockstep.pipeline.values.places import AtMoment, Earliest, Latest, OfRun, Place
from lockstep.pipeline.values.table import TableName


@dataclass(frozen=True, slots=True)
class Selection:
    """The acknowledged batches that a span touches, oldest first. `lake_end`: the end
    of the lake if the span ends after it; else None. `tables`: requested tables with
    changes or events in these batches that are still shown. `hidden`: the changes that
    are no longer shown, by table; also of tables that were not requested."""

    batches: tuple[Batch, ...]
    lake_end: str | None
    tables: tuple[TableName, ...] = ()
    hidden: Mapping[TableName, HiddenChanges] = field(default_factory=dict)

    def is_hidden(self, table: TableName, batch: Batch) -> bool:
        """Return whether the table's changes in this batch are no longer shown."""
        return table in self.hidden and batch.id <= self.hidden[table].last_batch

    def hidden_tables(self, ports: RunPorts, batch: Batch) -> frozenset[TableName]:
        tables = batch_content(ports.ledger, batch.source, batch.id).changed_tables
        return frozenset(table for table in tables if self.is_hidden(table, batch))

    def replays(self, table: TableName, batch: Batch) -> bool:
        """Return whether the table's changes in this batch are replayed."""
        return table in self.tables and not self.is_hidden(table, batch)

    def batches_of(self, table: TableName) -> tuple[Batch, ...]:
        """Return the batches in which the table's changes are still shown."""
        return tuple(batch for batch in self.batches if not self.is_hidden(table, batch))


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
        return Selection((), lake_end)
    first_batches = ledger.first_changes(source, batches[0].id, batches[-1].id)
    hidden = dict(_hidden_tables(ports, first_batches))
    tables = []
    for table in sorted(first_batches if requested is None else first_batches.keys() & requested):
        if table in hidden:
            last_batch, reason = hidden[table].last_batch, hidden[table].reason
            if requested is not None:
                raise SpanRefused(
                    f"{table} cannot be read again from {batches[0].start.at} on: {reason}",
                    hint="begin after the run that re-read it, or name other tables",
                )
            is_shown_later = table in ledger.first_changes(source, last_batch + 1, batches[-1].id)
            part = f" up to batch {last_batch}" if is_shown_later else ""
            ports.progress.note(f"{table} is left out{part}: {reason}")
            if not is_shown_later:
                continue
        tables.append(table)
    return Selection(batches, lake_end, tuple(tables), hidden)


def _require_in_lake(ports: RunPorts, tables: Iterable[TableName]) -> None:
    states = ports.ledger.table_states(ports.source.name)
    for table in sorted(tables):
        if table not in states:
            raise NothingMatches(
                f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
            )


def _hidden_tables(
    ports: RunPorts, first_batches: Mapping[TableName, int]
) -> Iterator[tuple[TableName, HiddenChanges]]:
    """Yield the tables of which some changes are no longer shown, with these changes.
    `first_batches`: each table's first batch with changes in the span. Settings that
    show less count even if no run has seen them: the lake may lack the values already,
    if the ledger is older than the lake."""
    ledger, source = ports.ledger, ports.source.name
    unrecorded = new_tightenings(ports, ledger.uncleared_values(source))
    for table, first_batch in first_batches.items():
        hidden = hidden_changes(ledger, source, table, from_log=True, unrecorded=unrecorded)
        if hidden is not None and first_batch <= hidden.last_batch:
            yield table, hidden


def _without_deleted(ports: RunPorts, span: Span, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
    """Return the batches whose changes were not deleted. Raise `SpanRefused` if the
    span begins before these batches; `earliest` begins with the first of them."""
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
