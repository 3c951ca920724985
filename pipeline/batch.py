"""Batches, their segments and states: the values the ledger keeps.

A batch is what one capture produced: a contiguous range of positions (start, end].
States only move forward, by the table below (`TRANSITIONS`); the database enforces the
same rules again, for what code might forget.

    capturing ──segments durable and recorded──▶ captured ──every table merged──▶ merged
        │                                            │            or set aside       │
        └──found by the next run──▶ abandoned ◀──damaged, nothing merged     acknowledged

The three cursors (captured ≥ merged ≥ acknowledged) are derived from the states, never
stored beside them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any

from pipeline.position import Coordinates, Position, Witness
from pipeline.schema.history import History
from pipeline.schema.model import TableSchema
from pipeline.table import TableName


class BatchState(StrEnum):
    CAPTURING = "capturing"
    CAPTURED = "captured"
    MERGED = "merged"
    ACKNOWLEDGED = "acknowledged"
    ABANDONED = "abandoned"


class BatchEvent(StrEnum):
    SEGMENTS_RECORDED = "segments recorded"
    FOUND_UNFINISHED = "found unfinished"
    SEGMENTS_DAMAGED = "segments damaged"
    TABLES_SETTLED = "tables settled"
    ACKNOWLEDGED = "acknowledged"


TRANSITIONS: Mapping[tuple[BatchState, BatchEvent], BatchState] = MappingProxyType(
    {
        (BatchState.CAPTURING, BatchEvent.SEGMENTS_RECORDED): BatchState.CAPTURED,
        (BatchState.CAPTURING, BatchEvent.FOUND_UNFINISHED): BatchState.ABANDONED,
        (BatchState.CAPTURED, BatchEvent.SEGMENTS_DAMAGED): BatchState.ABANDONED,
        (BatchState.CAPTURED, BatchEvent.TABLES_SETTLED): BatchState.MERGED,
        (BatchState.MERGED, BatchEvent.ACKNOWLEDGED): BatchState.ACKNOWLEDGED,
    }
)


class Continuity(StrEnum):
    """What lies between the end of a batch and a start that goes on elsewhere: nothing,
    and nothing twice; something twice; or something that nobody read."""

    CONTIGUOUS = "contiguous"
    OVERLAP = "overlap"
    GAP = "gap"


class ChangeType(StrEnum):
    """`_change_type` of one row image, as in Delta's change data feed."""

    INSERT = "insert"
    UPDATE_PREIMAGE = "update_preimage"
    UPDATE_POSTIMAGE = "update_postimage"
    DELETE = "delete"
    TRUNCATE = "truncate"
    """The table was emptied here; the row stands for none of it."""
    RESNAPSHOT = "resnapshot"
    """The table was read anew: what happened to it here no row event tells."""


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows by operation; an update is one row although it has two images."""

    inserted: int = 0
    updated: int = 0
    deleted: int = 0

    def __add__(self, other: RowCounts) -> RowCounts:
        return RowCounts(
            self.inserted + other.inserted,
            self.updated + other.updated,
            self.deleted + other.deleted,
        )

    @property
    def total(self) -> int:
        return self.inserted + self.updated + self.deleted


@dataclass(frozen=True, slots=True)
class SegmentFile:
    """One durable Parquet file: path relative to the changelog table's folder, row
    images in it, size in bytes and SHA-256 (hex) of its content."""

    path: str
    images: int
    size: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Segment:
    """The changes of one batch, one table, one schema version."""

    table: TableName
    schema_version: int
    files: tuple[SegmentFile, ...]
    counts: RowCounts
    first_sequence: int
    last_sequence: int


@dataclass(frozen=True, slots=True)
class Xid:
    """The identity of an XA transaction; reused, so open only until it is ended."""

    format_id: int
    gtrid: bytes
    bqual: bytes

    def __str__(self) -> str:
        return f"X'{self.gtrid.hex()}',X'{self.bqual.hex()}',{self.format_id}"


@dataclass(frozen=True, slots=True)
class Prepared:
    """The row events of a prepared XA transaction, as the batch that read them keeps them
    until its XA COMMIT: in a file of the spool, None if it changed no captured table.
    `position` is where it was prepared."""

    xid: Xid
    batch: int
    position: str
    file: SegmentFile | None


@dataclass(frozen=True, slots=True)
class Ended:
    """A prepared transaction of an earlier batch that this one saw committed or rolled
    back."""

    prepared: Prepared
    committed: bool


class TableCondition(StrEnum):
    """Only active tables are captured; active and dropped ones are merged."""

    ACTIVE = "active"
    QUARANTINED = "quarantined"
    """Set aside by the system."""
    PAUSED = "paused"
    """Set aside by a person."""
    DROPPED = "dropped"
    """The source's table is gone; one that is made anew under its name is active again."""


