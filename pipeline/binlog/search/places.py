"""The searches for a place in the log: by its content, and by a moment.

By its content: the boundary of a transaction, the end of a GTID set, and the
transactions that show whether another server's log has the same history (`SetAnchor`).
A server that was reset assigns the same GTIDs again, so a GTID alone does not identify
a transaction. Since MySQL 8.0, every server's log has the time at which a transaction
was first committed, to the microsecond (`original_commit_timestamp`). For older
versions and MariaDB a digest is computed instead. It covers what replicas keep: the
transaction's statements and rows, and the seconds in the events' headers. It leaves out
table ids and offsets.

By a moment: commit times need not ascend, so the place is chosen at which the fewest
transactions are on the wrong side (`pipeline.values.division`). This rule first chooses
a file, by the creation times of the files, and then a transaction in it. A file's time
may be wrong (`SET TIMESTAMP` before FLUSH LOGS, a clock that was set back), so
neighbouring files are read too: later ones up to the first in which most transactions
are not before the moment, and earlier ones back to the first in which most are before
it.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.search.log_scan import (
    Dumps,
    FileHead,
    FileHeads,
    ReportProgress,
    ScanProgress,
    Stretch,
    log_bytes_between,
    read_file_head,
    scan,
    walk,
)
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.commit_times import SECOND, SKEW, latest_commit_times
from lockstep.pipeline.binlog.stream.compressed import decompress_query, decompress_rows
from lockstep.pipeline.binlog.stream.control import read_query
from lockstep.pipeline.binlog.stream.framing import (
    COMPRESSED_ROWS,
    FIRST_OFFSET,
    GTID_EVENTS,
    HEADER_BYTES,
    ROW_EVENTS,
    Event,
    EventType,
)
from lockstep.pipeline.binlog.stream.ring import ANONYMOUS, Integers, place_of
from lockstep.pipeline.binlog.transactions.identity import GtidCollector, gtid_set, gtid_text, union
from lockstep.pipeline.ports.source import BinlogSize
from lockstep.pipeline.values.division import Divider, microseconds
from lockstep.pipeline.values.errors import EndNotReached, MomentOutOfRange, NotAnEventBoundary
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile, Position, SetAnchor


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place between two transactions, with the GTIDs executed before it.

    `is_rewound`: True if the place that was asked for is inside a transaction, so that
    `at` is the beginning of that transaction. `anchor`: describes the event before
    `at`; None at a file's beginning.
    """

    at: Coordinates
    gtid_set: GtidSet
    anchor: Anchor | None
    is_rewound: bool


def find_boundary(
    dumps: Dumps, at: Coordinates, *, report_progress: ReportProgress | None = None
) -> Boundary:
    """Return `at` if it is between two transactions, else the beginning of the
    transaction around it.

    The file is read from its beginning, because only the transactions before `at` show
    which GTIDs were executed there. NotAnEventBoundary if no event begins or ends at
    `at`.
    """
    file_head = read_file_head(dumps, at.file)
    if at.offset == FIRST_OFFSET:
        return Boundary(at, file_head.gtid_set, None, is_rewound=False)
    executed, last = _executed_before(dumps, at, ScanProgress(report_progress, at.offset))
    offset = FIRST_OFFSET if last is None else int(last.transactions[0, columns.LAST_OFFSET])
    start = Coordinates(at.file, offset)
    place, event = _boundary_around(dumps, at, start)
    anchor = None
    if event is not None:
        gtid = ""
        if last is not None and event.at == start:
            gtid = gtid_text(last.transactions[0], last.gtid_sources)
        created = int(file_head.created.timestamp())
        anchor = Anchor(event.at.offset, event.size, event.crc32, gtid, created)
    gtids = union(file_head.gtid_set, executed)
    return Boundary(place, gtids, anchor, is_rewound=place != at)


