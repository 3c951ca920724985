"""The tables of one capture: their versions and states, and the rows on their way to files.

Belongs here: what a table must be to be captured, rows held in memory until files are
worth opening, and taking back what a table wrote of a transaction that turned out bad.
Does not: decoding and numbering (`segmenting`), file formats (`resources.lake`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pipeline.batch import RowCounts, Segment, SetAside, TableCondition, TableState, TableVersion
from pipeline.changes.layout import changelog_schema, new_table
from pipeline.coverage import PastRange, hole
from pipeline.errors import TableError
from pipeline.ports import SegmentStore, SegmentWriter
from pipeline.position import Coordinates
from pipeline.table import TableName, TableStructure

GROUP_IMAGES = 128 * 1024
"""A table's images are written when there are so many: a row group, small enough that both
cores of a small machine find work when it is read."""

GROUP_BYTES = 48 << 20
"""… or when they take so many bytes."""

HELD_BYTES = 128 << 20
"""Images of all tables are held up to this size; then the largest are written."""


@dataclass(slots=True)
class CapturedTable:
    """A table being captured: its version, the Arrow batches held, its writer and totals.

    `place` and `rows_there`: the last place in the log that rows of it were found at, and
    how many, so that `_row` goes on where several events share a place.
    """

    version: TableVersion
    state: TableState
    schema: pa.Schema
    held: list[pa.RecordBatch] = field(default_factory=list)
    held_images: int = 0
    held_bytes: int = 0
    writer: SegmentWriter | None = None
    counts: RowCounts = field(default_factory=RowCounts)
    first: int = 0
    last: int = 0
    place: tuple[str, int] = ("", 0)
    rows_there: int = 0
    before: _Before | None = None


@dataclass(frozen=True, slots=True)
class _Before:
    """What a table had before a transaction that comes in parts."""

    files: int
    counts: RowCounts
    first: int
    last: int


class CapturedTables:
    """`states` and `versions`: those of the ledger; tables not there are new. `past`: the
    ranges that earlier runs read, with their patterns."""

    def __init__(
        self,
        store: SegmentStore,
        *,
        source: str,
        batch: int,
        states: Mapping[TableName, TableState],
        versions: Mapping[TableName, TableVersion],
        past: Sequence[PastRange],
    ) -> None:
        self._store = store
        self._source, self._batch = source, batch
        self._states = dict(states)
        self._versions = dict(versions)
        self._past = past
        self._created: set[TableName] = set()
        self._open: dict[TableName, CapturedTable] = {}
        self._held_bytes = 0
        self.new_versions: list[TableVersion] = []
        self.touched: dict[TableName, TableState] = {}
        self.set_aside: dict[TableName, SetAside] = {}

    def wanted(self, table: TableName) -> bool:
        """Whether a table's rows are taken: it is not set aside."""
        state = self._states.get(table)
        return table not in self.set_aside and (
            state is None or state.condition is TableCondition.ACTIVE
        )

    def created(self, table: TableName) -> None:
        """The log shows the table's CREATE: whatever it holds comes after this."""
        self._created.add(table)

    def opened(self, structure: TableStructure, at: Coordinates) -> CapturedTable:
        """The table with that structure, whose rows are found at `at`; TableError if it may
        not be captured as it is."""
        name = structure.name
        one = self._open.get(name)
        if one is None:
            one = self._open[name] = self._first_seen(structure, at)
        if one.version.structure.fingerprint != structure.fingerprint:
            raise _drift(one.version.structure, structure)
        return one

    def put_aside(self, table: TableName, at: Coordinates, error: TableError) -> SetAside:
        """The table goes no further than `at`."""
        aside = SetAside(table, error.reason, error.hint, str(at))
        self.set_aside[table] = aside
        state = self._states.get(table) or new_table(self._source, table)
        self._states[table] = self.touched[table] = state
        one = self._open.get(table)
        if one is not None and one.before is not None:
            self._take_back(one, one.before)
        return aside

    def hold(self, one: CapturedTable, rows: pa.RecordBatch) -> None:
        """Keep rows until they are worth a row group, or memory runs short."""
        one.held.append(rows)
        one.held_images += rows.num_rows
        one.held_bytes += rows.nbytes
        self._held_bytes += rows.nbytes
        if one.held_images >= GROUP_IMAGES or one.held_bytes >= GROUP_BYTES:
            self._write(one)
        if self._held_bytes >= HELD_BYTES:
            for other in sorted(self._open.values(), key=lambda table: -table.held_bytes):
                if self._held_bytes < HELD_BYTES // 2:
                    break
                self._write(other)

    # -- transactions that come in parts ----------------------------------------------

    def begin_part(self, one: CapturedTable) -> None:
        """What is held next may have to be taken back."""
        if one.before is None:
            self._write(one)
            files = one.writer.cut() if one.writer is not None else 0
            one.before = _Before(files, one.counts, one.first, one.last)

    def end_parts(self) -> None:
        """The transaction is whole: nothing of it is taken back any more."""
        for one in self._open.values():
            one.before = None

    def _take_back(self, one: CapturedTable, before: _Before) -> None:
        self._let_go(one)
        if one.writer is not None:
            one.writer.drop(before.files)
        one.counts, one.first, one.last = before.counts, before.first, before.last
        one.before = None

    # -- files ------------------------------------------------------------------------

    def finish(self) -> tuple[Segment, ...]:
        """Write and close every file (durable), and name the segments."""
        segments = []
        for name, one in self._open.items():
            self._write(one)
            files = one.writer.close() if one.writer is not None else ()
            if files:
                version = one.version.version
                segments.append(Segment(name, version, files, one.counts, one.first, one.last))
        return tuple(segments)

    def _write(self, one: CapturedTable) -> None:
        if not one.held:
            return
        if one.writer is None:
            one.writer = self._store.open(
                one.state.changelog,
                batch=self._batch,
                schema_version=one.version.version,
                schema=one.schema,
            )
        one.writer.write(pa.Table.from_batches(one.held, schema=one.schema))
        self._let_go(one)

    def _let_go(self, one: CapturedTable) -> None:
        self._held_bytes -= one.held_bytes
        one.held = []
        one.held_images = one.held_bytes = 0

    # -- tables seen for the first time ---------------------------------------------------

    def _first_seen(self, structure: TableStructure, at: Coordinates) -> CapturedTable:
        name = structure.name
        schema = changelog_schema(structure)  # TableError for a type that is not read
        version = self._versions.get(name)
        self._require_no_hole(name, version)
        if version is None:
            version = TableVersion(structure, 1, str(at))
            self.new_versions.append(version)
        state = self._states.get(name)
        if state is None:
            state = new_table(self._source, name)
            self._states[name] = self.touched[name] = state
        return CapturedTable(version, state, schema)

    def _require_no_hole(self, table: TableName, version: TableVersion | None) -> None:
        if version is None and table in self._created:
            return
        missed = hole(table, version.batch if version is not None else None, self._past)
        if missed is not None:
            raise TableError(
                f"the patterns of earlier runs left it out, up to {missed}: its changes there "
                "were not read",
                hint="catching a table up is not built yet: follow it under a new source name, "
                "or exclude it again",
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
