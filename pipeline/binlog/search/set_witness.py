"""Transactions by which a set of GTIDs is known again: what each log that has them shows alike.

A server that was reset gives the same GTIDs once more, and a copy of it under another UUID
shows nothing of that. What holds on every server is when a transaction was committed first,
to the microsecond (`original_commit_timestamp`, MySQL since 8.0). Where the log has none
(MariaDB), it is what the transaction says: its statements and rows, without numbers of
tables and offsets, and the seconds that its events carry, which a replica keeps.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Mapping, Sequence
from contextlib import closing
from functools import partial
from typing import Final

import numpy as np

from pipeline.binlog.search.file_heads import FileHeads
from pipeline.binlog.search.log_scan import Dumps, LogScan
from pipeline.binlog.search.walk import Seen, walk
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.compressed import plain_query, plain_rows
from pipeline.binlog.stream.control import read_query
from pipeline.binlog.stream.framing import (
    COMPRESSED_ROWS,
    FIRST_OFFSET,
    GTIDS,
    HEADER,
    ROWS,
    EventType,
)
from pipeline.binlog.stream.ring import ANONYMOUS, Integers, place_of
from pipeline.binlog.transactions.identity import gtid_text
from pipeline.gtid import GtidSet
from pipeline.ports.source import BinlogSize
from pipeline.position import Coordinates, LogFile, SetWitness

_IDENTITY: Final = (columns.GTID_KIND, columns.GTID_HIGH, columns.GTID_LOW)

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
        return tuple(_witness(dumps, gtid, committed, at) for gtid, committed, at in told)


def _last_rows(transactions: Integers) -> Integers:
    identities = transactions[:, list(_IDENTITY)]
    if (identities == identities[-1]).all():
        return transactions[-1:]
    _, lasts = np.unique(identities[::-1], axis=0, return_index=True)
    return transactions[np.sort(len(transactions) - 1 - lasts)]


def _witness(dumps: Dumps, gtid: str, committed_at: int, at: Coordinates) -> SetWitness:
    """The transaction that begins at a place, as each log that has it shows it."""
    return SetWitness(gtid, committed_at, "" if committed_at else _digest(dumps, at))


def find_witnesses(
    dumps: Dumps, binlogs: Sequence[BinlogSize], end: Coordinates, gtids: Collection[str]
) -> Mapping[str, SetWitness]:
    """Those of these transactions that stand in the log up to `end`, as it shows them."""
    heads = FileHeads(dumps, binlogs)
    wanted: dict[int, set[str]] = {}
    for gtid in gtids:
        if behind := heads.first(partial(_contains, GtidSet.parse(gtid))):
            wanted.setdefault(behind - 1, set()).add(gtid)
    witnesses: dict[str, SetWitness] = {}
    for number, those in wanted.items():
        start = Coordinates(binlogs[number].file, FIRST_OFFSET)
        later = [Coordinates(log.file, FIRST_OFFSET) for log in binlogs[number + 1 :]]
        witnesses |= _found(dumps, start, later[0] if later else end, those)
    return witnesses


def _contains(gtid: GtidSet, executed: GtidSet) -> bool:
    return executed.contains(gtid)


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
    return {gtid: _witness(dumps, gtid, *place) for gtid, place in places.items()}


def _number_of(gtid: str) -> int:
    """Behind what it counts in, MySQL's or MariaDB's."""
    return int(gtid.rpartition(":" if ":" in gtid else "-")[2])


def _digest(dumps: Dumps, at: Coordinates) -> str:
    """What the transaction that begins at a place says, in a form that a replica's log
    shares: compressed there or not, with notes of statements or without."""
    told, count, begun = 0, 0, False
    with closing(dumps.dump(at)) as dump:
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
    if seen.code in ROWS:
        return _rows(seen, seen.code, seen.event.body)
    if seen.code in (EventType.QUERY, EventType.MARIADB_QUERY_COMPRESSED):
        event = seen.event if seen.code == EventType.QUERY else plain_query(seen.event)
        return b"%d " % seen.timestamp + read_query(event).text.encode("utf-8", "replace")
    return b""


def _rows(seen: Seen, code: int, body: bytes) -> bytes:
    return b"%d %d " % (code, seen.timestamp) + bytes(body[_TABLE_ID_AND_FLAGS:])
