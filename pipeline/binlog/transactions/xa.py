"""Prepared XA transactions: row events that wait for their XA COMMIT.

An XID is open from its prepare to its commit or rollback and may be used again then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeline.batch import Ended, Prepared, Xid
from pipeline.binlog.rows.maps import TableMaps
from pipeline.binlog.stream.ring import MAP, OFFSET, TRANSACTION, Block
from pipeline.binlog.transactions.spill import Spill, read_prepared, tables_in
from pipeline.errors import PreparedElsewhere
from pipeline.ports.spool import Spool
from pipeline.position import Coordinates
from pipeline.table import TableName

MEMORY_BYTES: Final = 32 << 20
"""Prepared rows are kept in memory up to this size, all together."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """Prepared in this capture: its events in memory or in a scratch file, or none."""

    at: Coordinates
    events: Block | Spill | None

    @property
    def bytes(self) -> int:
        return len(self.events.data) if isinstance(self.events, Block) else 0


@dataclass(frozen=True, slots=True)
class CommittedRows:
    """The tables of a prepared transaction that is committed, and where it was prepared: in
    `batch`, None for the one at hand."""

    tables: frozenset[TableName]
    prepared: Coordinates
    batch: int | None


class PreparedTransactions:
    """Open XA transactions of one source. `recorded`: those of earlier batches."""

    def __init__(
        self, source: str, spool: Spool, recorded: Mapping[Xid, Prepared] | None = None
    ) -> None:
        self._source = source
        self._spool = spool
        self._recorded = dict(recorded or {})
        self._waiting: dict[Xid, _Waiting] = {}
        self._bytes = 0
        self.ended: list[Ended] = []
        self.passing = False
        """What is read lies before the start: earlier batches recorded what became of it."""
        self.again = False
        """The transaction at hand was read before, and what became of it recorded."""
        self.rowless = False
        """No rows are wanted, statements alone: what was prepared, and where, does not matter."""
        self.seen: set[Xid] = set()
        """All that were prepared where this looked."""
        self._committed: CommittedRows | None = None

    @property
    def _known(self) -> bool:
        return self.passing or self.again or self.rowless

    def keep(
        self, xid: Xid, at: Coordinates, events: Block | Spill | None, maps: TableMaps
    ) -> None:
        """The transaction is prepared, its last event at `at`; a block must be packed. One
        of the same XID was ended by a session that wrote no log."""
        self.seen.add(xid)
        self.forget(xid)
        if self._known:
            _release(events)
            return
        if isinstance(events, Block) and self._bytes + len(events.data) > MEMORY_BYTES:
            spill = Spill(self._spool.scratch())
            spill.add(events, maps)
            events = spill
        waiting = _Waiting(at, events)
        self._bytes += waiting.bytes
        self._waiting[xid] = waiting

    def commit(self, xid: Xid, at: Coordinates, maps: TableMaps) -> Iterator[Block]:
        """Its row events, to come out at `at`, where its XA COMMIT stands."""
        if self._known:
            return iter(())
        waiting = self._waiting.pop(xid, None)
        if waiting is not None:
            self._bytes -= waiting.bytes
            self._committed = CommittedRows(_tables(waiting, maps), waiting.at, None)
            return _at_commit(_blocks(waiting), at)
        prepared = self._end(xid, committed=True)
        if prepared is None:
            raise PreparedElsewhere(
                f"the XA transaction {xid} is committed at {at}, but its prepare was never read",
                hint="it was not recorded; it was prepared before this source's start: start "
                "before that prepare, or go on behind the commit with `lockstep start-at PLACE "
                "--reason …`, and have `lockstep verify --repair` find what it changed",
                at=str(at),
            )
        if prepared.file is None:
            return iter(())
        file = self._spool.open(self._source, prepared.file)
        tables = frozenset(tables_in(file, prepared.file.size))
        place = Coordinates.parse(prepared.position)
        self._committed = CommittedRows(tables, place, prepared.batch)
        return _at_commit(read_prepared(file, prepared.file.size, maps), at)

    def take_committed(self) -> CommittedRows | None:
        """Whose rows the newest group has, if they are of a prepared transaction."""
        committed, self._committed = self._committed, None
        return committed

    def forget(self, xid: Xid) -> None:
        """It was rolled back; one never read changes nothing."""
        waiting = self._waiting.pop(xid, None)
        if waiting is not None:
            self._bytes -= waiting.bytes
            _release(waiting.events)
        elif not self._known:
            self._end(xid, committed=False)

    def seal(self, batch: int, maps: TableMaps) -> tuple[Prepared, ...]:
        """Make what is still open durable, for the ledger to record with the batch."""
        sealed = []
        for number, (xid, waiting) in enumerate(self._waiting.items(), start=1):
            kept = None
            if waiting.events is not None:
                spill = Spill(self._spool.prepared(self._source, batch, number))
                for block in _blocks(waiting):
                    spill.add(block, maps)
                kept = self._spool.seal(spill.file)
            sealed.append(Prepared(xid, batch, str(waiting.at), kept))
        return tuple(sealed)

    def _end(self, xid: Xid, *, committed: bool) -> Prepared | None:
        prepared = self._recorded.pop(xid, None)
        if prepared is not None:
            self.ended.append(Ended(prepared, committed))
        return prepared


def _release(events: Block | Spill | None) -> None:
    if isinstance(events, Spill):
        events.file.close()


def _tables(waiting: _Waiting, maps: TableMaps) -> frozenset[TableName]:
    match waiting.events:
        case Block(_, events):
            numbers = set(np.unique(events[:, MAP]).tolist())
        case Spill():
            numbers = waiting.events.maps
        case None:
            numbers = set()
    return frozenset(maps.known[number].table for number in numbers)


def _blocks(waiting: _Waiting) -> Iterator[Block]:
    if isinstance(waiting.events, Block):
        yield waiting.events
    elif waiting.events is not None:
        yield from waiting.events.read()
        waiting.events.file.close()


def _at_commit(blocks: Iterator[Block], at: Coordinates) -> Iterator[Block]:
    """Rows are found where the commit is, and belong to the only transaction of their group."""
    for block in blocks:
        block.events[:, OFFSET] = at.offset
        block.events[:, TRANSACTION] = 0
        yield block
