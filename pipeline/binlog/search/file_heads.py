"""The head of a log file: what it says before its first transaction."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pipeline.binlog.search.log_scan import Dumps
from pipeline.binlog.search.walk import Seen, walk
from pipeline.binlog.stream.commit_times import end_of_second
from pipeline.binlog.stream.control import moment
from pipeline.binlog.stream.event_reader import Reader
from pipeline.binlog.stream.framing import FIRST_OFFSET, GTIDS, Event, EventType
from pipeline.binlog.stream.gtid_sets import decoded
from pipeline.binlog.stream.outcomes import damaged
from pipeline.binlog.transactions.identity import read_identity
from pipeline.errors import TransactionsWithoutGtid
from pipeline.gtid import GtidSet
from pipeline.ports.source import BinlogSize
from pipeline.position import Coordinates, LogFile

_COUNT: Final = (1 << 28) - 1


@dataclass(frozen=True, slots=True)
class FileHead:
    """`created`: when the file was made, in whole seconds, by the clock of the session that made
    it: the server's, unless that session had changed its own (`SET TIMESTAMP`). `gtid_set`: what
    was executed before it, empty where the log has no GTIDs. `others`: when its first transaction
    was committed, if that was on another server, by whose clock that is."""

    created: datetime
    gtid_set: GtidSet
    others: datetime | None = None


def read_file_head(dumps: Dumps, file: LogFile) -> FileHead:
    """The head of a file, from its first few hundred bytes; DamagedEvent for one without."""
    start = Coordinates(file, FIRST_OFFSET)
    description: Seen | None = None
    gtids = GtidSet()
    others = None
    with closing(dumps.dump(start)) as dump:
        for seen in _until_refused(walk(dump, start)):
            if seen.at.file != file:
                break
            if seen.code == EventType.FORMAT_DESCRIPTION:
                description = seen
            elif seen.code == EventType.PREVIOUS_GTIDS:
                gtids = decoded(seen.event.body)
            elif seen.code == EventType.MARIADB_GTID_LIST:
                gtids = read_gtid_list(seen.event)
            elif seen.code in GTIDS:
                if description is not None and seen.server_id != description.server_id:
                    *_, exact = read_identity(seen.event, [], seen.log_server)
                    others = moment(exact or end_of_second(seen.timestamp))
                break
    if description is None:
        raise damaged("a log file begins without a format description", start)
    return FileHead(moment(description.timestamp * 1_000_000), gtids, others)


def _until_refused(events: Iterator[Seen]) -> Iterator[Seen]:
    """What a server shows, up to a transaction that its `gtid_mode` does not let it send."""
    try:
        yield from events
    except TransactionsWithoutGtid:
        return


def read_gtid_list(event: Event) -> GtidSet:
    """MariaDB's GTID_LIST: count 4 (the low 28 bits), then domain 4, server 4 and number 8
    of the last transaction of each (`Gtid_list_log_event` in MariaDB's `sql/log_event.h`)."""
    reader = Reader(event.body, "a GTID_LIST event")
    count = reader.integer(4) & _COUNT
    parts = [f"{reader.integer(4)}-{reader.integer(4)}-{reader.integer(8)}" for _ in range(count)]
    try:
        return GtidSet.parse(",".join(parts))
    except ValueError as error:
        raise damaged(f"a GTID_LIST event is not a list of GTIDs: {error}", event.at) from error


class FileHeads:
    """The heads of a log's files, oldest first, each read once."""

    def __init__(self, dumps: Dumps, binlogs: Sequence[BinlogSize]) -> None:
        self._dumps = dumps
        self._binlogs = binlogs
        self._known: dict[int, FileHead] = {}

    def read(self, number: int) -> FileHead:
        if number not in self._known:
            self._known[number] = read_file_head(self._dumps, self._binlogs[number].file)
        return self._known[number]

    def first(self, matches: Callable[[GtidSet], bool], count: int | None = None) -> int:
        """The first of so many files (all) before which GTIDs were executed that match; their
        number if there is none. GTIDs grow from file to file, so that a few heads are read."""
        files = range(len(self._binlogs) if count is None else count)
        return bisect_left(files, True, key=lambda number: matches(self.read(number).gtid_set))


def find_file_before(dumps: Dumps, binlogs: Sequence[BinlogSize], gtids: GtidSet) -> LogFile | None:
    """A file before which nothing was executed that is not in `gtids`: whatever is not in it
    stands from there on. None if even the oldest file comes too late.

    Of those files it is the newest in which some of the set stands, else the oldest: what is
    in no set, because it has no GTID, is not passed over where it came after the set.
    """
    heads = FileHeads(dumps, binlogs)
    late = heads.first(lambda executed: not gtids.contains(executed))
    whole = heads.first(lambda executed: executed.contains(gtids), late)
    return binlogs[max(whole - 1, 0)].file if late else None
