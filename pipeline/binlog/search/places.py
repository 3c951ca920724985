"""Places in a log found by what stands there: boundaries, and ends of GTID sets.

Belongs here: proving a place to lie between two transactions, and finding the one by which
a set of them is there. Does not: files by their heads (`file_heads`), moments (`moments`),
deciding what to do about it (`pipeline.start`).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeline.binlog.search.file_heads import read_file_head
from pipeline.binlog.search.log_scan import Dumps, LogScan, Stretch, Tell, log_between, opened
from pipeline.binlog.search.walk import GTIDS, Seen, walk
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.binlog.stream.ring import Integers
from pipeline.binlog.transactions.identity import GtidsRead, gtid_set, gtid_text, together
from pipeline.errors import EndNotReached, NotAnEventBoundary
from pipeline.gtid import GtidSet
from pipeline.ports.source import BinlogSize
from pipeline.position import Coordinates, Position, Witness


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place between two transactions: at or before the one asked for (`rewound` if
    that lay inside a transaction), the GTIDs executed up to it, and the witness of the
    event before it; None at a file's very beginning."""

    at: Coordinates
    gtid_set: GtidSet
    witness: Witness | None
    rewound: bool


def find_boundary(dumps: Dumps, at: Coordinates, *, tell: Tell | None = None) -> Boundary:
    """Prove that `at` lies between two transactions, or go back to where its own begins.

    The file is looked through from its beginning, whatever it holds; the events around the
    place are walked. NotAnEventBoundary if no event begins or ends at `at`.
    """
    head = read_file_head(dumps, at.file)
    if at.offset == FIRST_OFFSET:
        return Boundary(at, head.gtid_set, None, rewound=False)
    before = _before(dumps, at, tell)
    place = _around(dumps, at, before.last_event)
    gtids = together(head.gtid_set, before.gtids)
    created = int(head.created.timestamp())
    witness = None if place.witness is None else _witness(place.witness, before, created)
    return Boundary(place.at, gtids, witness, rewound=place.at != at)


@dataclass(frozen=True, slots=True)
class _Before:
    """What ends at or before a place: all GTIDs, and the last transaction's GTID and last
    event; "" and the file's beginning if there is none."""

    gtids: GtidSet
    gtid: str
    last_event: Coordinates


def _before(dumps: Dumps, at: Coordinates, tell: Tell | None) -> _Before:
    start = Coordinates(at.file, FIRST_OFFSET)
    read = GtidsRead()
    last: Stretch | None = None
    for stretch in LogScan(dumps, start, at, whole=False, tell=tell, total=at.offset):
        one = stretch.transactions
        here = np.array([file == at.file for file in stretch.files])[one[:, columns.FILE]]
        ended = one[here & (one[:, columns.END_OFFSET] <= at.offset)]
        if len(ended):
            last = Stretch(ended[-1:], stretch.files, stretch.sources)
            read.add(ended, stretch.sources)
    if last is None:
        return _Before(read.set(), "", start)
    row: Integers = last.transactions[0]
    event = Coordinates(at.file, int(row[columns.LAST_OFFSET]))
    return _Before(read.set(), gtid_text(row, last.sources), event)


@dataclass(frozen=True, slots=True)
class _Place:
    """A place between two transactions, and the event before it."""

    at: Coordinates
    witness: Seen | None


def _around(dumps: Dumps, at: Coordinates, start: Coordinates) -> _Place:
    """`at`, or the beginning of the transaction that it lies in. No transaction that begins
    behind `start` ends at or before `at`."""
    last: Seen | None = None
    within: _Place | None = None
    end = start
    with opened(dumps, start) as dump:
        for seen in walk(dump, start):
            if seen.at.file != at.file or seen.at >= at:
                break
            if seen.at < start:
                continue
            if seen.code in GTIDS:
                within = _Place(seen.at, last)
            last, end = seen, seen.after
    if end != at:
        # Inside the last event that was seen, or behind the end of the file.
        nearest = last.at if last is not None and end > at else end
        raise NotAnEventBoundary(
            f"no event begins at {at}; the nearest place before it is {nearest}",
            hint=f"choose {nearest}, or an offset that SHOW BINLOG EVENTS lists",
        )
    return within or _Place(at, last)


def _witness(event: Seen, before: _Before, created: int) -> Witness:
    gtid = before.gtid if event.at == before.last_event else ""
    return Witness(event.at.offset, event.size, event.crc32, gtid, created)


def find_end_of(
    dumps: Dumps,
    start: Position,
    head: Coordinates,
    gtids: GtidSet,
    *,
    binlogs: Sequence[BinlogSize] = (),
    tell: Tell | None = None,
) -> Coordinates:
    """The end of the first transaction by which all of `gtids` were executed: those before
    `start` and those read from there. `EndNotReached` if the log up to `head` lacks some.
    `binlogs` are for `tell` alone."""
    missing = gtids.difference(start.gtid_set)
    if not missing:
        return start.at
    total = log_between(start.at, head, binlogs)
    with closing(iter(LogScan(dumps, start.at, head, tell=tell, total=total))) as stretches:
        for stretch in stretches:
            left = missing.difference(gtid_set(stretch.transactions, stretch.sources))
            if not left:
                return stretch.end(_completing(stretch, missing))
            missing = left
    raise EndNotReached(
        f"the log up to {head} does not hold {missing.shortened(_SHOWN)}",
        hint="choose GTIDs that this server executed (SELECT @@gtid_executed) and did not purge, "
        "or run again once it has executed them",
    )


_SHOWN: Final = 200


def _completing(stretch: Stretch, missing: GtidSet) -> int:
    """The row by which nothing is missing any more."""
    rows = stretch.transactions

    def complete(row: int) -> bool:
        return not missing.difference(gtid_set(rows[: row + 1], stretch.sources))

    return bisect_left(range(len(rows)), True, key=complete)
