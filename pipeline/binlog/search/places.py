"""Places in a log found by what stands there: boundaries, and ends of GTID sets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeline.binlog.search.file_heads import read_file_head
from pipeline.binlog.search.log_scan import Dumps, LogScan, Stretch, Tell, log_between
from pipeline.binlog.search.walk import Seen, walk
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.framing import FIRST_OFFSET, GTIDS
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
    executed, last = _executed_before(dumps, at, tell)
    offset = FIRST_OFFSET if last is None else int(last.transactions[0, columns.LAST_OFFSET])
    start = Coordinates(at.file, offset)
    place, event = _around(dumps, at, start)
    witness = None
    if event is not None:
        ends = last is not None and event.at == start
        gtid = gtid_text(last.transactions[0], last.sources) if last and ends else ""
        created = int(head.created.timestamp())
        witness = Witness(event.at.offset, event.size, event.crc32, gtid, created)
    gtids = together(head.gtid_set, executed)
    return Boundary(place, gtids, witness, rewound=place != at)


def _executed_before(
    dumps: Dumps, at: Coordinates, tell: Tell | None
) -> tuple[GtidSet, Stretch | None]:
    """The GTIDs of what ends in the file at or before a place, and the last such transaction."""
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
    return read.set(), last


def _around(dumps: Dumps, at: Coordinates, start: Coordinates) -> tuple[Coordinates, Seen | None]:
    """`at`, or the beginning of the transaction that it lies in, and the event before that. No
    transaction that begins behind `start` ends at or before `at`."""
    last: Seen | None = None
    within: tuple[Coordinates, Seen | None] | None = None
    end = start
    with closing(dumps.dump(start)) as dump:
        for seen in walk(dump, start):
            if seen.at.file != at.file or seen.at >= at:
                break
            if seen.at < start:
                continue
            if seen.code in GTIDS:
                within = seen.at, last
            last, end = seen, seen.after
    if end != at:
        # Inside the last event that was seen, or behind the end of the file.
        nearest = last.at if last is not None and end > at else end
        raise NotAnEventBoundary(
            f"no event begins at {at}; the nearest place before it is {nearest}",
            hint=f"choose {nearest}, or an offset that SHOW BINLOG EVENTS lists",
        )
    return within or (at, last)


def read_witness(dumps: Dumps, at: Coordinates) -> Witness | None:
    """The event that begins at a place, as a witness; None if none does."""
    created = int(read_file_head(dumps, at.file).created.timestamp())
    with closing(dumps.dump(at)) as dump:
        event = next((seen for seen in walk(dump, at) if seen.at >= at), None)
    if event is None or event.at != at:
        return None
    return Witness(at.offset, event.size, event.crc32, "", created)


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
