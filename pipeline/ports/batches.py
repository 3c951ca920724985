"""The chain of a source's batches.

Belongs here: the port that begins, moves and finds batches. Does not: what a batch
captured (`ports.captures`), the values themselves (`pipeline.batch`).
"""

from __future__ import annotations

from typing import Protocol

from pipeline.batch import Batch, BatchKind, Cursor, Requests
from pipeline.decisions import Lease
from pipeline.position import Coordinates, Position, ServerLineage
from pipeline.table import TableName


class Batches(Protocol):
    """Batches, each of which begins where the one before it ends. *Live* are those that are
    not abandoned."""

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

    def batches_of(self, source: str, table: TableName) -> list[Batch]:
        """Live captured batches with segments or events of a table, oldest first."""

    def overlaps(self, source: str) -> list[Batch]:
        """Live batches that began before the end of the one they follow, oldest first."""

    def captured_by(self, source: str, dagster_run: str) -> Batch | None:
        """The newest live batch that a Dagster run captured; its id may be shortened."""

    def batch_covering(self, source: str, server_uuid: str, at: Coordinates) -> Batch | None:
        """The newest live captured batch from that server with the place between its start
        and its end, both included; not one that only caught tables up."""

    def lineage(self, source: str) -> ServerLineage:
        """The servers the source was read from, in order."""

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
