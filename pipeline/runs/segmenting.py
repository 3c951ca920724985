"""Decoded rows → segments: numbering, marks, and one Parquet writer per table.

Belongs here: grouping row events of whole transactions, numbering their images, and
setting one table aside without touching the others. Does not: reading the log
(`capture`), file formats (`resources.lake`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.batch import (
    RowCounts,
    Segment,
    SetAside,
    TableCondition,
    TableState,
    TableVersion,
)
from pipeline.binlog.buffer import Transaction
from pipeline.binlog.framing import Event
from pipeline.binlog.table_map import read_structure
from pipeline.changes.layout import changelog_schema, new_table
from pipeline.changes.marks import EventPlaces, row_counts, sequences, with_marks
from pipeline.coverage import PastRange, hole
from pipeline.errors import TableError
from pipeline.ports import RowDecoder, RowImages, RowsEvent, SegmentStore, SegmentWriter
from pipeline.position import Coordinates
from pipeline.table import TableName, TableStructure

GROUP_BYTES = 16 << 20
"""Row events of whole transactions are decoded together up to this size."""

HELD_BYTES = 128 << 20
"""Decoded rows are held in memory up to this size before files are opened."""


@dataclass(slots=True)
class _Open:
    """A table being captured: its version, the Arrow batches held, its writer and totals."""

    version: TableVersion
    state: TableState
    held: list[pa.RecordBatch] = field(default_factory=list)
    writer: SegmentWriter | None = None
    counts: RowCounts = field(default_factory=RowCounts)
    first: int = 0
    last: int = 0


@dataclass(frozen=True, slots=True)
class _Pending:
    """One row event waiting to be decoded: `order` counts events within the group."""

    order: int
    transaction: Transaction
    event: Event
    table_map: bytes


class Segmenter:
    """Takes whole transactions, gives segments; one per batch.

    `known`: table states and newest versions of the ledger; tables not there are new.
    """

    def __init__(
        self,
        store: SegmentStore,
        decoder: RowDecoder,
        *,
        source: str,
        batch: int,
        base: int,
        states: Mapping[TableName, TableState],
        versions: Mapping[TableName, TableVersion],
        past: Sequence[PastRange],
        on_set_aside: Callable[[SetAside], None],
    ) -> None:
        self._store, self._decoder = store, decoder
        self._source, self._batch, self._base = source, batch, base
        self._states = dict(states)
        self._versions = dict(versions)
        self._past = past
        self._created: set[TableName] = set()
        self._on_set_aside = on_set_aside
        self._open: dict[TableName, _Open] = {}
        self._group: dict[TableName, list[_Pending]] = defaultdict(list)
        self._structures: dict[bytes, TableStructure] = {}
        self._orders = 0
        self._group_bytes = self._held_bytes = 0
        self.set_aside: dict[TableName, SetAside] = {}
        self.changes = 0
        self.rows = 0
        self.softened: Counter[str] = Counter()
        self.new_versions: list[TableVersion] = []
        self.touched_states: dict[TableName, TableState] = {}

    def wanted(self, table: TableName) -> bool:
        """Whether a table's rows are still taken: it is not set aside."""
        state = self._states.get(table)
        return table not in self.set_aside and (
            state is None or state.condition is TableCondition.ACTIVE
        )

    def created(self, table: TableName) -> None:
        """The log shows the table's CREATE: whatever it holds comes after this."""
        self._created.add(table)

    def put(
        self, table: TableName, transaction: Transaction, event: Event, table_map: bytes
    ) -> None:
        """A row event of a whole transaction, in log order."""
        self._group[table].append(_Pending(self._orders, transaction, event, table_map))
        self._orders += 1
        self._group_bytes += len(event.raw)

    def transaction_done(self) -> None:
        """Decode when enough is waiting; only ever between transactions."""
        if self._group_bytes >= GROUP_BYTES:
            self._decode_group()

    def finish(self) -> tuple[Segment, ...]:
        """Decode the rest, write and close every file (durable), and name the segments."""
        self._decode_group()
        segments = []
        for table, one in self._open.items():
            self._write(one)
            if one.writer is None:
                continue
            segments.append(
                Segment(
                    table, one.version.version, one.writer.close(), one.counts, one.first, one.last
                )
            )
        return tuple(segments)

    # -- one group ---------------------------------------------------------------

    def _decode_group(self) -> None:
        group, self._group = self._group, defaultdict(list)
        images_of = np.zeros(self._orders, dtype=np.int64)
        decoded: list[tuple[_Open, list[_Pending], RowImages]] = []
        for table, waiting in group.items():
            for run in _by_table_map(waiting):
                done = self._decoded(table, run)
                if done is None:
                    # Rows of this group before the bad one go too: a table's changes
                    # end between two transactions.
                    decoded = [d for d in decoded if d[0] is not self._open.get(table)]
                    images_of[[pending.order for pending in waiting]] = 0
                    break
                one, images = done
                orders = np.array([pending.order for pending in run], dtype=np.int64)
                np.add.at(images_of, orders[images.event.to_numpy()], 1)
                decoded.append((one, run, images))
        first_of = self._base + 1 + self.changes + np.concatenate(([0], np.cumsum(images_of)[:-1]))
        for one, run, images in decoded:
            self._hold(one, run, images, first_of)
        self.changes += int(images_of.sum())
        self._orders = self._group_bytes = 0
        if self._held_bytes >= HELD_BYTES:
            for one in self._open.values():
                self._write(one)

    def _decoded(self, table: TableName, run: list[_Pending]) -> tuple[_Open, RowImages] | None:
        events = [
            RowsEvent(p.event.raw, p.event.offset, p.event.timestamp, p.event.server_id)
            for p in run
        ]
        try:
            one = self._opened(table, run[0])
            return one, self._decoder.decode(one.version.structure, run[0].table_map, events)
        except TableError as error:
            self._put_aside(table, run[0].transaction, error)
            return None

    def _put_aside(self, table: TableName, transaction: Transaction, error: TableError) -> None:
        aside = SetAside(table, error.reason, error.hint, str(transaction.begin))
        self.set_aside[table] = aside
        self._on_set_aside(aside)
        state = self._states.get(table) or new_table(self._source, table)
        self._states[table] = self.touched_states[table] = state

    def _opened(self, table: TableName, pending: _Pending) -> _Open:
        structure = self._structure(pending.table_map)
        one = self._open.get(table)
        if one is None:
            one = self._open[table] = self._first_seen(table, structure, pending)
        if one.version.structure.fingerprint != structure.fingerprint:
            raise _drift(one.version.structure, structure)
        return one

    def _first_seen(self, table: TableName, structure: TableStructure, pending: _Pending) -> _Open:
        changelog_schema(structure)  # TableError for a type that is not read
        version = self._versions.get(table)
        self._require_no_hole(table, version)
        if version is None:
            version = TableVersion(structure, 1, str(pending.transaction.begin))
            self.new_versions.append(version)
        state = self._states.get(table)
        if state is None:
            state = new_table(self._source, table)
            self._states[table] = self.touched_states[table] = state
        return _Open(version, state)

    def _require_no_hole(self, table: TableName, version: TableVersion | None) -> None:
        if version is None and table in self._created:
            return
        seen = Coordinates.parse(version.first_seen) if version is not None else None
        missed = hole(table, seen, self._past)
        if missed is not None:
            raise TableError(
                f"the patterns of earlier runs left it out, up to {missed}: its changes there "
                "were not read",
                hint="catching a table up is not built yet: follow it under a new source name, "
                "or exclude it again",
            )

    def _structure(self, table_map: bytes) -> TableStructure:
        key = table_map[_BEHIND_TABLE_ID:]
        if key not in self._structures:
            self._structures[key] = read_structure(table_map)
        return self._structures[key]

    # -- writing -----------------------------------------------------------------

    def _hold(
        self,
        one: _Open,
        run: list[_Pending],
        images: RowImages,
        first_of: npt.NDArray[np.int64],
    ) -> None:
        places = _places(run, first_of)
        schema = changelog_schema(one.version.structure)
        rows = with_marks(
            images, places, schema, batch=self._batch, schema_version=one.version.version
        )
        numbers = sequences(images, places)
        if len(numbers):
            one.first = one.first or int(numbers[0])
            one.last = int(numbers[-1])
        one.held.append(rows)
        for column, count in images.softened.items():
            self.softened[f"{one.state.table}.{column}"] += count
        one.counts += row_counts(images)
        self.rows += row_counts(images).total
        self._held_bytes += rows.nbytes

    def _write(self, one: _Open) -> None:
        if not one.held:
            return
        if one.writer is None:
            one.writer = self._store.open(
                one.state.changelog,
                batch=self._batch,
                schema_version=one.version.version,
                schema=changelog_schema(one.version.structure),
            )
        for rows in one.held:
            one.writer.write(rows)
            self._held_bytes -= rows.nbytes
        one.held.clear()


