"""What a ledger keeps so that it knows its own lake again.

Belongs here: the ledger's name, how far each log was looked at, tables that begin anew. Does
not: what a log shows (`pipeline.foreign_commits`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from pipeline.decisions import Lease
from pipeline.table import TableName


class LakeBooks(Protocol):
    """Part of `Ledger`; folders are relative to the lake."""

    def identity(self) -> str:
        """The ledger's own name, a UUID that was made with it."""

    def looked(self, source: str) -> dict[str, int]:
        """Folder → the Delta version up to which its log was looked at."""

    def note_looked(self, lease: Lease, looked: Mapping[str, int | None]) -> None:
        """From here on; None forgets a folder."""

    def last_intended(self, source: str, app_id: str) -> int:
        """The highest transaction that was ever intended for an application; 0 for none."""

    def begin_anew(self, lease: Lease, table: TableName) -> None:
        """A table that is set aside gets another generation: no commit under its old
        application ids is taken for one of its own. Its mirror shows no version."""

    def number_above(self, lease: Lease, *, batch: int, txn_version: int) -> None:
        """The next batch and the next write have numbers above these."""
