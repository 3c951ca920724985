"""Prepared XA transactions, whose row events wait for their XA COMMIT.

An XID is open from its prepare to its commit or rollback, after which it may be used again.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.rows.maps import TableMaps
from lockstep.pipeline.binlog.stream.ring import MAP, OFFSET, TRANSACTION, Block
from lockstep.pipeline.binlog.transactions.spill import Spill, read_prepared, tables_in
from lockstep.pipeline.model.batch import Ended, Prepared, Xid
from lockstep.pipeline.ports.segments import Spool
from lockstep.pipeline.values.errors import PreparedElsewhere
from lockstep.pipeline.values.places import start_at
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

MEMORY_BYTES: Final = 32 << 20
"""Total size of prepared rows up to which they are kept in memory."""


@dataclass(frozen=True, slots=True)
class _Waiting:
    """A transaction prepared in this reading; its row events are in memory or in a scratch file."""

    at: Coordinates
    events: Block | Spill | None

    @property
    def bytes(self) -> int:
        return len(self.events.data) if isinstance(self.events, Block) else 0


@dataclass(frozen=True, slots=True)
class CommittedRows:
    """The tables of a prepared transaction that was committed, where it was prepared, and the
    `batch` that read its prepare; None for the current one."""

    tables: frozenset[TableName]
    prepared: Coordinates
    batch: int | None


class PreparedTransactions:
    """The open XA transactions of one source. `recorded`: those of earlier batches."""

    def __init__(
        self, source: str, spool: Spool, recorded: Mapping[Xid, Prepared] | None = None
    ) -> None:
        self._source = source
        self._spool = spool
        self._recorded = dict(recorded or {})
        self._waiting: dict[Xid, _Waiting] = {}
        self._bytes = 0
        self.ended: list[Ended] = []
        self.before_start = False
        """The log before the start is being read: earlier batches recorded its transactions."""
        self.recorded_before = False
        """An earlier batch recorded the current transaction."""
        self.statements_only = False
        """The reading wants statements only, so prepared rows do not matter."""
        self.lenient = False
        """Transactions are left out, instead of refused, if their prepare was not read."""
        self.unread: list[tuple[Xid, Coordinates]] = []
        """The transactions that were left out, each with the place of its XA COMMIT."""
        self.seen: set[Xid] = set()
        """All XIDs whose prepare was read."""
        self._committed: CommittedRows | None = None

    @property
    def waiting(self) -> bool:
        """True if a transaction is open whose prepare was read."""
        return bool(self._waiting)

    @property
    def _ignores_rows(self) -> bool:
        """True if prepared rows are neither kept nor missed."""
        return self.before_start or self.recorded_before or self.statements_only

    def keep(
        self, xid: Xid, at: Coordinates, events: Block | Spill | None, maps: TableMaps
    ) -> None:
        """Keep the rows of a prepared transaction, whose last event is at `at`; a block must be
        packed. An open one of the same XID has ended without being logged and is dropped."""
        self.seen.add(xid)
        self.forget(xid)
        if self._ignores_rows:
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
        """Return the row events of the transaction that an XA COMMIT at `at` commits."""
        if self._ignores_rows:
            return iter(())
        waiting = self._waiting.pop(xid, None)
        if waiting is not None:
            self._bytes -= waiting.bytes
            self._committed = CommittedRows(_tables(waiting, maps), waiting.at, None)
            return _at_commit(_blocks(waiting), at)
        prepared = self._end(xid, committed=True)
        if prepared is None and self.lenient:
            self.unread.append((xid, at))
            return iter(())
        if prepared is None:
            raise PreparedElsewhere(
                f"the XA transaction {xid} is committed at {at}, but its prepare was never read",
                hint="it was not recorded; it was prepared before this source's start: start "
                "before that prepare, or continue after the commit with "
                f"{start_at('PLACE', self._source)}, and let `lockstep verify --repair` find what "
                "it changed",
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
        """Return whose rows the newest group has, if it commits a prepared transaction."""
        committed, self._committed = self._committed, None
        return committed

    def forget(self, xid: Xid) -> None:
        """Drop a transaction that was rolled back; do nothing if its prepare was never read."""
        waiting = self._waiting.pop(xid, None)
        if waiting is not None:
            self._bytes -= waiting.bytes
            _release(waiting.events)
        elif not self._ignores_rows:
            self._end(xid, committed=False)

    def seal(self, batch: int, maps: TableMaps) -> tuple[Prepared, ...]:
        """Make the rows of open transactions durable, for the ledger to record with the batch."""
        sealed = []
        for number, (xid, waiting) in enumerate(self._waiting.items(), start=1):
            file = None
            if waiting.events is not None:
                spill = Spill(self._spool.prepared(self._source, batch, number))
                for block in _blocks(waiting):
                    spill.add(block, maps)
                file = self._spool.seal(spill.file)
            sealed.append(Prepared(xid, batch, str(waiting.at), file))
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
    return frozenset(maps.maps[number].table for number in numbers)


def _blocks(waiting: _Waiting) -> Iterator[Block]:
    if isinstance(waiting.events, Block):
        yield waiting.events
    elif waiting.events is not None:
        yield from waiting.events.read()
        waiting.events.file.close()


def _at_commit(blocks: Iterator[Block], at: Coordinates) -> Iterator[Block]:
    """Yield the blocks with the commit's offset, in the only transaction of their group."""
    for block in blocks:
        block.events[:, OFFSET] = at.offset
        block.events[:, TRANSACTION] = 0
        yield block
