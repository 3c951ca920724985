"""What several batches have, at once.

Belongs here: the port that answers for a range of batches what others answer for one. Does not:
which batches a person means (`pipeline.replay.spans`).
"""

from __future__ import annotations

from typing import Protocol

from pipeline.batch import CapturedRows
from pipeline.intent import SettledWrite
from pipeline.table_state import TableEvent


class Spans(Protocol):
    """Of live captured batches with these ids and between; one question however many there
    are."""

    def rows_between(self, source: str, first: int, last: int) -> list[CapturedRows]:
        """What each batch has of each table, by batch and name; only what has any rows."""

    def events_between(self, source: str, first: int, last: int) -> list[TableEvent]:
        """What happened to tables, by batch, and within it in the order of the log."""

    def writes_between(self, source: str, first: int, last: int) -> list[SettledWrite]:
        """Settled writes that cover one of the batches, in the order they were intended."""
