"""How long tables are read before the log is read on."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.snapshot.log_retention import (
    READING_SHARE,
    ReadingTime,
    log_retention,
    week_statement,
)
from lockstep.pipeline.snapshot.pace import PIECE_SECONDS


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"binlog_expire_logs_seconds": "86400"}, timedelta(days=1)),
        ({"binlog_expire_logs_seconds": "0", "expire_logs_days": "2.5"}, timedelta(days=2.5)),
        ({"binlog_expire_logs_seconds": "0", "expire_logs_days": "0"}, None),
        ({}, None),
        (
            {"binlog_expire_logs_seconds": "86400", "binlog_expire_logs_auto_purge": "OFF"},
            None,
        ),
    ],
)
def test_how_long_logs_are_kept(settings: dict[str, str], kept: timedelta | None) -> None:
    """None: until somebody purges them."""
    assert log_retention(settings) == kept


@pytest.mark.parametrize(
    ("settings", "statement"),
    [
        ({"expire_logs_days": "0"}, "set global expire_logs_days = 7;"),
        (
            {"expire_logs_days": "0", "binlog_expire_logs_seconds": "0"},
            "set global binlog_expire_logs_seconds = 604800;",
        ),
        (
            {"expire_logs_days": "3", "binlog_expire_logs_seconds": "0"},
            "set global expire_logs_days = 7;",
        ),
        (
            {"expire_logs_days": "3.000000", "binlog_expire_logs_seconds": "259200"},
            "set global binlog_expire_logs_seconds = 604800;",
        ),
        (
            {"binlog_expire_logs_seconds": "60"},
            "set global binlog_expire_logs_seconds = 604800;",
        ),
    ],
    ids=["MySQL 5.7", "MySQL 8.0", "MySQL 8.0 that counts days", "MariaDB", "MySQL 9.7"],
)
def test_a_log_is_kept_longer_by_a_variable_that_the_server_has(
    settings: dict[str, str], statement: str
) -> None:
    assert week_statement(settings) == statement


@given(st.none() | st.timedeltas(min_value=timedelta(seconds=1)), st.floats(1, 1e7))
def test_tables_are_read_for_half_of_the_time_that_the_log_is_kept(
    kept: timedelta | None, wanted: float
) -> None:
    """At the most; a table in one piece is left then, and who is cut short is told so."""
    reading_time = ReadingTime(kept, wanted)
    limits = (reading_time.seconds, reading_time.piece_seconds)
    if kept is None:
        assert (*limits, reading_time.shortening_sentence) == (wanted, PIECE_SECONDS, None)
        return
    half = kept.total_seconds() * READING_SHARE
    assert limits == (min(wanted, half), min(PIECE_SECONDS, half))
    assert (reading_time.shortening_sentence is None) == (wanted <= half)


def test_what_a_reading_takes_is_told_beside_the_log_s_time() -> None:
    reading_time = ReadingTime(timedelta(days=7), 600.0)
    assert reading_time.forecast(90_000_000, 2) == (
        "about 15 min in 2 runs, at 50,000 rows a second and connection; "
        "the server keeps its log for 7 days"
    )