@dataclass(frozen=True, slots=True)
class Stopped:
    """How far a table was captured: up to `at`, a place of the log that batch `batch` read
    or ended at. Reading on from there catches it up."""

    batch: int
    at: Coordinates


@dataclass(frozen=True, slots=True)
class SetAside:
    """Why a table was set aside: one sentence, the place in the log, the cure.

    `at`: the exact place that a capture stopped the table at; its start without one.
    Outside a capture the table stopped where the captures are.
    """

    table: TableName
    reason: str
    hint: str
    position: str
    at: Coordinates | None = None


@dataclass(frozen=True, slots=True)
class TableState:
    """A captured table as the ledger knows it.

    `generation` counts the lives of its lake tables (part of every application id);
    `changelog_generation` those of the changelog within. `mirror` and `changelog` are paths
    relative to the lake's folder. `mirror_version`: the schema version that the mirror
    shows, None before its first write; only settled writes move it, and a new generation
    begins without one. `stopped`: where it was set aside, paused or dropped (a capture that
    tells no place: at its end); None where it is active, and where it was set aside before
    Lockstep kept this. `behind`: the oldest
    batch that the mirror lacks although the others have gone on; once the table is active
    again it is pending from there.
    """

    table: TableName
    condition: TableCondition
    generation: int
    mirror: str
    changelog: str
    reason: str | None = None
    hint: str | None = None
    position: str | None = None
    mirror_version: int | None = None
    changelog_generation: int = 1
    stopped: Stopped | None = None
    behind: int | None = None


class OrderKind(StrEnum):
    """What a person says of a table."""

    PAUSE = "pause"
    """active → paused, at once."""
    RESUME = "resume"
    """paused → active, by the capture that catches the table up."""
    RELEASE = "release"
    """quarantined → active, by the capture that catches the table up."""


@dataclass(frozen=True, slots=True)
class TableOrder:
    """A person's order about one table; open until a batch that is not abandoned carried
    it out.

    `stopped`: where to begin catching up. `schema`: the structure the table has from there
    on, given with a release. A table's newest order counts; a pause is never open.
    """

    id: int
    table: TableName
    kind: OrderKind
    author: str
    reason: str
    ordered_at: datetime
    stopped: Stopped | None
    schema: TableSchema | None = None


class TableEventKind(StrEnum):
    """What happens to a table between its changes."""

    CREATED = "created"
    """It is new, and empty, whatever the mirror held under its name."""
    CHANGED = "changed"
    """Its structure is `version` from here on."""
    TRUNCATED = "truncated"
    DROPPED = "dropped"
    REREAD = "reread"
    """What the log cannot tell was read from the source: see the batch's snapshots."""


@dataclass(frozen=True, slots=True)
class TableEvent:
    """Something that happens to a table behind all changes with `_sequence` <= `sequence`.

    `version`: the table's schema version from here on. `place`: behind the statement.
    `reason`: a sentence, for REREAD.
    """

    table: TableName
    kind: TableEventKind
    sequence: int
    version: int
    place: Coordinates
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class SnapshotPart:
    """A table's rows as one consistent read found them, in durable files.

    `version`: the schema version of the rows. Changes with `_sequence` > `low_sequence` lie
    behind the read's low watermark: they win over its rows.
    """

    table: TableName
    version: int
    low_sequence: int
    files: tuple[SegmentFile, ...]


