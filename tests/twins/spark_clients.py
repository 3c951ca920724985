"""Processes that may have statements at Spark's server, in memory:
`pipeline.ports.spark_clients`."""

from __future__ import annotations

from uuid import UUID

from pipeline.decisions import Lease
from tests.twins.books import MemorySubject


class MemorySparkClients(MemorySubject):
    def spark_clients(self, source: str) -> list[UUID]:
        return sorted(client for of, client in self.books.spark_clients if of == source)

    def note_spark_client(self, lease: Lease, client: UUID) -> None:
        with self._step(lease) as books:
            books.spark_clients.setdefault((lease.source, client), lease.token)

    def forget_spark_client(self, lease: Lease, client: UUID) -> None:
        with self._step(lease) as books:
            books.spark_clients.pop((lease.source, client), None)
