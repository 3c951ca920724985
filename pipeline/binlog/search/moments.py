"""The search for a moment: its place among a log's transactions, by their commit times.

Commit times need not ascend, so the place is chosen at which the fewest transactions
are on the wrong side (`pipeline.values.division`). This rule first chooses a file, by
the creation times of the files, and then a transaction in it. A file's time may be
wrong (`SET TIMESTAMP` before FLUSH LOGS, a clock that was set back), so neighbouring
files are read too: later ones up to the first in which most transactions are not before
the moment, and earlier ones back to the first in which most are before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.search.log_scan import (
    Dumps,
    FileHead,
    FileHeads,
    ReportProgress,
    log_between,
    scan,
)
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.commit_times import SECOND, SKEW, latest_commit_times
from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.binlog.stream.ring import Integers
from lockstep.pipeline.ports.source import BinlogSize
from lockstep.pipeline.values.division import Divider, microseconds
from lockstep.pipeline.values.errors import MomentOutOfRange
from lockstep.pipeline.values.position import Coordinates, LogFile

_NO_TIMES: Final = np.empty(0, np.int64)
_SAMPLES: Final = 64
"""Largest number of files at which all their heads are read. If there are more, a sample
of the heads is read first."""


@dataclass(frozen=True, slots=True)
class MomentPlace:
    """The place of a moment in the log. `at`: where a reading from the moment on
    begins, the beginning of a transaction. `late_count`: number of transactions before
    `at`, in the files that were read, with a commit time of the moment or later.
    `early_count`: number of transactions after `at` with an earlier commit time.
    `first_begin`: the beginning of the first transaction with a commit time of the
    moment or later; it is not after `at`."""

    at: Coordinates
    late_count: int = 0
    early_count: int = 0
    first_begin: Coordinates | None = None

    def warning(self, moment: str) -> str | None:
        """Return a warning if the log's commit times do not ascend around the moment,
        else None."""
        if not self.late_count and not self.early_count:
            return None
        return (
            f"the log's commit times do not ascend around {moment}, which is taken to be "
            f"{self.at}: before that place, {self.late_count} transactions were committed at that "
            f"moment or later, and after it, {self.early_count} were committed earlier"
        )


def find_moment(
    dumps: Dumps,
    binlogs: Sequence[BinlogSize],
    log_end: Coordinates,
    moment: datetime,
    now: datetime,
    *,
    report_progress: ReportProgress | None = None,
) -> MomentPlace:
    """Return the place of a moment in the log up to `log_end`; `log_end` if all
    transactions come before the moment. `binlogs`: all files, oldest first. `now`: the
    present time. MomentOutOfRange for a moment before the oldest file, or later than
    `now`.
    """
    heads, divider = FileHeads(dumps, binlogs), _divider(moment, now)
    earlier_count = _files_before(heads, len(binlogs), divider)
    oldest = heads.read(0).created
    if moment > now or (not earlier_count and moment < oldest):
        raise _out_of_range(moment, oldest, now)
    first = last = max(earlier_count - 1, 0)
    total = log_between(Coordinates(binlogs[first].file, FIRST_OFFSET), log_end, binlogs)

    def read(index: int) -> _Times:
        return _read_times(dumps, binlogs[index].file, log_end, divider, report_progress, total)

    files = [read(first)]
    while files[-1].balance >= 0 and last + 1 < len(binlogs):
        last += 1
        files.append(read(last))
    while files[0].balance <= 0 and first:
        first -= 1
        files.insert(0, read(first))
    return _place_in(files, divider, log_end)


def find_moment_in_file(
    dumps: Dumps,
    file: LogFile,
    moment: datetime,
    end: Coordinates,
    now: datetime,
    *,
    report_progress: ReportProgress | None = None,
) -> MomentPlace | None:
    """Return the place of a moment in one file up to `end`; None if the whole file
    comes before the moment."""
    divider = _divider(moment, now)
    total = end.offset - FIRST_OFFSET if end.file == file else 0
    place = _place_in(
        [_read_times(dumps, file, end, divider, report_progress, total)], divider, end
    )
    return None if place.at == end or place.at.file != file else place


def find_last_end(
    dumps: Dumps, file: LogFile, end: Coordinates, *, report_progress: ReportProgress | None = None
) -> Coordinates:
    """Return the end of the last transaction of a file, up to `end`; the file's
    beginning if it has none."""
    start = Coordinates(file, FIRST_OFFSET)
    total = end.offset - start.offset if end.file == file else 0
    place = start
    for stretch in scan(
        dumps, start, _file_end(file, end), report_progress=report_progress, total=total
    ):
        place = stretch.end(len(stretch.transactions) - 1)
    return place


def _divider(moment: datetime, now: datetime) -> Divider:
    return Divider(microseconds(moment), microseconds(now + SKEW))


def _file_end(file: LogFile, end: Coordinates) -> Coordinates:
    """Return where the reading of a file ends: at the file's own end, or at `end` if
    that comes first."""
    return min(end, Coordinates(LogFile(file.base, file.number + 1), FIRST_OFFSET))


@dataclass(frozen=True, slots=True)
class _Times:
    """The commit times of a file's transactions (microseconds since the epoch), in the
    log's order, and the offset at which each begins. `balance`: number of transactions
    before the moment minus number of the others."""

    file: LogFile
    times: Integers
    begins: Integers
    balance: int


def _read_times(
    dumps: Dumps,
    file: LogFile,
    end: Coordinates,
    divider: Divider,
    report_progress: ReportProgress | None,
    total: int,
) -> _Times:
    """Read a file's transactions up to `end`."""
    start, stop = Coordinates(file, FIRST_OFFSET), _file_end(file, end)
    times, begins = [_NO_TIMES], [_NO_TIMES]
    for stretch in scan(dumps, start, stop, report_progress=report_progress, total=total):
        times.append(latest_commit_times(stretch.transactions))
        begins.append(stretch.transactions[:, columns.BEGIN_OFFSET].copy())
    all_times = np.concatenate(times)
    return _Times(file, all_times, np.concatenate(begins), divider.divide(all_times).balance)


