"""Of which batches the ledger still tells everything, and the words for those that are gone; of
which tables more is shown than the settings say.

Before `pruned_through` the ledger has only some batches, those that something else refers to:
whoever looks for a place among batches looks from there on.
"""

from __future__ import annotations

from pipeline.batch import Batch
from pipeline.errors import SpanRefused
from pipeline.places import AtMoment, Earliest
from pipeline.ports.ledger import Ledger
from pipeline.position import Position
from pipeline.replay.spans import Span, end_of
from pipeline.table import TableName
from pipeline.upkeep.changes import KEY

RUNS = "`lockstep status --json` shows the runs of the last batches"


def known_batches(
    ledger: Ledger, source: str, first: int = 0, last: int | None = None
) -> list[Batch]:
    """The acknowledged batches, oldest first, from the newest one on whose changes are gone; of
    those the ones from `first` to `last`, if there are any."""
    cursor = ledger.cursors(source).acknowledged
    if cursor is None:
        return []
    end = cursor.batch if last is None else min(last, cursor.batch)
    pruned, batches = -1, list[Batch]()
    while pruned != ledger.pruned_through(source):  # else some may have gone meanwhile
        pruned = ledger.pruned_through(source)
        batches = ledger.live_batches(source, max(first, pruned), end)
    return batches or ledger.live_batches(source, pruned, cursor.batch)


def batch_of_run(ledger: Ledger, source: str, run: str) -> Batch:
    """The newest known batch of a run, whose id may be shortened; `SpanRefused` without."""
    batch = ledger.captured_batch(source, run=run)
    if batch is None or batch.id < ledger.pruned_through(source):
        raise SpanRefused(no_such_run(ledger, source, run), hint=RUNS)
    return batch


def no_such_run(ledger: Ledger, source: str, run: str) -> str:
    return f"no batch of {source} was captured by a run {run}{but_known(ledger, source)}"


def but_known(ledger: Ledger, source: str) -> str:
    """What to say behind a sentence about a batch that was not found."""
    place = known_since(ledger, source)
    if place is None:
        return ""
    return f"; what was read before {place} is not known any more, as {KEY} says"


def known_since(ledger: Ledger, source: str) -> str | None:
    """Where that begins of which the ledger tells everything; None where it is the beginning."""
    pruned = ledger.pruned_through(source)
    batches = ledger.live_batches(source, pruned, pruned) if pruned else []
    return end_of(batches[0]) if batches else None


def begins_before(span: Span, batches: tuple[Batch, ...], through: int, end: Position) -> bool:
    """Whether a span that touches these batches begins before the end of the batch `through`; one
    from `earliest` on begins behind it."""
    since = span.since
    if isinstance(since, Earliest):
        return False
    if any(batch.id <= through for batch in batches):
        return True
    gone = end.committed_at
    return isinstance(since, AtMoment) and gone is not None and since.moment <= gone


def less_shown(
    ledger: Ledger, source: str, table: TableName, batch: int, *, read_again: bool = False
) -> str | None:
    """Return why nothing of a batch is shown of a table any more, in a sentence; None if it is.
    `read_again`: from the log, so that its values would be hashed with the key of now."""
    gone = ledger.forgotten(source, table).newest
    if gone is not None and gone.table is not None and batch <= gone.through:
        return gone.told
    for note in ledger.in_clear(source):
        through = note.tightening.through
        less = note.kept_because is None or (read_again and note.tightening.rehashed)
        if note.table == table and less and batch <= through:
            return f"less is shown of {note.tightening.told} than up to batch {through}"
    return None


def stale_tables(ledger: Ledger, source: str) -> frozenset[TableName]:
    """Return the tables whose mirrors show more than the settings do."""
    return frozenset(note.table for note in ledger.in_clear(source) if note.stale)
