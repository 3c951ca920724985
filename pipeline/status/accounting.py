"""Accounts of row images by batch: read from the log, written to files, merged. They
show whether any image was lost. A batch is a part of the log that a run captured at
once; a row image is a row before or after a change; a mark is an image that stands for
no row, such as that of a TRUNCATE.

Pure. `lockstep verify` proves that the rows themselves are right.

| account | what is counted |
|---|---|
| read | images that got a sequence number when they were read |
| written | images in the batch's files: two for each logged update, one for other rows and marks |
| merged | rows of the files that a finished write covers, by operation |

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

_MARKING_EVENTS: Final = (TableEventKind.TRUNCATED, TableEventKind.COPIED, TableEventKind.REREAD)
"""Events that leave a mark in a changelog."""


@dataclass(frozen=True, slots=True)
class Account:
    """The account of one batch.

    - `read_images`: number of row images that were read. `written_images`: number of
      row images in its files, of which at most `max_marks` are marks.
    - `max_lone_images`: the largest number of updates that have no image before the
      change: those of tables of which a run read some rows again (REFRESHED).
    - `written_rows`: rows in its files.
    - `merged_rows`: those of them that finished writes cover.
    - `stopped_rows`: the others, of tables that do not follow the source now.
    - `unmerged_tables`: tables that follow the source and have rows in this batch that
      no finished write covers.
    """

    batch: int
    read_images: int
    written_images: int
    max_marks: int
    max_lone_images: int
    written_rows: RowCounts
    merged_rows: RowCounts
    stopped_rows: RowCounts
    unmerged_tables: tuple[TableName, ...]

    @property
    def has_all_images(self) -> bool:
        """True if the files have every image that was read."""
        rows = self.written_rows
        row_images = rows.inserted + 2 * rows.updated + rows.deleted
        excess = self.written_images - row_images
        is_explained = -self.max_lone_images <= excess <= self.max_marks
        return self.read_images == self.written_images and is_explained

    @property
    def is_merged(self) -> bool:
        """True if every written row is merged, or its table is stopped."""
        if self.unmerged_tables:
            return False
        return self.merged_rows + self.stopped_rows == self.written_rows


def accounts(
    batches: Iterable[Batch],
    rows: Sequence[CapturedRows],
    events: Sequence[TableEvent],
    writes: Sequence[SettledWrite],
    following: Collection[TableName],
) -> tuple[Account, ...]:
    """Return the account of each batch, in the order of `batches`. `rows`, `events` and
    `writes` may include those of other batches. `following`: tables that are captured
    and merged now."""
    intents = [write.intent for write in writes if write.intent.step != REPLAY]
    results = []
    for batch in batches:
        written = [part for part in rows if part.batch == batch.id]
        batch_events = _events_of(batch, events)
        refreshed_tables = {
            event.table for event in batch_events if event.kind is TableEventKind.REFRESHED
        }
        merged_tables = {
            intent.table
            for intent in intents
            if intent.first_batch <= batch.id <= intent.last_batch
        }
        unmerged = [
            part for part in written if part.table not in merged_tables and part.image_count
        ]
        results.append(
            Account(
                batch=batch.id,
                read_images=0 if _only_continues_lake(batch, written) else batch.changes,
                written_images=sum(part.image_count for part in written),
                max_marks=sum(event.kind in _MARKING_EVENTS for event in batch_events),
                max_lone_images=sum(
                    part.counts.updated for part in written if part.table in refreshed_tables
                ),
                written_rows=_sum(written),
                merged_rows=_sum(part for part in written if part.table in merged_tables),
                stopped_rows=_sum(part for part in unmerged if part.table not in following),
                unmerged_tables=tuple(part.table for part in unmerged if part.table in following),
            )
        )
    return tuple(results)


def _only_continues_lake(batch: Batch, written: Sequence[CapturedRows]) -> bool:
    """Return whether this is the first batch of a ledger made from the lake. Such a
    batch read nothing; its `changes` count the images that earlier ledgers captured."""
    return batch.continued_batch is None and batch.start == batch.end and not written


def _events_of(batch: Batch, events: Sequence[TableEvent]) -> list[TableEvent]:
    """Return the events that may be the batch's. An event has the sequence number of
    the change before it."""
    last = batch.sequence_before + batch.changes
    return [event for event in events if batch.sequence_before <= event.sequence <= last]


def _sum(parts: Iterable[CapturedRows]) -> RowCounts:
    return sum((part.counts for part in parts), RowCounts())
