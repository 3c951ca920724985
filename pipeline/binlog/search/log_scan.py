"""Reading the log without its rows: a scan of its transactions, a walk over its events,
and the heads of its files. A head is the events before a file's first transaction.

`scan` reads any length of log at the speed of the compiled loop, through a transaction
buffer that captures no table. `walk` reads a few events around a place, in Python. Both
step over events that a capture would refuse.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Protocol

import numpy as np

from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.commit_times import SECOND, end_of_second
from lockstep.pipeline.binlog.stream.control import (
    decode_gtid_set,
    read_gtid_list,
    read_query,
    read_rotate,
    to_datetime,
)
from lockstep.pipeline.binlog.stream.framing import (
    BETWEEN_TRANSACTIONS,
    CHECKSUM_BYTES,
    FIRST_OFFSET,
    GTID_EVENTS,
    HEADER,
    HEADER_BYTES,
    Event,
    EventType,
    crc_matches,
    damaged,
    read_event,
)
from lockstep.pipeline.binlog.stream.intake import dump_events
from lockstep.pipeline.binlog.stream.ring import Integers, TransactionGroup, place_of
from lockstep.pipeline.binlog.transactions.buffer import TransactionBuffer
from lockstep.pipeline.binlog.transactions.identity import IDENTITY_COLUMNS, read_identity
from lockstep.pipeline.binlog.transactions.loop import Limits
from lockstep.pipeline.binlog.transactions.spill import RefusingSpool
from lockstep.pipeline.ports.source import BinlogDump, BinlogSize, Received
from lockstep.pipeline.values.errors import (
    StreamEndedEarly,
    TransactionsWithoutGtid,
    UnsupportedEvent,
    UnsupportedStatement,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile

ReportProgress = Callable[[int, int], None]
"""Called with the progress of a search: bytes read, and bytes to read in total."""

_TRANSACTIONS: Final = 1 << 14
_RING_BYTES: Final = 1 << 12
"""Sizes of the buffer that scans a log. The ring is small, because row events are
skipped."""

_MAX_WALKED: Final = 1 << 16
"""Most transactions that are walked before the scan is tried again."""


class ScanProgress:
    """The progress of a search over all its scans. `total`: the bytes to read. A scan
    may read more, but never reports more."""

    def __init__(self, report: ReportProgress | None, total: int) -> None:
        self._report, self._total, self._bytes_read = report, total, 0

    def add(self, received: Received) -> None:
        self._bytes_read += received.end - received.begin
        if self._report is not None:
            self._report(min(self._bytes_read, self._total), self._total)


class Dumps(Protocol):
    """What searches need of a server (`pipeline.ports.source`): dumps of its log."""

    def dump(self, start: Coordinates) -> BinlogDump: ...


@dataclass(frozen=True, slots=True)
class Stretch:
    """Consecutive transactions of the log: their index (n x TRANSACTION_COLUMNS, see
    `ring`), and the lists of files and GTID sources to which the index refers by
    number."""

    transactions: Integers
    files: Sequence[LogFile]
    gtid_sources: Sequence[str]

    def begin(self, row: int) -> Coordinates:
        return place_of(self.transactions[row], columns.BEGIN_OFFSET, self.files)

    def end(self, row: int) -> Coordinates:
        return place_of(self.transactions[row], columns.END_OFFSET, self.files)


def scan(
    dumps: Dumps,
    start: Coordinates,
    end: Coordinates,
    *,
    must_reach_end: bool = True,
    progress: ScanProgress | None = None,
) -> Generator[Stretch]:
    """Yield all transactions from `start` to `end`, both places between two
    transactions. There is one stretch for each piece of the dump that ends a
    transaction.

    Transactions that a capture refuses are included. DamagedEvent for damage;
    StreamEndedEarly if `must_reach_end` is set and the log ends before `end`. A caller
    that stops early has to close the generator (`contextlib.closing`), which closes the
    dump.
    """
    at, walk_count = start, 1
    while at < end:
        with closing(dumps.dump(at)) as dump:
            dump_start, begins = at, dump.begins or at
            is_refused = False
            buffer = _buffer(begins, end)
            for received in dump:
                if progress is not None:
                    progress.add(received)
                buffer.put(received)
                groups, is_refused = _take_groups(buffer)
                at = max(buffer.at, dump_start)
                stretch = _stretch(groups, dump_start if begins < dump_start else None)
                if stretch is not None:
                    yield stretch
                if buffer.has_stopped or buffer.has_ended:
                    break
        if not is_refused:
            break
        with closing(dumps.dump(at)) as dump:
            after, stretch = read_transactions(dump, at, end, walk_count)
        if after <= at:
            raise damaged("the log changed between two dumps of the same place", at)
        at = after
        if stretch is not None:
            yield stretch
        # Twice as many each time, so that a log full of refused events needs few dumps.
        walk_count = min(2 * walk_count, _MAX_WALKED)
    if must_reach_end and at < end:
        raise StreamEndedEarly(
            f"the server's log ended at {at}, before {end}",
            hint="run again; if that fails, look at the server's error log",
        )


def _buffer(start: Coordinates, end: Coordinates) -> TransactionBuffer:
    """Return a buffer that captures no table, and ignores prepared rows."""
    buffer = TransactionBuffer(
        start,
        is_captured=lambda _: False,
        spool=RefusingSpool(),
        limits=Limits(end),
        ring_bytes=_RING_BYTES,
        group_bytes=0,
        events=1,
        transactions=_TRANSACTIONS,
    )
    buffer.prepared.wants_no_rows = True
    return buffer


def _take_groups(buffer: TransactionBuffer) -> tuple[list[TransactionGroup], bool]:
    """Take all groups that a buffer has; return them, and whether it met an event that
    a capture refuses."""
    groups: list[TransactionGroup] = []
    try:
        groups += _groups(buffer)
    except (UnsupportedEvent, UnsupportedStatement):
        buffer.end()
        return [*groups, *_groups(buffer)], True
    return groups, False


def _groups(buffer: TransactionBuffer) -> Iterator[TransactionGroup]:
    while (group := buffer.get()) is not None:
        yield group
        buffer.ack()


def _stretch(groups: Sequence[TransactionGroup], after: Coordinates | None) -> Stretch | None:
    """Return the groups' transactions that end after the place `after`; None if there
    are none."""
    if not groups:
        return None
    transactions = np.concatenate([group.transactions for group in groups])
    if after is not None:
        in_first_file = transactions[:, columns.FILE] == 0
        is_before = in_first_file & (transactions[:, columns.END_OFFSET] <= after.offset)
        transactions = transactions[~is_before]
    if not len(transactions):
        return None
    return Stretch(transactions, groups[-1].files, groups[-1].gtid_sources)


def log_bytes_between(start: Coordinates, end: Coordinates, binlogs: Sequence[BinlogSize]) -> int:
    """Return the number of bytes of the log from one place to another; files that are
    not in `binlogs` count as 0."""
    file_bytes = sum(
        log.size for log in binlogs if start.file.number <= log.file.number < end.file.number
    )
    return max(file_bytes - start.offset + end.offset, 0)


_BETWEEN_EVENTS: Final = GTID_EVENTS | BETWEEN_TRANSACTIONS
"""Events that come only after a transaction has ended: each begins a transaction, or
stands between two."""

_LAST_EVENTS: Final = frozenset(
    {EventType.XID, EventType.XA_PREPARE, EventType.TRANSACTION_PAYLOAD}
)
"""The last events of transactions, besides QUERY COMMIT and QUERY ROLLBACK."""


def read_transactions(
    dump: BinlogDump, start: Coordinates, end: Coordinates, count: int
) -> tuple[Coordinates, Stretch | None]:
    """Return the place after `count` transactions from `start` on, and these
    transactions; fewer if `end` or the log's end comes first. A transaction without a
    COMMIT, XID or the like ends at the next event that begins a transaction or stands
    between two."""
    at = start
    rows: list[list[int]] = []
    files: list[LogFile] = []
    gtid_sources: list[str] = []
    row: list[int] | None = None
    for event in walk(dump, start):
        if event.at < start:
            continue
        if event.type in _BETWEEN_EVENTS:
            row = None
        if row is None and (len(rows) >= count or event.at >= end):
            break
        if event.type in GTID_EVENTS:
            if files[-1:] != [event.at.file]:
                files.append(event.at.file)
            row = _index_row(event, len(files) - 1, gtid_sources)
            rows.append(row)
        if row is not None:
            row[columns.END_OFFSET] = event.after.offset
            row[columns.LAST_OFFSET], row[columns.LAST_SIZE] = event.at.offset, event.size
            row[columns.LAST_CRC], row[columns.LAST_TIMESTAMP] = event.crc32, event.timestamp
            row[columns.LOG_BYTES] += event.size
            if _ends_transaction(event):
                row = None
        at = event.after
    return at, Stretch(np.array(rows, np.int64), files, gtid_sources) if rows else None


def _index_row(event: Event, file: int, gtid_sources: list[str]) -> list[int]:
    """Return the index row of the transaction that a GTID event begins."""
    row = [0] * columns.TRANSACTION_COLUMNS
    row[columns.FILE], row[columns.BEGIN_OFFSET] = file, event.at.offset
    row[columns.ORIGIN_SERVER] = event.server_id
    identity = read_identity(event, gtid_sources)
    for column, value in zip(IDENTITY_COLUMNS, identity, strict=True):
        row[column] = value
    return row


def end_of_transaction(dump: BinlogDump, begin: Coordinates, log_end: Coordinates) -> Coordinates:
    """Return the end of the transaction around `begin`, where one of its events begins;
    `log_end` if that comes first."""
    for event in walk(dump, begin):
        if event.at < begin:
            continue
        if event.type in _BETWEEN_EVENTS and begin < event.at:
            return event.at
        if _ends_transaction(event) or event.after >= log_end:
            return event.after
    return log_end


def _ends_transaction(event: Event) -> bool:
    if event.type == EventType.QUERY:
        return read_query(event).text.upper() in ("COMMIT", "ROLLBACK")
    return event.type in _LAST_EVENTS


def walk(dump: BinlogDump, start: Coordinates) -> Iterator[Event]:
    """Yield every event of a dump that is in the log itself, up to the log's end. The
    dump was requested from `start` on, but may begin before it (`dump.begins`)."""
    at = dump.begins or start
    has_checksums, log_server_id = True, -1
    for packet in dump_events(dump):
        _, code, server_id, size, *_ = HEADER.unpack_from(packet)
        if size != len(packet):
            raise damaged(f"an event says that it has {size} bytes, not {len(packet)}", at)
        if code == EventType.FORMAT_DESCRIPTION:
            has_checksums, log_server_id = packet[-5] == 1, server_id
        event = read_event(packet, at, has_checksum=has_checksums, log_server_id=log_server_id)
        if not event.is_artificial:
            yield event
            at = event.after
        if code == EventType.ROTATE:
            file = _rotate_target(packet, at)
            if not event.is_artificial or file != at.file:
                at = Coordinates(file, FIRST_OFFSET)


def _rotate_target(packet: bytes, at: Coordinates) -> LogFile:
    """Return the file that a ROTATE names. The ROTATE at a dump's beginning comes
    before the format description, so only its own bytes can show if it has a
    checksum."""
    end = -CHECKSUM_BYTES if crc_matches(packet) else None
    return read_rotate(packet[HEADER_BYTES:end], at).file


@dataclass(frozen=True, slots=True)
class FileHead:
    """The head of a log file. `created`: when the file was created, in whole seconds,
    by the server's clock or by the `SET TIMESTAMP` of the session that created it.
    `gtid_set`: the GTIDs executed before the file, empty if the log has none.
    `first_commit_elsewhere`: if the file's first transaction came from another server,
    its commit time by that server's clock."""

    created: datetime
    gtid_set: GtidSet
    first_commit_elsewhere: datetime | None = None


