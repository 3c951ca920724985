"""A stretch of the log looked at, not captured: its index of transactions, no rows.

It is read through a transaction buffer that wants no table, at the speed of the compiled loop; what
a capture would refuse is stepped over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from pipeline.binlog.search.walk import step_over
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.outcomes import damaged
from pipeline.binlog.stream.ring import Integers, TransactionGroup, place_of
from pipeline.binlog.transactions.buffer import TransactionBuffer
from pipeline.binlog.transactions.log_place import Limits
from pipeline.binlog.transactions.spill import NoSpool
from pipeline.errors import StreamEndedEarly, UnsupportedEvent, UnsupportedStatement
from pipeline.ports.source import BinlogDump, BinlogSize
from pipeline.position import Coordinates, LogFile

Tell = Callable[[int, int], None]
"""Told of a long look now and then: bytes read, and bytes there are to read."""

_TRANSACTIONS: Final = 1 << 14
_RING_BYTES: Final = 1 << 12
_MAX_STEPS: Final = 1 << 16


class Dumps(Protocol):
    """Whatever gives dumps; `pipeline.ports.SourceServer` does."""

    def dump(self, start: Coordinates) -> BinlogDump: ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """Transactions in the order of the log: n x TRANSACTION_COLUMNS of `ring`, and the files
    and sources that its columns count in."""

    transactions: Integers
    files: Sequence[LogFile]
    sources: Sequence[str]

    def begin(self, row: int) -> Coordinates:
        return place_of(self.transactions[row], columns.BEGIN_OFFSET, self.files)

    def end(self, row: int) -> Coordinates:
        return place_of(self.transactions[row], columns.END_OFFSET, self.files)


class LogScan:
    """Iterates over the stretches from `start` to `end`, both between two transactions: a
    piece of the dump at a time, never empty. `tell`: told after each piece, with
    `total` bytes to read.

    Every transaction is there, also one that a capture refuses. Damage is raised, and
    `StreamEndedEarly` if the log ends before `end` and `whole` is wanted. Whoever stops
    early closes the iterator (`contextlib.closing`), and so the dump.
    """

    def __init__(
        self,
        dumps: Dumps,
        start: Coordinates,
        end: Coordinates,
        *,
        whole: bool = True,
        tell: Tell | None = None,
        total: int = 0,
    ) -> None:
        self._dumps = dumps
        self._end = end
        self._whole = whole
        self._tell = tell
        self._total = total
        self._bytes = 0
        self._refused = False
        self.at = start
        """Everything before it was given out."""

    def __iter__(self) -> Generator[Stretch]:
        steps, over = 1, self.at >= self._end
        while not over:
            self._refused = False
            yield from self._read()
            if not self._refused:
                break
            # Each time more, so that a log full of them is not read by as many dumps.
            if (stretch := self._step_over(steps)) is not None:
                yield stretch
            steps = min(2 * steps, _MAX_STEPS)
            over = self.at >= self._end
        if self._whole and self.at < self._end:
            raise StreamEndedEarly(
                f"the server's log ended at {self.at}, before {self._end}",
                hint="run again; if that fails, look at the server's error log",
            )

    def _read(self) -> Iterator[Stretch]:
        with closing(self._dumps.dump(self.at)) as dump:
            start, begins = self.at, dump.begins or self.at
            buffer = _buffer(begins, self._end)
            for received in dump:
                self._count(received.end - received.begin)
                buffer.put(received)
                groups: list[TransactionGroup] = []
                self._refused = _take(buffer, groups)
                stretch = _stretch(groups, start if begins < start else None)
                self.at = max(buffer.at, start)
                if stretch is not None:
                    yield stretch
                if buffer.stopped or buffer.ended:
                    return

    def _count(self, size: int) -> None:
        self._bytes += size
        if self._tell is not None:
            self._tell(min(self._bytes, self._total), self._total)

    def _step_over(self, steps: int) -> Stretch | None:
        with closing(self._dumps.dump(self.at)) as dump:
            found = step_over(dump, self.at, self._end, steps)
        if found.at <= self.at:
            raise damaged("the log reads differently a second time", self.at)
        self.at = found.at
        if not found.rows:
            return None
        return Stretch(np.array(found.rows, np.int64), found.files, found.sources)


def _buffer(start: Coordinates, end: Coordinates) -> TransactionBuffer:
    buffer = TransactionBuffer(
        start,
        wants=lambda _: False,
        spool=NoSpool(),
        limits=Limits(end),
        ring_bytes=_RING_BYTES,
        group_bytes=0,
        events=1,
        transactions=_TRANSACTIONS,
    )
    buffer.prepared.passing = True
    return buffer


def _take(buffer: TransactionBuffer, groups: list[TransactionGroup]) -> bool:
    """Take what a buffer gives out of the bytes it has; whether it ended there, at what no capture
    reads."""
    try:
        groups += _given(buffer)
    except (UnsupportedEvent, UnsupportedStatement):
        buffer.end()
        groups += _given(buffer)
        return True
    return False


def _given(buffer: TransactionBuffer) -> Iterator[TransactionGroup]:
    while (group := buffer.get()) is not None:
        yield group
        buffer.ack()


def _stretch(groups: Sequence[TransactionGroup], behind: Coordinates | None) -> Stretch | None:
    """All of them, or what ends behind a place; None if that is nothing."""
    if not groups:
        return None
    found = np.concatenate([group.transactions for group in groups])
    if behind is not None:
        first = found[:, columns.FILE] == 0
        found = found[~(first & (found[:, columns.END_OFFSET] <= behind.offset))]
    return Stretch(found, groups[-1].files, groups[-1].sources) if len(found) else None


def log_between(start: Coordinates, end: Coordinates, binlogs: Sequence[BinlogSize]) -> int:
    """Bytes of log from one place to another; files that are not listed count for nothing."""
    between = sum(
        log.size for log in binlogs if start.file.number <= log.file.number < end.file.number
    )
    return max(between - start.offset + end.offset, 0)
