"""Batches, their states, and what the ledger (Lockstep's database in Postgres) records
of each.

A batch is the part of the log that one capture read, the positions (start, end], with
its changes as files. States only move forward; the database enforces it.

    capturing ──segments durable and recorded──▶ captured ──every table merged──▶ merged
        │                                            │            or quarantined       │
        └────did not finish────▶ abandoned ◀──no table shows it yet          acknowledged

`pipeline.run.abandon` lists the reasons for which a batch is abandoned. The captured
and the acknowledged cursor are derived from the states and never stored.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import ClassVar, Final, TypeAlias, TypeVar

from lockstep.pipeline.model.load import FollowedLoad, JoinedLoad
from lockstep.pipeline.model.table_state import (
    Extent,
    Handover,
    SnapshotFiles,
    StoppedTable,
    TableEvent,
    TableState,
)
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.values.decisions import Continuity
from lockstep.pipeline.values.intent import SettledWrite
from lockstep.pipeline.values.position import Anchor, Position, ServerProcess, SetAnchor
from lockstep.pipeline.values.segment import RowCounts, Segment, SystemTableSegment
from lockstep.pipeline.values.table import TableName, TablePatterns


class BatchState(StrEnum):
    """The state of a batch, as in the diagram above."""

    CAPTURING = "capturing"
    CAPTURED = "captured"
    MERGED = "merged"
    ACKNOWLEDGED = "acknowledged"
    ABANDONED = "abandoned"


class BatchKind(StrEnum):
    """An ordinary batch begins at the end of the batch before it. A catching-up batch
    reads a part of the log again, for tables that had stopped; its end is the end of
    the batch before it."""

    ORDINARY = "ordinary"
    CATCHING_UP = "catching-up"


@dataclass(frozen=True, slots=True)
class Xid:
    """The identity of an XA transaction. After the transaction's end it may be used
    again."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """An encrypted file of row events that outlives its run. `size`: bytes of events in
    it. `sha256`: hex checksum of the encrypted file. `key`: its key, which only the
    ledger stores."""

    path: str
    size: int
    sha256: str
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class PreparedTransaction:
    """A prepared XA transaction. `batch`: the batch that read its row events. `file`: a
    file of the spool that keeps the events of all tables until the XA COMMIT or XA
    ROLLBACK; None if there are none. `position`: where the transaction was prepared."""

    xid: Xid
    batch: int
    position: str
    file: WaitingFile | None


@dataclass(frozen=True, slots=True)
class EndedTransaction:
    """A prepared transaction of an earlier batch that this batch saw committed or
    rolled back."""

    prepared: PreparedTransaction
    committed: bool


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """Numbers of requests to an object store: `lockstep` by Lockstep's client, `spark`
    by Spark, or None if Spark does not report them. delta-rs does not count its
    requests, so they are in neither."""

    lockstep: int
    spark: int | None

    def __str__(self) -> str:
        spark = "Spark's are unknown" if self.spark is None else f"{self.spark:,} by Spark"
        return f"{self.lockstep:,} by Lockstep, {spark}"

    def __sub__(self, before: RequestCounts) -> RequestCounts:
        spark = None if before.spark is None else -before.spark
        return self + RequestCounts(-before.lockstep, spark)

    def __add__(self, other: RequestCounts) -> RequestCounts:
        if self.spark is None or other.spark is None:
            return RequestCounts(self.lockstep + other.lockstep, None)
        return RequestCounts(self.lockstep + other.lockstep, self.spark + other.spark)


@dataclass(frozen=True, slots=True)
class Batch:
    """A row of the ledger's table of batches.

    `end`, `anchor` and the totals are None or 0 until the batch is captured.
    `sequence_before`: the `_sequence` just before its first change. `changes` counts
    row images, so the next batch begins after `sequence_before + changes`. `token`:
    that of the lease under which it was begun. A batch begins at the end of its
    `continued_batch`, or where its `start_decision` says. `previous_batch`: the batch
    before it in either case; it may no longer be in the ledger. `continuity`: how a
    start by decision relates to the end of that batch. `by_gtid`: as in `Cursor`.
    `server_process`: the server process from which it was read, or None if the server
    does not report it. `requests`: requests to an object store since the run
    acknowledged the batch before it, or since the run began; None for a lake in a
    folder.
    """

    json_keys: ClassVar = (
        "id as batch",
        "state",
        "start",
        "end",
        "run_id as run",
        "created_at",
    )

    id: int
    source: str
    state: BatchState
    start: Position
    continued_batch: int | None
    start_decision: int | None
    sequence_before: int
    token: int
    run_id: str | None
    created_at: datetime
    end: Position | None = None
    anchor: Anchor | None = None
    changes: int = 0
    transactions: int = 0
    log_bytes: int = 0
    passed_statements: int = 0
    captured_at: datetime | None = None
    merged_at: datetime | None = None
    acknowledged_at: datetime | None = None
    previous_batch: int | None = None
    continuity: Continuity | None = None
    by_gtid: bool = False
    kind: BatchKind = BatchKind.ORDINARY
    server_process: ServerProcess | None = None
    requests: RequestCounts | None = None

    @property
    def catches_up(self) -> bool:
        return self.kind is BatchKind.CATCHING_UP

    @property
    def captured_end(self) -> Position:
        """The end of a batch that is captured."""
        assert self.end is not None, f"batch {self.id} is not captured"
        return self.end

    @property
    def captured_cursor(self) -> Cursor:
        """The end and the anchor of a batch that is captured."""
        assert self.anchor is not None, f"batch {self.id} is not captured"
        return Cursor(self.id, self.captured_end, self.anchor, self.by_gtid)


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """The span in which the transactions of a captured batch were committed. `begin`:
    commit time of the last transaction before the batch; `end`: commit time of the
    batch's last transaction; None if unknown."""

    id: int
    server_uuid: str
    is_acknowledged: bool
    catches_up: bool
    transactions: int
    begin: datetime | None
    end: datetime | None

    @classmethod
    def of(cls, batch: Batch) -> BatchTimes:
        """Return the times of a captured batch."""
        return cls(
            batch.id,
            batch.captured_end.server_uuid,
            batch.state is BatchState.ACKNOWLEDGED,
            batch.catches_up,
            batch.transactions,
            batch.start.committed_at,
            batch.captured_end.committed_at,
        )


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """Everything that one ledger transaction records when a batch is captured.

    `history`: structures that were read from the server or followed through statements
    of the log. Their version numbers continue the ledger's `last_versions`; a version's
    `statement_number` is an index into `history.statements`. `events`: of each table in
    the order of the log, so that `sequence` never descends. `orders_done`: ids of the
    open orders that this capture carries out. Their tables are followed again before
    `tables`, `stopped_tables` and the rest are recorded. `system_segments`: at most one
    for each system table. `handovers`: mirrors that an earlier ledger made and this one
    continues; `tables` has their states after the handover. `extents`: of tables that
    became partial or complete with this capture. `set_anchors`: one for each GTID
    source that was read, that of the last transaction first. `server_process`: the
    server process, as it was before the log was read. `scope`: the patterns with which
    it was captured, or None for a batch that only catches up. `followed_loads`: loads
    (tables whose rows are being read, see `model.load`) whose part of the log is
    captured from `Load.low` on, beginning with this batch. `joined_loads`: loads that
    are complete with this batch: `snapshots` has all their rows, and the log is
    captured past them. `needless_loads`: ids of loads that are void, because the log
    has all rows of their tables. `passed_statements`: number of statements that were
    logged instead of rows and change no captured table.
    """

    end: Position
    anchor: Anchor
    changes: int = 0
    transactions: int = 0
    log_bytes: int = 0
    segments: tuple[Segment, ...] = ()
    tables: tuple[TableState, ...] = ()
    stopped_tables: tuple[StoppedTable, ...] = ()
    prepared_transactions: tuple[PreparedTransaction, ...] = ()
    ended_transactions: tuple[EndedTransaction, ...] = ()
    by_gtid: bool = False
    history: BatchHistory = field(default_factory=BatchHistory)
    events: tuple[TableEvent, ...] = ()
    snapshots: tuple[SnapshotFiles, ...] = ()
    orders_done: tuple[int, ...] = ()
    system_segments: tuple[SystemTableSegment, ...] = ()
    handovers: tuple[Handover, ...] = ()
    extents: tuple[Extent, ...] = ()
    set_anchors: tuple[SetAnchor, ...] = ()
    server_process: ServerProcess | None = None
    scope: TablePatterns | None = None
    followed_loads: tuple[FollowedLoad, ...] = ()
    joined_loads: tuple[JoinedLoad, ...] = ()
    needless_loads: tuple[int, ...] = ()
    passed_statements: int = 0


