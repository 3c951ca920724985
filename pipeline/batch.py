"""Batches, their segments and states: the values the ledger keeps.

A batch is what one capture produced: a contiguous range of positions (start, end].
States only move forward; the database enforces it.

    capturing ──segments durable and recorded──▶ captured ──every table merged──▶ merged
        │                                            │            or quarantined       │
        └──found by the next run──▶ abandoned ◀──damaged, nothing merged     acknowledged

The three cursors (captured ≥ merged ≥ acknowledged) are derived from the states, never
stored beside them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import ClassVar, TypeVar

from pipeline.decisions import Continuity
from pipeline.load import LoadFollowed, LoadJoined
from pipeline.position import Position, ServerLife, SetWitness, Witness
from pipeline.schema.history import History
from pipeline.segment import RowCounts, Segment, SourcePart
from pipeline.table import TableName
from pipeline.table_state import (
    Extent,
    Handover,
    Quarantine,
    SnapshotPart,
    TableEvent,
    TableState,
)
from pipeline.tables import TablePatterns


class BatchState(StrEnum):
    CAPTURING = "capturing"
    CAPTURED = "captured"
    MERGED = "merged"
    ACKNOWLEDGED = "acknowledged"
    ABANDONED = "abandoned"


class BatchKind(StrEnum):
    """A batch reads on behind the one it follows; or it catches up: it read again, for tables
    that had stopped, what others had read before, from `start` up to the end of the batch it
    follows."""

    ORDINARY = "ordinary"
    CATCHING_UP = "catching-up"


@dataclass(frozen=True, slots=True)
class Xid:
    """The identity of an XA transaction; reused, so open only until it is ended."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True)
class WaitingFile:
    """A file of row events that outlives its run: its name, the bytes of events in it, the SHA-256
    (hex) of what is stored, and the key that it is encrypted with, which is kept apart from it."""

    path: str
    size: int
    sha256: str
    key: bytes = field(repr=False)


@dataclass(frozen=True, slots=True)
class Prepared:
    """The row events of a prepared XA transaction, as the batch that read them keeps them
    until its XA COMMIT: those of every table, in a file of the spool; None if there are none.
    `position` is where it was prepared."""

    xid: Xid
    batch: int
    position: str
    file: WaitingFile | None


@dataclass(frozen=True, slots=True)
class Ended:
    """A prepared transaction of an earlier batch that this one saw committed or rolled
    back."""

    prepared: Prepared
    committed: bool


@dataclass(frozen=True, slots=True)
class Requests:
    """What was asked of an object store: `own`, by the lake's own client; `spark`, by Spark's,
    None where that cannot be told. Those of delta-rs are in neither: it tells nobody."""

    json_keys: ClassVar = ("lockstep", "spark")

    own: int
    spark: int | None

    @property
    def lockstep(self) -> int:
        return self.own

    def __str__(self) -> str:
        spark = "those of Spark are not told" if self.spark is None else f"{self.spark:,} by Spark"
        return f"{self.own:,} by Lockstep, {spark}"

    def __sub__(self, before: Requests) -> Requests:
        known = self.spark is not None and before.spark is not None
        spark = (self.spark or 0) - (before.spark or 0) if known else None
        return Requests(self.own - before.own, spark)

    def __add__(self, other: Requests) -> Requests:
        known = self.spark is not None and other.spark is not None
        spark = (self.spark or 0) + (other.spark or 0) if known else None
        return Requests(self.own + other.own, spark)


@dataclass(frozen=True, slots=True)
class Batch:
    """One row of the ledger's batches. `end`, `witness` and the totals are None/0 until
    captured. `base` is the `_sequence` just before the batch's first change; `changes`
    counts row images, so the next batch's base is `base + changes`. `follows` is the batch
    it goes on behind: its predecessor, or the one its start decision names, and then
    `continuity` tells what lies between. The ledger may have forgotten the predecessor.
    `life`: the server's when it was read; None if the server does not tell it. `requests`: what
    the run that acknowledged it asked of an object store, of several batches each what was asked
    since the one before; None for a lake in a folder."""

    json_keys: ClassVar = ("id", "state", "start", "end", "dagster_run", "created_at")

    id: int
    source: str
    state: BatchState
    start: Position
    predecessor: int | None
    start_decision: int | None
    base: int
    token: int
    dagster_run: str | None
    created_at: datetime
    end: Position | None = None
    witness: Witness | None = None
    changes: int = 0
    transactions: int = 0
    log_bytes: int = 0
    passed_statements: int = 0
    captured_at: datetime | None = None
    merged_at: datetime | None = None
    acknowledged_at: datetime | None = None
    follows: int | None = None
    continuity: Continuity | None = None
    by_gtid: bool = False
    kind: BatchKind = BatchKind.ORDINARY
    life: ServerLife | None = None
    requests: Requests | None = None

    @property
    def catches_up(self) -> bool:
        return self.kind is BatchKind.CATCHING_UP


