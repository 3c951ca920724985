"""Runs of whole transactions → the rows of changelogs, numbered.

Belongs here: which decoder reads a table map's rows, numbering images over all tables,
and setting one table aside without touching the others. Does not: reading the log
(`reading`), decoding (`pipeline.binlog`), the tables' files (`captured`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import numpy as np
import pyarrow as pa

from pipeline.binlog import ring as columns
from pipeline.binlog.buffer import TransactionBuffer
from pipeline.binlog.identity import gtid_texts
from pipeline.binlog.ring import Block, Integers, Run
from pipeline.binlog.rows import TableDecoder, by_map
from pipeline.binlog.table_map import read_layouts
from pipeline.changes.marking import mark_row
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
from pipeline.position import Coordinates
from pipeline.row_images import RowImages
from pipeline.runs.captured import CapturedTable, CapturedTables
from pipeline.runs.cascades import changed_unseen, unlogged
from pipeline.runs.joining import Joining, behind
from pipeline.runs.rereading import HINT, Reread
from pipeline.runs.versions import checked, release_hint, version_for
from pipeline.schema.consequences import Action, Consequence, LakePolicies, consequences
from pipeline.schema.history import SchemaVersion
from pipeline.schema.tracker import Followed, LoggedStatement, SchemaTracker
from pipeline.schema.types import arrow_schema
from pipeline.schema.zones import zone_of
from pipeline.segment import ChangeType
from pipeline.table import TableName
from pipeline.table_state import SetAside, TableEventKind


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


_EVENTS: Final = {
    Action.CREATE: TableEventKind.CREATED,
    Action.FOLLOW: TableEventKind.CHANGED,
    Action.EMPTY: TableEventKind.TRUNCATED,
    Action.DROP: TableEventKind.DROPPED,
}


class Segmenter:
    """Takes the runs of one buffer; `tables` gets the rows."""

    def __init__(
        self,
        tables: CapturedTables,
        *,
        batch: int,
        base: int,
        structures: SchemaTracker,
        clock: Callable[[], datetime],
        captured: Callable[[TableName], bool],
        policies: LakePolicies,
        on_set_aside: Callable[[SetAside], None],
        rereads: Sequence[Reread] = (),
    ) -> None:
        self._tables = tables
        self._batch, self._base = batch, base
        self._structures = structures
        self._clock = clock
        self._captured = captured
        self._policies = policies
        self._lows = {one.table: one.low for one in rereads}
        self.joining = Joining(rereads, structures)
        self._on_set_aside = on_set_aside
        self._buffer: TransactionBuffer | None = None
        self._decoders: dict[tuple[int, int], TableDecoder] = {}
        self.softened: Counter[str] = Counter()
        self.changes = 0
        self.rows = 0

    def follow(self, buffer: TransactionBuffer) -> None:
        """The buffer whose runs are put."""
        self._buffer = buffer

    def wanted(self, table: TableName) -> bool:
        return self._tables.wanted(table)

    def changed(self, logged: LoggedStatement, followed: Followed) -> None:
        """A statement changed structures: what follows for each table that is captured."""
        session = logged.context
        zoned = zone_of(session.time_zone) is not None
        found = consequences(followed, self._policies, strict=session.strict, zoned=zoned)
        for table, consequence in found.items():
            waits = self.joining.waits(table)
            if self._captured(table) and self._tables.wanted(table) and not waits:
                self._follow(table, consequence, logged)

    def reach(self, at: Coordinates | None) -> None:
        for one, version in self.joining.passed(at):
            if one.error is not None:
                self._put_aside(one.table, one.low, one.error)
            elif version is None:
                self._gone(one)
            else:
                now = self._clock()
                self._mark(version, ChangeType.RESNAPSHOT, one.low, "", now, now)
                sequence = self._base + self.changes
                kind, why = TableEventKind.REREAD, one.order.reason
                self._tables.happened(kind, version, sequence=sequence, reason=why)
                self.joining.record(one, version, sequence)

    def _gone(self, one: Reread) -> None:
        version = self._structures.version(one.table)
        if version is not None:
            kind, sequence = TableEventKind.DROPPED, self._base + self.changes
            self._tables.happened(kind, version, sequence=sequence, reason="the source has it not")

    def _follow(self, table: TableName, one: Consequence, logged: LoggedStatement) -> None:
        at, version = logged.end, self._structures.version(table)
        kind = _EVENTS.get(one.action)
        if one.action is Action.SET_ASIDE:
            self._put_aside(table, logged.begin, TableError(one.reason, hint=release_hint(table)))
        elif one.action is Action.REREAD:
            self._reread(table, at, one.reason)
        elif kind is not None and version is not None:
            known = self._tables.known(table)
            if not known and kind is not TableEventKind.CREATED:
                return
            if kind is TableEventKind.TRUNCATED and version.schema is not None:
                moments = logged.committed_at, logged.executed_at
                self._mark(version, ChangeType.TRUNCATE, logged.begin, logged.gtid, *moments)
            sequence = self._base + self.changes
            self._tables.happened(kind, version, sequence=sequence, reason=one.reason)

    def _mark(
        self,
        version: SchemaVersion,
        kind: ChangeType,
        at: Coordinates,
        gtid: str,
        committed_at: datetime,
        executed_at: datetime,
    ) -> None:
        """A row of the changelog that stands for all rows of the table."""
        self.changes += 1
        table = self._tables.opened(version, at)
        number = self._base + self.changes
        row = mark_row(
            table.schema,
            kind,
            sequence=number,
            at=at,
            gtid=gtid,
            committed_at=committed_at,
            executed_at=executed_at,
            batch=self._batch,
            schema_version=version.version,
        )
        table.first, table.last = table.first or number, number
        self._tables.hold(table, row)

    def _reread(self, table: TableName, at: Coordinates, reason: str) -> None:
        error = TableError(reason, hint=HINT)
        self._on_set_aside(self._tables.put_aside_to_reread(table, at, error))
        self._following.maps.drop(table)

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
                decoded = [d for d in decoded if d.table.version.table != name]
            else:
                decoded.append(done)
        for one in decoded:
            self._look_at_foreign_keys(run, one)
        for one in decoded:
            images_of[one.which] = one.images
        first_of = self._base + 1 + self.changes + np.cumsum(images_of) - images_of
        for one in decoded:
            self._hold(run, one, first_of[one.which], marks)
        self.changes += int(images_of.sum())

    def _look_at_foreign_keys(self, run: Run, one: _Decoded) -> None:
        """Set aside whose rows the server changed without a word in the log."""
        unseen = unlogged(one.events)
        if not unseen.any():
            return
        at = _begin(run, one.events[0])
        parent, schema = one.table.version.table, self._structures.whole()
        for table, reason in changed_unseen(parent, unseen, one.batches, schema):
            if self._captured(table) and self._tables.wanted(table):
                if self._policies.foreign_keys == "resnapshot":
                    self._reread(table, at, reason)
                else:
                    self._put_aside(table, at, TableError(reason, hint=release_hint(table)))

    # -- decoding -------------------------------------------------------------------

    def _decoded(self, run: Run, number: int, which: Integers, part: Block) -> _Decoded | None:
        name = self._name(number)
        if not self._tables.wanted(name) or self.joining.waits(name):
            return None
        if (low := self._lows.get(name)) is not None:
            later = behind(run, part.events, low)
            which, part = which[later], Block(part.data, part.events[later])
            if not len(which):
                return None
        at = _begin(run, part.events[0])
        try:
            version, decoder = self._decoder(number, at)
            table = self._tables.opened(version, at)
            batches = list(decoder.decode(part))
            if not decoder.complete:
                raise _incomplete()
        except TableError as error:
            self._put_aside(name, at, error)
            return None
        count = len(which)
        images = sum((images_per_event(b, count) for b in batches), np.zeros(count, np.int64))
        rows = sum((rows_per_event(b, count) for b in batches), np.zeros(count, np.int64))
        return _Decoded(table, which, part.events, batches, images, rows)

    def _decoder(self, number: int, at: Coordinates) -> tuple[SchemaVersion, TableDecoder]:
        buffer = self._following
        flavour = buffer.description.flavour if buffer.description else "mysql"
        mapped = buffer.maps.known[number]
        version = version_for(mapped, flavour, self._structures, at)
        key = number, version.version
        if key not in self._decoders:
            structure = checked(version, mapped, flavour)
            layouts = read_layouts(mapped.raw, flavour)
            self._decoders[key] = TableDecoder(structure, layouts, arrow_schema(structure))
        return version, self._decoders[key]

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
            self.softened[f"{table.version.table}.{column}"] += count


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
