"""How long the server keeps its log, and the lake its versions: what settings and properties say,
and what holds a promise."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.check.findings import MirrorEvidence, findings_of
from lockstep.pipeline.check.mirrors import MIRROR_RULES
from lockstep.pipeline.snapshot.log_retention import (
    READING_SHARE,
    ReadingTime,
    log_retention,
    week_statement,
)
from lockstep.pipeline.snapshot.pace import PIECE_SECONDS
from lockstep.pipeline.values.retention import DEFAULT_KEEP, FILES_PROPERTY, LOG_PROPERTY, Retention
from tests.pipeline.preflight_made import ORDERS, looked

DAY = timedelta(days=1)


@pytest.mark.parametrize("keep", [DEFAULT_KEEP, DAY, 400 * DAY, timedelta(hours=36)])
def test_a_promise_is_read_back_as_it_was_written(keep: timedelta) -> None:
    """And holds: the log longer than the files, or versions would go with its checkpoints."""
    promised = Retention.for_keep(keep)
    assert Retention.of(promised.properties()) == promised
    assert promised.covers(keep)
    assert promised.log > promised.files == keep


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, Retention(7 * DAY, 30 * DAY)),
        ({FILES_PROPERTY: "interval 2 weeks"}, Retention(14 * DAY, 30 * DAY)),
        ({FILES_PROPERTY: "1 day 12 hours"}, Retention(36 * timedelta(hours=1), 30 * DAY)),
        ({LOG_PROPERTY: "INTERVAL 90 DAYS"}, Retention(7 * DAY, 90 * DAY)),
        ({FILES_PROPERTY: "interval 1 month"}, None),
        ({LOG_PROPERTY: "for ever"}, None),
        ({LOG_PROPERTY: "interval 2147483647 days"}, None),
    ],
)
def test_what_properties_say(properties: dict[str, str], expected: Retention | None) -> None:
    """Delta's defaults where they say nothing; None where they are not understood."""
    assert Retention.of(properties) == expected


@pytest.mark.parametrize(("files", "log"), [(29, 60), (30, 29)])
def test_a_shorter_one_is_a_warning_with_what_to_type(files: int, log: int) -> None:
    """The statement names the mirror, and what it sets holds the promise."""
    mirror = MirrorEvidence(ORDERS, "/lake/shop/orders", Retention(files * DAY, log * DAY))
    (found,) = findings_of(MIRROR_RULES, looked(mirrors=(mirror,)))
    assert (found.level, found.subject) == ("warning", "shop.orders")
    assert found.hint is not None
    assert "ALTER TABLE delta.`/lake/shop/orders` SET TBLPROPERTIES" in found.hint
    assert f"'{LOG_PROPERTY}' = 'interval 60 days'" in found.hint


def test_a_log_may_be_kept_as_short_as_its_files() -> None:
    """Both as long as was promised: no warning."""
    mirror = MirrorEvidence(ORDERS, "/lake/shop/orders", Retention(DEFAULT_KEEP, DEFAULT_KEEP))
    assert [one.level for one in findings_of(MIRROR_RULES, looked(mirrors=(mirror,)))] == ["ok"]


@pytest.mark.parametrize(
    ("settings", "kept"),
    [
        ({"binlog_expire_logs_seconds": "86400"}, timedelta(days=1)),
        ({"binlog_expire_logs_seconds": "0", "expire_logs_days": "2.5"}, timedelta(days=2.5)),
        ({"binlog_expire_logs_seconds": "0", "expire_logs_days": "0"}, None),
        ({}, None),
        ({"binlog_expire_logs_seconds": "86400", "binlog_expire_logs_auto_purge": "OFF"}, None),
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
        ({"binlog_expire_logs_seconds": "60"}, "set global binlog_expire_logs_seconds = 604800;"),
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
