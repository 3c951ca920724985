"""The head of a log file: what it says before its first transaction.

Belongs here: reading heads, and finding the file to begin in by what they say of GTIDs.
Does not: looking inside files (`search`, `moments`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pipeline.binlog.search.log_scan import Dumps, opened
from pipeline.binlog.search.walk import GTIDS, Seen, commit_time, walk
from pipeline.binlog.stream.commit_times import latest_commit_time
from pipeline.binlog.stream.control import moment, read_previous_gtids
from pipeline.binlog.stream.damage import damaged
from pipeline.binlog.stream.event_reader import Reader
from pipeline.binlog.stream.framing import FIRST_OFFSET, Event, EventType
from pipeline.errors import DamagedEvent, TransactionsWithoutGtid
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
    with opened(dumps, start) as dump:
        for seen in _until_refused(walk(dump, start)):
            if seen.at.file != file:
                break
            if seen.code == EventType.FORMAT_DESCRIPTION:
                description = seen
            elif seen.code == EventType.PREVIOUS_GTIDS:
                gtids = read_previous_gtids(seen.event)
            elif seen.code == EventType.MARIADB_GTID_LIST:
                gtids = read_gtid_list(seen.event)
            elif seen.code in GTIDS:
                if description is not None and seen.server_id != description.server_id:
                    others = moment(latest_commit_time(commit_time(seen), seen.timestamp))
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
        raise DamagedEvent(
            f"a GTID_LIST event is not a list of GTIDs, at {event.at}: {error}",
            hint="it was not recorded; look at the file with mysqlbinlog",
        ) from error


def find_file_before(dumps: Dumps, binlogs: Sequence[BinlogSize], gtids: GtidSet) -> LogFile | None:
    """A file before which nothing was executed that is not in `gtids`: whatever is not in it
    stands from there on. None if even the oldest file comes too late.

    Of those files it is the newest in which some of the set stands, else the oldest: what is
    in no set, because it has no GTID, is not passed over where it came after the set. Heads
    grow from file to file, so that a few of them are read.
    """
    heads: dict[int, GtidSet] = {}

    def head(number: int) -> GtidSet:
        if number not in heads:
            heads[number] = read_file_head(dumps, binlogs[number].file).gtid_set
        return heads[number]

    late = bisect_left(range(len(binlogs)), True, key=lambda one: not gtids.contains(head(one)))
    whole = bisect_left(range(late), True, key=lambda one: head(one).contains(gtids))
    return binlogs[max(whole - 1, 0)].file if late else None
