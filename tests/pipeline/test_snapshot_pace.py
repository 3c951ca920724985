"""How large the next chunk is, whether it is read now, and how far a table has come."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.snapshot.pace import (
    CHUNK_PATIENCE,
    MAX_GROWTH,
    MIN_GROWTH,
    PIECE_SECONDS,
    ChunkRead,
    LoadLimits,
    Pace,
    Patience,
    SourceLoad,
    next_size,
    reason_to_wait,
)
from lockstep.pipeline.snapshot.progress import LoadProgress
from lockstep.pipeline.values.table import TableName

PACE = Pace()
NARROW = 50


def read(rows: int, seconds: float, *, asked: int | None = None, width: int = NARROW) -> ChunkRead:
    return ChunkRead(rows if asked is None else asked, rows, rows * width, seconds)


@pytest.mark.parametrize(
    ("chunk", "expected"),
    [
        (read(10_000, 2.0), 10_000),
        (read(10_000, 1.6), 12_500),
        (read(10_000, 0.1), 20_000),
        (read(10_000, 60.0), 2_500),
        (read(1_200, 60.0), 1_000),
        (read(900_000, 0.5), 1_000_000),
        (read(3_000, 0.1, asked=10_000), 10_000),
        (read(0, 0.1, asked=10_000), 10_000),
        (read(8_000, 2.0, asked=10_000), 8_000),
        (read(40_000, 2.0, asked=10_000), 20_000),
        (read(10_000, 2.0, width=1 << 20), 256),
        (read(100, 2.0, asked=100, width=512 << 20), 1),
    ],
)
def test_a_chunk_is_as_large_as_the_time_allows(chunk: ChunkRead, expected: int) -> None:
    """By at most the double or a quarter of the one before; of wide rows, so many as fit."""
    assert next_size(PACE, chunk) == expected


@given(
    st.integers(1, 10_000_000),
    st.integers(0, 10_000_000),
    st.floats(0, 1e6),
    st.integers(0, 1 << 30),
)
def test_a_size_is_bounded(asked: int, rows: int, seconds: float, width: int) -> None:
    """Never nothing, never more than the most, and a step at a time from a size that is."""
    asked = min(asked, PACE.most_rows)
    found = next_size(PACE, ChunkRead(asked, rows, rows * width, seconds))
    assert 1 <= found <= PACE.most_rows
    assert found <= max(PACE.least_rows, asked * MAX_GROWTH)
    if rows * width <= PACE.most_bytes and width * found < PACE.most_bytes // 2 and rows:
        assert found >= min(PACE.least_rows, asked) * MIN_GROWTH


@pytest.mark.parametrize("speed", [800.0, 20_000.0, 400_000.0])
def test_the_size_comes_to_the_target(speed: float) -> None:
    """Of a source of any speed, from the first size on, and stays there."""
    size, sizes = PACE.first_rows, []
    for _ in range(20):
        size = next_size(PACE, read(size, size / speed))
        sizes.append(size)
    wanted = min(max(speed * PACE.seconds, PACE.least_rows), PACE.most_rows)
    assert sizes[-5:] == [pytest.approx(wanted, rel=0.01)] * 5


@pytest.mark.parametrize(
    "change", [{"seconds": 0}, {"least_rows": 0}, {"first_rows": 10}, {"most_bytes": 0}]
)
def test_a_pace_that_reads_nothing_is_refused(change: dict[str, int]) -> None:
    """When it is made."""
    with pytest.raises(ValueError, match=r"pace|chunk"):
        replace(PACE, **change)


QUIET = SourceLoad(threads_running=2, replica_lag=None, connections=10, max_connections=100)


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        (QUIET, None),
        (replace(QUIET, threads_running=25, replica_lag=60, connections=90), None),
        (
            replace(QUIET, threads_running=26),
            "26 threads are running at the source, more than 25",
        ),
        (
            replace(QUIET, replica_lag=61),
            "the source is 61 s behind the server it replicates from, more than 60 s",
        ),
        (
            replace(QUIET, connections=91),
            "91 of 100 connections of the source are in use, more than 90%",
        ),
        (
            replace(QUIET, threads_running=99, connections=99),
            "99 threads are running at the source, more than 25; "
            "99 of 100 connections of the source are in use, more than 90%",
        ),
    ],
)
def test_a_source_that_is_busy_is_left_alone(load: SourceLoad, expected: str | None) -> None:
    """For a while, and why."""
    assert reason_to_wait(load, LoadLimits()) == expected


def test_without_limits_nobody_waits() -> None:
    """Each of them can be left out."""
    limits = LoadLimits(threads_running=None, replica_lag=None, connections=None)
    assert reason_to_wait(SourceLoad(9999, 1e9, 9999, 1), limits) is None


ORDERS = TableName("shop", "orders")


@pytest.mark.parametrize(
    ("done", "estimated", "seconds", "sentence"),
    [
        (1_200_000, 5_000_000, 12.6, "1,200,000 of about 5,000,000 rows, 24 %, about 40 s left"),
        (0, 5_000_000, 0, "0 of about 5,000,000 rows, 0 %"),
        (999, 1_000, 100, "999 of about 1,000 rows, 99 %, about 1 s left"),
        (1_000, 1_000, 100, "1,000 of about 1,000 rows, 99 %, about 1 s left"),
        (1_001, 1_000, 100, "1,001 rows, more than the 1,000 estimated"),
        (7, None, 100, "7 rows"),
        (7, 0, 100, "7 rows"),
        (1, 100, 10, "1 of about 100 rows, 1 %, about 16 min left"),
        (1, 1_000, 10, "1 of about 1,000 rows, 0 %, about 3 h left"),
        (1, 100_000, 10, "1 of about 100,000 rows, 0 %, about 12 days left"),
    ],
)
def test_progress_is_a_sentence(
    done: int, estimated: int | None, seconds: float, sentence: str
) -> None:
    """With what can be said, and no more."""
    assert LoadProgress(ORDERS, done, estimated, seconds).sentence() == f"shop.orders: {sentence}"


def test_what_is_finished_is_all_of_it() -> None:
    """Whatever the estimate was."""
    found = LoadProgress(ORDERS, 1_200, 5_000, 3, is_finished=True)
    assert (found.percent, found.remaining_seconds) == (100, 0)
    assert found.sentence() == "shop.orders: all 1,200 rows"


WHOLE = Patience(0.0, PIECE_SECONDS)


@pytest.mark.parametrize(
    ("rule", "seconds", "waited_for", "left"),
    [
        (WHOLE, 0.5, True, "gave way to ALTER"),
        (WHOLE, 3599, False, None),
        (WHOLE, 3600, False, "longer than 3600 s"),
        (Patience(0.0, 5), 6, False, "longer than 5 s"),
        (CHUNK_PATIENCE, 4, True, None),
        (CHUNK_PATIENCE, 5, True, "gave way to ALTER"),
        (CHUNK_PATIENCE, 99_999, False, None),
    ],
)
def test_a_read_is_left_for_others(
    rule: Patience, seconds: float, waited_for: bool, left: str | None
) -> None:
    """A whole table at once, a chunk when it takes long."""
    decision = rule.decide(seconds, waited_for=waited_for)
    assert (decision is None) == (left is None)
    assert decision is None or left is None or left in decision[0]


def test_the_cure_is_the_cause_s() -> None:
    """Who gave way has only to come again."""
    (_, after_alter), (_, after_hour) = (
        WHOLE.decide(3600, waited_for=waited_for) or ("", "") for waited_for in (True, False)
    )
    assert after_alter == "the next run reads it again"
    assert "PRIMARY KEY" in after_hour
