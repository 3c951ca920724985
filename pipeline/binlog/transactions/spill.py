"""Row events that are kept outside the ring buffer: those of transactions larger than
the ring, in files; and those of prepared XA transactions until XA COMMIT, in files or
in memory.

A file is a sequence of blocks. A block has the counts of its table maps, events and
bytes (3 x 8 bytes, little-endian); for each table map its number, its length (8 bytes
each) and the whole event; the events' index (EVENT_COLUMNS x 8 bytes for each); and the
events' bytes. The table maps are included for a later run, which may read the rows of a
prepared transaction but did not read its table maps in the log. A spool (`ports`)
creates, keeps and opens such files. A batch is the part of the log that one run read.

An XID is open from its prepare to its commit or rollback, after which it may be used
again.
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
    pack_block,
)
from lockstep.pipeline.model.batch import EndedTransaction, PreparedTransaction, WaitingFile, Xid
from lockstep.pipeline.ports.segments import EventFile, NewEventFile, Spool
from lockstep.pipeline.values.errors import PreparedElsewhere, SegmentsLost
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

_BLOCK_HEADER = struct.Struct("<QQQ")
_MAP_HEADER = struct.Struct("<QQ")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _WrittenBlock:
    """A block's offset in its file, and the number of its events that were not rolled
    back."""

    offset: int
    event_count: int


class Spill:
    """The file of one transaction's row events, which are first written and then read."""

    def __init__(self, file: NewEventFile) -> None:
        self.file = file
        self._blocks: list[_WrittenBlock] = []
        self._end = 0
        self.maps: set[int] = set()
        """Numbers of the table maps of all events that were added."""

    @property
    def block_count(self) -> int:
        return len(self._blocks)

    def add(self, block: Block, maps: TableMaps) -> None:
        """Append the events of a block. There are always three writes (counts and table
        maps, index, bytes), which `SummarisedFile` relies on."""
        gapless = pack_block(block)
        used_maps = [
            (n, maps.table_maps[n].raw) for n in np.unique(gapless.events[:, MAP]).tolist()
        ]
        self.maps.update(number for number, _ in used_maps)
        header = [_BLOCK_HEADER.pack(len(used_maps), len(gapless.events), len(gapless.data))]
        header += [_MAP_HEADER.pack(number, len(raw)) + raw for number, raw in used_maps]
        self._blocks.append(_WrittenBlock(self._end, len(gapless.events)))
        for piece in (b"".join(header), gapless.events.tobytes(), gapless.data.data):
            self.file.write(piece)
            self._end += len(piece)

    def truncate(self, block_count: int, event_count: int) -> None:
        """Keep only the first `block_count` blocks, and the first `event_count` events
        of the next one."""
        if block_count < len(self._blocks):
            cut_block = replace(self._blocks[block_count], event_count=event_count)
            self._blocks[block_count:] = [cut_block]

    def read(self) -> Iterator[Block]:
        """Yield the blocks in the order in which they were added, one at a time from
        the file."""
        for written in self._blocks:
            _, block, _ = _read_block(self.file, written.offset)
            yield block.subset(slice(written.event_count))


def read_prepared(file: EventFile, size: int, maps: TableMaps) -> Iterator[Block]:
    """Yield the blocks of a prepared transaction's file, which an earlier run wrote,
    with table maps numbered as in `maps`; close the file after the last block. The rows
    are decoded as rows of the server version that commits them, because no server can
    be upgraded while transactions are prepared."""
    at = 0
    while at < size:
        table_maps, block, at = _read_block(file, at)
        numbers = {n: maps.add(replace(table, writer=maps.writer)) for n, table in table_maps}
        events = block.events
        events[:, MAP] = [numbers[n] for n in events[:, MAP].tolist()]
        yield block
    file.close()