def read_file_head(dumps: Dumps, file: LogFile) -> FileHead:
    """Read a file's head, a few hundred bytes; DamagedEvent if it has no format
    description."""
    start = Coordinates(file, FIRST_OFFSET)
    description: Event | None = None
    gtids = GtidSet()
    committed_elsewhere = None
    # The server refuses to send the first transaction if its `gtid_mode` forbids it.
    with closing(dumps.dump(start)) as dump, suppress(TransactionsWithoutGtid):
        for event in walk(dump, start):
            if event.at.file != file:
                break
            if event.type == EventType.FORMAT_DESCRIPTION:
                description = event
            elif event.type == EventType.PREVIOUS_GTIDS:
                gtids = decode_gtid_set(event.body)
            elif event.type == EventType.MARIADB_GTID_LIST:
                gtids = read_gtid_list(event)
            elif event.type in GTID_EVENTS:
                if description is not None and event.server_id != description.server_id:
                    *_, commit_time = read_identity(event, [])
                    commit_time = commit_time or end_of_second(event.timestamp)
                    committed_elsewhere = to_datetime(commit_time)
                break
    if description is None:
        raise damaged("a log file begins without a format description", start)
    return FileHead(to_datetime(description.timestamp * SECOND), gtids, committed_elsewhere)


