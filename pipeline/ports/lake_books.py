"""What a ledger keeps so that it knows its own lake again.

Belongs here: the ledger's name, how far each log was looked at, numbers that are not given
again, the batches of earlier ledgers that count for it. Does not: what a log shows
(`pipeline.foreign_commits`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol

from pipeline.claim import BatchSpan
from pipeline.decisions import Lease


class LakeBooks(Protocol):
    """Part of `Ledger`; folders are relative to the lake."""

    def identity(self) -> str:
        """The ledger's own name, a UUID that was made with it."""

    def looked(self, source: str) -> dict[str, int]:
        """Folder → the Delta version up to which its log was looked at."""

    def note_looked(self, lease: Lease, looked: Mapping[str, int | None]) -> None:
        """From here on; None forgets a folder."""

    def number_above(self, lease: Lease, *, batch: int, txn_version: int) -> None:
        """The next batch and the next write have numbers above these."""

    def inherit(self, lease: Lease, spans: Iterable[BatchSpan]) -> None:
        """The changes of these batches, which earlier ledgers captured, count for this ledger.
        Replaces what was inherited before."""

    def inherited(self, source: str) -> tuple[BatchSpan, ...]:
        """Those batches, oldest first; none unless the ledger was made from its lake."""
