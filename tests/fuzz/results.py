"""Damaged answers to a SELECT, given to what makes rows of them.

Belongs here: the way in for results, for one input by chance. Does not: what is wrong with the
bytes (`mutations`), or whether an exception is one that may come (`process`).
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import replace
from random import Random
from typing import Final

import numpy as np

from lockstep.pipeline.ports.source import Received
from lockstep.pipeline.resultset import packets as product
from lockstep.pipeline.resultset.column_arrays import ResultBatches
from lockstep.pipeline.resultset.packets import ErrorPacket
from lockstep.pipeline.values.errors import SourceUnavailable
from tests.fuzz.guarded import Bytes, Guarded
from tests.fuzz.mutations import cut, damaged
from tests.pipeline.results_made import EOF, KINDS, OK, Kind, counted, packets, row

_MOST_BYTES: Final = 1 << 20
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
        product.memory = self._memory

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
        assert batches.ending is not None
        return count

    def _batches(
        self, chance: Random, kinds: Sequence[Kind], data: Sequence[bytes]
    ) -> ResultBatches:
        most_rows = chance.choice((1, 2, 100))
        made = ResultBatches(
            [replace(kind.column, name=f"c{number}") for number, kind in enumerate(kinds)],
            [kind.definition for kind in kinds],
            self._received(data),
            sequence=0,
            most_rows=most_rows,
            most_bytes=chance.choice((1, 1000)),
        )
        cells = len(kinds) * most_rows
        at, size = (place.last(cells * 4).view(np.int32) for place in self._places)
        made._at, made._size = at.reshape(len(kinds), -1), size.reshape(len(kinds), -1)
        made._rows.starts = self._starts.table(1, most_rows + 1)[0]
        made._rows.data = self._memory(0, 0)
        return made

    def _received(self, data: Sequence[bytes]) -> Iterator[Received]:
        for piece in data:
            yield Received(self._piece.holding(piece), 0, len(piece))

    def _memory(self, least: int, better: int) -> Bytes:
        """No byte more than is needed, so that the last row ends where the memory does."""
        if least > _MOST_BYTES:
            return np.empty(least, np.uint8)
        self._rows.reverse()
        return self._rows[0].last(least)


def _cell(chance: Random, kind: Kind) -> bytes | None:
    """A value of the kind, or, rarely, bytes that are none."""
    if chance.random() < 0.1:
        return None
    if kind.definition.size:
        return chance.randbytes(kind.definition.size)
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
        case _:
            return counted("ü€😀a"[: chance.randrange(5)].encode())
