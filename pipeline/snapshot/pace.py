"""Decides the size of the next chunk, whether it is read now or later, and when a read
is given up.

A chunk is the part of a table that one statement reads, in one short transaction. It
should take about `Pace.seconds`. Then an ALTER waits only briefly, and little has to be
read again after a failure.

A read holds the table's metadata lock until its end. Meanwhile an ALTER waits for the
lock, and all later statements on the table, even reads, wait for the ALTER. So a read
is given up if an ALTER waits for the table, or if it takes too long.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

MAX_GROWTH: Final = 2.0
MIN_GROWTH: Final = 0.25
"""Largest and smallest factor by which the size changes from one chunk to the next. One
chunk alone may be fast or slow by chance."""

_MEASURABLE_FRACTION: Final = 0.5
"""A chunk with a smaller fraction of the rows that were asked for does not show how fast
rows are read."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Targets for chunks: a chunk takes about `seconds`, and has from `least_rows` to
    `most_rows` rows; the first has `first_rows`. With wide rows a chunk may have fewer
    than `least_rows`, so that it has at most `most_bytes`."""

    seconds: float = 2.0
    least_rows: int = 1_000
    most_rows: int = 1_000_000
    first_rows: int = 10_000
    most_bytes: int = 256 << 20

    def __post_init__(self) -> None:
        if not (self.seconds > 0 and 1 <= self.least_rows <= self.first_rows <= self.most_rows):
            raise ValueError("a pace has 0 < seconds and 1 <= least <= first <= most")
        if self.most_bytes < 1:
            raise ValueError("a pace has 1 <= most_bytes")


@dataclass(frozen=True, slots=True)
class ChunkRead:
    """A chunk that was read. `asked_rows`: the number of rows that was asked for;
    `rows`, `bytes`: its rows, and their size in the reader's memory; `seconds`: from
    the query for its bound to its last row."""

    asked_rows: int
    rows: int
    bytes: int
    seconds: float


def next_size(pace: Pace, read: ChunkRead) -> int:
    """Return the number of rows of the next chunk. `read`: the chunk before it."""
    size = read.asked_rows
    if read.rows >= size * _MEASURABLE_FRACTION:
        rows_in_time = read.rows * pace.seconds / max(read.seconds, 1e-6)
        bounded = min(max(rows_in_time, size * MIN_GROWTH), size * MAX_GROWTH)
        size = min(max(round(bounded), pace.least_rows), pace.most_rows)
    if read.rows and read.bytes:
        size = max(1, min(size, int(pace.most_bytes / (read.bytes / read.rows))))
    return size


@dataclass(frozen=True, slots=True)
class SourceLoad:
    """A server's load at one moment, in which the query for the load is counted.
    `replica_lag`: seconds by which it lags behind the server from which it replicates,
    the highest of several; None if it is no replica."""

    threads_running: int
    replica_lag: float | None
    connections: int
    max_connections: int


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """The load above which no chunk is read; None for no limit. `connections`: a
    fraction of the server's `max_connections`. `pause_seconds`: seconds until the load
    is measured again."""

    threads_running: int | None = 25
    replica_lag: float | None = 60.0
    connections: float | None = 0.9
    pause_seconds: float = 5.0


def reason_to_wait(load: SourceLoad, limits: LoadLimits) -> str | None:
    """Return which limits the load is above, or None if a chunk may be read."""
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
    return "; ".join(reasons) or None


# -- reads that are given up -----------------------------------------------------------


PIECE_SECONDS: Final = 3600.0
"""The longest read of a table in one piece. Until its end, the server cannot purge old
row versions."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The rule for giving up a read. `gives_way_seconds`: seconds after which the read
    gives way to an ALTER; `most_seconds`: the most seconds that it may take, None for
    no limit."""

    gives_way_seconds: float
    most_seconds: float | None = None

    def decide(self, seconds: float, *, waited_for: bool) -> tuple[str, str] | None:
        """Return why a read is given up now, and what follows or what a person can do;
        None if it continues. `seconds`: how long it has lasted; `waited_for`: an ALTER
        waits for the table."""
        if waited_for and seconds >= self.gives_way_seconds:
            return (
                "its read gave way to ALTER, which waited for the table",
                "the next run reads it again",
            )
        if self.most_seconds is not None and seconds >= self.most_seconds:
            return (
                f"it took longer than {self.most_seconds:g} s to be read in one piece",
                "give the table a PRIMARY KEY that it can be read by in chunks, or more time; the "
                "next run reads it again",
            )
        return None


CHUNK_PATIENCE: Final = Patience(gives_way_seconds=5.0)
"""The rule for a chunk. Most chunks are read in less time, so they never give way."""
