"""Processes that may have statements at Spark's server, on Postgres:
`pipeline.ports.spark_clients`."""

from __future__ import annotations

from uuid import UUID

from pipeline.decisions import Lease
from resources.postgres.session import Books


class PostgresSparkClients(Books):
    def spark_clients(self, source: str) -> list[UUID]:
        return [UUID(row["client"]) for row in self._all("spark_clients", source=source)]

    def note_spark_client(self, lease: Lease, client: UUID) -> None:
        with self._step(lease) as step:
            values = {"source": lease.source, "client": str(client), "token": lease.token}
            step.run("note_spark_client", **values)

    def forget_spark_client(self, lease: Lease, client: UUID) -> None:
        with self._step(lease) as step:
            step.run("forget_spark_client", source=lease.source, client=str(client))
