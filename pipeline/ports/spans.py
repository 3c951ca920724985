"""What many batches have, asked at once.

Belongs here: the port for whoever looks at a span of the past. Does not: what one batch has
(`ports.captures`), which batches a span touches (`pipeline.replay.spans`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from pipeline.batch import BatchTimes, CapturedRows
from pipeline.intent import SettledWrite
from pipeline.segment import Segment
from pipeline.table import TableName
from pipeline.table_state import SnapshotPart, TableEvent


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


class Spans(Protocol):
    """Batches from `first` to `last`, both included, abandoned ones left out; whether one is
    asked or all of a year, it is one statement."""

    def batch_times(self, source: str) -> list[BatchTimes]:
        """The times of all captured batches that are known (`pruned_through`), oldest first: the
        index in which a moment is looked up."""

    def first_batches(self, source: str) -> dict[TableName, int]:
        """The first captured batch that has anything of each table."""

    def tables_within(self, source: str, first: int, last: int) -> frozenset[TableName]:
        """The tables that captured batches have segments or events of."""

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

    def events_within(self, source: str, first: int, last: int) -> list[TableEvent]:
        """What happened to tables, by batch, and within it in the order of the log."""

    def writes_within(self, source: str, first: int, last: int) -> list[SettledWrite]:
        """Settled writes that cover one of the batches, in the order they were intended."""