@dataclass(frozen=True, slots=True)
class CapturedRows:
    """The size of one table's part of a batch. `image_count` (row images) and `size`
    (bytes) are sums over its files; `rows_read` is the number of rows that were read
    from the source."""

    batch: int
    table: TableName
    counts: RowCounts
    image_count: int
    size: int
    rows_read: int


@dataclass(frozen=True, slots=True)
class TableContent:
    """One table's part of a batch, in the order in which it was recorded."""

    batch: int
    segments: tuple[Segment, ...] = ()
    events: tuple[TableEvent, ...] = ()
    snapshot: SnapshotFiles | None = None


@dataclass(frozen=True, slots=True)
class BatchContent:
    """The content of a captured batch.

    `segments`: in the order in which they were recorded, with the files that they have
    now. `events`: in the order of the log, or, if only some tables were asked for, as
    recorded. `snapshots` and `system_segments`: sorted by name. `ended_transactions`:
    XA transactions of earlier batches that it saw committed or rolled back.
    """

    batch: int
    segments: tuple[Segment, ...] = ()
    system_segments: tuple[SystemTableSegment, ...] = ()
    events: tuple[TableEvent, ...] = ()
    snapshots: tuple[SnapshotFiles, ...] = ()
    ended_transactions: tuple[PreparedTransaction, ...] = ()

    @property
    def changed_tables(self) -> set[TableName]:
        """Tables with segments or events."""
        return {segment.table for segment in self.segments} | {event.table for event in self.events}

    @property
    def tables(self) -> set[TableName]:
        return self.changed_tables | {snapshot.table for snapshot in self.snapshots}

    def for_tables(self, tables: Collection[TableName]) -> BatchContent:
        """Return the segments, events and snapshots of these tables, and nothing else."""
        return BatchContent(
            self.batch,
            segments=tuple(segment for segment in self.segments if segment.table in tables),
            events=tuple(event for event in self.events if event.table in tables),
            snapshots=tuple(snapshot for snapshot in self.snapshots if snapshot.table in tables),
        )

    def by_table(self) -> dict[TableName, TableContent]:
        """Return each table's part, sorted by name."""
        segments, events = _by_table(self.segments), _by_table(self.events)
        snapshots = {snapshot.table: snapshot for snapshot in self.snapshots}
        return {
            table: TableContent(
                self.batch,
                tuple(segments.get(table, ())),
                tuple(events.get(table, ())),
                snapshots.get(table),
            )
            for table in sorted(self.tables)
        }

    def captured_rows(self) -> Iterator[CapturedRows]:
        """Yield the size of each table's part that has rows, sorted by name."""
        for table, content in self.by_table().items():
            captured_files = [file for segment in content.segments for file in segment.files]
            read_files = content.snapshot.files if content.snapshot is not None else ()
            rows = CapturedRows(
                self.batch,
                table,
                sum((segment.counts for segment in content.segments), RowCounts()),
                sum(file.images for file in captured_files),
                sum(file.size for file in (*captured_files, *read_files)),
                sum(file.images for file in read_files),
            )
            if rows.image_count or rows.rows_read:
                yield rows


