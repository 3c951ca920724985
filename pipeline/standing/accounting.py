"""Whether all that was read of the log arrived: row images read, written and merged, by batch.

Pure. Not here: whether the rows themselves are right, which `lockstep verify` proves.

    read     images that got a number when they were read
    written  images in the batch's files: one of each insert, delete and mark, two of each update
    merged   rows of the files that a settled write has, by operation

A table that stopped, or whose rows are still being read, may have rows that no write has yet.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from pipeline.batch import Batch, CapturedRows
from pipeline.intent import REPLAY, SettledWrite
from pipeline.segment import RowCounts
from pipeline.table import TableName
from pipeline.table_state import TableEvent, TableEventKind

_MARKED: Final = (
    TableEventKind.TRUNCATED,
    TableEventKind.COPIED,
    TableEventKind.REREAD,
)
"""What leaves a mark in a changelog."""


@dataclass(frozen=True, slots=True)
class Account:
    """One batch. `read` and `images` count row images, of which `marks` stand for no row;
    `unmerged`: tables that follow the source and have rows here that no write has."""

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
        rows = self.written.inserted + 2 * self.written.updated + self.written.deleted
        return self.read == self.images and 0 <= self.images - rows <= self.marks

    @property
    def arrived(self) -> bool:
        return not self.unmerged and self.merged + self.stopped == self.written


def accounts(
    batches: Iterable[Batch],
    rows: Sequence[CapturedRows],
    events: Sequence[TableEvent],
    writes: Sequence[SettledWrite],
    following: Collection[TableName],
) -> tuple[Account, ...]:
    """Of each batch, oldest first. `rows`, `events` and `writes` are theirs, and maybe others';
    `following`: tables that are captured and merged now."""
    made = [write.intent for write in writes if write.intent.step != REPLAY]
    found = []
    for batch in batches:
        own = [row for row in rows if row.batch == batch.id]
        has = {
            intent.table for intent in made if intent.first_batch <= batch.id <= intent.last_batch
        }
        lacks = [one for one in own if one.table not in has and one.images]
        found.append(
            Account(
                batch=batch.id,
                read=batch.changes,
                images=sum(one.images for one in own),
                marks=_marks(batch, events),
                written=_sum(own),
                merged=_sum(one for one in own if one.table in has),
                stopped=_sum(one for one in lacks if one.table not in following),
                unmerged=tuple(one.table for one in lacks if one.table in following),
            )
        )
    return tuple(found)


def _marks(batch: Batch, events: Sequence[TableEvent]) -> int:
    """By the numbers that the batch gave: an event belongs behind the change before it."""
    last = batch.base + batch.changes
    return sum(event.kind in _MARKED and batch.base <= event.sequence <= last for event in events)


def _sum(rows: Iterable[CapturedRows]) -> RowCounts:
    return sum((row.counts for row in rows), RowCounts())