def _executed_before(
    dumps: Dumps, at: Coordinates, progress: ScanProgress
) -> tuple[GtidSet, Stretch | None]:
    """Return the GTIDs of the transactions that end in the file at or before `at`, and
    the last of these transactions."""
    start = Coordinates(at.file, FIRST_OFFSET)
    collector = GtidCollector()
    last: Stretch | None = None
    for stretch in scan(dumps, start, at, must_reach_end=False, progress=progress):
        rows = stretch.transactions
        in_file = np.array([file == at.file for file in stretch.files])[rows[:, columns.FILE]]
        ended_rows = rows[in_file & (rows[:, columns.END_OFFSET] <= at.offset)]
        if len(ended_rows):
            last = Stretch(ended_rows[-1:], stretch.files, stretch.gtid_sources)
            collector.add(ended_rows, stretch.gtid_sources)
    return collector.merged_set(), last


def _boundary_around(
    dumps: Dumps, at: Coordinates, start: Coordinates
) -> tuple[Coordinates, Event | None]:
    """Return `at`, or the beginning of the transaction around it, and the event before
    that place. `start`: the beginning of the event that ends the last transaction
    before `at`."""
    last: Event | None = None
    transaction_begin: tuple[Coordinates, Event | None] | None = None
    end = start
    with closing(dumps.dump(start)) as dump:
        for event in walk(dump, start):
            if event.at.file != at.file or event.at >= at:
                break
            if event.at < start:
                continue
            if event.type in GTID_EVENTS:
                transaction_begin = event.at, last
            last, end = event, event.after
    if end != at:
        # `at` is inside the last event that was read, or after the end of the file.
        nearest = last.at if last is not None and end > at else end
        raise NotAnEventBoundary(
            f"no event begins at {at}; the nearest place before it is {nearest}",
            hint=f"choose {nearest}, or an offset that SHOW BINLOG EVENTS lists",
        )
    return transaction_begin or (at, last)


def read_anchor(dumps: Dumps, at: Coordinates) -> Anchor | None:
    """Return the event that begins at a place, as an anchor; None if no event begins
    there."""
    created = int(read_file_head(dumps, at.file).created.timestamp())
    with closing(dumps.dump(at)) as dump:
        event = next((event for event in walk(dump, at) if event.at >= at), None)
    if event is None or event.at != at:
        return None
    return Anchor(at.offset, event.size, event.crc32, "", created)


def find_end_of(
    dumps: Dumps,
    start: Position,
    log_end: Coordinates,
    gtids: GtidSet,
    *,
    binlogs: Sequence[BinlogSize] = (),
    report_progress: ReportProgress | None = None,
) -> Coordinates:
    """Return the first place after `start` at which all of `gtids` are executed: the
    end of a transaction, or `start` itself. EndNotReached if some of `gtids` are not in
    the log up to `log_end`. `binlogs` is used only to report progress
    (`report_progress`)."""
    missing = gtids.difference(start.gtid_set)
    if not missing:
        return start.at
    progress = ScanProgress(report_progress, log_bytes_between(start.at, log_end, binlogs))
    with closing(scan(dumps, start.at, log_end, progress=progress)) as stretches:
        for stretch in stretches:
            still_missing = missing.difference(gtid_set(stretch.transactions, stretch.gtid_sources))
            if not still_missing:
                return stretch.end(_first_complete_row(stretch, missing))
            missing = still_missing
    raise EndNotReached(
        f"the log up to {log_end} does not have {missing.shortened_text(_SHOWN_CHARACTERS)}",
        hint="choose GTIDs that this server executed (SELECT @@gtid_executed) and did not purge, "
        "or run again once it has executed them",
    )


_SHOWN_CHARACTERS: Final = 200
"""Most characters of a GTID set that an error shows."""


def _first_complete_row(stretch: Stretch, missing: GtidSet) -> int:
    """Return the first row after which no GTID is missing."""
    rows = stretch.transactions

    def none_missing(row: int) -> bool:
        return not missing.difference(gtid_set(rows[: row + 1], stretch.gtid_sources))

    return bisect_left(range(len(rows)), True, key=none_missing)


_SOURCE_COLUMNS: Final = (columns.GTID_KIND, columns.GTID_HIGH, columns.GTID_LOW)

_TABLE_ID_AND_FLAGS: Final = 8
_DIGESTED_EVENTS: Final = 256
"""Number of events at a transaction's beginning that are hashed into its digest."""


