"""Writes of batches to mirrors.

Belongs here: the port to intents and settled writes. Does not: writing a mirror
(`ports.mirrors`).
"""

from __future__ import annotations

from typing import Protocol

from pipeline.decisions import Lease
from pipeline.intent import Intent, MissingTable, SettledWrite, ShownVersion, VersionSetEntry
from pipeline.table import TableName


class Writes(Protocol):
    """What is written to mirrors: first an intent, then settled or given up."""

    def pending(self, source: str) -> dict[TableName, list[int]]:
        """For each active or dropped table: captured batches with segments or events of it
        that no settled write covers, oldest first; and those that a table missed while
        it had stopped, whatever their state."""

    def open_intents(self, source: str) -> list[Intent]: ...

    def open_intent(
        self,
        lease: Lease,
        table: TableName,
        *,
        app_id: str,
        first_batch: int,
        last_batch: int,
        step: str,
    ) -> Intent:
        """Commit to a write; its `txn_version` comes from a ledger sequence. At most
        one open intent per table."""

    def settle(
        self,
        lease: Lease,
        intent: Intent,
        delta_version: int,
        *,
        shows: int | None = None,
        reason: str | None = None,
        table_id: str | None = None,
    ) -> None:
        """The intent's commit was read back from the lake at that version; `shows`: the
        schema version that the mirror has since, None for the one it had; `reason`: why it was
        written the way it was; `table_id`: of which Delta table that is a version."""

    def give_up(self, lease: Lease, table: TableName) -> None:
        """The table's open write is never made: the next one takes its batches. None open
        there changes nothing."""

    def settled(self, source: str, batch: int) -> list[SettledWrite]:
        """Settled writes that cover a batch."""

    def intended(self, source: str, batch: int) -> list[Intent]:
        """All writes that cover a batch, in their order: settled, open or given up. A batch that
        one of a table which it touched covers is not abandoned any more."""

    def last_settled(self, source: str, app_id: str) -> SettledWrite | None:
        """The newest settled write of an application id; None before the first."""

    def last_intended(self, source: str, app_id: str) -> int:
        """The highest transaction that was ever intended for an application; 0 for none."""

    def version_set(self, source: str, batch: int) -> list[VersionSetEntry]:
        """What to read together to see the source as it was at an acknowledged batch's end, by
        name: of each table that can be read so, the newest settled write up to it. Nothing for
        any other batch."""

    def mirror_versions(self, source: str, table: TableName, last: int) -> list[ShownVersion]:
        """The versions of a table's mirrors that show it as of the ends of acknowledged batches
        up to `last`, newest first; each once, at the first of the batches."""

    def missing_versions(self, source: str, batch: int) -> list[MissingTable]:
        """The tables of the source that cannot be read as of that batch, by name. Not those that
        it had no more."""