def tables_in(file: EventFile, size: int) -> set[TableName]:
    """Return the tables of all row events in a file of `size` bytes."""
    at = 0
    tables: set[TableName] = set()
    while at < size:
        table_maps, event_count, data_bytes, at = _read_block_header(file, at)
        tables.update(table_map.table for _, table_map in table_maps)
        at += event_count * EVENT_COLUMNS * 8 + data_bytes
    return tables


def _read_block_header(
    file: EventFile, at: int
) -> tuple[list[tuple[int, TableMap]], int, int, int]:
    """Return a block's table maps, its counts of events and bytes, and its index's
    offset."""
    map_count, event_count, data_bytes = _BLOCK_HEADER.unpack(file.read(at, _BLOCK_HEADER.size))
    at += _BLOCK_HEADER.size
    table_maps = []
    for _ in range(map_count):
        number, length = _MAP_HEADER.unpack(file.read(at, _MAP_HEADER.size))
        at += _MAP_HEADER.size
        table_maps.append((number, read_table_map(bytes(file.read(at, length)))))
        at += length
    return table_maps, event_count, data_bytes, at


def _read_block(file: EventFile, at: int) -> tuple[list[tuple[int, TableMap]], Block, int]:
    """Return the block at an offset: its table maps, with their numbers in it; its
    events; and its end."""
    table_maps, event_count, data_bytes, at = _read_block_header(file, at)
    index = np.frombuffer(file.read(at, event_count * EVENT_COLUMNS * 8), np.int64)
    at += index.nbytes
    data = np.frombuffer(file.read(at, data_bytes), np.uint8)
    events = index.reshape(event_count, EVENT_COLUMNS).copy()
    offsets, sizes = events[:, AT], events[:, SIZE]
    is_inside = (offsets >= 0) & (sizes >= 0) & (offsets <= data_bytes - sizes)
    has_map = np.isin(events[:, MAP], [number for number, _ in table_maps])
    if not (is_inside & has_map).all():
        raise SegmentsLost(
            "the index in a file of row events does not match its bytes",
            hint="nothing was recorded; run again, and if that fails, restore the file from a "
            "copy of the lake",
        )
    return table_maps, Block(data, events), at + data_bytes


def _never(*_: object) -> NoReturn:
    raise RuntimeError("this spool keeps no rows, so this method must not be called")


class RefusingSpool:
    """A spool for a reading that captures no table, and so never writes a file."""

    create_scratch_file = create_prepared_file = seal = open = delete_batch = delete_file = _never


class SummarisingSpool(Generic[T]):
    """A spool that stores summaries instead of rows. `summarise` makes the summary of
    each block that is written to a scratch file. When the block is read, `on_read` gets
    the summary, and the reader gets a block without events.

    Files of earlier batches are read from `recorded`. A summary is of the whole block,
    even if ROLLBACK TO removed its end.
    """

    def __init__(
        self,
        recorded: Spool,
        summarise: Callable[[Block], T],
        on_read: Callable[[T], None],
    ) -> None:
        self._recorded = recorded
        self._summarise = summarise
        self._on_read = on_read

    def create_scratch_file(self) -> SummarisedFile[T]:
        return SummarisedFile(self._summarise, self._on_read)

    def open(self, source: str, file: WaitingFile) -> EventFile:
        return self._recorded.open(source, file)

    create_prepared_file = seal = delete_batch = delete_file = _never