_BEHIND_TABLE_ID = 25
"""Header 19, table id 6: the id changes whenever the server opens the table anew."""


def _by_table_map(waiting: list[_Pending]) -> Iterator[list[_Pending]]:
    """Events in order, cut where the table map says something else."""
    for _, run in groupby(waiting, key=lambda pending: pending.table_map[_BEHIND_TABLE_ID:]):
        yield list(run)


def _places(run: list[_Pending], first_of: npt.NDArray[np.int64]) -> EventPlaces:
    return EventPlaces(
        first_sequence=first_of[[p.order for p in run]],
        file=[str(p.event.file) for p in run],
        offset=[p.event.offset for p in run],
        gtid=[p.transaction.gtid.text or None for p in run],
        committed_at=[p.transaction.committed_at for p in run],
        executed_at=[p.event.timestamp * 1_000_000 for p in run],
        server_id=[p.event.server_id for p in run],
    )


def _drift(known: TableStructure, found: TableStructure) -> TableError:
    names = [column.name for column in known.columns], [column.name for column in found.columns]
    what = (
        f"its columns were {', '.join(names[0])} and are now {', '.join(names[1])}"
        if names[0] != names[1]
        else "a column's type, character set or key is another one now"
    )
    return TableError(
        f"its structure changed without a statement in the log: {what}",
        hint="somebody altered it with sql_log_bin=0; following that is not built yet",
    )
