"""Row events in a file: transactions larger than the ring, and prepared ones.

A file is a sequence of blocks, each: numbers of table maps, events and bytes (3 x 8
bytes, little-endian); per table map its number, its length (8 bytes each) and the whole
event; the events' index (EVENT_COLUMNS x 8 bytes each); their bytes. Table maps are there
because a prepared transaction is read by a later run, which never saw them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Generic, NoReturn, TypeVar

import numpy as np

from pipeline.batch import WaitingFile
from pipeline.binlog.rows.maps import TableMaps
from pipeline.binlog.rows.table_map import TableMap, read_table_map
from pipeline.binlog.stream.ring import AT, EVENT_COLUMNS, MAP, SIZE, Block, packed
from pipeline.errors import SegmentsLost
from pipeline.ports.spool import EventFile, Spool
from pipeline.table import TableName

_HEAD = struct.Struct("<QQQ")
_MAP_HEAD = struct.Struct("<QQ")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a block begins, and how many of its events count."""

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
        """Append the events of a block, in three pieces: its head, its index, its bytes."""
        whole = packed(block)
        used = [(n, maps.known[n].raw) for n in np.unique(whole.events[:, MAP]).tolist()]
        self.maps.update(number for number, _ in used)
        head = [_HEAD.pack(len(used), len(whole.events), len(whole.data))]
        head += [_MAP_HEAD.pack(number, len(raw)) + raw for number, raw in used]
        self._places.append(_Place(self._end, len(whole.events)))
        for piece in (b"".join(head), whole.events.tobytes(), whole.data.data):
            self.file.write(piece)
            self._end += len(piece)

    def cut(self, blocks: int, events: int) -> None:
        """Forget what was added behind so many blocks and events of the next one."""
        if blocks < len(self._places):
            self._places[blocks:] = [replace(self._places[blocks], events=events)]

    def read(self) -> Iterator[Block]:
        """The blocks as they were added, one in memory at a time."""
        for place in self._places:
            _, block = read_block(self.file, place.at)
            yield Block(block.data, block.events[: place.events])


def read_prepared(file: EventFile, size: int, maps: TableMaps) -> Iterator[Block]:
    """The blocks of a file that an earlier run may have written, with table maps numbered
    as `maps` has them; it is closed at its end. The server that wrote them is of the version that
    commits them: none is upgraded while transactions are prepared."""
    at = 0
    while at < size:
        found, block = read_block(file, at)
        numbers = {n: maps.add(replace(one, writer=maps.writer)) for n, one in found}
        events = block.events
        events[:, MAP] = [numbers[n] for n in events[:, MAP].tolist()]
        yield block
        heads = sum(_MAP_HEAD.size + len(table_map.raw) for _, table_map in found)
        at += _HEAD.size + heads + events.nbytes + len(block.data)
    file.close()


def tables_in(file: EventFile, size: int) -> set[TableName]:
    at, found = 0, set[TableName]()
    while at < size:
        maps, events, count, at = _read_head(file, at)
        found.update(table_map.table for _, table_map in maps)
        at += events * EVENT_COLUMNS * 8 + count
    return found


def _read_head(file: EventFile, at: int) -> tuple[list[tuple[int, TableMap]], int, int, int]:
    """A block's table maps, how many events and bytes it has, and where those begin."""
    maps, events, count = _HEAD.unpack(file.read(at, _HEAD.size))
    at += _HEAD.size
    found = []
    for _ in range(maps):
        number, length = _MAP_HEAD.unpack(file.read(at, _MAP_HEAD.size))
        at += _MAP_HEAD.size
        found.append((number, read_table_map(bytes(file.read(at, length)))))
        at += length
    return found, events, count, at


def read_block(file: EventFile, at: int) -> tuple[list[tuple[int, TableMap]], Block]:
    """The block that begins there, and its table maps by their numbers in it."""
    found, events, count, at = _read_head(file, at)
    index = np.frombuffer(file.read(at, events * EVENT_COLUMNS * 8), np.int64)
    at += index.nbytes
    data = np.frombuffer(file.read(at, count), np.uint8)
    table = index.reshape(events, EVENT_COLUMNS).copy()
    places, sizes = table[:, AT], table[:, SIZE]
    inside = (places >= 0) & (sizes >= 0) & (sizes <= count) & (places <= count - sizes)
    if not inside.all() or not np.isin(table[:, MAP], [number for number, _ in found]).all():
        raise SegmentsLost(
            "a file of row events does not fit its own index",
            hint="it was not recorded; run again",
        )
    return found, Block(data, table)


def _never(*_: object) -> NoReturn:
    raise RuntimeError("what is only looked at is not kept")


class NoSpool:
    scratch = prepared = seal = open = discard = remove = _never


class UnkeptSpool(Generic[T]):
    """A spool that keeps no rows, whatever their number: `seen` looks at each block that goes
    into a scratch file; `came_out` is told what it saw once that block comes out of it, which then
    has no events.

    Files of earlier batches are read from `recorded`. A block counts whole, also where a
    savepoint took back its end.
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
    """`pipeline.ports.EventFile` for one `Spill`."""

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
            _, block = read_block(_Pieces(tuple(self._pieces)), 0)
            self._pieces.clear()
            self._blocks[self._begin] = self._seen(block)

    def read(self, at: int, count: int) -> bytes:
        """Nothing but zeros, which is a block without events."""
        if count and at in self._blocks:
            self._came_out(self._blocks[at])
        return bytes(count)

    def close(self) -> None:
        """Nothing is open."""


@dataclass(frozen=True, slots=True)
class _Pieces:
    """One block, to be read where it lies."""

    pieces: tuple[bytes | memoryview, ...]
    write = _never

    def read(self, at: int, count: int) -> bytes:
        for piece in self.pieces:
            if 0 <= at <= len(piece) - count:
                return bytes(piece[at : at + count])
            at -= len(piece)
        raise SegmentsLost("a block of row events is cut off", hint="run again")

    def close(self) -> None:
        """Nothing is open."""
