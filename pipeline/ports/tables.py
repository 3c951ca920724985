"""How the tables of a source stand.

Belongs here: the port to tables' states and to what of them the lake can have. Does not:
what a capture says of them (`ports.captures`), what people order (`ports.orders`).
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from pipeline.decisions import Lease
from pipeline.life.events import MirrorEvent
from pipeline.table import TableName
from pipeline.table_state import Extent, Quarantine, TableState


class Tables(Protocol):
    """The state of each table that was ever captured: what the events of its life make of it."""

    def table_states(self, source: str) -> dict[TableName, TableState]: ...

    def partial(self, source: str) -> list[Extent]:
        """Tables that the lake can have but a part of, by name, as live batches left them;
        some of them nobody has seen a change of, and they have no state."""

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        """The lake was found to have all of these tables, as of the batch's end."""

    def quarantine(self, lease: Lease, quarantined: Quarantine) -> None:
        """active → quarantined, outside a capture; repeating it changes nothing. The table's
        open write is given up: to be called when nothing of it is in the lake."""

    def record_event(self, lease: Lease, table: TableName, event: MirrorEvent) -> TableState:
        """What happened to the table's mirror, outside a capture; the state behind it."""
