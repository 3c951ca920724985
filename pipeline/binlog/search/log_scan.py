"""A scan of the log: its index of transactions, without rows.

The log is read through a transaction buffer that captures no table, at the speed of the compiled
loop. Events that a capture would refuse are stepped over.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np

from lockstep.pipeline.binlog.search.walk import step_over
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.outcomes import damaged
from lockstep.pipeline.binlog.stream.ring import Integers, TransactionGroup, place_of
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.log_place import Limits
from lockstep.pipeline.binlog.transactions.spill import RefusingSpool
from lockstep.pipeline.ports.source import BinlogDump, BinlogSize
from lockstep.pipeline.values.errors import StreamEndedEarly, UnsupportedEvent, UnsupportedStatement
from lockstep.pipeline.values.position import Coordinates, LogFile

ReportProgress = Callable[[int, int], None]
"""Called with the progress of a long search: bytes read, and bytes to read in total."""

_TRANSACTIONS: Final = 1 << 14
_RING_BYTES: Final = 1 << 12
_MAX_STEPS: Final = 1 << 16


class Dumps(Protocol):
    """The part of `pipeline.ports.SourceServer` that searches need."""

    def dump(self, start: Coordinates) -> BinlogDump: ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """Transactions in the order of the log: n x TRANSACTION_COLUMNS of `ring`, and the files
    and sources that its columns refer to."""

    transactions: Integers
    files: Sequence[LogFile]
    sources: Sequence[str]

    def begin(self, row: int) -> Coordinates:
        return place_of(self.transactions[row], columns.BEGIN_OFFSET, self.files)

    def end(self, row: int) -> Coordinates:
        return place_of(self.transactions[row], columns.END_OFFSET, self.files)


class LogScan:
    """Iterates over the stretches from `start` to `end`, both between two transactions: one for
    each piece of the dump, never empty. `tell` is called after each piece; `total` is passed to it.

    The stretches have every transaction, also those that a capture refuses. Damage is raised;
    `StreamEndedEarly` if `whole` is set and the log ends before `end`. A caller that stops
    early has to close the iterator (`contextlib.closing`), which closes the dump.
    """

    def __init__(
        self,
        dumps: Dumps,
        start: Coordinates,
        end: Coordinates,
        *,
        whole: bool = True,
        tell: ReportProgress | None = None,
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
        """The place up to which transactions were yielded."""

    def __iter__(self) -> Generator[Stretch]:
        steps, over = 1, self.at >= self._end
        while not over:
            self._refused = False
            yield from self._read()
            if not self._refused:
                break
            # A double number each time, so that a log full of refused events needs few dumps.
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
            stepped = step_over(dump, self.at, self._end, steps)
        if stepped.at <= self.at:
            raise damaged("the log changed between two dumps of the same place", self.at)
        self.at = stepped.at
        if not stepped.rows:
            return None
        return Stretch(np.array(stepped.rows, np.int64), stepped.files, stepped.sources)


def _buffer(start: Coordinates, end: Coordinates) -> TransactionBuffer:
    buffer = TransactionBuffer(
        start,
        wants=lambda _: False,
        spool=RefusingSpool(),
        limits=Limits(end),
        ring_bytes=_RING_BYTES,
        group_bytes=0,
        events=1,
        transactions=_TRANSACTIONS,
    )
    buffer.prepared.before_start = True
    return buffer


def _take(buffer: TransactionBuffer, groups: list[TransactionGroup]) -> bool:
    """Take all groups that a buffer has; return whether it met an event that a capture refuses."""
    try:
        groups += _groups(buffer)
    except (UnsupportedEvent, UnsupportedStatement):
        buffer.end()
        groups += _groups(buffer)
        return True
    return False


def _groups(buffer: TransactionBuffer) -> Iterator[TransactionGroup]:
    while (group := buffer.get()) is not None:
        yield group
        buffer.ack()


def _stretch(groups: Sequence[TransactionGroup], after: Coordinates | None) -> Stretch | None:
    """Return the groups' transactions, only those that end after `after` if it is given; None if
    there are none."""
    if not groups:
        return None
    transactions = np.concatenate([group.transactions for group in groups])
    if after is not None:
        in_first_file = transactions[:, columns.FILE] == 0
        before = in_first_file & (transactions[:, columns.END_OFFSET] <= after.offset)
        transactions = transactions[~before]
    if not len(transactions):
        return None
    return Stretch(transactions, groups[-1].files, groups[-1].sources)


def log_between(start: Coordinates, end: Coordinates, binlogs: Sequence[BinlogSize]) -> int:
    """Return the bytes of log from one place to another; files that are not listed count as 0."""
    between = sum(
        log.size for log in binlogs if start.file.number <= log.file.number < end.file.number
    )
    return max(between - start.offset + end.offset, 0)
