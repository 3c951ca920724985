"""Row events that wait: in files, those of transactions larger than the ring; in files or in
memory, those of prepared XA transactions until their XA COMMIT.

A file is a sequence of blocks. A block has the numbers of its table maps, events and bytes (3 x 8
bytes, little-endian); for each table map its number, its length (8 bytes each) and the whole
event; the events' index (EVENT_COLUMNS x 8 bytes each); their bytes. It includes the table maps
because a later run, which has not read them, may read the rows of a prepared transaction.

An XID is open from its prepare to its commit or rollback, after which it may be used again.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Final, Generic, NoReturn, TypeVar

import numpy as np

from lockstep.pipeline.binlog.rows.maps import TableMaps
from lockstep.pipeline.binlog.rows.table_map import TableMap, read_table_map
from lockstep.pipeline.binlog.stream.ring import (
    AT,
    EVENT_COLUMNS,
    MAP,
    OFFSET,
    SIZE,
    TRANSACTION,
    Block,
    packed,
)
from lockstep.pipeline.model.batch import Ended, Prepared, WaitingFile, Xid
from lockstep.pipeline.ports.segments import EventFile, Spool
from lockstep.pipeline.values.errors import PreparedElsewhere, SegmentsLost
from lockstep.pipeline.values.places import start_at
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

_HEAD = struct.Struct("<QQQ")
_MAP_HEAD = struct.Struct("<QQ")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Place:
    """The offset of a block, and how many of its events are still part of the transaction."""

    at: int
    events: int


class Spill:
    """One transaction's row events on their way through a file."""

    def __init__(self, file: EventFile) -> None:
        self.file = file
        self._places: list[_Place] = []
        self._end = 0
        self.maps: set[int] = set()
        """Numbers of the table maps of all events that were added."""

    @property
    def blocks(self) -> int:
        return len(self._places)

    def add(self, block: Block, maps: TableMaps) -> None:
        """Append the events of a block in three writes: head with table maps, index, bytes."""
        gapless = packed(block)
        used = [(n, maps.maps[n].raw) for n in np.unique(gapless.events[:, MAP]).tolist()]
        self.maps.update(number for number, _ in used)
        head = [_HEAD.pack(len(used), len(gapless.events), len(gapless.data))]
        head += [_MAP_HEAD.pack(number, len(raw)) + raw for number, raw in used]
        self._places.append(_Place(self._end, len(gapless.events)))
        for piece in (b"".join(head), gapless.events.tobytes(), gapless.data.data):
            self.file.write(piece)
            self._end += len(piece)

    def cut(self, blocks: int, events: int) -> None:
        """Keep only the first `blocks` blocks, and the first `events` events of the next one."""
        if blocks < len(self._places):
            self._places[blocks:] = [replace(self._places[blocks], events=events)]

    def read(self) -> Iterator[Block]:
        """Yield the blocks as they were added, one in memory at a time."""
        for place in self._places:
            _, block = read_block(self.file, place.at)
            yield Block(block.data, block.events[: place.events])


def read_prepared(file: EventFile, size: int, maps: TableMaps) -> Iterator[Block]:
    """Yield the blocks of a file that an earlier run may have written, with table maps numbered as
    in `maps`; close the file after the last. The writer's version is that of the server that
    commits the rows: no server can be upgraded while transactions are prepared."""
    at = 0
    while at < size:
        table_maps, block = read_block(file, at)
        numbers = {n: maps.add(replace(table, writer=maps.writer)) for n, table in table_maps}
        events = block.events
        events[:, MAP] = [numbers[n] for n in events[:, MAP].tolist()]
        yield block
        heads = sum(_MAP_HEAD.size + len(table_map.raw) for _, table_map in table_maps)
        at += _HEAD.size + heads + events.nbytes + len(block.data)
    file.close()


