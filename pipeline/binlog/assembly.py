"""The transaction that is open, and the complete ones before it: the arrays in use.

Belongs here: everything done to the ring and its indexes outside the compiled loop.
Does not: when it is done (`events`, `buffer`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeline.binlog import ring as columns
from pipeline.binlog import stream
from pipeline.binlog.control import Query
from pipeline.binlog.intake import Input
from pipeline.binlog.maps import TableMaps
from pipeline.binlog.ring import Block, Integers, Ring, Run, packed
from pipeline.binlog.rules import Phase
from pipeline.binlog.spill import Spill
from pipeline.binlog.stream import WIRE
from pipeline.errors import DamagedEvent
from pipeline.ports import Spool
from pipeline.position import Coordinates, LogFile
from pipeline.table import TableName

_NEVER: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Limits:
    """Where reading stops: at the first place between transactions at or behind `end`, or
    after so many transactions or bytes of the log; None means without limit."""

    end: Coordinates | None = None
    transactions: int | None = None
    log_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class _Mark:
    """A place inside the open transaction: so many blocks in its file, so many events in
    the ring's index, and the ring's sequence there."""

    blocks: int
    events: int
    put: int


class Assembly:
    """Complete transactions first, then the open one. `state` is that of `stream`."""

    def __init__(
        self,
        start: Coordinates,
        ring: Ring,
        *,
        wants: Callable[[TableName], bool],
        spool: Spool,
        limits: Limits,
    ) -> None:
        self.ring = ring
        self.maps = TableMaps(wants)
        self.files: list[LogFile] = [start.file]
        self.sources: list[str] = []
        self.input = Input(np.empty(0, np.uint8), 0, 0, WIRE)
        self.state: Integers = np.zeros(stream.STATE_SIZE, np.int64)
        self.state[stream.CHECKSUM] = -1
        self.state[stream.SEQUENCE] = 1
        self.state[stream.OFFSET] = start.offset
        self._spool = spool
        self._spill: Spill | None = None
        self._coming: Iterator[Block] | None = None
        self._statements: list[tuple[int, Query]] = []
        self._marks: dict[str, _Mark] = {}
        self._marked = (-1, -1)
        self.begin_counting(limits)

    # -- where it stands -----------------------------------------------------------

    @property
    def at(self) -> Coordinates:
        return Coordinates(self.files[self.state[stream.FILE]], int(self.state[stream.OFFSET]))

    @property
    def phase(self) -> Phase:
        return Phase(int(self.state[stream.PHASE]))

    @property
    def complete(self) -> int:
        """Transactions that may be handed out."""
        return int(self.state[stream.TRANSACTIONS])

    @property
    def complete_bytes(self) -> int:
        return int(self.state[stream.GET] - self.state[stream.ACK])

    @property
    def alone(self) -> bool:
        """Whether the newest complete transaction is a run of its own."""
        if self._coming is not None or (self.complete and self.state[stream.ALONE]):
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
            self.state[stream.FILE] = len(self.files) - 1
        self.state[stream.OFFSET] = at.offset
        self._watch_end()

    def begin_counting(self, limits: Limits) -> None:
        """From here on these limits hold."""
        self._limits = limits
        self.state[stream.ALL_TRANSACTIONS] = self.state[stream.ALL_BYTES] = 0
        self.state[stream.STOP_TRANSACTIONS] = limits.transactions or _NEVER
        self.state[stream.STOP_BYTES] = limits.log_bytes or _NEVER
        self._watch_end()

    def _watch_end(self) -> None:
        end = self._limits.end
        here = self.files[-1].number
        if end is None or here < end.file.number:
            self.state[stream.STOP_OFFSET] = _NEVER
        else:
            self.state[stream.STOP_OFFSET] = end.offset if here == end.file.number else 0

    def stop_here(self) -> None:
        """Reading stops at the next end of a transaction."""
        self.state[stream.STOP_TRANSACTIONS] = 0

    @property
    def stops(self) -> bool:
        """Whether reading is to stop, given that it stands between transactions."""
        state = self.state
        return bool(
            state[stream.OFFSET] >= state[stream.STOP_OFFSET]
            or state[stream.ALL_TRANSACTIONS] >= state[stream.STOP_TRANSACTIONS]
            or state[stream.ALL_BYTES] >= state[stream.STOP_BYTES]
        )

    # -- the open transaction --------------------------------------------------------

    def begin(self, kind: int, high: int, low: int, number: int, committed_at: int) -> None:
        """Open one whose identity Python read; the columns are those of the index."""
        stream.begin(self.state, self.ring.transactions)
        one = self.ring.transactions[self.complete]
        one[columns.GTID_KIND] = kind
        one[columns.GTID_HIGH] = high
        one[columns.GTID_LOW] = low
        one[columns.GTID_NUMBER] = number
        one[columns.COMMITTED_AT] = committed_at

    def tagged(self, source: str) -> int:
        """The number of a tagged GTID's `uuid:tag` in `sources`."""
        if source not in self.sources:
            self.sources.append(source)
        return self.sources.index(source)

    def advance(self) -> None:
        """Step over the event at hand, which Python took."""
        stream.advance(self.input.data, self.input.mode, self.state, self.ring.transactions)
        self.input.at = int(self.state[stream.AT])

    def enter(self) -> None:
        """Step over the event at hand in the input, but not yet in the log: what it holds
        is read first."""
        self.state[stream.AT] = self.input.at = int(self.state[stream.NEXT])
        if self.input.mode == WIRE:
            self.state[stream.SEQUENCE] += 1

    def leave(self, size: int) -> None:
        """What an event of so many bytes held is read: the log stands behind it."""
        self.state[stream.OFFSET] += size
        self.ring.transactions[self.complete, columns.LOG_BYTES] += size

    def complete_payload(self, size: int, crc32: int) -> None:
        """The newest transaction came out of a payload of so many bytes that ends here."""
        self.state[stream.OFFSET] += size
        one = self.ring.transactions[self.complete - 1]
        offset = int(self.state[stream.OFFSET])
        one[columns.END_OFFSET], one[columns.LAST_OFFSET] = offset, offset - size
        one[columns.LAST_SIZE], one[columns.LAST_CRC] = size, crc32
        one[columns.LOG_BYTES] += size
        self.state[stream.ALL_TRANSACTIONS] += 1
        self.state[stream.ALL_BYTES] += one[columns.LOG_BYTES]

    def keep(self, query: Query) -> None:
        """A statement that may change a structure is part of the open transaction."""
        self._statements.append((self.complete, query))

    def mark(self, name: str) -> None:
        """A savepoint; one of the same name moves here."""
        state = self.state
        blocks = self._spill.blocks if self._spill else 0
        events = int(state[stream.EVENTS] - state[stream.COMPLETE_EVENTS])
        marks = self._own_marks()
        # The order of the dictionary is that of the places.
        marks.pop(name, None)
        marks[name] = _Mark(blocks, events, int(state[stream.PUT]))

    def _own_marks(self) -> dict[str, _Mark]:
        """The savepoints of the open transaction; those of the one before are forgotten."""
        one = self.ring.transactions[self.complete]
        begin = int(one[columns.FILE]), int(one[columns.BEGIN_OFFSET])
        if begin != self._marked:
            self._marked = begin
            self._marks.clear()
        return self._marks

    def drop_to(self, name: str) -> None:
        """Forget what came after the savepoint, savepoints too; DamagedEvent if there was
        none."""
        marks = self._own_marks()
        mark = marks.get(name)
        if mark is None:
            raise DamagedEvent(
                f"a transaction is rolled back to a savepoint {name!r} that it does not have, "
                f"at {self.at}",
                hint="nothing was recorded; look at that place with mysqlbinlog",
            )
        while next(reversed(marks)) != name:
            marks.popitem()
        complete = self.state[stream.COMPLETE_EVENTS]
        if self._spill is not None and mark.blocks < self._spill.blocks:
            self._spill.cut(mark.blocks, mark.events)
            self.state[stream.EVENTS] = complete
            self.state[stream.PUT] = self.state[stream.GET]
        else:
            self.state[stream.EVENTS] = complete + mark.events
            # Without events before it, the ring's sequence may have left a gap since.
            self.state[stream.PUT] = mark.put if mark.events else self.state[stream.GET]

    def drop_open(self) -> None:
        """Forget the open transaction's events; it stays open."""
        self.state[stream.EVENTS] = self.state[stream.COMPLETE_EVENTS]
        self.state[stream.PUT] = self.state[stream.GET]
        if self._spill is not None:
            self._spill.file.close()
        self._forget_open()

    def take_open(self) -> Block | Spill | None:
        """The open transaction's events, to be kept elsewhere; it stays open, without."""
        first, end = self.state[stream.COMPLETE_EVENTS], self.state[stream.EVENTS]
        block = packed(self.ring.block(first, end)) if end > first else None
        if self._spill is not None and block is not None:
            self._spill.add(block, self.maps)
        taken = self._spill or block
        self.state[stream.EVENTS] = first
        self.state[stream.PUT] = self.state[stream.GET]
        self._forget_open()
        return taken

    def _forget_open(self) -> None:
        self._spill = None
        self._marks.clear()
        self._statements = [kept for kept in self._statements if kept[0] < self.complete]
        self.state[stream.ALONE] = 0

    def spill_open(self) -> None:
        """Move the open transaction's events to a file; only when no other is complete."""
        if self._spill is None:
            self._spill = Spill(self._spool.scratch())
        if self.state[stream.EVENTS]:
            self._spill.add(self.ring.block(0, int(self.state[stream.EVENTS])), self.maps)
        state = self.state
        state[stream.EVENTS] = 0
        state[stream.GET] = state[stream.ACK] = state[stream.PUT]
        state[stream.ALONE] = 1

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

    def run(self) -> Run:
        """Everything complete; its room is taken until `ack`."""
        count, events = self.complete, int(self.state[stream.COMPLETE_EVENTS])
        blocks = self._coming
        from_file = blocks is not None
        if self._spill is not None and self.state[stream.ALONE]:
            blocks, from_file = self._from_file(self._spill), True
        elif blocks is None:
            blocks = iter((self.ring.block(0, events),) if events else ())
        complete = tuple(kept for kept in self._statements if kept[0] < count)
        return Run(
            self.ring.transactions[:count].copy(),
            self.files,
            self.sources,
            complete,
            blocks,
            from_file,
        )

    def _from_file(self, spill: Spill) -> Iterator[Block]:
        if self.state[stream.EVENTS]:
            spill.add(self.ring.block(0, int(self.state[stream.EVENTS])), self.maps)
        for block in spill.read():
            block.events[:, columns.TRANSACTION] = 0
            yield block
        spill.file.close()

    def drop_complete(self) -> None:
        """Nobody wants what is complete."""
        if self._spill is not None and self.state[stream.ALONE]:
            self._spill.file.close()
        self.ack()

    def ack(self) -> None:
        """The run handed out is done with: its room is free, the open one moves up."""
        state, ring = self.state, self.ring
        count, first = self.complete, int(state[stream.COMPLETE_EVENTS])
        end = int(state[stream.EVENTS])
        if state[stream.ALONE]:
            self._spill, self._coming = None, None
            state[stream.ALONE] = 0
        self._coming = None
        ring.events[: end - first] = ring.events[first:end]
        ring.events[: end - first, columns.TRANSACTION] -= count
        if count:
            ring.transactions[0] = ring.transactions[count]
            ring.transactions[0, columns.FIRST_EVENT] = 0
        self._statements = [(n - count, q) for n, q in self._statements if n >= count]
        state[stream.EVENTS] = end - first
        state[stream.COMPLETE_EVENTS] = state[stream.TRANSACTIONS] = 0
        state[stream.ACK] = state[stream.GET]
