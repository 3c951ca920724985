"""When transactions were committed, as the log tells it, in microseconds since the epoch.

MySQL has commit times in its GTID events since 8.0:

| a transaction | its time |
|---|---|
| of the server that wrote the log | when it committed it: no session can set that time |
| received from another server | when that one did, but not later than when this one did |

Where there are none (MariaDB, MySQL 5.7), the last event's header has the second in which COMMIT
began, or the statement that commits by itself; a session can set it (`SET TIMESTAMP`).

The lake and the ledger have a header's second as it is; a search counts it as late as it may have
been, so that a search for a moment within it does not miss the transaction.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, TypeVar

import numpy as np

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.control import moment
from pipeline.binlog.stream.ring import Integers
from pipeline.division import microseconds

SECOND: Final = 1_000_000

SKEW: Final = timedelta(minutes=1)
"""Largest difference between two clocks at which a time is not yet taken to be impossible."""

Number = TypeVar("Number", int, Integers)


def commit_times(transactions: Integers) -> Integers:
    """Return the commit time of each row of an index of transactions."""
    exact = transactions[:, columns.TIME]
    return np.where(exact > 0, exact, transactions[:, columns.LAST_TIMESTAMP] * SECOND)


def latest_commit_times(transactions: Integers) -> Integers:
    """Return the same for a search."""
    exact = transactions[:, columns.TIME]
    return np.where(exact > 0, exact, end_of_second(transactions[:, columns.LAST_TIMESTAMP]))


def end_of_second(seconds: Number) -> Number:
    return (seconds + 1) * SECOND - 1


class NewestCommit:
    """The newest commit time among the transactions that a batch reads. One that is later than
    `read_at`, when the server was asked where its log ends, is wrong; if all of them are, it is
    that moment."""

    def __init__(self, read_at: datetime) -> None:
        self._read_at = read_at
        self._latest = microseconds(read_at + SKEW)
        self._newest = 0
        self._any = False

    def put(self, transactions: Integers) -> None:
        times = commit_times(transactions)
        possible = times[times <= self._latest]
        self._newest = max(self._newest, int(possible.max(initial=0)))
        self._any |= bool(len(times))

    @property
    def time(self) -> datetime | None:
        """None if there were no transactions."""
        if not self._any:
            return None
        return moment(self._newest) if self._newest else self._read_at
