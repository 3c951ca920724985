"""Damaged rows, table maps, files of rows, documents and answers to a SELECT, given to the code
that decodes them.

One function for each way into the decoders takes one random input, lets whatever is raised pass,
and returns how much came out whole. Dumps are in `targets`, the damage itself in `mutations`.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from random import Random
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.rows.maps import TableMaps, split_by_map
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.rows.table_map import read_layouts, read_structure, read_table_map
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.control import LogWriter
from lockstep.pipeline.binlog.stream.ring import EVENT_COLUMNS, Block
from lockstep.pipeline.binlog.transactions.spill import Spill, read_prepared
from lockstep.pipeline.binlog.values.json import json_array
from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.resultset import packets as product
from lockstep.pipeline.resultset.column_arrays import ResultBatches
from lockstep.pipeline.resultset.packets import ErrorPacket
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.values.errors import (
    DamagedEvent,
    LockstepError,
    SourceUnavailable,
    TableError,
)
from tests.fuzz.guarded import Bytes, Guarded
from tests.fuzz.mutations import cut, damaged
from tests.fuzz.recorded import ROW_EVENTS, Corpus
from tests.pipeline.json_made import Json, Opaque, made
from tests.pipeline.json_reference import document_text
from tests.pipeline.results_made import EOF, KINDS, OK, Kind, counted, packets, row
from tests.twins.spool import MemoryEventFile

_VALUES: Final[tuple[Json, ...]] = (
    [None, True, False, 0, -1, 40_000, 1 << 20, -(1 << 40), (1 << 64) - 1, 0.1, 1e300, -2.5],
    {"a": [1, {"c": None, "key": 'text with \x01 and " and \\ in it'}], "bb": {}},
    ["x" * 200, "ü😀" * 9, "", [], {"": ""}],
    [Opaque(246, b"\x05\x03\x8c\x01\x54"), Opaque(12, bytes(8)), Opaque(11, b"\xff" * 8)],
    {"blob": Opaque(252, bytes(70)), "date": Opaque(10, b"\0" * 5 + b"\x3a\xb3\x19")},
)
_DOCUMENTS: Final = tuple(made(value, large=large) for large in (False, True) for value in _VALUES)
_MOST_BYTES: Final = 1 << 20
_MOST_IMAGES: Final = 1 << 14
"""No input has so many bytes; more images come of a decoder that goes in circles."""


class Decoding:
    """The ways into the decoders, over one server's corpus."""

    def __init__(self, corpus: Corpus) -> None:
        self._writer = LogWriter("mariadb" if corpus.flavour == "mariadb" else "mysql")
        self._rows = corpus.row_events
        self._data = Guarded(_MOST_BYTES)
        self._decoder = lru_cache(1 << 6)(self._make_decoder)

    def rows(self, chance: Random) -> int:
        """Row events, some of them damaged, or with another table's map → Arrow."""
        raw, event = chance.choice(self._rows)
        changed = []
        for _ in range(chance.choice((1, 1, 2, 4))):
            one = damaged(chance, event, chance.choice(self._rows)[1], begin=27)
            if chance.random() < 0.1:
                one = one[:4] + bytes([chance.choice(ROW_EVENTS)]) + one[5:]
            changed.append(one if chance.random() < 0.9 else event)
        if chance.random() < 0.1:
            raw = chance.choice(self._rows)[0]
        return self.decode(raw, self._block(changed))

    def maps(self, chance: Random) -> int:
        """A damaged table map → layouts and structure, and rows read with them."""
        raw, event = chance.choice(self._rows)
        changed = damaged(chance, raw, chance.choice(self._rows)[0], begin=25)
        if chance.random() < 0.3:
            changed = damaged(chance, changed, raw, begin=25)
        read_table_map(changed)
        if chance.random() < 0.2:
            event = damaged(chance, event, event, begin=27)
        return self.decode(changed, self._block([event]))

    def spill(self, chance: Random) -> int:
        """A damaged file of row events → its blocks, and their rows."""
        maps = TableMaps(lambda _: True)
        file = MemoryEventFile()
        written = Spill(file)
        for _ in range(chance.choice((1, 1, 2, 3))):
            raw, event = chance.choice(self._rows)
            block = self._block([event] * chance.choice((1, 2)))
            block.events[:, columns.MAP] = maps.add(read_table_map(raw))
            written.add(block, maps)
        content = damaged(chance, bytes(file.content), bytes(file.content))
        other = TableMaps(lambda _: True)
        opened = MemoryEventFile("prepared", bytearray(content))
        out = 0
        for block in read_prepared(opened, len(content), other):
            held = Block(self._data.holding(block.data.tobytes()), block.events)
            out += sum(
                self.decode(other.table_maps[n].raw, part) for n, _, part in split_by_map(held)
            )
        return out

    def documents(self, chance: Random) -> int:
        """A damaged JSON document → text, the same that the reference makes of it."""
        document = damaged(chance, chance.choice(_DOCUMENTS), chance.choice(_DOCUMENTS))
        data = self._data.holding(document)
        length = np.array([len(document)], np.int64)
        try:
            expected: str | None = document_text(document).decode()
        except (DamagedEvent, UnicodeDecodeError):
            expected = None
        try:
            found = json_array(data, np.zeros(1, np.int64), length)[0].as_py()
        except (DamagedEvent, TableError):
            assert expected is None, document
            raise
        assert found == expected, document
        return 1

    def decode(self, raw: bytes, block: Block) -> int:
        """A table map's rows: how many images came out whole. TableError, LockstepError."""
        decoder = self._decoder(raw)
        if isinstance(decoder, TableError | LockstepError):
            raise decoder.with_traceback(None)
        images = 0
        for found in decoder.decode(block):
            found.columns.validate(full=True)
            if found.updated is not None:
                found.updated.validate(full=True)
            images += len(found.columns)
            assert images <= _MOST_IMAGES, "more images than the bytes can hold"
        return images

    def _make_decoder(self, raw: bytes) -> TableDecoder | TableError | LockstepError:
        try:
            mapped = read_table_map(raw, self._writer)
            structure, layouts = read_structure(mapped), read_layouts(mapped)
            return TableDecoder(structure, layouts, arrow_schema(structure), reports_updates=True)
        except (TableError, LockstepError) as error:
            return error

    def _block(self, events: Iterable[bytes]) -> Block:
        """The events one behind the other, in memory that ends where they end."""
        index, at = [], 0
        parts = list(events)
        for part in parts:
            one = [0] * EVENT_COLUMNS
            one[columns.AT], one[columns.SIZE], one[columns.TYPE] = at, len(part), part[4]
            index.append(one)
            at += len(part)
        table = np.array(index, np.int64).reshape(-1, EVENT_COLUMNS)
        return Block(self._data.holding(b"".join(parts)), table)


