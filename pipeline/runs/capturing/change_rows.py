"""Decoded images, numbered, on their way to their tables' files.

Belongs here: the marks that each image carries. Does not: which images those are, and from
which number on (`segment_builder`), files (`table_files`).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.commit_times import commit_times
from pipeline.binlog.stream.ring import Integers, TransactionGroup
from pipeline.binlog.transactions.identity import gtid_texts
from pipeline.changes.marks import (
    EventPlaces,
    TransactionMarks,
    images_per_event,
    row_counts,
    rows_per_event,
    sequences,
    with_marks,
)
from pipeline.row_images import RowImages
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.table_files import CapturedTable


@dataclass(frozen=True, slots=True)
class Decoded:
    """Events of one table map, decoded: `which` rows of the block's index they are, their
    part of that index, and their images in batches, with how many each event has of them
    before each batch."""

    table: CapturedTable
    which: Integers
    events: Integers
    batches: list[RowImages]
    images: Integers
    rows: Integers

    @classmethod
    def of(
        cls, table: CapturedTable, which: Integers, events: Integers, batches: list[RowImages]
    ) -> Decoded:
        count = len(which)
        images = sum((images_per_event(b, count) for b in batches), np.zeros(count, np.int64))
        rows = sum((rows_per_event(b, count) for b in batches), np.zeros(count, np.int64))
        return cls(table, which, events, batches, images, rows)


class Holding:
    """What one batch's tables are given."""

    def __init__(self, tables: CapturedTables, batch: int) -> None:
        self._tables = tables
        self._batch = batch
        self.softened: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.rows = 0

    def hold(
        self,
        group: TransactionGroup,
        one: Decoded,
        first_sequence: Integers,
        marks: TransactionMarks,
    ) -> None:
        """`first_sequence`: the number of each event's first image."""
        table = one.table
        if group.from_file:
            self._tables.files.begin_part(table)
        places = EventPlaces(
            transaction=one.events[:, columns.TRANSACTION],
            offset=one.events[:, columns.OFFSET],
            second=one.events[:, columns.TIMESTAMP],
            server_id=one.events[:, columns.SERVER_ID],
            first_sequence=first_sequence,
            first_row=_first_rows(table, group, one),
        )
        held = np.zeros(len(one.which), np.int64)
        for images in one.batches:
            first_event = int(images.event[0].as_py())
            numbers = sequences(images, places, int(held[first_event]))
            rows = with_marks(
                images,
                numbers,
                places,
                marks,
                table.schema,
                batch=self._batch,
                schema_version=table.version.version,
            )
            held += images_per_event(images, len(held))
            self._count(table, images, numbers)
            self._tables.files.hold(table, rows)

    def _count(self, table: CapturedTable, images: RowImages, numbers: Integers) -> None:
        table.first = table.first or int(numbers[0])
        table.last = int(numbers[-1])
        counts = row_counts(images)
        table.counts += counts
        self.rows += counts.total
        for column, count in images.softened.items():
            self.softened[f"{table.version.table}.{column}"] += count
        for column, count in images.unknown.items():
            self.unknown[f"{table.version.table}.{column}"] += count


def marks_of(group: TransactionGroup) -> TransactionMarks:
    """What all images of a run's transactions have in common."""
    names = pa.array([str(file) for file in group.files], pa.string())
    return TransactionMarks(
        file=names.take(pa.array(group.transactions[:, columns.FILE])),
        gtid=gtid_texts(group.transactions, group.sources),
        committed_at=commit_times(group.transactions),
    )


def _first_rows(table: CapturedTable, group: TransactionGroup, one: Decoded) -> Integers:
    """`_row` of each event's first row: 0, but where several events share a place in the
    log (inside a payload, or at an XA COMMIT) they are counted on."""
    offsets = one.events[:, columns.OFFSET]
    files = group.transactions[one.events[:, columns.TRANSACTION], columns.FILE]
    same = np.zeros(len(offsets), bool)
    same[1:] = (np.diff(offsets) == 0) & (np.diff(files) == 0)
    here = (str(group.files[files[0]]), int(offsets[0]))
    before = table.rows_there if here == table.place else 0
    ends = np.cumsum(one.rows)
    starts = ends - one.rows
    heads = np.flatnonzero(~same)
    since = np.repeat(starts[heads], np.diff(heads, append=len(same)))
    first = starts - since
    first[: heads[1] if len(heads) > 1 else len(first)] += before
    table.place = (str(group.files[files[-1]]), int(offsets[-1]))
    table.rows_there = int(first[-1] + one.rows[-1])
    return first
