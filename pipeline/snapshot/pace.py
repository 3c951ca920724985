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

GROWS: Final = 2.0
SHRINKS: Final = 0.25
"""Largest factors by which the size changes from one chunk to the next. One chunk alone
may be fast or slow by chance."""

ENOUGH: Final = 0.5
"""Least part of its size that a chunk must have in rows to show how fast rows are read."""


@dataclass(frozen=True, slots=True)
class Pace:
    """Targets for chunks: about `seconds` of time, and from `least_rows` to `most_rows`
    rows, `first_rows` in the first chunk. With wide rows a chunk may have fewer than
    `least_rows`, so that it has at most `most_bytes`."""

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
    if read.rows >= read.asked_rows * ENOUGH:
        wanted = read.rows * pace.seconds / max(read.seconds, 1e-6)
        bounded = min(max(wanted, read.asked_rows * SHRINKS), read.asked_rows * GROWS)
        size = min(max(round(bounded), pace.least_rows), pace.most_rows)
    if not read.rows or not read.bytes:
        return size
    return max(1, min(size, int(pace.most_bytes / (read.bytes / read.rows))))


@dataclass(frozen=True, slots=True)
class SourceLoad:
    """A server's load at one moment, including the query for it. `replica_lag`: seconds
    that it lags behind the server from which it replicates, the highest of several;
    None if it is no replica."""

    threads_running: int
    replica_lag: float | None
    connections: int
    max_connections: int


@dataclass(frozen=True, slots=True)
class LoadLimits:
    """The load above which no chunk is read; None for no limit. `connections`: part of
    the server's `max_connections`. `pause_seconds`: seconds until the load is measured
    again."""

    threads_running: int | None = 25
    replica_lag: float | None = 60.0
    connections: float | None = 0.9
    pause_seconds: float = 5.0


@dataclass(frozen=True, slots=True)
class Throttle:
    """The decision to wait for `seconds`, with the reason, or to continue (0 seconds)."""

    seconds: float = 0.0
    reason: str = ""

    @property
    def waits(self) -> bool:
        return self.seconds > 0


def throttle(load: SourceLoad, limits: LoadLimits) -> Throttle:
    """Return whether to wait because the load is above a limit."""
    reasons = "; ".join(_too_much(load, limits))
    return Throttle(limits.pause_seconds, reasons) if reasons else Throttle()


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


# -- reads that are given up -------------------------------------------------------------------


PIECE_SECONDS: Final = 3600.0
"""The longest read of a table in one piece. Until its end, the server cannot purge old
row versions."""

CHUNK_SECONDS: Final = 5.0
"""How long an ALTER waits before a chunk's read gives way. Most chunks end earlier."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The rule for giving up a read. `gives_way_seconds`: seconds after which it gives
    way to an ALTER; `most_seconds`: the most seconds that it may take, None for no
    limit."""

    gives_way_seconds: float
    most_seconds: float | None = None


def patience(*, whole: bool, most_seconds: float = PIECE_SECONDS) -> Patience:
    """Return the rule for a read of a whole table in one piece, or of a chunk."""
    return Patience(0.0, most_seconds) if whole else Patience(CHUNK_SECONDS)


def reason_to_give_up(rule: Patience, seconds: float, *, waited_for: bool) -> str | None:
    """Return why a read is given up now, or None if it continues. `seconds`: how long
    it has lasted; `waited_for`: an ALTER waits for the table."""
    if waited_for and seconds >= rule.gives_way_seconds:
        return "its read gave way to ALTER, which waited for the table"
    if rule.most_seconds is not None and seconds >= rule.most_seconds:
        return f"it took longer than {rule.most_seconds:g} s to be read in one piece"
    return None


def give_up_cure(rule: Patience, *, waited_for: bool) -> str:
    """Return what happens next after a read was given up, and what a person can do."""
    if waited_for or rule.most_seconds is None:
        return "the next run reads it again"
    return (
        "give the table a PRIMARY KEY that it can be read by in chunks, or more time; the next "
        "run reads it again"
    )
