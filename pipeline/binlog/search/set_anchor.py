"""Anchors of a GTID set: transactions by which the set is recognised in another server's log.

A server that was reset assigns the same GTIDs again, so a GTID alone does not identify a
transaction. What is the same in the log of every server is the time of its first commit, to the
microsecond (`original_commit_timestamp`, MySQL since 8.0). Without it (MariaDB), a digest is used:
of the transaction's statements and rows, without table ids and offsets, and of the seconds in its
events' headers, which replicas keep.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.search.file_heads import FileHeads
from lockstep.pipeline.binlog.search.log_scan import Dumps, LogScan
from lockstep.pipeline.binlog.search.walk import LoggedEvent, walk
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.compressed import plain_query, plain_rows
from lockstep.pipeline.binlog.stream.control import read_query
from lockstep.pipeline.binlog.stream.framing import (
    COMPRESSED_ROWS,
    FIRST_OFFSET,
    GTIDS,
    HEADER,
    ROWS,
    EventType,
)
from lockstep.pipeline.binlog.stream.ring import ANONYMOUS, Integers, place_of
from lockstep.pipeline.binlog.transactions.identity import gtid_text
from lockstep.pipeline.ports.source import BinlogSize
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile, SetAnchor

_IDENTITY: Final = (columns.GTID_KIND, columns.GTID_HIGH, columns.GTID_LOW)

_TABLE_ID_AND_FLAGS: Final = 8
_DIGESTED_EVENTS: Final = 256
"""Number of leading events that are hashed into a transaction's digest."""


class LastTransactions:
    """The last transaction of each GTID source, in the order of the log."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int, int], tuple[str, int, Coordinates]] = {}

    def add(self, transactions: Integers, sources: Sequence[str], files: Sequence[LogFile]) -> None:
        """Add transactions, which follow those added before."""
        named = transactions[transactions[:, columns.GTID_KIND] != ANONYMOUS]
        if not len(named):
            return
        for row in _last_rows(named):
            kind, high, low = row[list(_IDENTITY)].tolist()
            at = place_of(row, columns.BEGIN_OFFSET, files)
            self._last.pop((kind, high, low), None)
            transaction = gtid_text(row, sources), int(row[columns.COMMITTED_AT]), at
            self._last[kind, high, low] = transaction

    def anchors(self, dumps: Dumps) -> tuple[SetAnchor, ...]:
        """Return an anchor for each source, that of the last transaction first."""
        newest_first = reversed(self._last.values())
        return tuple(_anchor(dumps, gtid, committed, at) for gtid, committed, at in newest_first)


def _last_rows(transactions: Integers) -> Integers:
    identities = transactions[:, list(_IDENTITY)]
    if (identities == identities[-1]).all():
        return transactions[-1:]
    _, lasts = np.unique(identities[::-1], axis=0, return_index=True)
    return transactions[np.sort(len(transactions) - 1 - lasts)]


def _anchor(dumps: Dumps, gtid: str, committed_at: int, at: Coordinates) -> SetAnchor:
    """Return the anchor for the transaction that begins at `at`."""
    return SetAnchor(gtid, committed_at, "" if committed_at else _digest(dumps, at))


def find_anchors(
    dumps: Dumps, binlogs: Sequence[BinlogSize], end: Coordinates, gtids: Collection[str]
) -> Mapping[str, SetAnchor]:
    """Return the anchors of those transactions that are in the log up to `end`."""
    heads = FileHeads(dumps, binlogs)
    gtids_in: dict[int, set[str]] = {}
    for gtid in gtids:
        if late := heads.first(partial(_contains, GtidSet.parse(gtid))):
            gtids_in.setdefault(late - 1, set()).add(gtid)
    anchors: dict[str, SetAnchor] = {}
    for number, gtids_there in gtids_in.items():
        start = Coordinates(binlogs[number].file, FIRST_OFFSET)
        later = [Coordinates(log.file, FIRST_OFFSET) for log in binlogs[number + 1 :]]
        anchors |= _find_in(dumps, start, later[0] if later else end, gtids_there)
    return anchors


def _contains(gtid: GtidSet, executed: GtidSet) -> bool:
    return executed.contains(gtid)


def _find_in(
    dumps: Dumps, start: Coordinates, end: Coordinates, gtids: Collection[str]
) -> dict[str, SetAnchor]:
    numbers = np.array([_number_of(gtid) for gtid in gtids], np.int64)
    places: dict[str, tuple[int, Coordinates]] = {}
    with closing(iter(LogScan(dumps, start, end, whole=False))) as stretches:
        for stretch in stretches:
            own = np.isin(stretch.transactions[:, columns.GTID_NUMBER], numbers)
            for row in np.flatnonzero(own).tolist():
                transaction = stretch.transactions[row]
                gtid = gtid_text(transaction, stretch.sources)
                if gtid in gtids:
                    places[gtid] = int(transaction[columns.COMMITTED_AT]), stretch.begin(row)
            if len(places) == len(gtids):
                break
    return {gtid: _anchor(dumps, gtid, *place) for gtid, place in places.items()}


def _number_of(gtid: str) -> int:
    """Return the number in a GTID of MySQL or MariaDB."""
    return int(gtid.rpartition(":" if ":" in gtid else "-")[2])


def _digest(dumps: Dumps, at: Coordinates) -> str:
    """Return the digest of the transaction that begins at `at`. It is the same in the log of a
    replica, compressed or not, with texts of statements or without."""
    digest, count, begun = 0, 0, False
    with closing(dumps.dump(at)) as dump:
        for event in walk(dump, at):
            if event.at < at:
                continue
            if (begun and event.code in GTIDS) or count >= _DIGESTED_EVENTS:
                break
            begun = True
            if content := _content(event):
                digest, count = zlib.crc32(content, digest), count + 1
            if event.code in (EventType.XID, EventType.XA_PREPARE):
                break
    return f"{digest:08x}"


def _content(event: LoggedEvent) -> bytes:
    """Return the bytes of an event that are hashed; none for events that a replica may not have."""
    if event.code in COMPRESSED_ROWS:
        plain = plain_rows(event.parsed).tobytes()
        return _rows(event, COMPRESSED_ROWS[EventType(event.code)], plain[HEADER.size :])
    if event.code in ROWS:
        return _rows(event, event.code, event.parsed.body)
    if event.code in (EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED):
        query = event.parsed if event.code == EventType.QUERY else plain_query(event.parsed)
        return b"%d " % event.timestamp + read_query(query).text.encode("utf-8", "replace")
    return b""


def _rows(event: LoggedEvent, code: int, body: bytes) -> bytes:
    return b"%d %d " % (code, event.timestamp) + bytes(body[_TABLE_ID_AND_FLAGS:])