class LastTransactions:
    """The last transaction of each GTID source, in the order of the log."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int, int], tuple[str, int, Coordinates]] = {}

    def add(
        self, transactions: Integers, gtid_sources: Sequence[str], files: Sequence[LogFile]
    ) -> None:
        """Add transactions that come after those added before. `gtid_sources`, `files`:
        the lists to which the index `transactions` refers."""
        with_gtid = transactions[transactions[:, columns.GTID_KIND] != ANONYMOUS]
        if not len(with_gtid):
            return
        for row in _last_rows(with_gtid):
            kind, high, low = row[list(_SOURCE_COLUMNS)].tolist()
            at = place_of(row, columns.BEGIN_OFFSET, files)
            self._last.pop((kind, high, low), None)
            transaction = gtid_text(row, gtid_sources), int(row[columns.ORIGINAL_TIME]), at
            self._last[kind, high, low] = transaction

    def anchors(self, dumps: Dumps) -> tuple[SetAnchor, ...]:
        """Return the anchor of each GTID source's last transaction, the newest one
        first."""
        newest_first = reversed(self._last.values())
        return tuple(_anchor(dumps, gtid, committed, at) for gtid, committed, at in newest_first)


def _last_rows(transactions: Integers) -> Integers:
    """Return the last row of each GTID source, in the order of the log."""
    sources = transactions[:, list(_SOURCE_COLUMNS)]
    if (sources == sources[-1]).all():
        return transactions[-1:]
    _, lasts = np.unique(sources[::-1], axis=0, return_index=True)
    return transactions[np.sort(len(transactions) - 1 - lasts)]


def _anchor(dumps: Dumps, gtid: str, committed_at: int, at: Coordinates) -> SetAnchor:
    """Return the anchor for the transaction that begins at `at`."""
    return SetAnchor(gtid, committed_at, "" if committed_at else _digest(dumps, at))


def find_anchors(
    dumps: Dumps, binlogs: Sequence[BinlogSize], end: Coordinates, gtids: Collection[str]
) -> Mapping[str, SetAnchor]:
    """Return the anchors of the transactions `gtids` that the log has up to `end`, by
    GTID."""
    heads = FileHeads(dumps, binlogs)

    def first_file_after(gtid: GtidSet) -> int:
        return heads.first(lambda executed: executed.contains(gtid))

    gtids_by_file: dict[int, set[str]] = {}
    for gtid in gtids:
        if file_after := first_file_after(GtidSet.parse(gtid)):
            gtids_by_file.setdefault(file_after - 1, set()).add(gtid)
    anchors: dict[str, SetAnchor] = {}
    for index, gtids_in_file in gtids_by_file.items():
        start = Coordinates(binlogs[index].file, FIRST_OFFSET)
        is_last = index + 1 == len(binlogs)
        file_end = end if is_last else Coordinates(binlogs[index + 1].file, FIRST_OFFSET)
        anchors |= _anchors_between(dumps, start, file_end, gtids_in_file)
    return anchors


def _anchors_between(
    dumps: Dumps, start: Coordinates, end: Coordinates, gtids: Collection[str]
) -> dict[str, SetAnchor]:
    """Return the anchors of the transactions `gtids` that the log has from `start` to
    `end`."""
    numbers = np.array([_number_of(gtid) for gtid in gtids], np.int64)
    places: dict[str, tuple[int, Coordinates]] = {}
    with closing(scan(dumps, start, end, must_reach_end=False)) as stretches:
        for stretch in stretches:
            is_searched = np.isin(stretch.transactions[:, columns.GTID_NUMBER], numbers)
            for row in np.flatnonzero(is_searched).tolist():
                transaction = stretch.transactions[row]
                gtid = gtid_text(transaction, stretch.gtid_sources)
                if gtid in gtids:
                    places[gtid] = int(transaction[columns.ORIGINAL_TIME]), stretch.begin(row)
            if len(places) == len(gtids):
                break
    return {gtid: _anchor(dumps, gtid, *place) for gtid, place in places.items()}


def _number_of(gtid: str) -> int:
    """Return the number in a GTID of MySQL or MariaDB."""
    return int(gtid.rpartition(":" if ":" in gtid else "-")[2])


def _digest(dumps: Dumps, at: Coordinates) -> str:
    """Return the digest of the transaction that begins at `at`. It is the same in the
    log of a replica, compressed or not, with texts of statements or without."""
    digest, event_count, has_begun = 0, 0, False
    with closing(dumps.dump(at)) as dump:
        for event in walk(dump, at):
            if event.at < at:
                continue
            if (has_begun and event.type in GTID_EVENTS) or event_count >= _DIGESTED_EVENTS:
                break
            has_begun = True
            if content := _hashed_bytes(event):
                digest, event_count = zlib.crc32(content, digest), event_count + 1
            if event.type in (EventType.XID, EventType.XA_PREPARE):
                break
    return f"{digest:08x}"


def _hashed_bytes(event: Event) -> bytes:
    """Return the bytes of an event that are hashed; b"" for events that a replica may
    not have."""
    if event.type in COMPRESSED_ROWS:
        rows_event = decompress_rows(event).tobytes()
        return _hashed_rows(event, COMPRESSED_ROWS[event.type], rows_event[HEADER_BYTES:])
    if event.type in ROW_EVENTS:
        return _hashed_rows(event, event.type, event.body)
    if event.type in (EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED):
        query = event if event.type == EventType.QUERY else decompress_query(event)
        return b"%d " % event.timestamp + read_query(query).text.encode("utf-8", "replace")
    return b""


def _hashed_rows(event: Event, code: int, body: bytes) -> bytes:
    return b"%d %d " % (code, event.timestamp) + bytes(body[_TABLE_ID_AND_FLAGS:])


_NO_TIMES: Final = np.empty(0, np.int64)
_SAMPLES: Final = 64
"""Most heads in a sample. If there are not more files, all heads are read at once."""


@dataclass(frozen=True, slots=True)
class MomentPlace:
    """The place of a moment in the log. `at`: the beginning of the first transaction
    that is read if the reading begins at the moment. `late_count`: number of
    transactions before `at`, in the files that were read, with a commit time of the
    moment or later. `early_count`: number of transactions after `at` with an earlier
    commit time. `first_begin`: the beginning of the first transaction with a commit
    time of the moment or later; it is not after `at`."""

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
    begin = Coordinates(binlogs[first].file, FIRST_OFFSET)
    progress = ScanProgress(report_progress, log_bytes_between(begin, log_end, binlogs))

    def read(index: int) -> _Times:
        return _read_times(dumps, binlogs[index].file, log_end, divider, progress)

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
    binlogs: Sequence[BinlogSize] = (),
    report_progress: ReportProgress | None = None,
) -> MomentPlace | None:
    """Return the place of a moment in one file up to `end`; None if the whole file
    comes before the moment. `binlogs` is used only to report progress."""
    divider = _divider(moment, now)
    progress = _file_progress(report_progress, file, end, binlogs)
    place = _place_in([_read_times(dumps, file, end, divider, progress)], divider, end)
    return None if place.at == end or place.at.file != file else place


def find_last_end(
    dumps: Dumps,
    file: LogFile,
    end: Coordinates,
    *,
    binlogs: Sequence[BinlogSize] = (),
    report_progress: ReportProgress | None = None,
) -> Coordinates:
    """Return the end of the last transaction of a file, up to `end`; the file's
    beginning if it has none. `binlogs` is used only to report progress."""
    start = place = Coordinates(file, FIRST_OFFSET)
    progress = _file_progress(report_progress, file, end, binlogs)
    for stretch in scan(dumps, start, _file_end(file, end), progress=progress):
        place = stretch.end(len(stretch.transactions) - 1)
    return place


def _file_progress(
    report: ReportProgress | None, file: LogFile, end: Coordinates, binlogs: Sequence[BinlogSize]
) -> ScanProgress:
    start, stop = Coordinates(file, FIRST_OFFSET), _file_end(file, end)
    return ScanProgress(report, log_bytes_between(start, stop, binlogs))


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
    dumps: Dumps, file: LogFile, end: Coordinates, divider: Divider, progress: ScanProgress
) -> _Times:
    """Read a file's transactions up to `end`."""
    start, stop = Coordinates(file, FIRST_OFFSET), _file_end(file, end)
    times, begins = [_NO_TIMES], [_NO_TIMES]
    for stretch in scan(dumps, start, stop, progress=progress):
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
    """Return how many of `count` files were created before the moment. A sample of the
    files' heads is read, and then only the heads between two of the sample."""

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
    transaction came from a server whose clock is ahead, return the commit time of that
    transaction instead: transactions before the file may be as late."""
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
