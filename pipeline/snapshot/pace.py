"""The size of the next chunk, and whether it is read now or later.

A chunk is one statement in one short transaction. It should take about `Pace.seconds`, so that an
ALTER waits only briefly, and little has to be read again if it fails.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GROWS: Final = 2.0
SHRINKS: Final = 0.25
"""Largest factors by which the size changes from one chunk to the next, because one chunk may be
fast or slow by chance."""

ENOUGH: Final = 0.5
"""A chunk with a smaller part of its size in rows does not show how fast rows are read."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Targets for chunks: `seconds`, from `least` to `most` rows, beginning with `first`. With wide
    rows a chunk has fewer than `least`, so that it has at most `most_bytes`."""

    seconds: float = 2.0
    least: int = 1_000
    most: int = 1_000_000
    first: int = 10_000
    most_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and 1 <= self.least <= self.first <= self.most):
            raise ValueError("a pace has 0 < seconds and 1 <= least <= first <= most")
        if self.most_bytes < 1:
            raise ValueError("a pace has 1 <= most_bytes")


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """A chunk that was read: its size `asked` for, its rows, their bytes in the reader's memory,
    and the seconds from the query for its bound to its last row."""

    asked: int
    rows: int
    bytes: int
    seconds: float


def next_size(pace: Pace, read: ChunkRead) -> int:
    """Return the size of the chunk after the one that was read."""
    size = read.asked
    if read.rows >= read.asked * ENOUGH:
        wanted = read.rows * pace.seconds / max(read.seconds, 1e-6)
        bounded = min(max(wanted, read.asked * SHRINKS), read.asked * GROWS)
        size = min(max(round(bounded), pace.least), pace.most)
    if not read.rows or not read.bytes:
        return size
    return max(1, min(size, int(pace.most_bytes / (read.bytes / read.rows))))


@dataclass(frozen=True, slots=True)
class SourceLoad:
    """A server's load at a moment, including the query for it. `replica_lag`: seconds that it lags
    behind a server from which it replicates, the highest if there are several, or None."""

    threads_running: int
    replica_lag: float | None
    connections: int
    max_connections: int


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """The load above which no chunk is read, None for no limit. `connections`: part of the server's
    `max_connections`. `pause`: seconds until the load is measured again."""

    threads_running: int | None = 25
    replica_lag: float | None = 60.0
    connections: float | None = 0.9
    pause: float = 5.0


@dataclass(frozen=True, slots=True)
class Throttle:
    """The decision to wait for `seconds`, with a reason, or to continue (0)."""

    seconds: float = 0.0
    reason: str = ""

    @property
    def waits(self) -> bool:
        return self.seconds > 0


def throttle(load: SourceLoad, limits: LoadLimits) -> Throttle:
    reasons = "; ".join(_too_much(load, limits))
    return Throttle(limits.pause, reasons) if reasons else Throttle()


def _too_much(load: SourceLoad, limits: LoadLimits) -> list[str]:
    reasons = []
    if limits.threads_running is not None and load.threads_running > limits.threads_running:
        reasons.append(
            f"{load.threads_running} threads are running at the source, more than "
            f"{limits.threads_running}"
        )
    lag = load.replica_lag
    if limits.replica_lag is not None and lag is not None and lag > limits.replica_lag:
        reasons.append(
            f"the source is {lag:g} s behind the server it replicates from, more than "
            f"{limits.replica_lag:g} s"
        )
    if limits.connections is not None and load.max_connections > 0:
        most = limits.connections * load.max_connections
        if load.connections > most:
            reasons.append(
                f"{load.connections} of {load.max_connections} connections of the source are in "
                f"use, more than {limits.connections:.0%}"
            )
    return reasons