class SummarisedFile(Generic[T]):
    """The `NewEventFile` of a `Spill` in a `SummarisingSpool`. A `Spill` writes a block
    in three pieces."""

    def __init__(self, summarise: Callable[[Block], T], on_read: Callable[[T], None]) -> None:
        self._summarise = summarise
        self._on_read = on_read
        self._pieces: list[bytes | memoryview] = []
        self._begin = self._size = 0
        self._blocks: dict[int, T] = {}

    def write(self, data: bytes | memoryview) -> None:
        """Collect the pieces of a block, and summarise it when all three are there."""
        if not self._pieces:
            self._begin = self._size
        self._pieces.append(data)
        self._size += len(data)
        if len(self._pieces) == 3:
            _, index, data = self._pieces
            events = np.frombuffer(index, np.int64).reshape(-1, EVENT_COLUMNS).copy()
            self._blocks[self._begin] = self._summarise(
                Block(np.frombuffer(data, np.uint8), events)
            )
            self._pieces.clear()

    def read(self, at: int, count: int) -> bytes:
        """Give the summary of the block that begins at `at`, if any, to `on_read`; return
        zeros, which `_read_block` reads as a block without events."""
        if count and at in self._blocks:
            self._on_read(self._blocks[at])
        return bytes(count)

    def close(self) -> None:
        """Do nothing: no file is open."""


MEMORY_BYTES: Final = 32 << 20
"""Most bytes of prepared rows that are kept in memory; further ones go to files."""


@dataclass(frozen=True, slots=True)
class _PreparedRows:
    """A transaction that was prepared at `at`, in this reading. Its row events are in
    memory or in a scratch file."""

    at: Coordinates
    events: Block | Spill | None

    @property
    def bytes(self) -> int:
        return len(self.events.data) if isinstance(self.events, Block) else 0


@dataclass(frozen=True, slots=True)
class CommittedRows:
    """Where the rows that an XA COMMIT committed come from. `tables`: the tables that
    have them. `prepared`: the place of the prepare. `batch`: the batch that read the
    prepare; None for the current one."""

    tables: frozenset[TableName]
    prepared: Coordinates
    batch: int | None


