"""A table that was outside the patterns for a while does not go on unnoticed."""

from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from pipeline.coverage import PastRange, hole, past_ranges
from pipeline.decisions import Decision, RecordedDecision
from pipeline.table import TableName
from pipeline.tables import TablePatterns

A, B = TableName("shop", "a"), TableName("shop", "b")
ALL, WITHOUT_A = TablePatterns(("shop.*",)), TablePatterns(("shop.*",), ("shop.a",))
NOW = TablePatterns(("shop.*", "other.*"))
"""Of the run that asks; the newest decision is its own."""


def run(after: int, patterns: TablePatterns = ALL, *, kind: str = "start") -> RecordedDecision:
    """A decision to start behind the batch `after`."""
    tables = {"include": list(patterns.include), "exclude": list(patterns.exclude)}
    facts = {"at": f"binlog.000001:{after}00", "after": after, "tables": tables}
    moment = datetime(2026, 1, 1, tzinfo=UTC)
    return RecordedDecision(1, moment, Decision(kind, "x", "y", facts))


def past(*runs: RecordedDecision, batch: int) -> list[PastRange]:
    """`runs` in the order they were decided."""
    return past_ranges(runs[::-1], batch, f"binlog.000001:{batch - 1}00")


left_out = past(run(0), run(1, WITHOUT_A), run(2, WITHOUT_A), run(3, NOW), batch=4)


def test_a_first_run_has_no_past() -> None:
    """Its own decision is the only one."""
    assert past(run(0), batch=1) == []


def test_patterns_that_never_changed_leave_no_hole() -> None:
    """The ordinary case: one range, every table in it, up to where this run begins."""
    ranges = past(run(0), run(1), run(2), batch=3)
    assert ranges == [PastRange(2, "binlog.000001:200", ALL)]
    assert hole(A, None, ranges) is None


def test_a_time_outside_the_patterns_is_a_hole() -> None:
    """Up to where the run began that took the table in again."""
    assert left_out == [
        PastRange(1, "binlog.000001:100", ALL),
        PastRange(3, "binlog.000001:300", WITHOUT_A),
    ]
    assert hole(A, 1, left_out) == "binlog.000001:300"
    assert hole(B, 1, left_out) is None


def test_a_table_seen_in_the_hole_is_in_it() -> None:
    """The range ended with a batch in which the table was known already."""
    assert hole(A, 3, left_out) == "binlog.000001:300"


def test_a_table_first_seen_later_has_none() -> None:
    """What was left out before the table was seen whole is no loss of its changes; one that
    was never seen may have had rows."""
    assert hole(A, 4, left_out) is None
    assert hole(A, None, left_out) == "binlog.000001:300"


def test_batches_of_other_sources_between_make_no_hole() -> None:
    """The ledger's numbers are of all sources."""
    ranges = past(run(0), run(10), run(20), batch=31)
    assert ranges == [PastRange(30, "binlog.000001:3000", ALL)]


def test_the_last_hole_counts() -> None:
    """A table that was left out twice begins again behind the second time."""
    ranges = past(run(0, WITHOUT_A), run(1), run(2, WITHOUT_A), run(3, NOW), batch=4)
    assert hole(A, 1, ranges) == "binlog.000001:300"


def test_refusals_and_idle_runs_are_no_ranges() -> None:
    """Nothing was read by them."""
    ranges = past(run(0), run(1, WITHOUT_A, kind="refusal"), run(1, WITHOUT_A), run(1), batch=2)
    assert ranges == [PastRange(1, "binlog.000001:100", ALL)]


def test_decisions_without_patterns_are_left_out() -> None:
    """The ledger's own tests, and decisions of steps."""
    bare = RecordedDecision(1, datetime(2026, 1, 1, tzinfo=UTC), Decision("start", "x", "y"))
    assert past(run(0), bare, run(1, NOW), batch=2) == [PastRange(1, "binlog.000001:100", ALL)]


def test_an_abandoned_attempt_with_other_patterns_makes_no_hole() -> None:
    """Batch 2 was begun without the table and abandoned: the next run went on behind 1."""
    ranges = past(run(0), run(1, WITHOUT_A), run(1), batch=3)
    assert hole(A, 1, ranges) is None
    assert ranges == [PastRange(2, "binlog.000001:200", ALL)]


def test_captures_abandoned_together_make_no_hole() -> None:
    """Batches 2 and 3 were captured without the table, damaged, and read again."""
    ranges = past(run(0), run(1, WITHOUT_A), run(2, WITHOUT_A), run(1), batch=4)
    assert hole(A, 1, ranges) is None


def test_a_second_attempt_leaves_the_table_out() -> None:
    """What counts is the run whose batch stayed."""
    ranges = past(run(0), run(1), run(1, WITHOUT_A), run(2, NOW), batch=4)
    assert hole(A, 1, ranges) == "binlog.000001:200"


attempts = st.lists(st.tuples(st.booleans(), st.integers(0, 3)), max_size=12)


@given(attempts)
def test_a_hole_is_a_batch_that_stayed_and_left_the_table_out(
    runs: list[tuple[bool, int]],
) -> None:
    """Random runs, each with the table or without it, before each of them so many of the
    newest batches are abandoned: told as it is from the decisions alone."""
    chain: list[tuple[int, bool]] = []
    decided, number = [], 0
    for without, abandoned in runs:
        chain = chain[: max(0, len(chain) - abandoned)]
        decided.append(run(chain[-1][0] if chain else 0, WITHOUT_A if without else ALL))
        number += 1
        chain.append((number, without))
    before = chain[-1][0] if chain else 0
    ranges = past(*decided, run(before, NOW), batch=number + 1)
    expected = any(without for _, without in chain)
    assert (hole(A, None, ranges) is not None) == expected
