"""A spool that keeps no rows: what goes into it is looked at on its way, and that is kept.

Belongs here: reading a log without room for its rows, whatever their number. Does not: what
is looked for (`pipeline.runs.inspecting.plan_reading`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Generic, NoReturn, TypeVar

from pipeline.binlog.stream.ring import Block
from pipeline.binlog.transactions.spill import read_block
from pipeline.errors import SegmentsLost
from pipeline.ports.spool import EventFile, Spool
from pipeline.segment import SegmentFile

T = TypeVar("T")

_PIECES: Final = 3
"""`Spill.add` writes so many for a block."""


class NoSpool:
    """For reading that keeps nothing, and so has nothing to put there."""

    def _never(self, *_: object) -> NoReturn:
        raise RuntimeError("what is only looked at is not kept")

    scratch = prepared = seal = open = discard = remove = _never


class UnkeptSpool(Generic[T]):
    """`seen` looks at each block that goes into a scratch file; `came_out` is told what it
    saw once that block comes out of it, which then has no events.

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

    def open(self, source: str, file: SegmentFile) -> EventFile:
        return self._recorded.open(source, file)

    def _never(self, *_: object) -> NoReturn:
        raise RuntimeError("what is only looked at is not kept")

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
        if len(self._pieces) == _PIECES:
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

    def write(self, data: bytes | memoryview) -> None:
        raise RuntimeError("this is only read")

    def read(self, at: int, count: int) -> bytes:
        for piece in self.pieces:
            if 0 <= at <= len(piece) - count:
                return bytes(piece[at : at + count])
            at -= len(piece)
        raise SegmentsLost("a block of row events is cut off", hint="run again")

    def close(self) -> None:
        """Nothing is open."""
