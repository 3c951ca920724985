"""Memory that ends where a page begins that nobody may touch, and the engine's arrays laid into it.

A load or store one byte beyond the end, or before the beginning of what fills its pages, ends the
process with SIGSEGV: use it only in processes that are observed from outside.
"""

from __future__ import annotations

import ctypes
import mmap
from collections.abc import Iterator
from importlib import import_module
from itertools import cycle
from pkgutil import iter_modules
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline import resultset
from lockstep.pipeline.binlog import values
from lockstep.pipeline.binlog.stream.intake import HEADROOM
from lockstep.pipeline.binlog.stream.registers import REGISTER_COUNT
from lockstep.pipeline.binlog.stream.ring import (
    EVENT_COLUMNS,
    MOST_TEXT_BYTES,
    TRANSACTION_COLUMNS,
    Ring,
)
from lockstep.pipeline.binlog.stream.stream import TextBuffer
from lockstep.pipeline.binlog.transactions.loop import Loop
from lockstep.pipeline.ports.source import Received

_PAGE: Final = mmap.PAGESIZE
_NOTHING: Final = 0
"""PROT_NONE of sys/mman.h."""

Bytes = npt.NDArray[np.uint8]


class Guarded:
    """`size` bytes, rounded up to pages, between two pages that cannot be touched."""

    def __init__(self, size: int) -> None:
        whole = -(-max(size, 1) // _PAGE) * _PAGE
        self._map = mmap.mmap(-1, whole + 2 * _PAGE)
        everything = np.frombuffer(self._map, np.uint8)
        begin = everything.ctypes.data
        libc = ctypes.CDLL(None, use_errno=True)
        for page in (begin, begin + _PAGE + whole):
            if libc.mprotect(ctypes.c_void_p(page), ctypes.c_size_t(_PAGE), _NOTHING):
                raise OSError(ctypes.get_errno(), "mprotect")
        self._bytes = everything[_PAGE : _PAGE + whole]

    def last(self, count: int) -> Bytes:
        """The last so many bytes."""
        return self._bytes[len(self._bytes) - count :]

    def holding(self, data: bytes) -> Bytes:
        """The data at the end, read only, as a run's is (others have loops compiled once more);
        what was there before is written over."""
        place = self.last(len(data))
        place[:] = np.frombuffer(data, np.uint8)
        place.flags.writeable = False
        return place

    def table(self, rows: int, columns: int) -> npt.NDArray[np.int64]:
        """An array of integers at the end, of zeros."""
        made = self.last(rows * columns * 8).view(np.int64).reshape(rows, columns)
        made[:] = 0
        return made


class GuardedPieces:
    """Pieces of a dump, each at the end of its memory; one at a time."""

    def __init__(self, most: int) -> None:
        self._memory = Guarded(HEADROOM + most)

    def received(self, data: bytes) -> Received:
        place = self._memory.last(HEADROOM + len(data))
        place[HEADROOM:] = np.frombuffer(data, np.uint8)
        return Received(place, HEADROOM, len(place))


class GuardedBuffer:
    """A transaction buffer's arrays, for one buffer at a time."""

    def __init__(self, ring_bytes: int, events: int, transactions: int) -> None:
        self._ring = Ring(
            Guarded(ring_bytes).last(ring_bytes),
            Guarded(events * EVENT_COLUMNS * 8).table(events, EVENT_COLUMNS),
            Guarded(transactions * TRANSACTION_COLUMNS * 8).table(
                transactions, TRANSACTION_COLUMNS
            ),
        )
        self._texts = TextBuffer(
            Guarded(MOST_TEXT_BYTES).last(MOST_TEXT_BYTES),
            Guarded(MOST_TEXT_BYTES * 3 * 8).table(MOST_TEXT_BYTES, 3),
        )
        self._registers = Guarded(REGISTER_COUNT * 8)
        self._tables = Guarded(1 << 16), Guarded(1 << 12), Guarded(1 << 16)

    def lend(self, loop: Loop) -> None:
        """Lay the loop's arrays, of which none is filled yet, into this memory."""
        loop.ring = self._ring
        loop.texts = self._texts
        registers = self._registers.table(1, REGISTER_COUNT)[0]
        registers[:] = loop.registers.array
        loop.registers.array = registers
        maps, (bytes_, entries, ids) = loop.maps, self._tables
        maps.contents = bytes_.last(64)
        maps.entries = entries.table(2, 3)
        table = ids.table(*maps.ids.shape)
        table[:] = maps.ids
        maps.ids = table


def guard_outputs(count: int = 64, most: int = 1 << 18) -> None:
    """Let the decoders write Arrow's buffers into such memory: `count` of them, which are
    used again, of up to `most` bytes; larger ones come from Arrow as before."""
    memories: Iterator[Guarded] = cycle([Guarded(most) for _ in range(count)])

    def allocate(rows: int, width: int) -> tuple[pa.Buffer, Bytes]:
        if rows * width > most:
            buffer = pa.allocate_buffer(rows * width)
            return buffer, np.frombuffer(buffer, np.uint8)
        place = next(memories).last(rows * width)
        return pa.py_buffer(place), place

    decoders: list[Any] = [
        module
        for package in (values, resultset)
        for found in iter_modules(package.__path__, f"{package.__name__}.")
        if hasattr(module := import_module(found.name), "allocate")
    ]
    assert decoders, "they get their memory elsewhere now"
    for module in decoders:
        module.allocate = allocate
