"""Which batches a replay takes, and which tables they have something of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipeline.batch import Batch, BatchState, BatchTimes
from pipeline.errors import BatchesWait, NothingMatches, SpanRefused
from pipeline.places import AtMoment, Earliest, Latest, OfRun, Place
from pipeline.replay.spans import Span, batches_of, ends_early, runs_named, wanted
from pipeline.runs.context import Workplace
from pipeline.runs.known_batches import batch_of_run, begins_before, known_batches
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class Selection:
    """The acknowledged batches that a span touches, oldest first. `early`: where the lake ends,
    if the span goes on behind that. `tables`: those that they have something of, and that are
    asked for."""

    batches: tuple[Batch, ...]
    early: str | None
    tables: tuple[TableName, ...]


def select(work: Workplace, span: Span, only: frozenset[TableName] | None = None) -> Selection:
    """By the ledger alone. `SpanRefused` for a span outside of what was captured,
    `NothingMatches` for a table that is not known."""
    _require_known(work, only)
    runs = _runs(work, span)
    chain, times = _chain(work, span, runs)
    batches = batches_of(span, chain, runs, times)
    batches = _kept(work, span, batches)
    early = str(chain[-1].end) if ends_early(span, chain) else None
    if not batches:
        return Selection((), early, ())
    tables = work.ledger.touched(work.source.name, batches[0].id, batches[-1].id).keys()
    return Selection(batches, early, tuple(sorted(tables if only is None else tables & only)))


def require_merged(work: Workplace) -> None:
    """`BatchesWait` unless all that was captured is acknowledged."""
    waiting = [
        batch
        for batch in work.ledger.unfinished(work.source.name)
        if batch.state is not BatchState.CAPTURING
    ]
    if waiting:
        raise BatchesWait(
            f"batch {waiting[0].id} of {work.source.name} is captured and not merged: the mirrors "
            "do not show yet what they would be compared with",
            hint="`lockstep run` merges it; then repeat the command",
        )


def _kept(work: Workplace, span: Span, batches: tuple[Batch, ...]) -> tuple[Batch, ...]:
    """Those whose changes are kept: from `earliest` on, the first of those. `SpanRefused` where
    the span begins before them."""
    gone = work.ledger.forgotten(work.source.name)
    if gone is None or not begins_before(span, batches, gone.through, gone.end):
        return tuple(batch for batch in batches if gone is None or batch.id > gone.through)
    raise SpanRefused(
        f"{span.since} lies before the changes that are kept: {gone.told}",
        hint=f"`--from {gone.end.at}` or `--from earliest` begins with the first that is kept",
    )


def _chain(
    work: Workplace, span: Span, runs: Mapping[str, int]
) -> tuple[Sequence[Batch], Sequence[BatchTimes] | None]:
    """The acknowledged batches: all that are known, or of a span between moments those that it may
    be about, beside the times of all."""
    ledger, source = work.ledger, work.source.name
    since, until = span.since, span.until
    if _is_moment(since) and _is_moment(until):
        times = [one for one in ledger.batch_times(source) if one.acknowledged]
        ranges = wanted(span, times) if times else []
        found = {one.id: one for some in ranges for one in ledger.live_batches(source, *some)}
        return [found[number] for number in sorted(found)], times
    first = runs[since.run] if isinstance(since, OfRun) else 0
    last = runs[until.run] if isinstance(until, OfRun) else None
    return known_batches(ledger, source, first, last), None


def _is_moment(place: Place) -> bool:
    return isinstance(place, AtMoment | Earliest | Latest)


def _runs(work: Workplace, span: Span) -> dict[str, int]:
    """The batches of the runs that a span names."""
    ledger, source = work.ledger, work.source.name
    return {run: batch_of_run(ledger, source, run).id for run in runs_named(span)}


def _require_known(work: Workplace, only: frozenset[TableName] | None) -> None:
    known = work.ledger.table_states(work.source.name) if only else {}
    for table in sorted(only or ()):
        if table not in known:
            raise NothingMatches(
                f"the lake has no table {table}", hint="`lockstep tables` lists those it has"
            )
