"""The tables of one capture: their states, what happens to them, and their rows on the way to
files, which are held in memory until files are worth opening."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from types import MappingProxyType

import pyarrow as pa

from pipeline.changes.layout import (
    captured_schema,
    changelog_path,
    free_place,
    new_table,
    no_place,
)
from pipeline.changes.marks import changelog_rows, file_schema
from pipeline.errors import Need, TableError
from pipeline.mirror_names import MirrorNames
from pipeline.ports.segments import SegmentStore, SegmentWriter
from pipeline.position import Coordinates
from pipeline.row_groups import HeldRows
from pipeline.runs.cures import met, refusal
from pipeline.schema.history import Knowledge, SchemaVersion
from pipeline.segment import ChangeType, RowCounts, Segment
from pipeline.table import TableName
from pipeline.table_state import (
    Quarantine,
    TableCondition,
    TableEvent,
    TableEventKind,
    TableState,
)
from pipeline.tables import PastRange, hole

HELD_BYTES = 128 << 20
"""Images of all tables are held up to this size; then the largest are written."""


@dataclass(slots=True)
class CapturedTable:
    """A table under one version: the Arrow batches held, its writer and totals.

    `place` and `rows_there`: the last place in the log that rows of it were found at, and
    how many, so that `_row` goes on where several events share a place. `more`: columns that
    its files have behind the changelog's, since images of it left columns out (`file_schema`).
    """

    version: SchemaVersion
    folder: str
    schema: pa.Schema
    held: HeldRows = field(default_factory=HeldRows)
    writer: SegmentWriter | None = None
    counts: RowCounts = field(default_factory=RowCounts)
    first: int = 0
    last: int = 0
    place: tuple[str, int] = ("", 0)
    rows_there: int = 0
    before: _Before | None = None
    more: int = 0


@dataclass(frozen=True, slots=True)
class _Before:
    """What a table had before a transaction that comes in parts."""

    files: int
    counts: RowCounts
    first: int
    last: int


class TableFiles:
    """`updated`: whether updates of a table say which columns changed."""

    def __init__(
        self, store: SegmentStore, *, batch: int, updated: Callable[[TableName], bool]
    ) -> None:
        self.updated = updated
        self._store = store
        self._batch = batch
        self._open: dict[tuple[TableName, int], CapturedTable] = {}
        self._held_bytes = 0

    def of(self, version: SchemaVersion) -> CapturedTable | None:
        """The table under that version, if it began."""
        return self._open.get((version.table, version.version))

    @property
    def tables(self) -> set[TableName]:
        """Those that began under any version."""
        return {name for name, _ in self._open}

    def has(self, table: TableName) -> bool:
        return any(name == table for name, _ in self._open)

    def begin(self, version: SchemaVersion, folder: str, schema: pa.Schema) -> CapturedTable:
        """Rows with these columns go into that folder of the lake."""
        table = CapturedTable(version, folder, schema)
        self._open[version.table, version.version] = table
        return table

    def hold(self, one: CapturedTable, rows: pa.RecordBatch) -> None:
        """Keep rows until they are worth a row group, or memory runs short."""
        one.held.add(rows)
        self._held_bytes += rows.nbytes
        if one.held.enough:
            self._write(one)
        if self._held_bytes >= HELD_BYTES:
            for other in sorted(self._open.values(), key=lambda table: -table.held.bytes):
                if self._held_bytes < HELD_BYTES // 2:
                    break
                self._write(other)

    # -- transactions that come in parts ----------------------------------------------

    def begin_part(self, table: CapturedTable) -> None:
        """What is held next may have to be taken back."""
        if table.before is None:
            self._write(table)
            files = table.writer.cut() if table.writer is not None else 0
            table.before = _Before(files, table.counts, table.first, table.last)

    @property
    def rows_in_parts(self) -> int:
        """Rows of the transaction so far, without what was taken back."""
        parts = ((table.counts, table.before) for table in self._open.values())
        return sum(all_.total - before.counts.total for all_, before in parts if before is not None)

    def end_parts(self) -> None:
        """The transaction is whole: nothing of it is taken back any more."""
        for table in self._open.values():
            table.before = None

    def take_back(self, table: TableName) -> None:
        """What the table wrote of it is not written."""
        for (name, _), one in self._open.items():
            if name == table and one.before is not None:
                self._take_back(one, one.before)

    def _take_back(self, table: CapturedTable, before: _Before) -> None:
        self._let_go(table)
        if table.writer is not None:
            table.writer.drop(before.files)
        table.counts, table.first, table.last = before.counts, before.first, before.last
        table.before = None

    # -- files ------------------------------------------------------------------------

    def drop(self) -> None:
        """Nothing that was written counts."""
        for table in self._open.values():
            self._let_go(table)
            if table.writer is not None:
                table.writer.drop(0)

    def finish(self) -> tuple[Segment, ...]:
        """Write and close every file (durable), and name the segments."""
        segments = []
        for (name, version), table in self._open.items():
            self._write(table)
            files = table.writer.close() if table.writer is not None else ()
            if files:
                segments.append(
                    Segment(name, version, files, table.counts, table.first, table.last)
                )
        return tuple(segments)

    def _write(self, table: CapturedTable) -> None:
        if not table.held.batches:
            return
        if table.writer is None:
            table.writer = self._store.open(
                table.folder,
                batch=self._batch,
                schema_version=table.version.version,
                schema=table.schema,
                updated=self.updated(table.version.table),
            )
        table.writer.write(_together(table))
        self._let_go(table)

    def _let_go(self, table: CapturedTable) -> None:
        self._held_bytes -= table.held.bytes
        table.held.clear()


def _together(table: CapturedTable) -> pa.Table:
    """The rows held; from the first image that leaves a column out, with what each has."""
    count = len(table.schema)
    table.more = max([table.more, *(len(batch.schema) - count for batch in table.held.batches)])
    if not table.more:
        return pa.Table.from_batches(table.held.batches, schema=table.schema)
    names = [column.name for column in table.version.shown_structure.columns]
    schema = file_schema(table.schema, names, table.more)
    batches = []
    for batch in table.held.batches:
        lacking = [pa.nulls(batch.num_rows, kind) for kind in schema.types[len(batch.schema) :]]
        batches.append(pa.RecordBatch.from_arrays([*batch.columns, *lacking], schema=schema))
    return pa.Table.from_batches(batches)


_NONE: Mapping[TableName, bool] = MappingProxyType({})


def _never(table: TableName) -> bool:
    return False


def _nothing(table: TableName) -> Sequence[SchemaVersion]:
    return ()


class CapturedTables:
    """`base`: changes of the batch are numbered above it. `states`: those of the ledger; tables
    not there are new. `past`: the ranges that earlier runs read, with their patterns; `recorded`:
    the versions of a table's structure that earlier batches recorded. `updated`: whether updates of
    a table say which columns changed. `loading`: tables whose rows are read from the source, and
    whether an earlier batch captured their log from there on. `place`: where the files of a
    changelog's folder are written. `names`: of mirrors; `first`: of two tables whose mirrors would
    meet, the earlier one keeps its place; `old`: folders that earlier mirrors had."""

    def __init__(
        self,
        store: SegmentStore,
        *,
        source: str,
        batch: int,
        base: int = 0,
        states: Mapping[TableName, TableState],
        past: Sequence[PastRange] = (),
        recorded: Callable[[TableName], Sequence[SchemaVersion]] = _nothing,
        updated: Callable[[TableName], bool] = _never,
        loading: Mapping[TableName, bool] = _NONE,
        place: Callable[[str], str] = str,
        names: MirrorNames | None = None,
        first: Sequence[TableName] = (),
        old: Collection[str] = (),
    ) -> None:
        self.files = TableFiles(store, batch=batch, updated=updated)
        self.batch, self._base = batch, base
        self.changes = 0
        """Row images so far, and marks among them."""
        self._source, self._place = source, place
        self._states = dict(states)
        self._names = MirrorNames(source) if names is None else names
        self._taken = {*old, *(state.mirror for state in states.values())}
        self._holders: dict[TableName, TableName] = {}
        for table in (*first, *states) if self._names.rules else ():
            self._holders.setdefault(self._names.folded(table), table)
        self._past, self._recorded = past, recorded
        self._told: set[TableName] = set()
        self._read: set[TableName] = set()
        self.events: list[TableEvent] = []
        self.touched: dict[TableName, TableState] = {}
        self.quarantined: dict[TableName, Quarantine] = {}
        self._held = {
            *(table for table, followed in loading.items() if not followed and table not in states),
            *(table for table, state in states.items() if state.loading and not loading.get(table)),
        }

    @property
    def last(self) -> int:
        """The number of the last change so far."""
        return self._base + self.changes

    def wanted(self, table: TableName) -> bool:
        """Whether a table's rows are taken: it is not quarantined."""
        state = self._states.get(table)
        quarantined = table in self.quarantined or table in self._held
        return not quarantined and (state is None or not state.has_stopped)

    @property
    def states(self) -> Mapping[TableName, TableState]:
        """Where the tables are by now."""
        return self._states

    def told(self, table: TableName) -> bool:
        """Whether this batch says what all of the table's rows are: it was made there, or emptied,
        or has another one's rows."""
        return table in self._told

    def tell(self, table: TableName) -> None:
        """From here on this batch says so."""
        self._told.add(table)

    def known(self, table: TableName) -> bool:
        """Whether there is anything in the lake, or on its way there."""
        return table in self._states

    def loading(self, table: TableName) -> bool:
        """Whether its rows are being read from the source, and its log is captured."""
        state = self._states.get(table)
        return state is not None and state.loading and self.wanted(table)

    def load_begins(self, version: SchemaVersion) -> None:
        """From here on the log of the table is captured, and not merged until it is loaded."""
        self._held.discard(version.table)
        self._read.add(version.table)
        self._touch(version, need=Need.ROWS)

    def loaded(self, table: TableName) -> None:
        self._held.discard(table)
        self._read.add(table)
        state = self._states.get(table)
        if state is not None and not state.complete:
            state = state.started()
            self._states[table] = self.touched[table] = state

    def missed(self, table: TableName) -> str | None:
        """Where the last part of the log ends in which a table's changes were not read, unless
        something has said since what all of its rows are."""
        ever = hole(table, None, self._past)
        if ever is None or table in self._read or table in self._told:
            return None
        return hole(table, self._begun(table), self._past) if table in self._states else ever

    def _begun(self, table: TableName) -> int | None:
        """The batch in which the rows began that a table has: what an ALTER leaves goes on with
        those of before it. None if nothing was recorded."""
        begun = None
        for version in self._recorded(table):
            if version.knowledge is Knowledge.KNOWN and version.columns_from is None:
                begun = version.batch
        return begun

    def opened(self, version: SchemaVersion, at: Coordinates) -> CapturedTable:
        """The table under that version, whose rows are found at `at`; TableError if it may
        not be captured as it is."""
        return self.files.of(version) or self._first_seen(version)

    def copied(self, version: SchemaVersion, at: Coordinates, origin: TableName, why: str) -> None:
        """A RENAME gave the table the rows of `origin`, after the last change so far. TableError if
        the table may not be captured as it is."""
        self._read.add(version.table)
        self.opened(version, at)
        self.happened(TableEventKind.COPIED, version, why, origin)
        self.tell(version.table)

    def happened(
        self,
        kind: TableEventKind,
        version: SchemaVersion,
        reason: str | None,
        origin: TableName | None = None,
    ) -> None:
        """Something happens to a table behind the last change so far."""
        table = version.table
        if kind in (TableEventKind.CREATED, TableEventKind.TRUNCATED):
            self.tell(table)
        dropped = kind is TableEventKind.DROPPED
        self._touch(version, TableCondition.DROPPED if dropped else TableCondition.FOLLOWING)
        self.events.append(
            TableEvent(table, kind, self.last, version.version, version.since, reason, origin)
        )

    def mark(
        self,
        kind: ChangeType,
        version: SchemaVersion,
        at: Coordinates,
        gtid: str,
        committed_at: datetime,
        executed_at: datetime,
    ) -> None:
        """The next change is a row that stands for all rows of the table: it was emptied, or is
        read anew, by the transaction that begins at `at`."""
        self.changes += 1
        table = self.opened(version, at)
        marks = {
            "_change_type": kind.value,
            "_sequence": self.last,
            "_file": str(at.file),
            "_offset": at.offset,
            "_row": 0,
            "_gtid": gtid or None,
            "_committed_at": committed_at,
            "_executed_at": executed_at,
            "_batch": self.batch,
            "_schema_version": version.version,
            "_derived": False,
        }
        table.first, table.last = table.first or self.last, self.last
        self.files.hold(table, changelog_rows(table.schema, 1, marks))

    def quarantine(self, table: TableName, at: Coordinates, error: TableError) -> Quarantine:
        quarantined = Quarantine.of(table, error, str(at), at)
        self.quarantined[table] = quarantined
        state = self._states.get(table) or self._new(table)
        self._states[table] = self.touched[table] = state
        self.files.take_back(table)
        return quarantined

    # -- tables seen for the first time ---------------------------------------------------

    def _first_seen(self, version: SchemaVersion) -> CapturedTable:
        # TableError for a type that is not read.
        updated = self.files.updated(version.table)
        schema = captured_schema(version.shown_structure, updated=updated)
        self._require_no_hole(version)
        if (met := self.met(version.table)) is not None:
            raise met
        if version.schema is not None and (refused := refusal(version.schema)) is not None:
            raise refused
        state = self._touch(version)
        return self.files.begin(version, self._place(state.changelog), schema)

    def _touch(
        self,
        version: SchemaVersion,
        condition: TableCondition = TableCondition.FOLLOWING,
        need: Need | None = None,
    ) -> TableState:
        """`need`: what it lacks from here on; None: what it lacked before."""
        table = version.table
        before = self._states.get(table)
        if before is not None and before.loading and condition is TableCondition.FOLLOWING:
            need = before.need
        state = replace(
            before or self._new(table),
            condition=condition,
            need=need,
            changelog=changelog_path(self._source, table, version.generation),
            changelog_generation=version.generation,
        )
        if state != before:
            self._states[table] = self.touched[table] = state
        return state

    def met(self, table: TableName) -> TableError | None:
        """Why a table that is not known yet may not be captured: its mirror would lie where that
        of another one lies."""
        if table in self._states:
            return None
        other = self._holders.get(self._names.folded(table))
        if other in (None, table) or not self._names.meet(table, other):
            return None
        return met(table, other, self._names.of(table), known=False)

    def _new(self, table: TableName) -> TableState:
        if self.met(table) is not None:
            return new_table(self._source, table, no_place(self._source, table))
        if self._names.rules:
            self._holders.setdefault(self._names.folded(table), table)
        return new_table(self._source, table, self._free(table))

    def _free(self, table: TableName) -> str:
        """The folder of a new mirror: one in which nothing is, and nothing of another table was."""
        name, fold = self._names.of(table), self._names.given(table)
        mirror = free_place(self._source, name, 1, self._taken, fold=fold)
        self._taken.add(mirror)
        return mirror

    def _require_no_hole(self, version: SchemaVersion) -> None:
        table = version.table
        if (missed := self.missed(table)) is not None:
            raise TableError(
                f"the patterns of earlier runs left it out, up to {missed}: its changes up to "
                "there were not read",
                hint=f"`lockstep resume {table} --reason …` reads it from the source",
                need=Need.ROWS,
            )
