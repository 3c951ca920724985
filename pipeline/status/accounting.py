"""Accounts of row images by batch: read from the log, written to files, merged. They
show whether any image was lost. A batch is what one run captured; a row image is a row
before or after a change.

Pure. `lockstep verify` proves that the rows themselves are right.

read images that got a sequence number when they were read written images in the batch's
files: one per insert, delete and mark, two per update merged rows of the files that a
finished write covers, by operation

A table that is stopped, or whose rows are still being read, may have rows that are not
merged yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from lockstep.pipeline.model.batch import Batch, CapturedRows
from lockstep.pipeline.model.table_state import TableEvent, TableEventKind
from lockstep.pipeline.values.intent import REPLAY, SettledWrite
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.table import TableName

_MARKED: Final = (
    TableEventKind.TRUNCATED,
    TableEventKind.COPIED,
    TableEventKind.REREAD,
)
"""Events that leave a mark in a changelog: an image that stands for no row."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account of one batch. `read`, `images`: number of row images that were read,
    and that are in its files; `marks`: at most so many of them are marks, which stand
    for no row. `written`: rows in its files; `merged`: the rows that finished writes
    cover; `stopped`: the rows of tables that do not follow the source now. `unmerged`:
    tables that follow the source and have rows in this batch that no finished write
    covers."""

    batch: int
    read: int
    images: int
    marks: int
    written: RowCounts
    merged: RowCounts
    stopped: RowCounts
    unmerged: tuple[TableName, ...]

    @property
    def whole(self) -> bool:
        """Return whether the files have every image that was read."""
        rows = self.written.inserted + 2 * self.written.updated + self.written.deleted
        return self.read == self.images and 0 <= self.images - rows <= self.marks

    @property
    def arrived(self) -> bool:
        """Return whether every written row is merged, or waits because its table is
        stopped."""
        return not self.unmerged and self.merged + self.stopped == self.written


def accounts(
    batches: Iterable[Batch],
    rows: Sequence[CapturedRows],
    events: Sequence[TableEvent],
    writes: Sequence[SettledWrite],
    following: Collection[TableName],
) -> tuple[Account, ...]:
    """Return the account of each batch, in their order. `rows`, `events` and `writes`
    may include those of other batches. `following`: tables that are captured and merged
    now."""
    intents = [write.intent for write in writes if write.intent.step != REPLAY]
    results = []
    for batch in batches:
        own = [row for row in rows if row.batch == batch.id]
        merged = {i.table for i in intents if i.first_batch <= batch.id <= i.last_batch}
        lacks = [row for row in own if row.table not in merged and row.image_count]
        results.append(
            Account(
                batch=batch.id,
                read=batch.changes,
                images=sum(row.image_count for row in own),
                marks=_marks(batch, events),
                written=_sum(own),
                merged=_sum(row for row in own if row.table in merged),
                stopped=_sum(row for row in lacks if row.table not in following),
                unmerged=tuple(row.table for row in lacks if row.table in following),
            )
        )
    return tuple(results)


def _marks(batch: Batch, events: Sequence[TableEvent]) -> int:
    """Return the largest number of marks in the batch. An event has the sequence number
    of the change before it."""
    last = batch.base + batch.changes
    return sum(event.kind in _MARKED and batch.base <= event.sequence <= last for event in events)


def _sum(rows: Iterable[CapturedRows]) -> RowCounts:
    return sum((row.counts for row in rows), RowCounts())
