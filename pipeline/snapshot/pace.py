"""How many rows the next chunk has, and whether it is read now or later.

A chunk is one statement in one short transaction. It is to take about as long as `Pace.seconds`,
so that it holds up nobody for long, and so that what is lost with it is read again soon.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

GROWS: Final = 2.0
SHRINKS: Final = 0.25
"""The size changes by so much at most from one chunk to the next: one that was quick, or slow, by
chance says little."""

ENOUGH: Final = 0.5
"""A chunk with a smaller part than this of the rows asked for says nothing of its speed."""


@dataclass(frozen=True, slots=True)
class Pace:
    """What a chunk is steered to: `seconds`, between `least` and `most` rows, beginning with
    `first`. Rows so wide that `least` of them are more than `most_bytes` come in fewer."""

    seconds: float = 2.0
    least: int = 1_000
    most: int = 1_000_000
    first: int = 10_000
    most_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and 1 <= self.least <= self.first <= self.most):
            raise ValueError("a pace has 0 < seconds and 1 <= least <= first <= most")
        if self.most_bytes < 1:
            raise ValueError("a chunk holds a byte at least")


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """A chunk that was read: the rows that it was asked for and those that it had, their bytes
    in the reader's memory, the seconds from the question for its bound to its last row."""

    asked: int
    rows: int
    bytes: int
    seconds: float


def next_size(pace: Pace, read: ChunkRead) -> int:
    """Rows of the chunk behind one that was read."""
    if read.rows < read.asked * ENOUGH:
        return _fitting(pace, read.asked, _row_bytes(read))
    wanted = read.rows * pace.seconds / max(read.seconds, 1e-6)
    bounded = min(max(wanted, read.asked * SHRINKS), read.asked * GROWS)
    return _fitting(pace, min(max(round(bounded), pace.least), pace.most), _row_bytes(read))


def _row_bytes(read: ChunkRead) -> float | None:
    return read.bytes / read.rows if read.rows else None


def _fitting(pace: Pace, rows: int, row_bytes: float | None) -> int:
    """At least one, however wide."""
    if not row_bytes:
        return rows
    return max(1, min(rows, int(pace.most_bytes / row_bytes)))


@dataclass(frozen=True, slots=True)
class SourceLoad:
    """What a server has to do at a moment, its question included. `replica_lag`: seconds that it
    is behind the server that it replicates from, the most of all; None where it replicates from
    none, or does not tell."""

    threads_running: int
    replica_lag: float | None
    connections: int
    max_connections: int


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """What is too much for another chunk; None: never. `connections`: part of those that the
    server allows. `pause`: seconds until it is looked at again."""

    threads_running: int | None = 25
    replica_lag: float | None = 60.0
    connections: float | None = 0.9
    pause: float = 5.0


@dataclass(frozen=True, slots=True)
class Throttle:
    """Go on (`seconds` 0), or wait so long, and why, in words."""

    seconds: float = 0.0
    reason: str = ""

    @property
    def waits(self) -> bool:
        return self.seconds > 0


def throttle(load: SourceLoad, limits: LoadLimits) -> Throttle:
    reasons = "; ".join(_too_much(load, limits))
    return Throttle(limits.pause, reasons) if reasons else Throttle()


def _too_much(load: SourceLoad, limits: LoadLimits) -> list[str]:
    found = []
    if limits.threads_running is not None and load.threads_running > limits.threads_running:
        found.append(
            f"{load.threads_running} threads are running at the source, more than "
            f"{limits.threads_running}"
        )
    lag = load.replica_lag
    if limits.replica_lag is not None and lag is not None and lag > limits.replica_lag:
        found.append(
            f"the source is {lag:g} s behind the server it replicates from, more than "
            f"{limits.replica_lag:g} s"
        )
    if limits.connections is not None and load.max_connections > 0:
        most = limits.connections * load.max_connections
        if load.connections > most:
            found.append(
                f"{load.connections} of {load.max_connections} connections of the source are in "
                f"use, more than {limits.connections:.0%}"
            )
    return found
