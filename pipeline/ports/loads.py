"""Loads of tables that are read from the source, as the ledger keeps them.

Belongs here: ordering a load, its chunks, giving it up. Does not: the batches that capture the
log from its low on and that join it, which are told with a capture (`CaptureRecord.followed`,
`CaptureRecord.joined`).
"""

from __future__ import annotations

from typing import Protocol

from pipeline.decisions import Lease
from pipeline.load import ChunkRows, Load, LoadBasis
from pipeline.snapshot.bounds import Range
from pipeline.table import TableName


class Loads(Protocol):
    """A table has one load at a time that is not joined and not void."""

    def order_load(self, lease: Lease, table: TableName, *, author: str, reason: str) -> Load:
        """Have a table read from the source, also one that nothing was captured of. An open load
        of it that nothing was read for is the one; one that is being read is refused."""

    def open_loads(self, source: str) -> list[Load]:
        """Loads that no live batch joined and that are not void, oldest first."""

    def begin_load(self, lease: Lease, load: int, reading: LoadBasis) -> None:
        """From now on its chunks may be planned."""

    def plan_chunk(self, lease: Lease, load: int, number: int, range: Range) -> None:
        """A chunk that begins where the one before it ends."""

    def record_chunk(self, lease: Lease, load: int, number: int, read: ChunkRows) -> None:
        """The chunk was read, and its files are durable. Once."""

    def void_load(self, lease: Lease, load: int, why: str) -> None:
        """What was read for it counts no more; another one may be ordered."""
