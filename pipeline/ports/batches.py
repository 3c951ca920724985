"""The chain of a source's batches, and what each of them captured.

Belongs here: the port that begins, moves and finds batches, records a capture and answers what it
recorded, of one batch or of many at once. Does not: the values themselves (`pipeline.batch`),
structures by place (`ports.schemas`), which batches a span touches (`pipeline.replay.spans`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pipeline.batch import (
    Batch,
    BatchKind,
    BatchTimes,
    CapturedRows,
    CaptureRecord,
    Cursor,
    Prepared,
    Requests,
)
from pipeline.decisions import Lease
from pipeline.intent import SettledWrite
from pipeline.position import Coordinates, Position, Reign, SetWitness
from pipeline.segment import Segment, SourcePart
from pipeline.table import TableName
from pipeline.table_state import SnapshotPart, TableEvent
from pipeline.tables import CaptureScope


class Elsewhere(StrEnum):
    """Why a batch has rows that its own range of the log does not tell."""

    SOURCE = "source"
    """They were read from the source."""
    PREPARED = "prepared"
    """An XA transaction was prepared in an earlier batch."""


@dataclass(frozen=True, slots=True)
class TableContent:
    """What a batch has of one table, in the order in which it was recorded."""

    batch: int
    segments: tuple[Segment, ...] = ()
    events: tuple[TableEvent, ...] = ()
    snapshot: SnapshotPart | None = None


class Batches(Protocol):
    """Batches, each of which begins where the one before it ends. *Live* are those that are
    not abandoned."""

    # -- the chain -----------------------------------------------------------------------------

    def captured_cursor(self, source: str) -> Cursor | None:
        """The end of the newest captured batch; None before the first."""

    def acknowledged_cursor(self, source: str) -> Cursor | None:
        """The end of the newest acknowledged batch; None before the first."""

    def batches(self, source: str, *, limit: int = 20) -> list[Batch]:
        """The newest batches, newest first, abandoned ones among them."""

    def unfinished(self, source: str) -> list[Batch]:
        """Batches that are capturing, captured or merged, oldest first."""

    def live_batches(self, source: str, first: int, last: int) -> list[Batch]:
        """Batches of these ids and between, abandoned ones left out, oldest first."""

    def first_batch(self, source: str) -> Batch | None:
        """The source's oldest batch that is not abandoned. Ids are counted over all sources."""

    def overlaps(self, source: str) -> list[Batch]:
        """Live batches that began before the end of the one they follow, oldest first."""

    def captured_by(self, source: str, dagster_run: str) -> Batch | None:
        """The newest live batch that a Dagster run captured; its id may be shortened."""

    def batch_covering(self, source: str, server_uuid: str, at: Coordinates) -> Batch | None:
        """The newest live captured batch from that server with the place between its start
        and its end, both included; not one that only caught tables up."""

    def lineage(self, source: str) -> tuple[Reign, ...]:
        """The servers the source was read from, in order; one may come back."""

    def begin_batch(
        self,
        lease: Lease,
        start: Position,
        *,
        predecessor: int | None,
        start_decision: int | None,
        kind: BatchKind = BatchKind.ORDINARY,
    ) -> Batch:
        """Open a *capturing* batch: exactly one of `predecessor` (whose end is its
        start) and `start_decision`, which may follow a batch (`Decision.follows`). The
        answer has its id and sequence base."""

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        """capturing, or captured with no table merged → abandoned; the newest first."""

    def mark_merged(self, lease: Lease) -> list[int]:
        """captured → merged for every batch, oldest first, all of whose tables have a
        settled write or are quarantined; the ids moved."""

    def acknowledge(self, lease: Lease, batch: int, requests: Requests | None = None) -> None:
        """merged → acknowledged, in order, and record the version set: each active
        table's newest settled write up to this batch; and the batch's `requests`."""

    # -- what one batch captured ---------------------------------------------------------------

    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        """capturing → captured: segments, source parts, history, tables, events, snapshots,
        prepared transactions (new and ended ones), orders carried out, witnesses of the GTIDs
        read, the patterns where they are others than before, and end at once."""

    def segments(self, batch: int) -> list[Segment]:
        """Segments of a batch, in the order they were recorded."""

    def source_parts(self, batch: int) -> list[SourcePart]:
        """What a batch adds to the source's own tables, by their names."""

    def table_events(self, source: str, first: int, last: int | None = None) -> list[TableEvent]:
        """What happened to tables in captured batches from `first` to `last`, or in `first` alone;
        by batch, and within it in the order of the log."""

    def snapshots(self, source: str, batch: int) -> list[SnapshotPart]:
        """The tables that a batch's capture read from the source, by name."""

    def open_prepared(self, source: str) -> list[Prepared]:
        """Prepared XA transactions that some live batch recorded and no live batch ended."""

    def ended_prepared(self, batch: int) -> list[Prepared]:
        """Prepared XA transactions that this batch ended; none if it was abandoned."""

    def set_witnesses(self, source: str, batch: int) -> list[SetWitness]:
        """Of each source of GTIDs the newest that was kept by live batches up to that one;
        that of the last transaction first."""

    def capture_scopes(self, source: str) -> list[CaptureScope]:
        """What live batches were captured with, oldest first: one for each change of it."""

    # -- what many batches captured ------------------------------------------------------------

    def batch_times(self, source: str) -> list[BatchTimes]:
        """The times of all captured batches that are known (`pruned_through`), oldest first: the
        index in which a moment is looked up."""

    def touched(self, source: str, first: int, last: int) -> dict[TableName, int]:
        """The first of the captured batches that has segments or events of each table."""

    def contents(self, source: str, table: TableName, first: int, last: int) -> list[TableContent]:
        """What captured batches have of a table, oldest first; not those that have neither
        segments nor events of it."""

    def told_elsewhere(self, source: str, first: int, last: int) -> dict[int, Elsewhere]:
        """The batches whose rows are not all in the range of the log that they read."""

    def learnt_within(self, source: str, first: int, last: int) -> frozenset[int]:
        """The batches that recorded structures, of tables or databases."""

    def revision_counts(self, source: str, first: int, last: int) -> dict[int, int]:
        """How often files of each batch were settled anew; not those of which none were."""

    def rows_within(self, source: str, first: int, last: int) -> list[CapturedRows]:
        """What each batch has of each table, by batch and name; only what has any rows."""

    def writes_within(self, source: str, first: int, last: int) -> list[SettledWrite]:
        """Settled writes that cover one of the batches, in the order they were intended."""
