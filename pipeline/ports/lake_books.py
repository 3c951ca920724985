"""What a ledger keeps so that it knows its own lake again.

Belongs here: the ledger's name, how far each log was looked at, numbers that are not given
again. Does not: what a log shows (`pipeline.foreign_commits`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

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
