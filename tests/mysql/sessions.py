"""What sessions did on a real server, as the log tells it, a capture at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from lockstep.pipeline.binlog.stream.intake import dump_events
from lockstep.pipeline.binlog.stream.ring import TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.model.batch import PreparedTransaction, Xid
from lockstep.pipeline.values.position import Coordinates
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import Read, runs, server, transactions
from tests.pipeline.buffered import Decoders
from tests.twins.spool import MemorySpool

Change = tuple[str, str, tuple[Any, ...]]
"""A table, a kind of change, and the values of a row image."""


def after(stand: MySqlStand, database: str, *statements: str, **options: Any) -> list[Read]:
    """The transactions that a session's statements leave in the log."""
    start = head(stand)
    stand.execute(*statements, database=database)
    return transactions(server(stand), start, **options)


def changes_after(
    stand: MySqlStand, database: str, *statements: str, **options: Any
) -> list[Change]:
    """The row images that a session's statements leave in the log, of each transaction by
    table."""
    start = head(stand)
    stand.execute(*statements, database=database)
    return changes_since(stand, start, **options)


def changes_since(stand: MySqlStand, start: Coordinates, **options: Any) -> list[Change]:
    return [
        change
        for buffer, run in runs(server(stand), start, **options)
        for change in decoded(buffer, run)
    ]


def decoded(buffer: TransactionBuffer, group: TransactionGroup) -> Iterator[Change]:
    """The row images of a run, of each block by table map."""
    decoders = Decoders()
    for block in group.blocks:
        for found in decoders.read(buffer, block):
            for kind, row in found.rows():
                yield found.mapped.table.name, kind, tuple(row.values())


def inserted(found: list[Change], table: str = "t") -> list[Any]:
    """The first column of each row inserted into a table."""
    return [row[0] for name, kind, row in found if (name, kind) == (table, "insert")]


@dataclass(frozen=True, slots=True)
class Shop:
    """A database of some server."""

    stand: MySqlStand
    database: str

    def head(self) -> Coordinates:
        return head(self.stand)

    def do(self, *statements: str) -> None:
        """One session's statements."""
        self.stand.execute(*statements, database=self.database)

    def events(self, start: Coordinates) -> list[bytes]:
        dump = server(self.stand).dump(start)
        found = list(dump_events(dump))
        dump.close()
        return found

    def read(self, start: Coordinates) -> list[Read]:
        return transactions(server(self.stand), start)

    def changes(self, start: Coordinates, **options: Any) -> list[Change]:
        return changes_since(self.stand, start, **options)

    def source(self) -> Source:
        return Source(self.stand, self.head())


@dataclass(slots=True)
class Source:
    """A source that is captured a batch at a time, as a pipeline does it."""

    stand: MySqlStand
    at: Coordinates
    spool: MemorySpool = field(default_factory=MemorySpool)
    prepared: dict[Xid, PreparedTransaction] = field(default_factory=dict)
    batches: int = 0

    def capture(self, **options: Any) -> list[Change]:
        """Read up to the log's present end, and record what is prepared and not ended."""
        found: list[Change] = []
        self.batches += 1
        chosen: Mapping[str, Any] = {"spool": self.spool, "prepared": self.prepared, **options}
        buffer = None
        for buffer, run in runs(server(self.stand), self.at, **chosen):
            found += decoded(buffer, run)
        if buffer is not None:
            self.at = buffer.at
            for ended in buffer.prepared.ended:
                del self.prepared[ended.prepared.xid]
            for one in buffer.prepared.seal(self.batches, buffer.maps):
                self.prepared[one.xid] = one
        return found
