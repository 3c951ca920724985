"""What a dead run left, settled before anything else; and a chain given up by choice.

Belongs here: unfinished and damaged captures, files that nobody needs any more. Does not:
where the run starts (`begin`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from pipeline.batch import Batch, BatchState
from pipeline.changes.layout import application_id, changelog_path, snapshot_path
from pipeline.changes.source_tables import source_table_id, source_table_path
from pipeline.claim import HINT
from pipeline.decisions import Lease, Override
from pipeline.errors import SegmentsLost
from pipeline.runs.acknowledge import remove_dropped, remove_ended, remove_snapshots
from pipeline.runs.context import Workplace
from pipeline.segment import Segment

SWEPT = 10
"""So many of the newest batches are looked through for files of abandoned ones."""


@dataclass(frozen=True, slots=True)
class Abandonment:
    """A batch that has to go, and why."""

    batch: Batch
    why: str


def repair(work: Workplace, lease: Lease) -> tuple[str, ...]:
    """Settle what a dead run left: unfinished captures go, damaged ones too if nothing
    of them was used; a sentence for each."""
    source = work.source.name
    if all(batch.state is not BatchState.MERGED for batch in work.ledger.unfinished(source)):
        # Else the end of one may be noted for a batch that is not acknowledged yet.
        remove_dropped(work, lease)
    acknowledged = work.ledger.acknowledged_cursor(source)
    if acknowledged is not None:
        # Only the newest may have been left with files: each is cleared before the next.
        remove_ended(work, acknowledged.batch)
        remove_snapshots(work, acknowledged.batch)
    for batch in work.ledger.batches(source, limit=SWEPT):
        # A holder that hung may have written on after it was taken over.
        if batch.state is BatchState.ABANDONED:
            _discard(work, batch)
    choice = work.ledger.open_override(source)
    notes = tuple(_abandon(work, lease, one.batch, one.why) for one in foreseen(work, choice))
    for note in notes:
        work.progress.note(note)
    return notes


def foreseen(work: Workplace, choice: Override | None) -> Iterator[Abandonment]:
    """The batches that `repair` abandons, in its order; `choice` is the open one of an
    operator. Each is asked for once those before it are gone. Writes nothing."""
    source = work.source.name
    unfinished = work.ledger.unfinished(source)
    captured = [batch for batch in unfinished if batch.state is BatchState.CAPTURED]
    for batch in unfinished:
        if batch.state is BatchState.CAPTURING:
            yield Abandonment(batch, "its capture did not finish")
    damaged = next(
        ((at, why) for at, batch in enumerate(captured) if (why := damage(work, batch))), None
    )
    if damaged is not None:
        first, why = damaged
        for batch in captured[first:]:
            _require_unused(work, batch, why)
        yield from (Abandonment(batch, why) for batch in reversed(captured[first:]))
    elif not any(batch.state is BatchState.MERGED for batch in unfinished):
        yield from _given_up(work, captured, choice)


def _given_up(
    work: Workplace, captured: list[Batch], choice: Override | None
) -> Iterator[Abandonment]:
    """Nothing was ever acknowledged and a start is chosen anew: what was captured from
    another one goes, if no table shows any of it."""
    if choice is None or work.ledger.acknowledged_cursor(work.source.name) is not None:
        return
    if any(_used(work, batch) for batch in captured):
        return
    why = f"{choice.author} chose another start ({choice.place})"
    yield from (Abandonment(batch, why) for batch in reversed(captured))


def _abandon(work: Workplace, lease: Lease, batch: Batch, why: str) -> str:
    # First the ledger: one whose lease is lost must not touch the files of who took over.
    work.ledger.abandon(lease, batch.id, why)
    return f"batch {batch.id} was abandoned: {why} ({_discard(work, batch)} files deleted)"


def _discard(work: Workplace, batch: Batch) -> int:
    files = work.segments.discard(work.source.name, batch.id)
    return files + work.spool.discard(work.source.name, batch.id)


def damage(work: Workplace, batch: Batch) -> str | None:
    """What is wrong with a captured batch's files; None where nothing is."""
    for segment in work.ledger.segments(batch.id):
        folder = changelog_path(batch.source, segment.table, _generation(work, batch, segment))
        if wrong := work.segments.damaged(folder, segment.files):
            return wrong[0]
    for part in work.ledger.source_parts(batch.id):
        folder = source_table_path(batch.source, part.table)
        if wrong := work.segments.damaged(folder, part.files):
            return wrong[0]
    for snapshot in work.ledger.snapshots(batch.source, batch.id):
        folder = snapshot_path(batch.source, snapshot.table)
        if wrong := work.segments.damaged(folder, snapshot.files):
            return wrong[0]
    for prepared in work.ledger.open_prepared(batch.source):
        if prepared.batch == batch.id and prepared.file is not None:
            try:
                work.spool.open(batch.source, prepared.file).close()
            except SegmentsLost as error:
                return error.message
    return None


def _used(work: Workplace, batch: Batch) -> list[str]:
    """The tables that show some of the batch: merged in part, or published."""
    states = work.ledger.table_states(work.source.name)
    used = [str(write.intent.table) for write in work.ledger.settled(batch.source, batch.id)]
    for segment in work.ledger.segments(batch.id):
        generation = _generation(work, batch, segment)
        folder = changelog_path(batch.source, segment.table, generation)
        app_id = application_id(batch.source, states[segment.table], "changelog", generation)
        if (work.changelog.recorded(folder, app_id) or 0) >= batch.id:
            used.append(str(segment.table))
    for part in work.ledger.source_parts(batch.id):
        folder = source_table_path(batch.source, part.table)
        app_id = source_table_id(batch.source, part.table)
        if (work.changelog.recorded(folder, app_id) or 0) >= batch.id:
            used.append(str(part.table))
    return used


def _generation(work: Workplace, batch: Batch, segment: Segment) -> int:
    """The generation of the changelog that a segment is part of."""
    table, number = segment.table, segment.schema_version
    return work.ledger.schema_version(batch.source, table, number).generation


def _require_unused(work: Workplace, batch: Batch, why: str) -> None:
    """What tables show would be kept when its files are about to go."""
    if used := _used(work, batch):
        raise SegmentsLost(
            f"captured files of batch {batch.id} are damaged ({why}), and {used[0]} already "
            "shows part of it",
            hint=HINT.format(source=work.source.name),
        )
