"""Runs of whole transactions → the rows of changelogs, numbered.

Belongs here: which decoder reads a table map's rows, numbering images over all tables,
and setting one table aside without touching the others. Does not: reading the log
(`reading`), decoding (`pipeline.binlog`), the tables' files (`captured`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline.batch import SetAside
from pipeline.binlog import ring as columns
from pipeline.binlog.buffer import TransactionBuffer
from pipeline.binlog.identity import gtid_texts
from pipeline.binlog.ring import Block, Integers, Run
from pipeline.binlog.rows import TableDecoder, by_map
from pipeline.binlog.table_map import read_layouts, read_structure
from pipeline.changes.marks import (
    EventPlaces,
    TransactionMarks,
    images_per_event,
    row_counts,
    rows_per_event,
    sequences,
    with_marks,
)
from pipeline.errors import TableError
from pipeline.ports import RowImages
from pipeline.position import Coordinates
from pipeline.runs.captured import CapturedTable, CapturedTables
from pipeline.schema.types import arrow_schema
from pipeline.table import TableName, TableStructure


@dataclass(frozen=True, slots=True)
class _Decoded:
    """Events of one table map, decoded: `which` rows of the block's index they are, their
    part of that index, and their images in batches, with how many each event has of them
    before each batch."""

    table: CapturedTable
    which: Integers
    events: Integers
    batches: list[RowImages]
    images: Integers
    rows: Integers


class Segmenter:
    """Takes the runs of one buffer; `tables` gets the rows."""

    def __init__(
        self,
        tables: CapturedTables,
        *,
        batch: int,
        base: int,
        on_set_aside: Callable[[SetAside], None],
    ) -> None:
        self._tables = tables
        self._batch, self._base = batch, base
        self._on_set_aside = on_set_aside
        self._buffer: TransactionBuffer | None = None
        self._decoders: dict[int, tuple[TableStructure, TableDecoder]] = {}
        self.softened: Counter[str] = Counter()
        self.changes = 0
        self.rows = 0

    def follow(self, buffer: TransactionBuffer) -> None:
        """The buffer whose runs are put."""
        self._buffer = buffer

    def wanted(self, table: TableName) -> bool:
        return self._tables.wanted(table)

    def created(self, table: TableName) -> None:
        self._tables.created(table)

    def put(self, run: Run) -> None:
        """Decode and number a run's rows."""
        marks = _marks(run)
        for block in run.blocks:
            self._put_block(run, block, marks)
        if run.from_file:
            self._tables.end_parts()

    def _put_block(self, run: Run, block: Block, marks: TransactionMarks) -> None:
        images_of = np.zeros(len(block.events), np.int64)
        decoded: list[_Decoded] = []
        for number, which, part in by_map(block):
            done = self._decoded(run, number, which, part)
            if done is None:
                # Rows of this block before the bad one go too: a table's changes end
                # between two transactions.
                name = self._name(number)
                decoded = [d for d in decoded if d.table.version.structure.name != name]
            else:
                decoded.append(done)
        for one in decoded:
            images_of[one.which] = one.images
        first_of = self._base + 1 + self.changes + np.cumsum(images_of) - images_of
        for one in decoded:
            self._hold(run, one, first_of[one.which], marks)
        self.changes += int(images_of.sum())

    # -- decoding -------------------------------------------------------------------

    def _decoded(self, run: Run, number: int, which: Integers, part: Block) -> _Decoded | None:
        if not self._tables.wanted(self._name(number)):
            return None
        at = _begin(run, part.events[0])
        try:
            structure, decoder = self._decoder(number)
            table = self._tables.opened(structure, at)
            batches = list(decoder.decode(part))
            if not decoder.complete:
                raise _incomplete()
        except TableError as error:
            self._put_aside(self._name(number), at, error)
            return None
        count = len(which)
        images = sum((images_per_event(b, count) for b in batches), np.zeros(count, np.int64))
        rows = sum((rows_per_event(b, count) for b in batches), np.zeros(count, np.int64))
        return _Decoded(table, which, part.events, batches, images, rows)

    def _decoder(self, number: int) -> tuple[TableStructure, TableDecoder]:
        if number not in self._decoders:
            buffer = self._following
            raw = buffer.maps.known[number].raw
            flavour = buffer.description.flavour if buffer.description else "mysql"
            structure = read_structure(raw, flavour)
            layouts = read_layouts(raw, flavour)
            decoder = TableDecoder(structure, layouts, arrow_schema(structure))
            self._decoders[number] = structure, decoder
        return self._decoders[number]

    @property
    def _following(self) -> TransactionBuffer:
        if self._buffer is None:
            raise RuntimeError("follow a buffer first")
        return self._buffer

    def _name(self, number: int) -> TableName:
        return self._following.maps.known[number].table

    def _put_aside(self, name: TableName, at: Coordinates, error: TableError) -> None:
        self._on_set_aside(self._tables.put_aside(name, at, error))
        self._following.maps.drop(name)

    # -- numbering --------------------------------------------------------------------

    def _hold(
        self, run: Run, one: _Decoded, first_sequence: Integers, marks: TransactionMarks
    ) -> None:
        table = one.table
        if run.from_file:
            self._tables.begin_part(table)
        places = EventPlaces(
            transaction=one.events[:, columns.TRANSACTION],
            offset=one.events[:, columns.OFFSET],
            second=one.events[:, columns.TIMESTAMP],
            server_id=one.events[:, columns.SERVER_ID],
            first_sequence=first_sequence,
            first_row=_first_rows(table, run, one),
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
            self._tables.hold(table, rows)

    def _count(self, table: CapturedTable, images: RowImages, numbers: Integers) -> None:
        table.first = table.first or int(numbers[0])
        table.last = int(numbers[-1])
        counts = row_counts(images)
        table.counts += counts
        self.rows += counts.total
        for column, count in images.softened.items():
            self.softened[f"{table.version.structure.name}.{column}"] += count


def _marks(run: Run) -> TransactionMarks:
    names = pa.array([str(file) for file in run.files], pa.string())
    committed = run.transactions[:, columns.COMMITTED_AT]
    seconds = run.transactions[:, columns.LAST_TIMESTAMP] * 1_000_000
    return TransactionMarks(
        file=names.take(pa.array(run.transactions[:, columns.FILE])),
        gtid=gtid_texts(run.transactions, run.sources),
        committed_at=np.where(committed == 0, seconds, committed),
    )


def _begin(run: Run, event: Integers) -> Coordinates:
    """Where the event's transaction begins."""
    row = run.transactions[event[columns.TRANSACTION]]
    return Coordinates(run.files[row[columns.FILE]], int(row[columns.BEGIN_OFFSET]))


def _first_rows(table: CapturedTable, run: Run, one: _Decoded) -> Integers:
    """`_row` of each event's first row: 0, but where several events share a place in the
    log (inside a payload, or at an XA COMMIT) they are counted on."""
    offsets = one.events[:, columns.OFFSET]
    files = run.transactions[one.events[:, columns.TRANSACTION], columns.FILE]
    same = np.zeros(len(offsets), bool)
    same[1:] = (np.diff(offsets) == 0) & (np.diff(files) == 0)
    here = (str(run.files[files[0]]), int(offsets[0]))
    before = table.rows_there if here == table.place else 0
    ends = np.cumsum(one.rows)
    starts = ends - one.rows
    heads = np.flatnonzero(~same)
    since = np.repeat(starts[heads], np.diff(heads, append=len(same)))
    first = starts - since
    first[: heads[1] if len(heads) > 1 else len(first)] += before
    table.place = (str(run.files[files[-1]]), int(offsets[-1]))
    table.rows_there = int(first[-1] + one.rows[-1])
    return first


def _incomplete() -> TableError:
    return TableError(
        "its row images are incomplete (binlog_row_image is not FULL in some session)",
        hint="set binlog_row_image=FULL for every session that writes this table; "
        "this version cannot follow partial images",
    )
