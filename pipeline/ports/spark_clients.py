"""Which processes may have left statements at a server of Spark's.

Belongs here: the port to them. Does not: ending the statements (`ports.mirrors`), when that is done
(`pipeline.runs.merging.left_statements`).
"""

from __future__ import annotations

from typing import Protocol
from uuid import UUID

from pipeline.decisions import Lease


class SparkClients(Protocol):
    """Part of `Ledger`; a client is `Mirrors.client` of the process that noted it."""

    def spark_clients(self, source: str) -> list[UUID]:
        """Those that were noted and not forgotten, in the order of their numbers."""

    def note_spark_client(self, lease: Lease, client: UUID) -> None:
        """From here on it may have statements there. Repeating it changes nothing."""

    def forget_spark_client(self, lease: Lease, client: UUID) -> None:
        """It has none any more. One that is not noted is no error."""
