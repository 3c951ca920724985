"""When transactions were committed, as the log tells it, in microseconds since the epoch.

MySQL gives the commit time of each transaction in its GTID event. Where there is none (MariaDB; a
transaction that came from a server before 8.0), the last event's header has seconds, which a
session may set as it likes (`SET TIMESTAMP`) and which say when a statement began. The lake and the
ledger have that second as it is; a search counts it as late as it may have been, so that a search
for a moment within it does not miss the transaction.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, TypeVar

import numpy as np

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.control import EPOCH
from pipeline.binlog.stream.ring import Integers

SECOND: Final = 1_000_000

Number = TypeVar("Number", int, Integers)


def commit_times(transactions: Integers) -> Integers:
    """Of each row of an index of transactions."""
    exact = transactions[:, columns.COMMITTED_AT]
    return np.where(exact > 0, exact, transactions[:, columns.LAST_TIMESTAMP] * SECOND)


def latest_commit_times(transactions: Integers) -> Integers:
    """… for a search."""
    exact = transactions[:, columns.COMMITTED_AT]
    return np.where(exact > 0, exact, end_of_second(transactions[:, columns.LAST_TIMESTAMP]))


def latest_commit_time(exact: int, seconds: int) -> int:
    """… of one, by what its GTID event says, 0 for nothing, and a header's second."""
    return exact or end_of_second(seconds)


def end_of_second(seconds: Number) -> Number:
    """The last microsecond of a second that a header names."""
    return (seconds + 1) * SECOND - 1


def microseconds(at: datetime) -> int:
    """A moment with a zone, counted from the epoch."""
    return (at - EPOCH) // timedelta(microseconds=1)