class FileHeads:
    """The heads of a log's files, by index in `binlogs` (oldest first). Each head is
    read at most once."""

    def __init__(self, dumps: Dumps, binlogs: Sequence[BinlogSize]) -> None:
        self._dumps = dumps
        self._binlogs = binlogs
        self._heads: dict[int, FileHead] = {}

    def read(self, index: int) -> FileHead:
        if index not in self._heads:
            self._heads[index] = read_file_head(self._dumps, self._binlogs[index].file)
        return self._heads[index]

    def first(self, is_match: Callable[[GtidSet], bool], count: int | None = None) -> int:
        """Return the index of the first file for which `is_match` returns True, given
        the GTIDs executed before it; `count` if there is none among the first `count`
        files (default: all). The sets grow from file to file, so a bisection reads few
        heads."""
        files = range(len(self._binlogs) if count is None else count)
        return bisect_left(files, True, key=lambda index: is_match(self.read(index).gtid_set))


def find_file_before(dumps: Dumps, binlogs: Sequence[BinlogSize], gtids: GtidSet) -> LogFile | None:
    """Return a file before which only transactions of `gtids` were executed, so that
    the log from there on has all others. None if others were executed even before the
    oldest file.

    If several files qualify, return the newest before which some of `gtids` were not
    executed yet; if there is none, the oldest. A newer file is no safe choice:
    transactions without a GTID, which are in no set, may have been executed after
    `gtids` and before that file, and would be missed.
    """
    heads = FileHeads(dumps, binlogs)
    qualifying_count = heads.first(lambda executed: not gtids.contains(executed))
    first_after_all = heads.first(lambda executed: executed.contains(gtids), qualifying_count)
    return binlogs[max(first_after_all - 1, 0)].file if qualifying_count else None
