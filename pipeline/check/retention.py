"""Rules about the binary log's retention, compared with the schedule of runs.

Variables: MySQL manual, "Binary Log Expiration"; MariaDB documentation, "Purging Log
Files"; Amazon RDS user guide, "mysql.rds_set_configuration".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from lockstep.pipeline.check.findings import (
    CheckRule,
    Fault,
    Fine,
    RuleVerdict,
    SourceEvidence,
    with_topic,
)
from lockstep.pipeline.check.log import set_global_hint
from lockstep.pipeline.snapshot.log_retention import ReadingTime, log_retention, week_setting
from lockstep.pipeline.values.shown import duration_text

_MIN_RETENTION: Final = timedelta(days=2)
"""Shortest retention that survives a weekend without runs."""

_PAUSES_KEPT: Final = 3
"""The log should be kept for this many of the schedule's longest pauses, so that two
failed runs in a row lose nothing."""

_SEARCH_WINDOW: Final = timedelta(days=100)
_DAILY_SEARCH_WINDOW: Final = timedelta(days=2)
"""Time within which a schedule is searched for its longest pause; the shorter one is
enough for a schedule that is the same every day."""

_MIN_STEP: Final = timedelta(hours=6)
"""Shortest time between two moments of that search."""

_ONE_WEEK_HINT: Final = set_global_hint(*week_setting({}))
_RDS_PATH: Final = "/rdsdbbin"


@lru_cache  # Each part of a source and Dagster's checks ask for it.
def longest_pause(cron: str, now: datetime) -> timedelta:
    """Return the longest time between two ticks of a cron expression in the 100 days
    after `now`. A result above 6 hours is exact.

    To be fast, the function looks only at moments that are as far apart as the longest
    pause so far: a longer pause contains at least one of them.
    """
    from croniter import croniter  # Runs import these rules too, and need no schedule.

    ticks = croniter(cron, now)
    _minute, _hour, *days = ticks.expanded[:5]
    until = now + (_DAILY_SEARCH_WINDOW if days == [["*"]] * 3 else _SEARCH_WINDOW)
    longest, probe = timedelta(), now
    while probe < until:
        ticks.set_current(probe, force=True)
        before = ticks.get_prev(datetime)
        longest = max(longest, ticks.get_next(datetime) - before)
        probe += max(longest, _MIN_STEP)
    return longest


def longest_pause_from_now(cron: str | None) -> timedelta | None:
    """Return the `longest_pause` from the current hour on; None without a schedule."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return None if cron is None else longest_pause(cron, hour)


def _judge_retention(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    retention = log_retention(evidence.survey.settings)
    pause = evidence.longest_pause
    if retention is None:
        yield Fine("logs are kept until somebody purges them; watch the disk")
        return
    kept = f"logs are kept for {duration_text(retention)}"
    cure = set_global_hint(*week_setting(evidence.survey.settings))
    if pause is not None and retention < _PAUSES_KEPT * pause:
        loses_position = retention <= pause
        consequence = "a failed run or two lose the position"
        if loses_position:
            consequence = "the position would be lost"
        yield Fault(
            f"{kept}, and the schedule's longest pause is {duration_text(pause)}: {consequence}",
            cure=cure,
            level="refusal" if loses_position else None,
        )
    elif retention < _MIN_RETENTION:
        yield Fault(f"{kept}: a longer pause loses the position", cure=cure)
    else:
        yield Fine(kept)


def _judge_load_time(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    settings = evidence.survey.settings
    reading_time = ReadingTime(log_retention(settings), evidence.plan.snapshot.max_seconds)
    if reading_time.shortening_sentence is not None:
        yield Fault(reading_time.shortening_sentence, cure=set_global_hint(*week_setting(settings)))


def _judge_size_limit(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    for name in ("max_binlog_total_size", "binlog_space_limit"):
        limit = int(evidence.variable(name) or 0)
        if limit:
            yield Fault(
                f"{name} is {limit} bytes: a burst of writes purges logs before they are read",
                cure=set_global_hint(name, "0"),
            )
            return


def _judge_managed_service(evidence: SourceEvidence) -> Iterator[RuleVerdict]:
    folder = evidence.variable("basedir") or ""
    if folder.startswith(_RDS_PATH) or evidence.variable("aurora_version") is not None:
        yield Fault(
            "this looks like Amazon RDS, which purges logs as soon as it can unless 'binlog "
            "retention hours' is set (`call mysql.rds_show_configuration` shows it)"
        )


RETENTION_RULES: Final = with_topic(
    "retention",
    CheckRule(
        "retention",
        "binlog_expire_logs_seconds, expire_logs_days, binlog_expire_logs_auto_purge, and the "
        "longest pause of the schedule",
        "warning",
        "logs that are purged before they are read lose the position (warning below "
        f"{_PAUSES_KEPT} pauses or {_MIN_RETENTION.days} days, refusal below one pause)",
        _ONE_WEEK_HINT,
        _judge_retention,
    ),
    CheckRule(
        "reading tables",
        "binlog_expire_logs_seconds, against `max_seconds` under [sources.snapshot]",
        "warning",
        "a run reads tables for at most half of the time that the log is kept: so reading takes "
        "more runs, and a table that cannot be cut into chunks may never be read",
        _ONE_WEEK_HINT,
        _judge_load_time,
    ),
    CheckRule(
        "log size limit",
        "max_binlog_total_size, binlog_space_limit",
        "warning",
        "logs are purged by size, however long they should be kept",
        set_global_hint("max_binlog_total_size", "0"),
        _judge_size_limit,
    ),
    CheckRule(
        "managed service",
        "signs of Amazon RDS (basedir, aurora_version)",
        "warning",
        "it purges logs by a setting of its own",
        "call mysql.rds_set_configuration('binlog retention hours', 168);",
        _judge_managed_service,
    ),
)
