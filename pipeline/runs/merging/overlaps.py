"""What was read twice: batches among changes that an earlier batch has read.

Belongs here: how far an overlap reaches. Does not: deciding to begin in one
(`pipeline.start`).

An overlap is not over with the batch that began it: a budget may end that one early, and
the next goes on behind it, still among changes that the mirrors hold.
"""

from __future__ import annotations

from collections.abc import Sequence

from pipeline.batch import Batch
from pipeline.decisions import Continuity
from pipeline.position import Position
from pipeline.runs.context import Workplace


def reads_again(work: Workplace, batches: Sequence[Batch]) -> bool:
    """Whether some of these batches may hold changes that an earlier one read."""
    first, last = batches[0], batches[-1]
    if any(batch.continuity is Continuity.OVERLAP for batch in batches):
        return True
    source = work.source.name
    for begun in work.ledger.overlaps(source):
        if begun.follows is None or begun.id > last.id:
            continue
        for followed in work.ledger.live_batches(source, begun.follows, begun.follows):
            if followed.end is None or last.end is None:
                continue
            # One commit time may be wrong, so both ends have to say so.
            if not all(is_past(place, followed.end) for place in (first.start, last.end)):
                return True
    return False


def is_past(start: Position, end: Position) -> bool:
    """Whether what begins there lies behind what ended there. The places of two servers
    tell nothing of each other; their commits' moments do."""
    if start.server_uuid == end.server_uuid and start.at.file.base == end.at.file.base:
        return end.at <= start.at
    moments = start.committed_at, end.committed_at
    return moments[0] is not None and moments[1] is not None and moments[1] < moments[0]