@dataclass(frozen=True, slots=True)
class Batch:
    """One row of the ledger's batches. `end`, `witness` and the totals are None/0 until
    captured. `base` is the `_sequence` just before the batch's first change; `changes`
    counts row images, so the next batch's base is `base + changes`. `follows` is the batch
    it goes on behind: its predecessor, or the one its start decision names, and then
    `continuity` tells what lies between."""

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
    captured_at: datetime | None = None
    merged_at: datetime | None = None
    acknowledged_at: datetime | None = None
    follows: int | None = None
    continuity: Continuity | None = None
    by_gtid: bool = False


@dataclass(frozen=True, slots=True)
class CaptureRecord:
    """Everything that one ledger transaction records when a batch is captured.

    `history`: what was learnt of structures; numbers go on behind the ledger's
    `last_versions`, and a version's `statement` is an index into `history.statements`.
    `events`: of each table in order, never descending in `sequence`. `orders_done`: open
    orders that this capture carries out; their tables are active before `tables`,
    `set_aside` and the rest are recorded.
    """

    end: Position
    witness: Witness
    changes: int
    transactions: int
    log_bytes: int
    segments: tuple[Segment, ...]
    tables: tuple[TableState, ...]
    set_aside: tuple[SetAside, ...]
    prepared: tuple[Prepared, ...] = ()
    ended: tuple[Ended, ...] = ()
    by_gtid: bool = False
    history: History = field(default_factory=History)
    events: tuple[TableEvent, ...] = ()
    snapshots: tuple[SnapshotPart, ...] = ()
    orders_done: tuple[int, ...] = ()


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
class Decision:
    """A start decision, a refusal, an idle run or a failed step: its rule's name, the
    reason in one sentence, and the facts it was drawn from (JSON).

    A start behind the batch `follows`, but not at its end, tells what lies between
    (`continuity`), and for a gap the tables that may miss changes. `override` is the
    operator's choice that it carries out.
    """

    kind: str
    rule: str
    reason: str
    facts: Mapping[str, Any] = field(default_factory=lambda: MappingProxyType({}))
    author: str = "lockstep"
    follows: int | None = None
    continuity: Continuity | None = None
    gap_tables: tuple[str, ...] = ()
    override: int | None = None


@dataclass(frozen=True, slots=True)
class RecordedDecision:
    id: int
    decided_at: datetime
    decision: Decision


@dataclass(frozen=True, slots=True)
class Override:
    """An operator's one-shot choice of a start: `place` as `pipeline.places` reads it.
    Open until a batch that is not abandoned was begun by it."""

    id: int
    place: str
    reason: str
    author: str
    chosen_at: datetime


@dataclass(frozen=True, slots=True)
class Gap:
    """Changes between two places of the log that no batch read, by whose choice and why."""

    decision: int
    batch: int
    decided_at: datetime
    author: str
    reason: str
    tables: tuple[str, ...]
    begin: str
    end: str


@dataclass(frozen=True, slots=True)
class Lease:
    """The right to write for one source. `token` grows with every holder; a commit with
    an older token than the ledger's is refused (`LeaseLost`)."""

    source: str
    token: int
    holder: str
    dagster_run: str | None


@dataclass(frozen=True, slots=True)
class LeaseView:
    """What others see of a lease: who, since when, whether its lock is held now, and the
    holder's last sign of life."""

    token: int
    holder: str
    dagster_run: str | None
    taken_at: datetime
    live: bool
    beat_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Intent:
    """A write to one mirror that the ledger committed to before it was tried.

    `batches` are the captured batches it merges, never regrouped; `txn_version` is
    unique per application id and ascends. Until settled, it is the table's next write.
    """

    id: int
    table: TableName
    app_id: str
    txn_version: int
    first_batch: int
    last_batch: int
    step: str


@dataclass(frozen=True, slots=True)
class SettledWrite:
    """A settled intent: the Delta version that its commit made."""

    intent: Intent
    delta_version: int
    settled_at: datetime


@dataclass(frozen=True, slots=True)
class VersionSetEntry:
    """Read `mirror` (a path in the lake) at `delta_version` for the batch's position."""

    table: TableName
    mirror: str
    delta_version: int
