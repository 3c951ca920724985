"""The ledger in memory: `pipeline.ports.Ledger`, its subjects over `MemoryBooks`."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime

from tests.twins.batches import MemoryBatches
from tests.twins.books import MemoryBooks
from tests.twins.captures import MemoryCaptures
from tests.twins.consumers import MemoryConsumers
from tests.twins.decisions import MemoryDecisions
from tests.twins.forgotten import MemoryForgotten
from tests.twins.lake_books import MemoryLakeBooks
from tests.twins.leases import MemoryLeases
from tests.twins.loads import MemoryLoads
from tests.twins.orders import MemoryOrders
from tests.twins.other_runs import MemoryOtherRuns
from tests.twins.proofs import MemoryProofs
from tests.twins.registrations import MemoryRegistrations
from tests.twins.revisions import MemoryRevisions
from tests.twins.schemas import MemorySchemas
from tests.twins.spans import MemorySpans
from tests.twins.spark_clients import MemorySparkClients
from tests.twins.tables import MemoryTables
from tests.twins.upkept import MemoryUpkept
from tests.twins.writes import MemoryWrites


class MemoryLedger(
    MemoryLeases,
    MemoryDecisions,
    MemoryBatches,
    MemoryCaptures,
    MemorySchemas,
    MemoryTables,
    MemoryOrders,
    MemoryLoads,
    MemoryWrites,
    MemoryLakeBooks,
    MemoryProofs,
    MemoryOtherRuns,
    MemoryRevisions,
    MemorySpans,
    MemoryUpkept,
    MemorySparkClients,
    MemoryForgotten,
    MemoryRegistrations,
):
    """A ledger on books that several of them may share, as processes share a database."""

    def __init__(self, clock: Callable[[], datetime], books: MemoryBooks | None = None) -> None:
        super().__init__(clock, books)
        self.consumers = MemoryConsumers(clock, self.books)