_MOST_CELLS: Final = 1 << 12
_ERROR: Final = b"\xff" + struct.pack("<H", 1317) + b"#70100interrupted"
_DAYS: Final = (b"", b"\xe8\x07\x02\x1d", b"\xe8\x07\x00\x00", b"\xff\xff\x0c\x1f")


class Results:
    """Answers with a few columns and rows."""

    def __init__(self) -> None:
        self._piece = Guarded(_MOST_BYTES)
        self._rows = [Guarded(_MOST_BYTES), Guarded(_MOST_BYTES)]
        self._starts = Guarded(_MOST_CELLS * 8)
        self._places = Guarded(_MOST_CELLS * 4), Guarded(_MOST_CELLS * 4)
        product.allocate_bytes = self._memory

    def read(self, chance: Random) -> int:
        """Packets, some damaged in a row, some in their heads → batches: how many rows."""
        kinds = chance.choices(KINDS, k=chance.choice((1, 2, 3, 7, 8, 20)))
        rows = [row([_cell(chance, k) for k in kinds]) for _ in range(chance.choice((1, 2, 3, 9)))]
        for _ in range(chance.choice((0, 1, 1, 2))):
            at = chance.randrange(len(rows))
            rows[at] = damaged(chance, rows[at], chance.choice(rows), begin=chance.choice((0, 1)))
        data = packets([*rows, chance.choice((EOF, OK, _ERROR))])
        if chance.random() < 0.2:
            data = damaged(chance, data, data)
        try:
            return self._take(self._batches(chance, kinds, cut(chance, data)))
        except ErrorPacket as error:
            assert 0 <= error.number < 1 << 16
            raise SourceUnavailable("an error packet", hint="none") from None

    def _take(self, batches: ResultBatches) -> int:
        count = 0
        for batch in batches:
            batch.validate(full=True)
            batch.to_pylist()
            count += batch.num_rows
        assert batches.warning_count is not None
        return count

    def _batches(
        self, chance: Random, kinds: Sequence[Kind], data: Sequence[bytes]
    ) -> ResultBatches:
        max_rows = chance.choice((1, 2, 100))
        made = ResultBatches(
            [replace(kind.column, name=f"c{number}") for number, kind in enumerate(kinds)],
            [kind.definition for kind in kinds],
            self._received(data),
            sequence=0,
            max_rows=max_rows,
            full_bytes=chance.choice((1, 1000)),
        )
        cells = len(kinds) * max_rows
        at, size = (place.last(cells * 4).view(np.int32) for place in self._places)
        made._at, made._size = at.reshape(len(kinds), -1), size.reshape(len(kinds), -1)
        made._rows.starts = self._starts.table(1, max_rows + 1)[0]
        made._rows.data = self._memory(0, 0)
        return made

    def _received(self, data: Sequence[bytes]) -> Iterator[Received]:
        for piece in data:
            yield Received(self._piece.holding(piece), 0, len(piece))

    def _memory(self, needed: int, preferred: int) -> Bytes:
        """No byte more than is needed, so that the last row ends where the memory does."""
        if needed > _MOST_BYTES:
            return np.empty(needed, np.uint8)
        self._rows.reverse()
        return self._rows[0].last(needed)