class PreparedTransactions:
    """The XA transactions of one source that are prepared, and neither committed nor
    rolled back.

    `recorded`: those of earlier batches. `ended`: those of earlier batches that this
    reading saw end.
    """

    def __init__(
        self, source: str, spool: Spool, recorded: Mapping[Xid, PreparedTransaction] | None = None
    ) -> None:
        self._source = source
        self._spool = spool
        self._recorded = dict(recorded or {})
        self._waiting: dict[Xid, _PreparedRows] = {}
        self._bytes_in_memory = 0
        self.ended: list[EndedTransaction] = []
        self.is_before_start = False
        """The reading has not reached its start: earlier batches recorded the transactions
        before it."""
        self.is_recorded_before = False
        """An earlier batch recorded the transaction that is being read now."""
        self.wants_no_rows = False
        """The reading wants no rows, so those of prepared transactions do not matter."""
        self.leaves_out_unread = False
        """If a prepare was not read, its XA COMMIT is left out instead of refused."""
        self.unread_commits: list[tuple[Xid, Coordinates]] = []
        """The XA COMMITs that were left out, with their places."""
        self.prepared_xids: set[Xid] = set()
        """All XIDs whose prepare was read."""
        self._committed: CommittedRows | None = None

    @property
    def has_open(self) -> bool:
        """True if this reading has read the prepare of a transaction that is still
        open."""
        return bool(self._waiting)

    @property
    def _ignores_rows(self) -> bool:
        """True if rows of prepared transactions do not matter now."""
        return self.is_before_start or self.is_recorded_before or self.wants_no_rows

    def keep(
        self, xid: Xid, at: Coordinates, events: Block | Spill | None, maps: TableMaps
    ) -> None:
        """Keep the rows of a prepared transaction. `at`: its last event. A block must
        be packed. An open transaction of the same XID is dropped: its end was not
        logged."""
        self.prepared_xids.add(xid)
        self.forget(xid)
        if self._ignores_rows:
            _close_file(events)
            return
        if isinstance(events, Block) and self._bytes_in_memory + len(events.data) > MEMORY_BYTES:
            spill = Spill(self._spool.create_scratch_file())
            spill.add(events, maps)
            events = spill
        waiting = _PreparedRows(at, events)
        self._bytes_in_memory += waiting.bytes
        self._waiting[xid] = waiting

    def commit(self, xid: Xid, at: Coordinates, maps: TableMaps) -> Iterator[Block]:
        """Return the row events of the transaction that an XA COMMIT at `at` commits."""
        if self._ignores_rows:
            return iter(())
        waiting = self._waiting.pop(xid, None)
        if waiting is not None:
            self._bytes_in_memory -= waiting.bytes
            self._committed = CommittedRows(_tables(waiting, maps), waiting.at, None)
            return _at_commit(_take_blocks(waiting), at)
        prepared = self._end_recorded(xid, committed=True)
        if prepared is None and self.leaves_out_unread:
            self.unread_commits.append((xid, at))
            return iter(())
        if prepared is None:
            raise PreparedElsewhere(
                f"the XA transaction {xid} is committed at {at}, but its prepare was never read",
                hint="its prepare is before the place where this ledger began to read: begin "
                "before it, if nothing was read yet; else go on after the commit, and let "
                "`lockstep verify --repair` find what it changed",
                event_place=str(at),
            )
        if prepared.file is None:
            return iter(())
        file = self._spool.open(self._source, prepared.file)
        tables = frozenset(tables_in(file, prepared.file.size))
        prepared_at = Coordinates.parse(prepared.position)
        self._committed = CommittedRows(tables, prepared_at, prepared.batch)
        return _at_commit(read_prepared(file, prepared.file.size, maps), at)

    def take_committed(self) -> CommittedRows | None:
        """Return what the newest group committed, if that was a prepared transaction,
        else None."""
        committed, self._committed = self._committed, None
        return committed

    def forget(self, xid: Xid) -> None:
        """Drop a transaction that ended without a commit; do nothing if its prepare was
        never read."""
        waiting = self._waiting.pop(xid, None)
        if waiting is not None:
            self._bytes_in_memory -= waiting.bytes
            _close_file(waiting.events)
        elif not self._ignores_rows:
            self._end_recorded(xid, committed=False)

    def seal(self, batch: int, maps: TableMaps) -> tuple[PreparedTransaction, ...]:
        """Make the rows of open transactions durable, and return what the ledger (the
        database of batches) has to record of them with the batch."""
        records = []
        for number, (xid, waiting) in enumerate(self._waiting.items(), start=1):
            file = None
            if waiting.events is not None:
                spill = Spill(self._spool.create_prepared_file(self._source, batch, number))
                for block in _take_blocks(waiting):
                    spill.add(block, maps)
                file = self._spool.seal(spill.file)
            records.append(PreparedTransaction(xid, batch, str(waiting.at), file))
        return tuple(records)

    def _end_recorded(self, xid: Xid, *, committed: bool) -> PreparedTransaction | None:
        prepared = self._recorded.pop(xid, None)
        if prepared is not None:
            self.ended.append(EndedTransaction(prepared, committed))
        return prepared


def _close_file(events: Block | Spill | None) -> None:
    if isinstance(events, Spill):
        events.file.close()


def _tables(waiting: _PreparedRows, maps: TableMaps) -> frozenset[TableName]:
    match waiting.events:
        case Block(_, events):
            numbers = set(np.unique(events[:, MAP]).tolist())
        case Spill():
            numbers = waiting.events.maps
        case None:
            numbers = set()
    return frozenset(maps.table_maps[number].table for number in numbers)


def _take_blocks(waiting: _PreparedRows) -> Iterator[Block]:
    """Yield the blocks; close the transaction's scratch file after the last one."""
    if isinstance(waiting.events, Block):
        yield waiting.events
    elif waiting.events is not None:
        yield from waiting.events.read()
        waiting.events.file.close()


def _at_commit(blocks: Iterator[Block], at: Coordinates) -> Iterator[Block]:
    """Yield the blocks, whose events get the commit's offset, as rows of the only
    transaction of their group."""
    for block in blocks:
        block.events[:, OFFSET] = at.offset
        block.events[:, TRANSACTION] = 0
        yield block
