"""How long a schedule pauses, and what that asks of the log's retention."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from croniter import croniter

from lockstep.pipeline.check.findings import findings_of
from lockstep.pipeline.check.log import RETENTION_RULES, duration_text, longest_pause
from tests.pipeline.preflight_made import looked, surveyed

NOW = datetime(2026, 11, 21, 11, 7, tzinfo=UTC)


@pytest.mark.parametrize(
    ("cron", "expected"),
    [
        ("*/10 * * * *", timedelta(minutes=10)),
        ("0 * * * *", timedelta(hours=1)),
        ("30 2 * * *", timedelta(days=1)),
        ("0 0 * * 1-5", timedelta(days=3)),
        ("*/5 8-17 * * 1-5", timedelta(days=2, hours=14, minutes=5)),
        ("0 6 1 * *", timedelta(days=31)),
        ("0 0 29 2 *", timedelta(days=1461)),
    ],
)
def test_the_longest_pause(cron: str, expected: timedelta) -> None:
    """Nights, weekends and months are found."""
    assert longest_pause(cron, NOW) == expected


@pytest.mark.parametrize(
    "cron", ["17 3,9,23 * * 2,6", "0 1-5 */9 * *", "7,13 */5 * * *", "5 1,2,16 * * *"]
)
def test_looking_at_few_moments_finds_what_looking_at_all_finds(cron: str) -> None:
    """The same as going from tick to tick."""
    ticks = croniter(cron, NOW)
    first = before = ticks.get_prev(datetime)
    best = timedelta()
    while before < first + timedelta(days=100):
        after = ticks.get_next(datetime)
        best, before = max(best, after - before), after
    assert longest_pause(cron, NOW) == best


@pytest.mark.parametrize(
    ("days", "pause", "level"),
    [(30, 1, "ok"), (7, 1, "ok"), (7, 3, "warning"), (7, 7, "refusal"), (1, None, "warning")],
)
def test_retention_against_the_schedule(days: int, pause: int | None, level: str) -> None:
    """Less than one pause loses the position for sure, less than three by a failed run."""
    survey = surveyed({"binlog_expire_logs_seconds": str(days * 86_400)})
    evidence = looked(survey, pause=None if pause is None else timedelta(days=pause))
    assert [finding.level for finding in findings_of(RETENTION_RULES[:1], evidence)] == [level]


def test_spans_are_spoken_in_a_fitting_unit() -> None:
    """Whole numbers stay whole."""
    spans = (timedelta(days=30), timedelta(hours=36), timedelta(minutes=90), timedelta(seconds=5))
    assert [duration_text(span) for span in spans] == [
        "30 days",
        "1.5 days",
        "1.5 hours",
        "5 seconds",
    ]
