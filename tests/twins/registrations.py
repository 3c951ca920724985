"""Entries of mirrors in catalogs, in memory: `pipeline.ports.registrations`."""

from __future__ import annotations

from pipeline.catalog.values import Registered
from pipeline.decisions import Lease
from pipeline.table import TableName
from tests.twins.books import MemorySubject


class MemoryRegistrations(MemorySubject):
    def registrations(self, source: str, catalog: str) -> dict[TableName, Registered]:
        known = self.books.registrations.get((source, catalog), {})
        return {table: known[table] for table in sorted(known)}

    def note_registration(self, lease: Lease, catalog: str, one: Registered) -> None:
        with self._step(lease) as books:
            books.registrations.setdefault((lease.source, catalog), {})[one.table] = one

    def forget_registration(self, lease: Lease, catalog: str, table: TableName) -> None:
        with self._step(lease) as books:
            books.registrations.get((lease.source, catalog), {}).pop(table, None)

    def registered_up_to(self, source: str, catalog: str) -> int:
        return self.books.registered_up_to.get((source, catalog), 0)

    def note_registered_up_to(self, lease: Lease, catalog: str, statement: int) -> None:
        with self._step(lease) as books:
            books.registered_up_to[lease.source, catalog] = statement
