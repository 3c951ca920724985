"""Where reading stops, and how the registers say it to the loop.

Belongs here: limits of the buffer. Does not: a run's budget, from which they come
(`pipeline.bounds`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np

from pipeline.binlog.arrays import registers
from pipeline.binlog.stream.ring import Integers
from pipeline.position import Coordinates, LogFile

_NEVER: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class Limits:
    """Where reading stops: at the first place between transactions at or behind `end`, or
    after so many transactions or bytes of the log; None means without limit."""

    end: Coordinates | None = None
    transactions: int | None = None
    log_bytes: int | None = None


def begin_counting(state: Integers, limits: Limits) -> None:
    """Count transactions and bytes from here on."""
    state[registers.ALL_TRANSACTIONS] = state[registers.ALL_BYTES] = 0
    state[registers.STOP_TRANSACTIONS] = limits.transactions or _NEVER
    state[registers.STOP_BYTES] = limits.log_bytes or _NEVER


def watch_end(state: Integers, limits: Limits, file: LogFile) -> None:
    """The log stands in that file: where in it to stop."""
    end = limits.end
    if end is None or file.number < end.file.number:
        state[registers.STOP_OFFSET] = _NEVER
    else:
        state[registers.STOP_OFFSET] = end.offset if file.number == end.file.number else 0
