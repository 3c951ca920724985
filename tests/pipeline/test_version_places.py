"""Which batch a place in time means, of those that were acknowledged."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.pipeline.model.batch import Batch, BatchKind, BatchState
from lockstep.pipeline.replay.spans import Span, batches_in_span
from lockstep.pipeline.run.status.version_sets import batch_for_place
from lockstep.pipeline.values.errors import SpanRefused, VersionSetUnknown
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.places import Earliest, Latest, parse_place
from lockstep.pipeline.values.position import Coordinates, LogFile, Position

ONE = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
TWO = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
BEGAN = datetime(2026, 11, 1, 6, tzinfo=UTC)


def position(number: int, offset: int, minute: int, server: str = ONE) -> Position:
    gtids = GtidSet.parse(f"{ONE}:1-{minute}") if minute else GtidSet()
    at = Coordinates(LogFile("binlog", number), offset)
    return Position(at, gtids, server, BEGAN + timedelta(minutes=minute))


def batch(number: int, start: Position, end: Position, kind: BatchKind) -> Batch:
    return Batch(
        id=number,
        source="shop",
        state=BatchState.ACKNOWLEDGED,
        start=start,
        continued_batch=None,
        start_decision=1,
        sequence_before=0,
        token=1,
        run_id=f"run-{number}",
        transactions=1,
        created_at=BEGAN,
        end=end,
        kind=kind,
    )


PLACES = [
    position(1, 4, 0),
    position(1, 100, 10),
    position(2, 200, 20),
    position(2, 900, 30),
    position(7, 100, 40, TWO),
]
ORDINARY = [
    batch(number, *ends, BatchKind.ORDINARY)
    for number, ends in enumerate(
        [
            (PLACES[0], PLACES[1]),
            (PLACES[1], PLACES[2]),
            (PLACES[2], PLACES[3]),
            (position(7, 4, 30, TWO), PLACES[4]),
        ],
        start=1,
    )
]
CAUGHT_UP = replace(batch(5, PLACES[0], PLACES[4], BatchKind.CATCHING_UP), previous_batch=4)
RESET = [
    batch(5, position(1, 4, 0), position(1, 60, 6), BatchKind.ORDINARY),
    batch(6, position(1, 60, 6), position(2, 300, 16), BatchKind.ORDINARY),
]
"""The log of the first server, after RESET BINARY LOGS AND GTIDS."""


@pytest.mark.parametrize(
    ("place", "expected"),
    [
        ("latest", 4),
        ("earliest", 1),
        ("2026-11-01T06:20:00Z", 2),
        ("2026-11-01T06:19:59Z", 1),
        ("2026-11-01T06:40:00Z", 4),
        ("binlog.000002:200", 2),
        ("binlog.000002:201", 2),
        ("binlog.000002:4", 1),
        ("binlog.000002:900", 3),
        ("binlog.000007:100", 4),
        ("binlog.000002@2026-11-01T06:25:00Z", 2),
        ("binlog.000002@2026-11-01T06:05:00Z", 1),
        (f"gtid:{ONE}:1-15", 2),
        (f"gtid:{ONE}:1-20", 2),
        ("run:run-3", 3),
    ],
)
def test_a_place_is_a_batch(place: str, expected: int) -> None:
    """The newest whose end shows nothing after it; for GTIDs, the first that has them all."""
    assert batch_for_place("shop", ORDINARY, parse_place(place)).id == expected


def test_a_batch_that_caught_tables_up_stands_for_the_place_it_ends_at() -> None:
    """It ends where the one before it ended, and has more tables."""
    for place in ("latest", "binlog.000007:100", "2026-11-01T06:40:00Z"):
        found = batch_for_place("shop", [*ORDINARY, CAUGHT_UP], parse_place(place))
        assert found.id == 5
    found = batch_for_place("shop", [*ORDINARY, CAUGHT_UP], parse_place("binlog.000002:200"))
    assert found.id == 2


def test_the_place_at_which_tables_were_first_read_has_versions() -> None:
    """Where the first batch begins and ends, as from a snapshot or in a ledger made from the
    lake. An earlier place is not known, and after a reset it may be another place."""
    first = batch(1, PLACES[1], PLACES[1], BatchKind.ORDINARY)
    chain = [first, *ORDINARY[1:]]
    for place in ("binlog.000001:100", "2026-11-01T06:10:00Z", f"gtid:{ONE}:1-10"):
        assert batch_for_place("shop", chain, parse_place(place)).id == 1
    with pytest.raises(VersionSetUnknown, match="the history begins at"):
        batch_for_place("shop", chain, parse_place(f"gtid:{ONE}:1-9"))
    with pytest.raises(VersionSetUnknown, match="occurs more than once"):
        batch_for_place("shop", [*chain, *RESET], parse_place(f"gtid:{ONE}:1-10"))


@pytest.mark.parametrize(
    "place",
    [
        "2026-11-01T06:00:00Z",
        "2026-11-01T06:40:01Z",
        "binlog.000007@2026-11-01T06:40:01Z",
        "binlog.000002:901",
        "binlog.000009:4",
        "binlog.000009@2026-11-01T06:25:00Z",
        "other.000001:100",
        f"gtid:{ONE}:1-99",
        "run:another",
        "run:run-",
    ],
)
def test_a_place_that_nothing_shows_is_refused(place: str) -> None:
    with pytest.raises(VersionSetUnknown, match=r"^shop: .*") as caught:
        batch_for_place("shop", ORDINARY, parse_place(place))
    assert "`lockstep " in caught.value.hint


@pytest.mark.parametrize(
    "place", ["binlog.000001:50", "binlog.000002:200", f"gtid:{ONE}:1-12", f"gtid:{ONE}:1-5"]
)
def test_a_place_that_occurs_again_after_a_reset_is_refused(place: str) -> None:
    """Its coordinates and GTIDs name a transaction from before and one from after it."""
    chain, parsed = [*ORDINARY, *RESET], parse_place(place)
    with pytest.raises(VersionSetUnknown, match="occurs more than once"):
        batch_for_place("shop", chain, parsed)
    with pytest.raises(SpanRefused, match="occurs more than once") as caught:
        batches_in_span(Span(Earliest(), parsed), chain, {})
    assert "by a run" in caught.value.hint
    if place != f"gtid:{ONE}:1-5":  # all batches have something after it
        with pytest.raises(SpanRefused, match="occurs more than once"):
            batches_in_span(Span(parsed, Latest()), chain, {})
    runs = {"run-3": 3, "run-5": 5}
    span = Span(parse_place("run:run-3"), parse_place("run:run-5"))
    assert [item.id for item in batches_in_span(span, chain, runs)] == [3, 4, 5]


def test_a_moment_after_the_last_commit_counts_once_a_run_found_nothing_later() -> None:
    """Until then, a transaction with an earlier commit time may still come."""
    asked = BEGAN + timedelta(minutes=50)
    for place in ("2026-11-01T06:50:00Z", "binlog.000007@2026-11-01T06:50:00Z"):
        assert batch_for_place("shop", ORDINARY, parse_place(place), asked).id == 4
    for place in ("2026-11-01T06:50:01Z", "binlog.000007@2026-11-01T06:50:01Z"):
        with pytest.raises(VersionSetUnknown, match="does not show"):
            batch_for_place("shop", ORDINARY, parse_place(place), asked)


def test_before_the_first_there_is_none() -> None:
    with pytest.raises(VersionSetUnknown, match="nothing was acknowledged yet"):
        batch_for_place("shop", [], None)
