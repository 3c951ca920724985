"""What a merge over some batches of one table has to do: a plan without a lake.

Everything behind the last event that settles what the table holds counts, nothing before
it: behind CREATED and TRUNCATED the table is empty, behind REREAD it is what was read. An
event's place is a number that the images are compared with, so no file has to end there. That of
a table that was read over several batches lies in the first of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.ports.batches import TableContent
from pipeline.segment import Segment
from pipeline.table_state import SnapshotPart, TableEvent, TableEventKind

SETTLES: Final = frozenset(
    {TableEventKind.CREATED, TableEventKind.TRUNCATED, TableEventKind.REREAD}
)


@dataclass(frozen=True, slots=True)
class Emptied:
    """No row that was there behind the change of that number is there behind `event`, unless it
    comes again: the table was truncated, dropped, created or read from the source."""

    sequence: int
    event: TableEvent


@dataclass(frozen=True, slots=True)
class MergePlan:
    """`replaces`: the mirror's rows of before do not matter; then `snapshot` is what it
    begins with, or no row. Images of `segments` count if their `_sequence` is above
    `above`. `first`: the version of the oldest that matters; None where the mirror's own
    does. `final`: the version it shall show. `dropped`: the table ends here. `completion`:
    columns that were read from the source by key, for rows that have no image behind that
    reading; the newest reading has all that are asked for. `read_until`: no row of `snapshot` was
    read behind the image of that number; 0 without one. `through`: images above it do not count
    either, where the plan ends inside a batch. `emptied`: where rows went that do not matter any
    more, in order, up to the event that settles what the table holds; `gone`: the segments that
    have images of such rows. Both concern only a mirror that keeps deleted rows."""

    replaces: bool
    above: int
    segments: tuple[Segment, ...]
    snapshot: SnapshotPart | None
    first: int | None
    final: int
    dropped: bool
    completion: SnapshotPart | None = None
    read_until: int = 0
    through: int | None = None
    emptied: tuple[Emptied, ...] = ()
    gone: tuple[Segment, ...] = ()

    @property
    def versions(self) -> tuple[int, ...]:
        """Versions whose images are merged, ascending."""
        return tuple(sorted({segment.schema_version for segment in self.segments}))


def plan_merge(parts: Sequence[TableContent]) -> MergePlan:
    """`parts`: the batches' parts in the order of the log, with something in them."""
    settling: TableEvent | None = None
    snapshot: SnapshotPart | None = None
    completion: SnapshotPart | None = None
    emptied: list[Emptied] = []
    dropped, above = False, 0
    for part in parts:
        if part.snapshot is not None and part.snapshot.columns is not None:
            completion = part.snapshot
        for event in part.events:
            dropped = event.kind is TableEventKind.DROPPED
            read = part.snapshot if event.kind is TableEventKind.REREAD else None
            begins = event.sequence if read is None else read.low_sequence
            if dropped or event.kind in SETTLES:
                emptied.append(Emptied(begins, event))
            if event.kind in SETTLES and begins >= above:
                settling, snapshot, above = event, read, begins
    if completion is not None and completion.low_sequence < above:
        completion = None
    segments = tuple(
        segment for part in parts for segment in part.segments if segment.last_sequence > above
    )
    gone = tuple(
        segment for part in parts for segment in part.segments if segment.first_sequence <= above
    )
    counted = [one for one in emptied if settling is not None and one.sequence <= above]
    return MergePlan(
        replaces=settling is not None,
        above=above,
        segments=segments,
        snapshot=snapshot,
        first=None if settling is None else _first(settling, snapshot),
        final=_final(parts),
        dropped=dropped,
        completion=completion,
        read_until=0 if settling is None or snapshot is None else settling.sequence,
        emptied=tuple(sorted(counted, key=lambda one: one.sequence)),
        gone=gone,
    )


def _first(settling: TableEvent, snapshot: SnapshotPart | None) -> int:
    return settling.version if snapshot is None else snapshot.version


def _final(parts: Sequence[TableContent]) -> int:
    """The last version that anything was said under; a table that is dropped keeps that of
    before."""
    told = [
        (event.sequence, 1, event.version)
        for part in parts
        for event in part.events
        if event.kind is not TableEventKind.DROPPED
    ]
    told += [
        (segment.last_sequence, 0, segment.schema_version)
        for part in parts
        for segment in part.segments
    ]
    return max(told)[2] if told else 0
