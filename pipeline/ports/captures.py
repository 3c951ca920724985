"""What a batch captured.

Belongs here: the port that records a capture and answers what it recorded. Does not: the
batch itself (`ports.batches`), structures by place (`ports.schemas`).
"""

from __future__ import annotations

from typing import Protocol

from pipeline.batch import CaptureRecord, Prepared
from pipeline.coverage import CaptureScope
from pipeline.decisions import Lease
from pipeline.position import SetWitness
from pipeline.segment import Segment, SourcePart
from pipeline.table_state import SnapshotPart, TableEvent


class Captures(Protocol):
    """The content of batches, recorded at once."""

    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        """capturing → captured: segments, source parts, history, tables, events, snapshots,
        prepared transactions (new and ended ones), orders carried out, witnesses of the GTIDs
        read, the patterns where they are others than before, and end at once."""

    def segments(self, batch: int) -> list[Segment]:
        """Segments of a batch, in the order they were recorded."""

    def source_parts(self, batch: int) -> list[SourcePart]:
        """What a batch adds to the source's own tables, by their names."""

    def table_events(self, source: str, batch: int) -> list[TableEvent]:
        """What happened to tables in a batch, each table's in order."""

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
