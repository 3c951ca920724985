"""When transactions were committed, as the log tells it, in microseconds since the epoch.

A server since MySQL 8.0 gives the commit time of each transaction in its GTID event. Where
it does not (MySQL 5.7, MariaDB), the last event's header has seconds, which a session may
set as it likes (`SET TIMESTAMP`) and which say when a statement began. A second counts as
late as it may have been: who asks for a moment within it does not miss it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

import numpy as np

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.control import EPOCH
from pipeline.binlog.stream.ring import Integers

SECOND: Final = 1_000_000


def commit_times(transactions: Integers) -> Integers:
    """Of each row of an index of transactions."""
    exact = transactions[:, columns.COMMITTED_AT]
    seconds = transactions[:, columns.LAST_TIMESTAMP]
    return np.where(exact > 0, exact, (seconds + 1) * SECOND - 1)


def end_of_second(seconds: int) -> int:
    """The last microsecond of a second that a header names."""
    return (seconds + 1) * SECOND - 1


def microseconds(at: datetime) -> int:
    """A moment with a zone, counted from the epoch."""
    return (at - EPOCH) // timedelta(microseconds=1)
