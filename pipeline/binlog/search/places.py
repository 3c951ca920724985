"""The search for a place by its content: boundaries of transactions, and ends of GTID sets."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Final

import numpy as np

from lockstep.pipeline.binlog.search.file_heads import read_file_head
from lockstep.pipeline.binlog.search.log_scan import (
    Dumps,
    LogScan,
    ReportProgress,
    Stretch,
    log_between,
)
from lockstep.pipeline.binlog.search.walk import LoggedEvent, walk
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET, GTIDS
from lockstep.pipeline.binlog.transactions.identity import GtidCollector, gtid_set, gtid_text, union
from lockstep.pipeline.ports.source import BinlogSize
from lockstep.pipeline.values.errors import EndNotReached, NotAnEventBoundary
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates, Position


@dataclass(frozen=True, slots=True)
class Boundary:
    """A place between two transactions, with the GTIDs executed before it.

    `rewound`: the place that was asked for is inside a transaction, and `at` is the beginning of
    that transaction. `anchor`: the event before `at`; None at a file's beginning.
    """

    at: Coordinates
    gtid_set: GtidSet
    anchor: Anchor | None
    rewound: bool


def find_boundary(dumps: Dumps, at: Coordinates, *, tell: ReportProgress | None = None) -> Boundary:
    """Prove that `at` is between two transactions, or go back to the beginning of its transaction.

    The file is read from its beginning, for the GTIDs; then the events around the place are walked.
    NotAnEventBoundary if no event begins or ends at `at`.
    """
    head = read_file_head(dumps, at.file)
    if at.offset == FIRST_OFFSET:
        return Boundary(at, head.gtid_set, None, rewound=False)
    executed, last = _executed_before(dumps, at, tell)
    offset = FIRST_OFFSET if last is None else int(last.transactions[0, columns.LAST_OFFSET])
    start = Coordinates(at.file, offset)
    place, event = _around(dumps, at, start)
    anchor = None
    if event is not None:
        ends_transaction = last is not None and event.at == start
        gtid = gtid_text(last.transactions[0], last.sources) if last and ends_transaction else ""
        created = int(head.created.timestamp())
        anchor = Anchor(event.at.offset, event.size, event.crc32, gtid, created)
    gtids = union(head.gtid_set, executed)
    return Boundary(place, gtids, anchor, rewound=place != at)


def _executed_before(
    dumps: Dumps, at: Coordinates, tell: ReportProgress | None
) -> tuple[GtidSet, Stretch | None]:
    """Return the GTIDs of the transactions that end in the file at or before `at`, and the last of
    these transactions."""
    start = Coordinates(at.file, FIRST_OFFSET)
    read = GtidCollector()
    last: Stretch | None = None
    for stretch in LogScan(dumps, start, at, whole=False, tell=tell, total=at.offset):
        rows = stretch.transactions
        in_file = np.array([file == at.file for file in stretch.files])[rows[:, columns.FILE]]
        ended = rows[in_file & (rows[:, columns.END_OFFSET] <= at.offset)]
        if len(ended):
            last = Stretch(ended[-1:], stretch.files, stretch.sources)
            read.add(ended, stretch.sources)
    return read.set(), last


def _around(
    dumps: Dumps, at: Coordinates, start: Coordinates
) -> tuple[Coordinates, LoggedEvent | None]:
    """Return `at` and the event before it; if `at` is inside a transaction, the transaction's
    beginning and the event before that. `start`: the beginning of the event that ends the last
    transaction before `at`."""
    last: LoggedEvent | None = None
    transaction_begin: tuple[Coordinates, LoggedEvent | None] | None = None
    end = start
    with closing(dumps.dump(start)) as dump:
        for event in walk(dump, start):
            if event.at.file != at.file or event.at >= at:
                break
            if event.at < start:
                continue
            if event.code in GTIDS:
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
    """Return the event that begins at a place, as an anchor; None if no event begins there."""
    created = int(read_file_head(dumps, at.file).created.timestamp())
    with closing(dumps.dump(at)) as dump:
        event = next((event for event in walk(dump, at) if event.at >= at), None)
    if event is None or event.at != at:
        return None
    return Anchor(at.offset, event.size, event.crc32, "", created)


def find_end_of(
    dumps: Dumps,
    start: Position,
    head: Coordinates,
    gtids: GtidSet,
    *,
    binlogs: Sequence[BinlogSize] = (),
    tell: ReportProgress | None = None,
) -> Coordinates:
    """Return the end of the first transaction after which all of `gtids` are executed; `start` if
    they are executed before it. `EndNotReached` if some are not in the log up to `head`.
    `binlogs` only serves to report progress (`tell`)."""
    missing = gtids.difference(start.gtid_set)
    if not missing:
        return start.at
    total = log_between(start.at, head, binlogs)
    with closing(iter(LogScan(dumps, start.at, head, tell=tell, total=total))) as stretches:
        for stretch in stretches:
            still_missing = missing.difference(gtid_set(stretch.transactions, stretch.sources))
            if not still_missing:
                return stretch.end(_first_complete_row(stretch, missing))
            missing = still_missing
    raise EndNotReached(
        f"the log up to {head} does not have {missing.shortened(_SHOWN)}",
        hint="choose GTIDs that this server executed (SELECT @@gtid_executed) and did not purge, "
        "or run again once it has executed them",
    )


_SHOWN: Final = 200
"""Most characters of a GTID set that an error shows."""


def _first_complete_row(stretch: Stretch, missing: GtidSet) -> int:
    """Return the first row after which no GTID is missing."""
    rows = stretch.transactions

    def none_missing(row: int) -> bool:
        return not missing.difference(gtid_set(rows[: row + 1], stretch.sources))

    return bisect_left(range(len(rows)), True, key=none_missing)