def _place_in(files: Sequence[_Times], divider: Divider, end: Coordinates) -> MomentPlace:
    """Return the moment's place in the files that were read; `end` if it is after all
    of them."""

    def begin(index: int) -> Coordinates:
        for file in files:
            if index < len(file.times):
                return Coordinates(file.file, int(file.begins[index]))
            index -= len(file.times)
        return end

    times = np.concatenate([file.times for file in files])
    division, late_indexes = divider.divide(times), np.flatnonzero(times >= divider.moment)
    return MomentPlace(
        min(begin(division.place), end),
        division.late_count,
        division.early_count,
        begin(int(late_indexes[0])) if len(late_indexes) else None,
    )


def _files_before(heads: FileHeads, count: int, divider: Divider) -> int:
    """Return how many of `count` files were created before the moment. First a sample
    of the files' heads is read, then the heads between two of the sample."""

    def count_before(files: range) -> int:
        in_seconds = Divider(divider.moment // SECOND * SECOND, divider.latest)
        created = [_created(heads.read(index)) for index in files]
        return in_seconds.divide(np.array(created, np.int64)).place

    step = -(-count // _SAMPLES)
    before = count_before(range(0, count, step)) * step
    if step == 1 or not before:
        return before
    begin = before - step
    return begin + count_before(range(begin, min(before, count)))


def _created(head: FileHead) -> int:
    """Return when a file was created (microseconds since the epoch). If its first
    transaction came from a server whose clock is ahead, return that commit time
    instead: transactions before the file may be as late."""
    created = microseconds(head.created)
    if head.first_commit_elsewhere is None:
        return created
    return max(created, microseconds(head.first_commit_elsewhere) // SECOND * SECOND)


def _out_of_range(moment: datetime, earliest: datetime, latest: datetime) -> MomentOutOfRange:
    return MomentOutOfRange(
        f"the log does not cover {_iso(moment)}: it reaches from {_iso(earliest)} to "
        f"{_iso(latest)}",
        hint="choose a moment in between; 'earliest' reads the whole log, 'latest' only what comes "
        "from now on",
    )


def _iso(at: datetime) -> str:
    return at.astimezone(UTC).isoformat().replace("+00:00", "Z")