@dataclass(frozen=True, slots=True)
class BatchTimes:
    """When the transactions of a captured batch were committed, as far as its ends tell: `begin` is
    the time of the last one before it, `end` of its own last one; None where that is not known."""

    id: int
    server_uuid: str
    acknowledged: bool
    catches_up: bool
    transactions: int
    begin: datetime | None
    end: datetime | None

    @classmethod
    def of(cls, batch: Batch) -> BatchTimes:
        end = batch.end
        assert end is not None, "it is captured"
        return cls(
            batch.id,
            end.server_uuid,
            batch.state is BatchState.ACKNOWLEDGED,
            batch.catches_up,
            batch.transactions,
            batch.start.committed_at,
            end.committed_at,
        )


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """Everything that one ledger transaction records when a batch is captured.

    `history`: what was learnt of structures; numbers go on behind the ledger's
    `last_versions`, and a version's `statement` is an index into `history.statements`.
    `events`: of each table in order, never descending in `sequence`. `orders_done`: open
    orders that this capture carries out; their tables are followed again before `tables`,
    `quarantined` and the rest are recorded. `source_parts`: one at the most for each of the
    source's own tables. `handovers`: mirrors that an earlier ledger made and this one goes on
    with; `tables` has their states after that. `extents`: of tables that became partial, or
    complete, with this capture. `set_witnesses`: one for each source of GTIDs that was read, that
    of the last transaction first. `life`: the server's before it was read. `scope`: the patterns
    it was captured with; None for a batch that takes only tables which come back. `followed`: loads
    whose tables are captured from their low on now. `joined`: those whose rows, and the log
    behind them, are whole with this batch; `snapshots` has the rows. `passed_statements`:
    statements that stand in the log instead of rows, and change no captured table.
    """

    end: Position
    witness: Witness
    changes: int = 0
    transactions: int = 0
    log_bytes: int = 0
    segments: tuple[Segment, ...] = ()
    tables: tuple[TableState, ...] = ()
    quarantined: tuple[Quarantine, ...] = ()
    prepared: tuple[Prepared, ...] = ()
    ended: tuple[Ended, ...] = ()
    by_gtid: bool = False
    history: History = field(default_factory=History)
    events: tuple[TableEvent, ...] = ()
    snapshots: tuple[SnapshotPart, ...] = ()
    orders_done: tuple[int, ...] = ()
    source_parts: tuple[SourcePart, ...] = ()
    handovers: tuple[Handover, ...] = ()
    extents: tuple[Extent, ...] = ()
    set_witnesses: tuple[SetWitness, ...] = ()
    life: ServerLife | None = None
    scope: TablePatterns | None = None
    followed: tuple[LoadFollowed, ...] = ()
    joined: tuple[LoadJoined, ...] = ()
    passed_statements: int = 0


@dataclass(frozen=True, slots=True)
class CapturedRows:
    """What one batch has of one table. `images` and `size` (bytes) are its files', `read` the
    rows of it that were read from the source."""

    batch: int
    table: TableName
    counts: RowCounts
    images: int
    size: int
    read: int


@dataclass(frozen=True, slots=True)
class TableContent:
    """What a batch has of one table, in the order in which it was recorded."""

    batch: int
    segments: tuple[Segment, ...] = ()
    events: tuple[TableEvent, ...] = ()
    snapshot: SnapshotPart | None = None


@dataclass(frozen=True, slots=True)
class BatchContent:
    """What a captured batch recorded. `segments` in the order they were recorded, with the files
    that they have today; `events` in the order of the log, or, of chosen tables, as they were
    recorded; `snapshots` and `source_parts` by name. `ended`: XA transactions of earlier batches
    that it saw committed or rolled back."""

    batch: int
    segments: tuple[Segment, ...] = ()
    source_parts: tuple[SourcePart, ...] = ()
    events: tuple[TableEvent, ...] = ()
    snapshots: tuple[SnapshotPart, ...] = ()
    ended: tuple[Prepared, ...] = ()

    @property
    def changed(self) -> set[TableName]:
        """Tables with segments or events."""
        return {segment.table for segment in self.segments} | {one.table for one in self.events}

    @property
    def tables(self) -> set[TableName]:
        return self.changed | {part.table for part in self.snapshots}

    def only(self, tables: Collection[TableName]) -> BatchContent:
        """What it has of these tables; nothing of the source's own."""
        return BatchContent(
            self.batch,
            segments=tuple(part for part in self.segments if part.table in tables),
            events=tuple(event for event in self.events if event.table in tables),
            snapshots=tuple(part for part in self.snapshots if part.table in tables),
        )

    def by_table(self) -> dict[TableName, TableContent]:
        """What it has of each table, by name."""
        segments, events = _by_table(self.segments), _by_table(self.events)
        snapshots = {part.table: part for part in self.snapshots}
        return {
            table: TableContent(
                self.batch,
                tuple(segments.get(table, ())),
                tuple(events.get(table, ())),
                snapshots.get(table),
            )
            for table in sorted(self.tables)
        }

    def rows(self) -> Iterator[CapturedRows]:
        """Yield what it has of each table that it has any rows of, by name."""
        for table, own in self.by_table().items():
            captured = [file for part in own.segments for file in part.files]
            read = own.snapshot.files if own.snapshot is not None else ()
            rows = CapturedRows(
                self.batch,
                table,
                sum((segment.counts for segment in own.segments), RowCounts()),
                sum(file.images for file in captured),
                sum(file.size for file in (*captured, *read)),
                sum(file.images for file in read),
            )
            if rows.images or rows.read:
                yield rows


Part = TypeVar("Part", Segment, TableEvent)


def _by_table(parts: Iterable[Part]) -> dict[TableName, list[Part]]:
    found: dict[TableName, list[Part]] = {}
    for part in parts:
        found.setdefault(part.table, []).append(part)
    return found


@dataclass(frozen=True, slots=True)
class Cursor:
    """The end of the newest batch in a state, and the witness that proves it.

    `by_gtid`: it may be resumed by its GTID set: since the set was first recorded, which
    is the first batch begun with `gtid_mode` ON, no anonymous transaction was read, and no
    run found another mode. `lapsed`: that was so once, and is not any more.
    """

    batch: int
    position: Position
    witness: Witness
    by_gtid: bool = False
    lapsed: bool = False


@dataclass(frozen=True, slots=True)
class Cursors:
    """The ends of the newest captured and of the newest acknowledged batch; None before the first
    of them."""

    captured: Cursor | None = None
    acknowledged: Cursor | None = None
