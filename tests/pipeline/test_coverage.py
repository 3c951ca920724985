"""A table that was outside the patterns for a while does not go on unnoticed."""

from __future__ import annotations

from datetime import UTC, datetime

from pipeline.batch import Decision, RecordedDecision
from pipeline.coverage import hole, past_ranges
from pipeline.position import Coordinates, LogFile
from pipeline.table import TableName

A = TableName("shop", "a")


def at(offset: int) -> Coordinates:
    return Coordinates(LogFile("binlog", 1), offset)


def run(number: int, offset: int, *exclude: str) -> RecordedDecision:
    tables = {"include": ["shop.*"], "exclude": list(exclude)}
    facts = {"at": str(at(offset)), "tables": tables}
    return RecordedDecision(
        number, datetime(2026, 1, number, tzinfo=UTC), Decision("start", "x", "y", facts)
    )


ALWAYS = [run(3, 300), run(2, 200), run(1, 100)]
LEFT_OUT = [run(4, 400), run(3, 300, "shop.a"), run(2, 200, "shop.a"), run(1, 100)]


def test_patterns_that_never_changed_leave_no_hole() -> None:
    """The ordinary case: one range, every table in it."""
    past = past_ranges(ALWAYS, at(400))
    assert [one.end for one in past] == [at(400)]
    assert hole(A, None, past) is None


def test_a_time_outside_the_patterns_is_a_hole() -> None:
    """Up to where the run began that took the table in again."""
    past = past_ranges(LEFT_OUT, at(500))
    assert hole(A, at(150), past) == at(400)
    assert hole(TableName("shop", "b"), at(150), past) is None


def test_a_table_first_seen_later_has_none() -> None:
    """What was left out before the table was seen whole is no loss of its changes."""
    past = past_ranges(LEFT_OUT, at(500))
    assert hole(A, at(450), past) is None
    assert hole(A, None, past) == at(400)
