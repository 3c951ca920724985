"""What the ledger knows of entries in a catalog.

Belongs here: the port. Does not: the catalog (`ports.catalog`).
"""

from __future__ import annotations

from typing import Protocol

from pipeline.catalog.values import Registered
from pipeline.decisions import Lease
from pipeline.table import TableName


class Registrations(Protocol):
    """Part of `Ledger`. A `catalog` is one by its identity; entries of another are kept, and of no
    account."""

    def registrations(self, source: str, catalog: str) -> dict[TableName, Registered]: ...

    def note_registration(self, lease: Lease, catalog: str, one: Registered) -> None:
        """The table's entry is this, or is being made; it replaces what was known of the table."""

    def forget_registration(self, lease: Lease, catalog: str, table: TableName) -> None:
        """The table has no entry; one that is not known is no error."""

    def registered_up_to(self, source: str, catalog: str) -> int:
        """The statement up to which entries follow comments; 0 for none."""

    def note_registered_up_to(self, lease: Lease, catalog: str, statement: int) -> None: ...
