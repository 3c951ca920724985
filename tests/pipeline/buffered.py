"""Runs a made log through a transaction buffer, however it is cut; and decodes what came out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from lockstep.pipeline.binlog.rows.maps import split_by_map
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.rows.table_map import TableMap, read_layouts, read_structure
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.ring import MOST_TEXT_BYTES, Block, TransactionGroup
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.identity import gtid_text
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.row_images import CHANGE_TYPES, RowImages
from lockstep.pipeline.values.table import TableStructure
from tests.pipeline.made import received
from tests.twins.spool import MemorySpool

START = Coordinates(LogFile("binlog", 1), 4)


@dataclass(frozen=True, slots=True)
class Out:
    """A transaction that came out: its GTID, where it ends, its statements, the bytes of its
    row events, one after the other, and the texts beside them, cut or not."""

    gtid: str
    end: int
    statements: tuple[str, ...]
    events: tuple[bytes, ...]
    texts: tuple[str, ...] = ()
    cut: bool = False

    @property
    def values(self) -> list[int]:
        """The INT of each row of `made.rows`."""
        found: list[int] = []
        for event in self.events:
            images = np.frombuffer(event[19 + 10 + 2 :], np.uint8).reshape(-1, 5)
            found.extend(images[:, 1:].copy().view("<i4").ravel().tolist())
        return found


def a_buffer(**options: Any) -> TransactionBuffer:
    chosen: dict[str, Any] = {
        "is_captured": lambda _: True,
        "spool": MemorySpool(),
        "ring_bytes": 1 << 12,
        "group_bytes": 1 << 10,
        "events": 64,
        "transactions": 16,
    }
    return TransactionBuffer(options.pop("start", START), **{**chosen, **options})


def feed(buffer: TransactionBuffer, pieces: Iterable[bytes]) -> Iterator[Out]:
    """Every transaction that comes out while the pieces go in."""
    for piece in pieces:
        buffer.put(received(piece))
        yield from taken(buffer)
        if buffer.has_ended or buffer.has_stopped:
            return


def taken(buffer: TransactionBuffer) -> Iterator[Out]:
    for run in runs(buffer):
        yield from outs(run)


def runs(buffer: TransactionBuffer) -> Iterator[TransactionGroup]:
    """Every group that can be taken out by now."""
    while (run := buffer.get()) is not None:
        yield run
        buffer.ack()


def outs(group: TransactionGroup) -> list[Out]:
    events: list[list[bytes]] = [[] for _ in group.transactions]
    for block in group.blocks:
        for event in block.events.tolist():
            at, size = event[columns.AT], event[columns.SIZE]
            events[event[columns.TRANSACTION]].append(block.data[at : at + size].tobytes())
    texts = group.texts.lists_by_transaction(len(group.transactions)).to_pylist()
    return [
        Out(
            gtid_text(row, group.gtid_sources),
            int(row[columns.END_OFFSET]),
            tuple(query.text for at, query in group.statements if at == number),
            tuple(events[number]),
            tuple(texts[number] or ()),
            bool(row[columns.TEXT_BYTES] > MOST_TEXT_BYTES),
        )
        for number, row in enumerate(group.transactions)
    ]


def cut(data: bytes, places: Iterable[int]) -> list[bytes]:
    """The bytes in pieces that end at these places."""
    borders = [0, *sorted({place for place in places if 0 < place < len(data)}), len(data)]
    return [data[a:b] for a, b in pairwise(borders)]


@dataclass(frozen=True, slots=True)
class Decoded:
    """Row images of one table map: `part` has their events, which are `which` of their block."""

    mapped: TableMap
    structure: TableStructure
    which: columns.Integers
    part: Block
    images: RowImages

    def rows(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Change type and row of each image."""
        kinds = self.images.change_type.to_pylist()
        for kind, row in zip(kinds, self.images.columns.to_pylist(), strict=True):
            yield CHANGE_TYPES[kind].value, row


class Decoders:
    """A decoder for each table map of a log; `structure` says what a map means."""

    def __init__(self, structure: Callable[[TableMap], TableStructure] = read_structure) -> None:
        self._structure = structure
        self.by_number: dict[int, tuple[TableStructure, TableDecoder]] = {}

    def of(self, number: int, mapped: TableMap) -> tuple[TableStructure, TableDecoder]:
        if number not in self.by_number:
            structure, layouts = self._structure(mapped), read_layouts(mapped)
            decoder = TableDecoder(structure, layouts, arrow_schema(structure))
            self.by_number[number] = structure, decoder
        return self.by_number[number]

    def read(self, buffer: TransactionBuffer, block: Block) -> Iterator[Decoded]:
        """The images of a block, by table map, a batch at a time."""
        for number, which, part in split_by_map(block):
            mapped = buffer.maps.table_maps[number]
            structure, decoder = self.of(number, mapped)
            for images in decoder.decode(part):
                yield Decoded(mapped, structure, which, part, images)