Part = TypeVar("Part", Segment, TableEvent)


def _by_table(parts: Iterable[Part]) -> dict[TableName, list[Part]]:
    tables: dict[TableName, list[Part]] = {}
    for part in parts:
        tables.setdefault(part.table, []).append(part)
    return tables


@dataclass(frozen=True, slots=True)
class Cursor:
    """The end of the newest batch in a state, and the anchor by which the log there is
    recognised.

    `by_gtid`: a run may find the place on another server by the position's GTID set.
    True from the first batch that was begun with `gtid_mode` ON, until an anonymous
    transaction is read or a run finds another mode. `was_by_gtid`: `by_gtid` was true
    for an earlier batch and no longer is.
    """

    batch: int
    position: Position
    anchor: Anchor
    by_gtid: bool = False
    was_by_gtid: bool = False


@dataclass(frozen=True, slots=True)
class Cursors:
    """The ends of the newest captured and of the newest acknowledged batch, or None if
    there is none."""

    captured: Cursor | None = None
    acknowledged: Cursor | None = None


# -- several batches together ----------------------------------------------------------


class ExtraRows(StrEnum):
    """The reason for which a batch has rows from outside its own range of the log."""

    SOURCE = "source"
    """They were read from the source."""
    PREPARED = "prepared"
    """An XA transaction was prepared in an earlier batch."""