def _cell(chance: Random, kind: Kind) -> bytes | None:
    """A value of the kind, or, rarely, bytes that are none."""
    if chance.random() < 0.1:
        return None
    if kind.definition.cell_bytes:
        return chance.randbytes(kind.definition.cell_bytes)
    if chance.random() < 0.1:
        return counted(chance.randbytes(chance.randrange(14)))
    match kind.column.type:
        case "decimal":
            precision, scale = kind.column.precision or 0, kind.column.scale or 0
            digits = "".join(chance.choices("0123456789", k=max(1, precision - scale)))
            tail = "." + "".join(chance.choices("0123456789", k=scale)) if scale else ""
            return counted((chance.choice(("", "-")) + digits + tail).encode())
        case "date":
            return counted(chance.choice(_DAYS))
        case "datetime" | "timestamp":
            clock = chance.choice((b"", b"\x17\x3b\x3b", b"\x17\x3b\x3b\x3f\x42\x0f\0"))
            return counted(chance.choice(_DAYS[1:]) + clock)
        case "time":
            clock = bytes([chance.randrange(2), chance.randrange(34), 0, 0, 0, 22, 59, 59])
            return counted(clock + chance.choice((b"", b"\x3f\x42\x0f\0")))
        case "geometry":
            order = chance.randrange(2)
            return counted(bytes([chance.randrange(2), 0, 0, 0, order, 1, 0, 0, 0]) + bytes(16))
        case "vector":
            return counted(chance.randbytes(4 * chance.randrange(9)))
        case "varbinary":
            return counted(chance.randbytes(chance.choice((0, 1, 40, 300))))
        case "varchar" | "text" | "enum" | "set" | "json":
            return counted("ü€😀a"[: chance.randrange(5)].encode())
        case kind_of_type:
            raise ValueError(f"no cell of {kind_of_type} is known")
