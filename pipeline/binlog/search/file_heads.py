"""The head of a log file: the events before its first transaction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime

from lockstep.pipeline.binlog.search.log_scan import Dumps, LoggedEvent, walk
from lockstep.pipeline.binlog.stream.commit_times import end_of_second
from lockstep.pipeline.binlog.stream.control import decode_gtid_set, read_gtid_list, to_datetime
from lockstep.pipeline.binlog.stream.framing import (
    FIRST_OFFSET,
    GTIDS,
    EventType,
    damaged,
)
from lockstep.pipeline.binlog.transactions.identity import read_identity
from lockstep.pipeline.ports.source import BinlogSize
from lockstep.pipeline.values.errors import TransactionsWithoutGtid
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile


@dataclass(frozen=True, slots=True)
class FileHead:
    """`created`: when the file was created, in whole seconds, by the server's clock unless the
    session that created the file had set another time (`SET TIMESTAMP`). `gtid_set`: the GTIDs
    executed before it, empty if the log has none. `others`: the commit time of its first
    transaction if another server executed that first, by that server's clock."""

    created: datetime
    gtid_set: GtidSet
    others: datetime | None = None


def read_file_head(dumps: Dumps, file: LogFile) -> FileHead:
    """Read a file's head from its first few hundred bytes; DamagedEvent if it has none."""
    start = Coordinates(file, FIRST_OFFSET)
    description: LoggedEvent | None = None
    gtids = GtidSet()
    committed_elsewhere = None
    with closing(dumps.dump(start)) as dump:
        for event in _until_refused(walk(dump, start)):
            if event.at.file != file:
                break
            if event.code == EventType.FORMAT_DESCRIPTION:
                description = event
            elif event.code == EventType.PREVIOUS_GTIDS:
                gtids = decode_gtid_set(event.parsed.body)
            elif event.code == EventType.MARIADB_GTID_LIST:
                gtids = read_gtid_list(event.parsed)
            elif event.code in GTIDS:
                if description is not None and event.server_id != description.server_id:
                    *_, exact = read_identity(event.parsed, [], event.log_server)
                    committed_elsewhere = to_datetime(exact or end_of_second(event.timestamp))
                break
    if description is None:
        raise damaged("a log file begins without a format description", start)
    return FileHead(to_datetime(description.timestamp * 1_000_000), gtids, committed_elsewhere)


def _until_refused(events: Iterator[LoggedEvent]) -> Iterator[LoggedEvent]:
    """Yield events up to a transaction that the server's `gtid_mode` forbids it to send."""
    try:
        yield from events
    except TransactionsWithoutGtid:
        return


class FileHeads:
    """The heads of a log's files, oldest first, each read once."""

    def __init__(self, dumps: Dumps, binlogs: Sequence[BinlogSize]) -> None:
        self._dumps = dumps
        self._binlogs = binlogs
        self._heads: dict[int, FileHead] = {}

    def read(self, number: int) -> FileHead:
        if number not in self._heads:
            self._heads[number] = read_file_head(self._dumps, self._binlogs[number].file)
        return self._heads[number]

    def first(self, matches: Callable[[GtidSet], bool], count: int | None = None) -> int:
        """Return the first of `count` files (default: all) whose set of GTIDs executed before it
        matches; `count` if none does. The sets grow from file to file, so a bisection reads few
        heads."""
        files = range(len(self._binlogs) if count is None else count)
        return bisect_left(files, True, key=lambda number: matches(self.read(number).gtid_set))


def find_file_before(dumps: Dumps, binlogs: Sequence[BinlogSize], gtids: GtidSet) -> LogFile | None:
    """Return a file before which only transactions of `gtids` were executed, so that the log from
    there on has all others. None if others were executed even before the oldest file.

    Of the possible files, return the newest that has some of the set, else the oldest: then
    transactions without a GTID, which no set contains, are not skipped if they follow the set.
    """
    heads = FileHeads(dumps, binlogs)
    late = heads.first(lambda executed: not gtids.contains(executed))
    whole = heads.first(lambda executed: executed.contains(gtids), late)
    return binlogs[max(whole - 1, 0)].file if late else None
