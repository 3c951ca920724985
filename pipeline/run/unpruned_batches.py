"""The batches of which the ledger has pruned nothing, and sentences about batches and
values that are deleted.

A batch is what one run captured. Of the batches before `pruned_through`, the ledger
keeps only those to which other records refer. So places of the log are only searched
from batch `pruned_through` on.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.ports.ledger import Decisions, Deletions, Ledger, log_ends
from lockstep.pipeline.replay.spans import Span, end_text, is_unread
from lockstep.pipeline.upkeep.changes import KEEP_CHANGES
from lockstep.pipeline.values.decisions import LogEnd
from lockstep.pipeline.values.errors import SpanRefused
from lockstep.pipeline.values.places import AtMoment, Earliest, InFile, Place
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.table import TableName

_MOST_STARTS: Final = 100
"""Number of newest start decisions that are searched for one at the log's end."""

_COARSEST_COMMIT_TIME: Final = timedelta(seconds=1)
"""Largest difference between a commit and its commit time: some logs have only seconds."""

RUNS = "`lockstep status --json` shows the runs of the last batches"


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
    pruned_through, batches = -1, list[Batch]()
    # Upkeep may prune between the two reads.
    while pruned_through != ledger.pruned_through(source):
        pruned_through = ledger.pruned_through(source)
        batches = ledger.live_batches(source, max(first_batch, pruned_through), last_batch)
    return batches or ledger.live_batches(source, pruned_through, cursor.batch)


def read_until_for(ledger: Decisions, place: Place, batches: Sequence[Batch]) -> datetime | None:
    """Return the moment up to which everything was read with the last of the batches:
    when a run last found that the log has nothing after it, by the server's clock. None
    if that is unknown, or not needed for the place."""
    if (
        not batches
        or not isinstance(place, AtMoment | InFile)
        or not is_unread(place.moment, batches, None)
    ):
        return None
    end = batches[-1].captured_end
    for log_end in log_ends(ledger, batches[-1].source, limit=_MOST_STARTS):
        is_comparable = log_end.server_uuid == end.server_uuid and (
            log_end.place.file.base == end.file.base
        )
        if is_comparable and log_end.place <= end.at:
            return log_end.asked_at - _COARSEST_COMMIT_TIME
    return None


def history_begin(ledger: Decisions, chain: Sequence[Batch]) -> datetime | None:
    """Return a moment before which nothing was committed that was captured: when the
    transactions before the first batch were committed, or when its start was the log's
    end, or when its only log file was created. None if unknown, or if changes before
    the batch were deleted. `chain`: acknowledged batches, the first one first."""
    first = next(iter(chain), None)
    if first is None or first.follows is not None:
        return None
    if first.start.committed_at is not None:
        return first.start.committed_at
    decision = ledger.start_decision(first)
    log_end = None if decision is None else LogEnd.of(decision)
    if log_end is not None and log_end.is_start:
        return log_end.asked_at - _COARSEST_COMMIT_TIME
    if first.anchor is None or first.captured_end.file != first.start.file:
        return None
    return datetime.fromtimestamp(first.anchor.file_created, UTC)


def batch_of_run(ledger: Ledger, source: str, run: str) -> Batch:
    """Return the newest batch of a run. `run`: its id, which may be shortened. Raise
    `SpanRefused` if the ledger has no batch of this run."""
    batch = ledger.captured_batch(source, run=run)
    if batch is None or batch.id < ledger.pruned_through(source):
        raise SpanRefused(no_such_run(ledger, source, run), hint=RUNS)
    return batch


def no_such_run(ledger: Ledger, source: str, run: str) -> str:
    return f"no batch of {source} was captured by a run {run}{pruned_clause(ledger, source)}"


def pruned_clause(ledger: Ledger, source: str) -> str:
    """Return the end of a sentence about a missing batch: up to where the ledger was
    pruned. It is empty if nothing was pruned."""
    last_pruned = ledger.pruned_through(source)
    batches = ledger.live_batches(source, last_pruned, last_pruned) if last_pruned else []
    if not batches:
        return ""
    begin = end_text(batches[0])
    return f"; the ledger no longer has what was read before {begin}, as {KEEP_CHANGES} says"


def begins_before(span: Span, batches: tuple[Batch, ...], last_batch: int, end: Position) -> bool:
    """Return whether a span begins before `end`, the end of `last_batch`. `batches`:
    the batches that the span touches. A span from `earliest` does not: it begins with
    the first batch that is not pruned."""
    since = span.since
    if isinstance(since, Earliest):
        return False
    if any(batch.id <= last_batch for batch in batches):
        return True
    committed_at = end.committed_at
    if not isinstance(since, AtMoment) or committed_at is None:
        return False
    return since.moment <= committed_at


def reason_no_longer_shown(
    ledger: Deletions, source: str, table: TableName, batch: int, *, from_log: bool = False
) -> str | None:
    """Return a sentence that says why the changes of a table in this batch are no
    longer shown; None if they are shown. `from_log`: they would be read from the log
    again, so that their values would be hashed with the present key."""
    deletion = ledger.deletion_notes(source, table).newest
    if deletion is not None and deletion.table is not None and batch <= deletion.last_batch:
        return deletion.sentence
    for note in ledger.uncleared_values(source):
        through = note.tightening.last_batch
        is_hidden = note.kept_because is None or (from_log and note.tightening.is_rehashed)
        if note.table == table and is_hidden and batch <= through:
            return f"less is shown of {note.tightening.hidden_in_words} than up to batch {through}"
    return None


def stale_tables(ledger: Deletions, source: str) -> frozenset[TableName]:
    """Return the tables whose mirrors still show values that the settings hide."""
    return frozenset(
        note.table for note in ledger.uncleared_values(source) if note.has_stale_mirror
    )
