"""The transaction that is open, and the complete ones before it: the arrays in use.

Belongs here: everything done to the ring and its indexes outside the compiled loop.
Does not: when it is done (`rare_events`, `buffer`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from pipeline.binlog.arrays import registers
from pipeline.binlog.arrays.wire_format import WIRE
from pipeline.binlog.rows.maps import TableMaps
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream import stream
from pipeline.binlog.stream.control import Query
from pipeline.binlog.stream.intake import InputBytes
from pipeline.binlog.stream.ring import Block, Integers, Ring, TransactionGroup, packed
from pipeline.binlog.stream.rules import Phase
from pipeline.binlog.stream.text_buffer import BUFFER_BYTES, TextBuffer
from pipeline.binlog.stream.transaction_index import is_at_stop
from pipeline.binlog.transactions.identity import IDENTITY, Identity, members
from pipeline.binlog.transactions.limits import Limits, begin_counting, watch_end
from pipeline.binlog.transactions.savepoints import Place, Savepoints
from pipeline.binlog.transactions.spill import Spill
from pipeline.errors import DamagedEvent
from pipeline.gtid import GtidSet
from pipeline.ports.spool import Spool
from pipeline.position import Coordinates, LogFile
from pipeline.table import TableName


class Assembly:
    """Complete transactions first, then the open one. `state`: the `registers` of the loop."""

    def __init__(
        self,
        start: Coordinates,
        ring: Ring,
        *,
        wants: Callable[[TableName], bool],
        spool: Spool,
        limits: Limits,
        keeps: Callable[[TableName], bool] | None = None,
        text_bytes: int = BUFFER_BYTES,
    ) -> None:
        self.ring = ring
        self.maps = TableMaps(wants, keeps)
        self.files: list[LogFile] = [start.file]
        self.sources: list[str] = []
        self.input = InputBytes(np.empty(0, np.uint8), 0, 0, WIRE)
        self.state: Integers = np.zeros(registers.COUNT, np.int64)
        self.state[registers.CHECKSUM] = -1
        self.state[registers.SEQUENCE] = 1
        self.state[registers.OFFSET] = start.offset
        self.texts = TextBuffer.of(text_bytes)
        self._spool = spool
        self._spill: Spill | None = None
        self._coming: Iterator[Block] | None = None
        self._statements: list[tuple[int, Query]] = []
        self._savepoints = Savepoints()
        self.begin_counting(limits)

    # -- where it stands -----------------------------------------------------------

    @property
    def at(self) -> Coordinates:
        return Coordinates(
            self.files[self.state[registers.FILE]], int(self.state[registers.OFFSET])
        )

    @property
    def phase(self) -> Phase:
        return Phase(int(self.state[registers.PHASE]))

    @property
    def complete(self) -> int:
        """Transactions that may be handed out."""
        return int(self.state[registers.TRANSACTIONS])

    @property
    def complete_bytes(self) -> int:
        return int(self.state[registers.GET] - self.state[registers.ACK])

    @property
    def alone(self) -> bool:
        """Whether the newest complete transaction is a group of its own."""
        if self._coming is not None or (self.complete and self.state[registers.ALONE]):
            return True
        return any(n == self.complete - 1 for n, _ in self._statements)

    @property
    def full(self) -> bool:
        """Whether the index has no room for another transaction."""
        return self.complete + 1 >= len(self.ring.transactions)

    def move_to(self, at: Coordinates) -> None:
        """The log goes on there; another file's statements have table maps of their own."""
        if at.file != self.files[-1]:
            self.files.append(at.file)
            self.state[registers.FILE] = len(self.files) - 1
        self.state[registers.OFFSET] = at.offset
        watch_end(self.state, self._limits, self.files[-1])

    def begin_counting(self, limits: Limits) -> None:
        """From here on these limits hold."""
        self._limits = limits
        begin_counting(self.state, limits)
        watch_end(self.state, limits, self.files[-1])

    def stop_here(self) -> None:
        """Reading stops at the next end of a transaction."""
        self.state[registers.STOP_TRANSACTIONS] = 0

    @property
    def stops(self) -> bool:
        """Whether reading is to stop, given that it stands between transactions."""
        return is_at_stop(self.state)

    # -- the open transaction --------------------------------------------------------

    def begin(self, identity: Identity, server: int) -> None:
        """Open one whose identity Python read."""
        stream.begin(self.state, self.ring.transactions)
        one = self.ring.transactions[self.complete]
        for column, value in zip(IDENTITY, identity, strict=True):
            one[column] = value
        one[columns.SERVER] = server

    def open_is_in(self, gtids: GtidSet) -> bool:
        """Whether the transaction that is open is one of the set."""
        one = self.ring.transactions[self.complete : self.complete + 1]
        return bool(members(one, self.sources, gtids)[0])

    def advance(self) -> None:
        """Step over the event at hand, which Python took."""
        stream.advance(self.input.data, self.input.mode, self.state, self.ring.transactions)
        self.input.at = int(self.state[registers.AT])

    def enter(self) -> None:
        """Step over the event at hand in the input, but not yet in the log: what it holds
        is read first."""
        self.state[registers.AT] = self.input.at = int(self.state[registers.NEXT])
        if self.input.mode == WIRE:
            self.state[registers.SEQUENCE] += 1

    def leave(self, size: int) -> None:
        """What an event of so many bytes held is read: the log stands behind it."""
        self.state[registers.OFFSET] += size
        self.ring.transactions[self.complete, columns.LOG_BYTES] += size

    def complete_payload(self, size: int, crc32: int) -> None:
        """The newest transaction came out of a payload of so many bytes that ends here."""
        self.state[registers.OFFSET] += size
        one = self.ring.transactions[self.complete - 1]
        offset = int(self.state[registers.OFFSET])
        one[columns.END_OFFSET], one[columns.LAST_OFFSET] = offset, offset - size
        one[columns.LAST_SIZE], one[columns.LAST_CRC] = size, crc32
        one[columns.LOG_BYTES] += size
        self.state[registers.ALL_TRANSACTIONS] += 1
        self.state[registers.ALL_BYTES] += one[columns.LOG_BYTES]

    def keep(self, query: Query) -> None:
        """A statement that may change a structure is part of the open transaction."""
        self._statements.append((self.complete, query))

    def mark(self, name: str) -> None:
        """A savepoint; one of the same name moves here."""
        state = self.state
        blocks = self._spill.blocks if self._spill else 0
        events = int(state[registers.EVENTS] - state[registers.COMPLETE_EVENTS])
        texts = int(state[registers.TEXTS]) - self.texts.behind(state, self.complete)
        size = int(self.ring.transactions[self.complete, columns.TEXT_BYTES])
        place = Place(blocks, events, int(state[registers.PUT]), texts, size)
        self._savepoints.put(self._open, name, place)

    @property
    def _open(self) -> tuple[int, int]:
        """Which transaction is open: where it begins."""
        one = self.ring.transactions[self.complete]
        return int(one[columns.FILE]), int(one[columns.BEGIN_OFFSET])

    def drop_to(self, name: str) -> None:
        """Forget what came after the savepoint, savepoints too; DamagedEvent if there was
        none."""
        mark = self._savepoints.back_to(self._open, name)
        if mark is None:
            raise DamagedEvent(
                f"a transaction is rolled back to a savepoint {name!r} that it does not have, "
                f"at {self.at}",
                hint="nothing was recorded; look at that place with mysqlbinlog",
            )
        self._cut_texts(mark.texts, mark.text_bytes)
        complete = self.state[registers.COMPLETE_EVENTS]
        if self._spill is not None and mark.blocks < self._spill.blocks:
            self._spill.cut(mark.blocks, mark.events)
            self.state[registers.EVENTS] = complete
            self.state[registers.PUT] = self.state[registers.GET]
        else:
            self.state[registers.EVENTS] = complete + mark.events
            # Without events before it, the ring's sequence may have left a gap since.
            self.state[registers.PUT] = mark.put if mark.events else self.state[registers.GET]

    def drop_open(self) -> None:
        """Forget the open transaction's events, and its texts; it stays open."""
        self._cut_texts(0, 0)
        self.state[registers.EVENTS] = self.state[registers.COMPLETE_EVENTS]
        self.state[registers.PUT] = self.state[registers.GET]
        if self._spill is not None:
            self._spill.file.close()
        self._forget_open()

    def _cut_texts(self, texts: int, size: int) -> None:
        self.texts.cut(self.state, self.complete, texts)
        self.ring.transactions[self.complete, columns.TEXT_BYTES] = size

    def take_open(self) -> Block | Spill | None:
        """The open transaction's events, to be kept elsewhere; it stays open, without. Its
        texts stay: it is the transaction that the log has them in."""
        first, end = self.state[registers.COMPLETE_EVENTS], self.state[registers.EVENTS]
        block = packed(self.ring.block(first, end)) if end > first else None
        if self._spill is not None and block is not None:
            self._spill.add(block, self.maps)
        taken = self._spill or block
        self.state[registers.EVENTS] = first
        self.state[registers.PUT] = self.state[registers.GET]
        self._forget_open()
        return taken

    def _forget_open(self) -> None:
        self._spill = None
        self._savepoints.clear()
        self._statements = [kept for kept in self._statements if kept[0] < self.complete]
        self.state[registers.ALONE] = 0

    def spill_open(self) -> None:
        """Move the open transaction's events to a file; only when no other is complete."""
        if self._spill is None:
            self._spill = Spill(self._spool.scratch())
        if self.state[registers.EVENTS]:
            self._spill.add(self.ring.block(0, int(self.state[registers.EVENTS])), self.maps)
        state = self.state
        state[registers.EVENTS] = 0
        state[registers.GET] = state[registers.ACK] = state[registers.PUT]
        state[registers.ALONE] = 1

    def spill_event(self, data: Block) -> None:
        """Put one event, too large for the ring, behind what is in the file."""
        self.spill_open()
        assert self._spill is not None, "spill_open makes one"
        self._spill.add(data, self.maps)

    # -- complete transactions ---------------------------------------------------------

    def emit(self, timestamp: int, size: int, blocks: Iterator[Block] | None = None) -> None:
        """The open transaction is complete; its last event has so many bytes in the log.
        `blocks`: its rows, if they come from elsewhere."""
        self._coming = blocks
        stream.finish(self.state, self.ring.transactions, timestamp, size)

    def group(self) -> TransactionGroup:
        """Everything complete; its room is taken until `ack`."""
        count, events = self.complete, int(self.state[registers.COMPLETE_EVENTS])
        blocks = self._coming
        from_file = blocks is not None
        if self._spill is not None and self.state[registers.ALONE]:
            blocks, from_file = self._from_file(self._spill), True
        elif blocks is None:
            blocks = iter((self.ring.block(0, events),) if events else ())
        complete = tuple(kept for kept in self._statements if kept[0] < count)
        return TransactionGroup(
            self.ring.transactions[:count].copy(),
            self.files,
            self.sources,
            complete,
            blocks,
            self.texts.complete(self.state, count),
            from_file,
        )

    def _from_file(self, spill: Spill) -> Iterator[Block]:
        if self.state[registers.EVENTS]:
            spill.add(self.ring.block(0, int(self.state[registers.EVENTS])), self.maps)
        for block in spill.read():
            block.events[:, columns.TRANSACTION] = 0
            yield block
        spill.file.close()

    def drop_complete(self) -> None:
        """Nobody wants what is complete."""
        if self._spill is not None and self.state[registers.ALONE]:
            self._spill.file.close()
        self.ack()

    def ack(self) -> None:
        """The group handed out is done with: its room is free, the open one moves up."""
        state, ring = self.state, self.ring
        count, first = self.complete, int(state[registers.COMPLETE_EVENTS])
        end = int(state[registers.EVENTS])
        if state[registers.ALONE]:
            self._spill, self._coming = None, None
            state[registers.ALONE] = 0
        self._coming = None
        ring.events[: end - first] = ring.events[first:end]
        ring.events[: end - first, columns.TRANSACTION] -= count
        if count:
            ring.transactions[0] = ring.transactions[count]
            ring.transactions[0, columns.FIRST_EVENT] = 0
        self.texts.drop(state, count)
        self._statements = [(n - count, q) for n, q in self._statements if n >= count]
        state[registers.EVENTS] = end - first
        state[registers.COMPLETE_EVENTS] = state[registers.TRANSACTIONS] = 0
        state[registers.ACK] = state[registers.GET]
