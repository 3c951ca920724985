"""Moments in a log: the first transaction that was committed at or after one.

Belongs here: which files a moment can be in, by their heads, and the look through them.
Does not: what a moment is asked for (`pipeline.start`).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from typing import Final

import numpy as np

from pipeline.binlog.search.file_heads import FileHead, read_file_head
from pipeline.binlog.search.log_scan import Dumps, LogScan, Tell, log_between
from pipeline.binlog.stream.commit_times import SECOND, latest_commit_times, microseconds
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.errors import MomentOutOfRange
from pipeline.ports.source import BinlogSize
from pipeline.position import Coordinates, LogFile

_ALL_HEADS: Final = 64
"""Of so many files every head is looked at."""


def find_moment(
    dumps: Dumps,
    binlogs: Sequence[BinlogSize],
    head: Coordinates,
    moment: datetime,
    now: datetime,
    *,
    tell: Tell | None = None,
) -> Coordinates:
    """Where the first transaction, in the order of the log, begins that was committed at or
    after `moment`; `head` if there is none before it. `binlogs` are all files, oldest first.

    A clock that was set back hides nothing before it, as far as the heads of the files
    show it. `MomentOutOfRange` for one before the oldest file, or later than `now`.
    """
    heads = _Heads(dumps, [log.file for log in binlogs], microseconds(moment))
    earliest = heads.read(0).created
    if heads.moment < microseconds(earliest) or moment > now:
        raise _out_of_range(moment, earliest, now)
    start = Coordinates(binlogs[heads.first()].file, FIRST_OFFSET)
    total = log_between(start, head, binlogs)
    look = LogScan(dumps, start, head, tell=tell, total=total)
    return _first(look, head, heads.moment) or head


def find_moment_in_file(
    dumps: Dumps,
    file: LogFile,
    moment: datetime,
    end: Coordinates,
    *,
    tell: Tell | None = None,
) -> Coordinates | None:
    """The same within one file, before `end`; None if there is none."""
    look, last = _within(dumps, file, end, tell)
    return _first(look, last, microseconds(moment))


def find_last_end(
    dumps: Dumps, file: LogFile, end: Coordinates, *, tell: Tell | None = None
) -> Coordinates:
    """Where the last transaction of a file ends, up to `end`; its beginning without any."""
    place = Coordinates(file, FIRST_OFFSET)
    look, _ = _within(dumps, file, end, tell)
    for stretch in look:
        place = stretch.end(len(stretch.transactions) - 1)
    return place


def _within(
    dumps: Dumps, file: LogFile, end: Coordinates, tell: Tell | None
) -> tuple[LogScan, Coordinates]:
    """A look through one file, up to `end`, and where that ends."""
    start = Coordinates(file, FIRST_OFFSET)
    last = min(end, Coordinates(LogFile(file.base, file.number + 1), FIRST_OFFSET))
    total = end.offset - start.offset if end.file == file else 0
    return LogScan(dumps, start, last, tell=tell, total=total), last


def _first(look: LogScan, end: Coordinates, moment: int) -> Coordinates | None:
    with closing(iter(look)) as stretches:
        for stretch in stretches:
            late = np.flatnonzero(latest_commit_times(stretch.transactions) >= moment)
            if len(late):
                place = stretch.begin(int(late[0]))
                return place if place < end else None
    return None


class _Heads:
    """The heads of files, each read once, beside a moment in microseconds."""

    def __init__(self, dumps: Dumps, files: Sequence[LogFile], moment: int) -> None:
        self._dumps = dumps
        self._files = files
        self._known: dict[int, FileHead] = {}
        self.moment = moment

    def read(self, number: int) -> FileHead:
        if number not in self._known:
            self._known[number] = read_file_head(self._dumps, self._files[number])
        return self._known[number]

    def first(self) -> int:
        """The file to look through first: none before it holds what is looked for."""
        count = len(self._files)
        if count <= _ALL_HEADS:
            behind = next((n for n in range(count) if self._late(n) or self._back(n)), count)
            return max(behind - 1, 0)
        chosen = max(self._bisected(count) - 1, 0)
        while chosen and (self._late(chosen) or self._late(chosen - 1) or self._back(chosen)):
            chosen -= 1
        return chosen

    def _bisected(self, count: int) -> int:
        low, high = 0, count
        while low < high:
            middle = (low + high) // 2
            low, high = (low, middle) if self._late(middle) else (middle + 1, high)
        return low

    def _late(self, number: int) -> bool:
        """Whether a file begins at or after the moment, so that the one before it may hold
        what is looked for; of another server's transactions by that server's clock too."""
        head = self.read(number)
        made = microseconds(head.created) >= self.moment // SECOND * SECOND
        return made or (head.others is not None and microseconds(head.others) >= self.moment)

    def _back(self, number: int) -> bool:
        """Whether the clock was set back before a file was made: nobody knows how late it was
        in the file before."""
        return number > 0 and self.read(number).created < self.read(number - 1).created


def _out_of_range(moment: datetime, earliest: datetime, latest: datetime) -> MomentOutOfRange:
    return MomentOutOfRange(
        f"the log holds no moment {_iso(moment)}: it reaches from {_iso(earliest)} to "
        f"{_iso(latest)}",
        hint="choose a moment in between; 'earliest' reads all there is, 'latest' only what comes "
        "from now on",
    )


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
