"""A table that was outside the patterns for a while does not go on unnoticed."""

from __future__ import annotations

from lockstep.pipeline.values.table import (
    CapturedRange,
    CaptureScope,
    TableName,
    TablePatterns,
    end_of_hole,
    ranges_before,
)

A, B = TableName("shop", "a"), TableName("shop", "b")
ALL, WITHOUT_A = TablePatterns(("shop.*",)), TablePatterns(("shop.*",), ("shop.a",))


def past(*changes: tuple[int, TablePatterns], batch: int) -> list[CapturedRange]:
    """Ranges before a batch, where the patterns changed in these; batch n begins at n00."""
    scopes = [CaptureScope(since, f"binlog.000001:{since}00", told) for since, told in changes]
    return ranges_before(scopes, batch, f"binlog.000001:{batch}00")


left_out = past((1, ALL), (2, WITHOUT_A), batch=4)


def test_a_first_run_has_no_past() -> None:
    """Nothing was captured."""
    assert past(batch=1) == []


def test_patterns_that_never_changed_leave_no_hole() -> None:
    """The ordinary case: one range, every table in it, up to where this run begins."""
    ranges = past((1, ALL), batch=3)
    assert ranges == [CapturedRange(2, "binlog.000001:300", ALL)]
    assert end_of_hole(A, None, ranges) is None


def test_a_time_outside_the_patterns_is_a_hole() -> None:
    """Up to where the run began that took the table in again."""
    assert left_out == [
        CapturedRange(1, "binlog.000001:200", ALL),
        CapturedRange(3, "binlog.000001:400", WITHOUT_A),
    ]
    assert end_of_hole(A, 1, left_out) == "binlog.000001:400"
    assert end_of_hole(B, 1, left_out) is None


def test_a_table_seen_in_the_hole_is_in_it() -> None:
    """The range ended with a batch in which the table was known already."""
    assert end_of_hole(A, 3, left_out) == "binlog.000001:400"


def test_a_table_first_seen_later_has_none() -> None:
    """What was left out before the table was seen whole is no loss of its changes; one that
    was never seen may have had rows."""
    assert end_of_hole(A, 4, left_out) is None
    assert end_of_hole(A, None, left_out) == "binlog.000001:400"


def test_the_last_hole_counts() -> None:
    """A table that was left out twice begins again behind the second time; a batch that
    looks back to before a scope does not know it."""
    changes = ((1, WITHOUT_A), (2, ALL), (3, WITHOUT_A), (4, ALL))
    assert end_of_hole(A, 1, past(*changes, batch=5)) == "binlog.000001:400"
    assert end_of_hole(A, 1, past(*changes, batch=3)) == "binlog.000001:200"