def tables_in(file: EventFile, size: int) -> set[TableName]:
    at, tables = 0, set[TableName]()
    while at < size:
        table_maps, events, count, at = _read_head(file, at)
        tables.update(table_map.table for _, table_map in table_maps)
        at += events * EVENT_COLUMNS * 8 + count
    return tables


def _read_head(file: EventFile, at: int) -> tuple[list[tuple[int, TableMap]], int, int, int]:
    """Return a block's table maps, its numbers of events and bytes, and where its index begins."""
    maps, events, count = _HEAD.unpack(file.read(at, _HEAD.size))
    at += _HEAD.size
    table_maps = []
    for _ in range(maps):
        number, length = _MAP_HEAD.unpack(file.read(at, _MAP_HEAD.size))
        at += _MAP_HEAD.size
        table_maps.append((number, read_table_map(bytes(file.read(at, length)))))
        at += length
    return table_maps, events, count, at


def read_block(file: EventFile, at: int) -> tuple[list[tuple[int, TableMap]], Block]:
    """Return the block at an offset, and its table maps with their numbers in it."""
    table_maps, events, count, at = _read_head(file, at)
    index = np.frombuffer(file.read(at, events * EVENT_COLUMNS * 8), np.int64)
    at += index.nbytes
    data = np.frombuffer(file.read(at, count), np.uint8)
    table = index.reshape(events, EVENT_COLUMNS).copy()
    places, sizes = table[:, AT], table[:, SIZE]
    inside = (places >= 0) & (sizes >= 0) & (sizes <= count) & (places <= count - sizes)
    if not inside.all() or not np.isin(table[:, MAP], [number for number, _ in table_maps]).all():
        raise SegmentsLost(
            "the index in a file of row events does not match its bytes",
            hint="it was not recorded; run again",
        )
    return table_maps, Block(data, table)


def _never(*_: object) -> NoReturn:
    raise RuntimeError("a reading that captures nothing must not write to a spool")


class RefusingSpool:
    """A spool for a reading that wants no table: nothing is ever put into it."""

    scratch = prepared = seal = open = discard = remove = _never


class SummarisingSpool(Generic[T]):
    """A spool that keeps no rows: `seen` summarises each block that is written to a scratch file,
    and `came_out` gets that summary when the block is read again, which then has no events.

    Files of earlier batches are read from `recorded`. A block counts as a whole, even if
    ROLLBACK TO removed its end.
    """

    def __init__(
        self, recorded: Spool, seen: Callable[[Block], T], came_out: Callable[[T], None]
    ) -> None:
        self._recorded = recorded
        self._seen = seen
        self._came_out = came_out

    def scratch(self) -> UnkeptFile[T]:
        return UnkeptFile(self._seen, self._came_out)

    def open(self, source: str, file: WaitingFile) -> EventFile:
        return self._recorded.open(source, file)

    prepared = seal = discard = remove = _never


class UnkeptFile(Generic[T]):
    """The `EventFile` of one `Spill`, which writes each block in three pieces."""

    def __init__(self, seen: Callable[[Block], T], came_out: Callable[[T], None]) -> None:
        self._seen = seen
        self._came_out = came_out
        self._pieces: list[bytes | memoryview] = []
        self._begin = self._size = 0
        self._blocks: dict[int, T] = {}

    def write(self, data: bytes | memoryview) -> None:
        if not self._pieces:
            self._begin = self._size
        self._pieces.append(data)
        self._size += len(data)
        if len(self._pieces) == 3:
            _, index, data = self._pieces
            events = np.frombuffer(index, np.int64).reshape(-1, EVENT_COLUMNS).copy()
            self._blocks[self._begin] = self._seen(Block(np.frombuffer(data, np.uint8), events))
            self._pieces.clear()

    def read(self, at: int, count: int) -> bytes:
        """Return zeros only, which is a block without events."""
        if count and at in self._blocks:
            self._came_out(self._blocks[at])
        return bytes(count)

    def close(self) -> None:
        """Nothing is open."""


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
