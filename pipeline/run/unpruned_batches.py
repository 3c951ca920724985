"""The part of the past that the ledger still has: the batches that are not pruned, how
far they reach, and sentences about what is no longer there.

A batch is a part of the log that a run captured at once. Of the batches before
`pruned_through`, the ledger keeps only those to which other records refer. So places of
the log are only searched from batch `pruned_through` on.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from lockstep.pipeline.model.batch import Batch, BatchState
from lockstep.pipeline.ports.ledger import Decisions, Deletions, Ledger, log_ends
from lockstep.pipeline.replay.spans import end_text, is_unread
from lockstep.pipeline.upkeep.changes import KEEP_CHANGES
from lockstep.pipeline.upkeep.clearing import Tightening
from lockstep.pipeline.values.decisions import LogEnd
from lockstep.pipeline.values.errors import SpanRefused
from lockstep.pipeline.values.places import AtMoment, InFile, Place
from lockstep.pipeline.values.table import TableName

_MOST_SEARCHED_STARTS: Final = 100
"""Number of newest decisions about a start that are searched for an end of the log."""

_COARSEST_COMMIT_TIME: Final = timedelta(seconds=1)
"""Largest difference between a commit and its commit time: some logs have only seconds."""

RUNS_HINT: Final = "`lockstep status --json` shows the runs of the last batches"


def unpruned_batches(
    ledger: Ledger, source: str, first_batch: int = 0, last_batch: int | None = None
) -> list[Batch]:
    """Return the acknowledged batches from `first_batch` to `last_batch` that are not
    pruned, oldest first. If the range has no such batch, return all acknowledged
    batches that are not pruned."""
    cursor = ledger.cursors(source).acknowledged
    if cursor is None:
        return []
    last_batch = cursor.batch if last_batch is None else min(last_batch, cursor.batch)
    while True:
        pruned_through = ledger.pruned_through(source)
        batches = ledger.live_batches(source, max(first_batch, pruned_through), last_batch)
        batches = batches or ledger.live_batches(source, pruned_through, cursor.batch)
        if pruned_through == ledger.pruned_through(source):  # Upkeep pruned nothing meanwhile.
            return batches


def read_until_for(ledger: Decisions, place: Place, batches: Sequence[Batch]) -> datetime | None:
    """Return a moment, by the server's clock, up to which the batches have everything
    that was committed: a run then found that the log ended no later than the last of
    them. None if no such run is known, or if the place does not need the moment."""
    if (
        not batches
        or not isinstance(place, AtMoment | InFile)
        or not is_unread(place.moment, batches, None)
    ):
        return None
    end = batches[-1].captured_end
    for log_end in log_ends(ledger, batches[-1].source, limit=_MOST_SEARCHED_STARTS):
        is_comparable = log_end.server_uuid == end.server_uuid and (
            log_end.place.file.base == end.file.base
        )
        if is_comparable and log_end.place <= end.at:
            return log_end.asked_at - _COARSEST_COMMIT_TIME
    return None


def history_begin(ledger: Decisions, batches: Sequence[Batch]) -> datetime | None:
    """Return a moment that is not after the commit of any captured change: when the
    last transaction before the first batch was committed, or when the log ended where
    this batch starts, or when the batch's only log file was created. None if it is
    unknown, or if changes before the batch were deleted. `batches`: oldest first."""
    first = next(iter(batches), None)
    if first is None or first.previous_batch is not None:
        return None
    if first.start.committed_at is not None:
        return first.start.committed_at
    decision = ledger.start_decision(first)
    log_end = None if decision is None else LogEnd.of(decision)
    if log_end is not None and log_end.is_start:
        return log_end.asked_at - _COARSEST_COMMIT_TIME
    cursor = first.captured_cursor
    if cursor.position.file != first.start.file:
        return None
    return datetime.fromtimestamp(cursor.anchor.file_created, UTC)


def batch_of_run(ledger: Ledger, source: str, run: str) -> Batch:
    """Return the newest captured batch of a run. `run`: its id, which may be shortened.
    Raise `SpanRefused` if the ledger has no batch of this run, or of several such
    runs."""
    batches = ledger.live_batches(source, ledger.pruned_through(source), run=run)
    captured_batches = [batch for batch in batches if batch.state is not BatchState.CAPTURING]
    batch = newest_of_run(captured_batches, run)
    if batch is None:
        raise SpanRefused(no_run_sentence(ledger, source, run), hint=RUNS_HINT)
    return batch


def newest_of_run(batches: Sequence[Batch], run: str) -> Batch | None:
    """Return the newest of these batches, which are given oldest first, that a run
    captured. `run`: its id, which may be shortened. Raise `SpanRefused` if the ids of
    several runs begin with it."""
    of_run = {batch.run_id: batch for batch in batches if batch.run_id is not None}
    ids = [run] if run in of_run else [name for name in of_run if name.startswith(run)]
    if len(ids) > 1:
        raise SpanRefused(
            f"the ids of {len(ids)} runs begin with {run!r}", hint=f"give more of it: {RUNS_HINT}"
        )
    return of_run[ids[0]] if ids else None


def no_run_sentence(ledger: Ledger, source: str, run: str) -> str:
    return f"no batch of {source} was captured by a run {run}{pruned_clause(ledger, source)}"


def pruned_clause(ledger: Ledger, source: str) -> str:
    """Return the end of a sentence about a missing batch: up to where the ledger was
    pruned. It is empty if nothing was pruned."""
    last_pruned = ledger.pruned_through(source)
    batches = ledger.live_batches(source, last_pruned, last_pruned) if last_pruned else []
    if not batches:
        return ""
    pruned_end = end_text(batches[0])
    return f"; the ledger no longer has what was read before {pruned_end}, as {KEEP_CHANGES} says"


@dataclass(frozen=True, slots=True)
class HiddenChanges:
    """The changes of a table up to `last_batch`, which are no longer shown. `reason`: a
    sentence that says why."""

    last_batch: int
    reason: str


def hidden_changes(
    ledger: Deletions,
    source: str,
    table: TableName,
    *,
    from_log: bool = False,
    unrecorded: Iterable[Tightening] = (),
) -> HiddenChanges | None:
    """Return the changes of a table that are no longer shown; None if all are.
    `from_log`: they would be read from the log again, so that their values would be
    hashed with the present key. `unrecorded`: tightenings that the ledger has not
    recorded yet."""
    hidden = []
    deletion = ledger.deletion_notes(source, table).newest
    if deletion is not None and deletion.table is not None:
        hidden.append(HiddenChanges(deletion.last_batch, deletion.sentence))
    recorded = (note.tightening for note in ledger.uncleared_values(source))
    for tightening in (*recorded, *unrecorded):
        is_hidden = tightening.kept_because is None or (from_log and tightening.is_rehashed)
        if tightening.table == table and is_hidden:
            through = tightening.last_batch
            reason = f"less is shown of {tightening.hidden_in_words} than up to batch {through}"
            hidden.append(HiddenChanges(through, reason))
    return max(hidden, key=lambda changes: changes.last_batch, default=None)