_EXTRA_ROWS_REASONS: Final = MappingProxyType(
    {
        ExtraRows.SOURCE: "it has rows that were read from the source",
        ExtraRows.PREPARED: "it has rows of an XA transaction that was prepared before it",
    }
)


@dataclass(frozen=True, slots=True)
class SpecialBatches:
    """Batches of a span, by id, that a replay has to treat specially.
    `with_extra_rows`: those with rows from outside the range of the log that they read.
    `with_structures`: those that recorded structures of tables or databases.
    `revision_counts`: those whose files were replaced, and how many times."""

    with_extra_rows: Mapping[int, ExtraRows]
    with_structures: frozenset[int]
    revision_counts: Mapping[int, int]

    def reason_not_in_log(self, batch: Batch) -> str | None:
        """Return why a batch's files have rows that are not in the range of the log
        that it read; None if they have no such rows."""
        if batch.catches_up:
            return "it brought back tables that had stopped"
        extra_rows = self.with_extra_rows.get(batch.id)
        return None if extra_rows is None else _EXTRA_ROWS_REASONS[extra_rows]


BatchRange: TypeAlias = tuple[int, int]
"""The first and the last of consecutive batches."""


@dataclass(frozen=True, slots=True)
class RunsOutsideDagster:
    """Runs that Dagster did not start and does not record. `run_count`: their number;
    `batches`: the batches that they captured, in order. `died_count`: the number of
    runs that were killed, or hung and were taken over. `deleted_lease_count`: the
    number of leases that upkeep deleted."""

    run_count: int
    batches: tuple[int, ...]
    died_count: int = 0
    deleted_lease_count: int = 0


@dataclass(frozen=True, slots=True)
class WritesOutsideDagster:
    """The writes to one table's mirror that Dagster may not have recorded.
    `newest_write`: the newest of them; `batch_ranges`: the batches that each of them
    covers."""

    newest_write: SettledWrite
    batch_ranges: frozenset[BatchRange]

    def batches_since(self, first_batch: int) -> frozenset[int]:
        """Return the covered batches from this one on."""
        return frozenset(
            batch
            for first, last in self.batch_ranges
            for batch in range(max(first, first_batch), last + 1)
        )
