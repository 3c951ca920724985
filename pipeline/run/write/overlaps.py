"""Decides whether an earlier batch may have read and merged some changes of a write.

A batch is a part of the log that a run captured at once. An overlap is a part of the
log that an earlier batch has read already. It may span several batches: a run's limit
may end the first of them early, and the next one continues within the overlap.
"""

from __future__ import annotations

from collections.abc import Sequence

from lockstep.pipeline.mirror.merging import MergePlan
from lockstep.pipeline.model.batch import Batch
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.position import Position


def may_repeat_merged(
    ports: RunPorts, plan: MergePlan, key: tuple[str, ...], batches: Sequence[Batch]
) -> bool:
    """Return whether an earlier batch may have read some of the changes that are merged
    from these batches. If the write replaces all rows of a table without a key, a
    change that was read twice does harm only if both copies are merged. So a batch is
    disregarded if no change from before it is merged."""
    if plan.replaces_rows and not key:
        batches = [
            batch
            for batch in batches
            if any(segment.last_sequence <= batch.sequence_before for segment in plan.segments)
        ]
    return bool(batches) and may_repeat_changes(ports, batches)


def may_repeat_changes(ports: RunPorts, batches: Sequence[Batch]) -> bool:
    """Return whether an earlier batch may have read some changes of these batches."""
    first, last = batches[0], batches[-1]
    if any(batch.continuity is Continuity.OVERLAP for batch in batches):
        return True
    source = ports.source.name
    for overlap in ports.ledger.live_batches(source, continuity=Continuity.OVERLAP):
        if overlap.id > last.id:
            continue
        previous_id = overlap.previous_batch
        assert previous_id is not None, "it reads part of an earlier batch again"
        for previous in ports.ledger.live_batches(source, previous_id, previous_id):
            # A server's clock may have been wrong at one of the ends, so both are
            # compared.
            ends = (first.start, last.captured_end)
            if not all(_comes_after(end, previous.captured_end) for end in ends):
                return True
    return False


def _comes_after(start: Position, end: Position) -> bool:
    """Return whether a batch that starts at `start` comes after one that ended at
    `end`. Places in the logs of two servers cannot be compared, so the commit times are
    compared instead."""
    if start.server_uuid == end.server_uuid and start.at.file.base == end.at.file.base:
        return end.at <= start.at
    if start.committed_at is None or end.committed_at is None:
        return False
    return end.committed_at < start.committed_at
