"""The transactions that are complete: the head of the arrays, until they are handed out.

Belongs here: how many there are, handing them out as one group, and freeing their room. Does
not: when that is (`buffer`), what leads to an end (`rare_events`, and the compiled loop, which
completes most of them by itself).
"""

from __future__ import annotations

from collections.abc import Iterator

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.framing import Event
from pipeline.binlog.stream.ring import Block, TransactionGroup
from pipeline.binlog.transactions.log_place import LogPlace
from pipeline.binlog.transactions.loop import Loop
from pipeline.binlog.transactions.open_transaction import OpenTransaction
from pipeline.binlog.transactions.statements import Statements


class CompleteTransactions:
    """Before the open one, in the order of the log."""

    def __init__(
        self, loop: Loop, log: LogPlace, open_: OpenTransaction, statements: Statements
    ) -> None:
        self._loop = loop
        self._registers = loop.registers
        self._log = log
        self._open = open_
        self._statements = statements
        self._coming: Iterator[Block] | None = None

    @property
    def count(self) -> int:
        return self._registers.transactions

    @property
    def bytes(self) -> int:
        """Of their row events in the ring."""
        return self._registers.get - self._registers.ack

    @property
    def full(self) -> bool:
        """Whether the index has no room for another transaction."""
        return self.count + 1 >= len(self._loop.ring.transactions)

    @property
    def alone(self) -> bool:
        """Whether the newest one is a group of its own."""
        if self._coming is not None or (self.count and self._registers.alone):
            return True
        return self._statements.has(self.count - 1)

    # -- one more ----------------------------------------------------------------------

    def add(self, last: Event, size: int, blocks: Iterator[Block] | None = None) -> None:
        """The open one is complete; its last event has so many bytes in the log. `blocks`: its
        rows, if they come from elsewhere."""
        self._coming = blocks
        self._loop.finish(last.timestamp, size, last.crc32)

    def end_payload(self, payload: Event) -> None:
        """The newest came out of a payload, all of which is read."""
        size = payload.size
        self._log.leave(size)
        offset = self._registers.offset
        row = self._loop.ring.transactions[self.count - 1]
        row[columns.END_OFFSET], row[columns.LAST_OFFSET] = offset, offset - size
        row[columns.LAST_SIZE], row[columns.LAST_CRC] = size, payload.crc32
        row[columns.LOG_BYTES] += size
        self._registers.count_one(int(row[columns.LOG_BYTES]))

    # -- all of them -------------------------------------------------------------------

    def group(self) -> TransactionGroup:
        """All of them; their room is taken until `free`."""
        count, events = self.count, self._registers.complete_events
        blocks, from_file = self._open.completed(), True
        if blocks is None and (blocks := self._coming) is None:
            blocks, from_file = iter((self._loop.ring.block(0, events),) if events else ()), False
        return TransactionGroup(
            self._loop.ring.transactions[:count].copy(),
            self._log.files,
            self._open.sources,
            self._statements.complete(count),
            map(self._loop.maps.wanted, blocks),
            self._loop.texts.complete(self._registers, count),
            from_file,
            self._statements.elsewhere(count),
        )

    def drop(self) -> None:
        """Nobody wants them."""
        self._open.discard_completed()
        self.free()

    def free(self) -> None:
        """They are done with: their room is free, the open one moves up."""
        registers, ring = self._registers, self._loop.ring
        count, first, end = self.count, registers.complete_events, registers.events
        self._open.release_completed()
        self._coming = None
        ring.events[: end - first] = ring.events[first:end]
        ring.events[: end - first, columns.TRANSACTION] -= count
        if count:
            ring.transactions[0] = ring.transactions[count]
            ring.transactions[0, columns.FIRST_EVENT] = 0
        self._loop.texts.drop(registers, count)
        self._statements.drop(count)
        registers.free_complete()
