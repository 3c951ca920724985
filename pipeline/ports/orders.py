"""What a person orders about one table, as the ledger keeps it.

Belongs here: giving and reading orders. Does not: carrying them out, which a capture
records (`CaptureRecord.orders_done`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from pipeline.decisions import Lease
from pipeline.errors import Remedy
from pipeline.schema.model import TableSchema
from pipeline.table import TableName
from pipeline.table_state import TableOrder


class Orders(Protocol):
    """Orders about tables; each is recorded with its author and reason."""

    def pause_table(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        remedy: Remedy | None = None,
    ) -> TableOrder:
        """any → paused, at once. An active table stops where the captures are, any other where
        it had stopped; what of it is not merged, and a write that was begun, waits until it is
        resumed, and `remedy` is kept that long."""

    def resume_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        """Have a paused table caught up by the next capture; open until then."""

    def release_table(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        schema: TableSchema | None = None,
        renames: Sequence[tuple[str, str]] = (),
    ) -> TableOrder:
        """Have a quarantined table caught up by the next capture; open until then.
        `schema`: the structure it has from where it stopped, and `renames` the columns that
        had another name before. Given again before that, the newer one takes its place."""

    def reload_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        """Have the mirror of a table written anew behind the next capture; open until then.
        One that is active stops at once, as if it were paused."""

    def open_orders(self, source: str) -> list[TableOrder]:
        """Orders that no live batch carried out, oldest first."""
