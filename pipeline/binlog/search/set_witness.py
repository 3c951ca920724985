"""Transactions by which a set of GTIDs is known again: what each log that has them shows alike.

Belongs here: taking the last transaction of each source out of what is read, finding it in
another server's log, and a digest of one whose log tells no time. Does not: what follows from
it (`pipeline.start`).

A server that was reset gives the same GTIDs once more, and a copy of it under another UUID
shows nothing of that. What holds on every server is when a transaction was committed first,
to the microsecond (`original_commit_timestamp`, MySQL since 8.0). Where the log has none
(MariaDB), it is what the transaction says: its statements and rows, without numbers of
tables and offsets, and the seconds that its events carry, which a replica keeps.
"""

from __future__ import annotations

import zlib
from bisect import bisect_left
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from typing import Final

import numpy as np

from pipeline.binlog.search.file_heads import read_file_head
from pipeline.binlog.search.log_scan import Dumps, LogScan, opened
from pipeline.binlog.search.walk import GTIDS, Seen, walk
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.control import read_query
from pipeline.binlog.stream.framing import COMPRESSED_ROWS, FIRST_OFFSET, HEADER, EventType
from pipeline.binlog.stream.mariadb import plain_query, plain_rows
from pipeline.binlog.stream.ring import ANONYMOUS, Integers, place_of
from pipeline.binlog.transactions.identity import gtid_text
from pipeline.gtid import GtidSet
from pipeline.ports.source import BinlogSize
from pipeline.position import Coordinates, LogFile, SetWitness

_IDENTITY: Final = (columns.GTID_KIND, columns.GTID_HIGH, columns.GTID_LOW)
_ROWS: Final = frozenset(COMPRESSED_ROWS.values())
"""WRITE, UPDATE and DELETE_ROWS in both versions."""

_TABLE_ID_AND_FLAGS: Final = 8
_EVENTS: Final = 256
"""So many events of a transaction count for its digest."""


class LastOfSources:
    """The last transaction of each source among those that are told, by their order in the log."""

    def __init__(self) -> None:
        self._last: dict[tuple[int, int, int], tuple[str, int, Coordinates]] = {}

    def add(self, transactions: Integers, sources: Sequence[str], files: Sequence[LogFile]) -> None:
        """More of them, behind those that were told before."""
        named = transactions[transactions[:, columns.GTID_KIND] != ANONYMOUS]
        if not len(named):
            return
        for row in _last_rows(named):
            kind, high, low = row[list(_IDENTITY)].tolist()
            at = place_of(row, columns.BEGIN_OFFSET, files)
            self._last.pop((kind, high, low), None)
            told = gtid_text(row, sources), int(row[columns.COMMITTED_AT]), at
            self._last[kind, high, low] = told

    def witnesses(self, dumps: Dumps) -> tuple[SetWitness, ...]:
        """One for each source, that of the last transaction first."""
        told = reversed(self._last.values())
        return tuple(witness_of(dumps, gtid, committed, at) for gtid, committed, at in told)


def _last_rows(transactions: Integers) -> Integers:
    """The last row of each source, in the order of the log."""
    identities = transactions[:, list(_IDENTITY)]
    if (identities == identities[-1]).all():
        return transactions[-1:]
    _, lasts = np.unique(identities[::-1], axis=0, return_index=True)
    return transactions[np.sort(len(transactions) - 1 - lasts)]


def witness_of(dumps: Dumps, gtid: str, committed_at: int, at: Coordinates) -> SetWitness:
    """The transaction that begins at a place, as each log that has it shows it."""
    return SetWitness(gtid, committed_at, "" if committed_at else digest(dumps, at))


def find_witnesses(
    dumps: Dumps, binlogs: Sequence[BinlogSize], end: Coordinates, gtids: Collection[str]
) -> Mapping[str, SetWitness]:
    """Those of these transactions that stand in the log up to `end`, as it shows them."""
    files = [log.file for log in binlogs]
    heads: dict[int, GtidSet] = {}

    def head(number: int) -> GtidSet:
        if number not in heads:
            heads[number] = read_file_head(dumps, files[number]).gtid_set
        return heads[number]

    def behind(gtid: GtidSet) -> int:
        """The first file that begins behind it."""
        return bisect_left(range(len(files)), True, key=lambda one: head(one).contains(gtid))

    wanted: dict[int, set[str]] = {}
    for gtid in gtids:
        if number := behind(GtidSet.parse(gtid)):
            wanted.setdefault(number - 1, set()).add(gtid)
    witnesses: dict[str, SetWitness] = {}
    for number, those in wanted.items():
        start = Coordinates(files[number], FIRST_OFFSET)
        last = number + 1 == len(files)
        stop = end if last else Coordinates(files[number + 1], FIRST_OFFSET)
        witnesses |= _found(dumps, start, stop, those)
    return witnesses


def _found(
    dumps: Dumps, start: Coordinates, end: Coordinates, gtids: Collection[str]
) -> dict[str, SetWitness]:
    numbers = np.array([_number_of(gtid) for gtid in gtids], np.int64)
    places: dict[str, tuple[int, Coordinates]] = {}
    with closing(iter(LogScan(dumps, start, end, whole=False))) as stretches:
        for stretch in stretches:
            own = np.isin(stretch.transactions[:, columns.GTID_NUMBER], numbers)
            for row in np.flatnonzero(own).tolist():
                one = stretch.transactions[row]
                gtid = gtid_text(one, stretch.sources)
                if gtid in gtids:
                    places[gtid] = int(one[columns.COMMITTED_AT]), stretch.begin(row)
            if len(places) == len(gtids):
                break
    return {gtid: witness_of(dumps, gtid, *place) for gtid, place in places.items()}


def _number_of(gtid: str) -> int:
    """Behind what it counts in, MySQL's or MariaDB's."""
    return int(gtid.rpartition(":" if ":" in gtid else "-")[2])


def digest(dumps: Dumps, at: Coordinates) -> str:
    """What the transaction that begins at a place says, in a form that a replica's log
    shares: compressed there or not, with notes of statements or without."""
    told, count, begun = 0, 0, False
    with opened(dumps, at) as dump:
        for seen in walk(dump, at):
            if seen.at < at:
                continue
            if (begun and seen.code in GTIDS) or count >= _EVENTS:
                break
            begun = True
            if said := _said(seen):
                told, count = zlib.crc32(said, told), count + 1
            if seen.code in (EventType.XID, EventType.XA_PREPARE):
                break
    return f"{told:08x}"


def _said(seen: Seen) -> bytes:
    """Nothing for what a server adds of its own."""
    if seen.code in COMPRESSED_ROWS:
        plain = plain_rows(seen.event).tobytes()
        return _rows(seen, COMPRESSED_ROWS[EventType(seen.code)], plain[HEADER.size :])
    if seen.code in _ROWS:
        return _rows(seen, seen.code, seen.event.body)
    if seen.code in (EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED):
        event = seen.event if seen.code == EventType.QUERY else plain_query(seen.event)
        return b"%d " % seen.timestamp + read_query(event).text.encode("utf-8", "replace")
    return b""


def _rows(seen: Seen, code: int, body: bytes) -> bytes:
    return b"%d %d " % (code, seen.timestamp) + bytes(body[_TABLE_ID_AND_FLAGS:])
