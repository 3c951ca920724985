"""Commit times of transactions, from the log, in microseconds since the epoch.

MySQL's GTID events have commit timestamps since 8.0:

| where a transaction was executed first | its commit time |
|---|---|
| on the server that wrote the log | the immediate commit timestamp: no session can set it |
| on another server | the earlier of the original and the immediate timestamp |

MariaDB and MySQL 5.7 have no such timestamps. There the commit time is the second in
the header of the transaction's last event: the second in which COMMIT began (or the
statement, if it commits by itself). A session can set that second (`SET TIMESTAMP`).

The lake and the ledger (the database of positions) record the beginning of that second.
A search uses its end, so that a search for a moment within the second does not miss the
transaction.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, TypeVar

import numpy as np

from lockstep.pipeline.binlog.stream import ring
from lockstep.pipeline.binlog.stream.control import to_datetime
from lockstep.pipeline.binlog.stream.ring import Integers
from lockstep.pipeline.values.division import microseconds

SECOND: Final = 1_000_000
"""Microseconds in a second."""

SKEW: Final = timedelta(minutes=1)
"""Largest clock skew between two hosts at which a commit time is still believed."""

_Number = TypeVar("_Number", int, Integers)


def exact_commit_time(immediate: int, original: int, is_own: bool) -> int:
    """Return a transaction's commit time from the timestamps of its GTID event, as the
    table says. `is_own`: the server that wrote the log executed it first."""
    return immediate if is_own or original > immediate else original


def commit_times(transactions: Integers) -> Integers:
    """Return the commit time of each row of an index of transactions (`ring`)."""
    return _exact_times_or(transactions[:, ring.LAST_TIMESTAMP] * SECOND, transactions)


def latest_commit_times(transactions: Integers) -> Integers:
    """Return the commit times for a search: for a whole second, its last microsecond."""
    return _exact_times_or(end_of_second(transactions[:, ring.LAST_TIMESTAMP]), transactions)


def _exact_times_or(times: Integers, transactions: Integers) -> Integers:
    exact_times = transactions[:, ring.COMMIT_TIME]
    return np.where(exact_times > 0, exact_times, times)


def end_of_second(second: _Number) -> _Number:
    """Return the last microsecond of a second since the epoch."""
    return (second + 1) * SECOND - 1


class NewestCommit:
    """The newest commit time of a batch's transactions. `read_at`: when the server was
    asked for the end of its log. A commit time that is later than that by more than
    `SKEW` is wrong and ignored. If all are wrong, `read_at` is used instead."""

    def __init__(self, read_at: datetime) -> None:
        self._read_at = read_at
        self._latest_possible = microseconds(read_at + SKEW)
        self._newest = 0
        self._has_transactions = False

    def add(self, transactions: Integers) -> None:
        times = commit_times(transactions)
        possible = times[times <= self._latest_possible]
        self._newest = max(self._newest, int(possible.max(initial=0)))
        self._has_transactions |= bool(len(times))

    @property
    def time(self) -> datetime | None:
        """The newest commit time; None if there were no transactions."""
        if not self._has_transactions:
            return None
        return to_datetime(self._newest) if self._newest else self._read_at
