"""Rules about how long the log is kept, compared with how often it is read.

Variables: MySQL manual, "Binary Log Expiration"; MariaDB documentation, "Purging Log
Files"; Amazon RDS user guide, "mysql.rds_set_configuration".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from lockstep.pipeline.check.evidence import SourceEvidence
from lockstep.pipeline.check.findings import CheckRule, Fault, Fine, Verdict, about
from lockstep.pipeline.check.log import set_global
from lockstep.pipeline.snapshot.log_room import LogRoom, kept_for, one_week

_DAY: Final = 86_400
_SHORT: Final = timedelta(days=2)
"""Shortest retention that survives a weekend without runs."""

_FACTOR: Final = 3
"""Number of the schedule's longest pauses for which the log should be kept, so that two failed runs
in a row lose nothing."""

_WINDOW: Final = timedelta(days=100)
_DAILY_WINDOW: Final = timedelta(days=2)
"""Time within which a schedule is searched for its longest pause; the shorter one is enough for a
schedule that is the same every day."""

_STEP: Final = timedelta(hours=6)

_KEEP: Final = set_global(*one_week({}))
_RDS_PATH: Final = "/rdsdbbin"


def longest_pause(cron: str, now: datetime) -> timedelta:
    """Return the longest time between two ticks of a cron expression in the 100 days after `now`;
    it is exact above 6 hours.

    Only some moments are probed: a pause that is longer than the longest one so far contains at
    least one of several moments that are this far apart.
    """
    from croniter import croniter  # Runs import these rules too, and need no schedule.

    ticks = croniter(cron, now)
    _minute, _hour, *days = ticks.expanded[:5]
    until = now + (_DAILY_WINDOW if days == [["*"]] * 3 else _WINDOW)
    longest, at = timedelta(), now
    while at < until:
        ticks.set_current(at, force=True)
        before = ticks.get_prev(datetime)
        after = ticks.get_next(datetime)
        longest = max(longest, after - before)
        at = max(at + max(longest, _STEP), after)
    return longest


def _retention(evidence: SourceEvidence) -> Iterator[Verdict]:
    kept = kept_for(evidence.survey.settings)
    cure = set_global(*one_week(evidence.survey.settings))
    if kept is None:
        yield Fine("logs are kept until somebody purges them; watch the disk")
    elif evidence.pause is not None and kept <= evidence.pause:
        yield Fault(
            f"logs are kept for {spoken(kept)}, and the schedule's longest pause is "
            f"{spoken(evidence.pause)}: the position would be lost",
            cure=cure,
            level="refusal",
        )
    elif evidence.pause is not None and kept < _FACTOR * evidence.pause:
        yield Fault(
            f"logs are kept for {spoken(kept)}, and the schedule's longest pause is "
            f"{spoken(evidence.pause)}: a failed run or two lose the position",
            cure=cure,
        )
    elif kept < _SHORT:
        yield Fault(
            f"logs are kept for {spoken(kept)}: a longer pause loses the position", cure=cure
        )
    else:
        yield Fine(f"logs are kept for {spoken(kept)}")


def _loading(evidence: SourceEvidence) -> Iterator[Verdict]:
    room = LogRoom(kept_for(evidence.survey.settings), evidence.reading.seconds)
    if room.short is not None:
        yield Fault(room.short, cure=set_global(*one_week(evidence.survey.settings)))


def _size_limit(evidence: SourceEvidence) -> Iterator[Verdict]:
    for name in ("max_binlog_total_size", "binlog_space_limit"):
        limit = int(evidence.setting(name) or 0)
        if limit:
            yield Fault(
                f"{name} is {limit} bytes: a burst of writes purges logs before they are read",
                cure=set_global(name, "0"),
            )
            return


def _managed(evidence: SourceEvidence) -> Iterator[Verdict]:
    folder = evidence.setting("basedir") or ""
    if folder.startswith(_RDS_PATH) or evidence.setting("aurora_version") is not None:
        yield Fault("this looks like Amazon RDS, which purges logs as soon as it can")


def spoken(span: timedelta) -> str:
    """Return a time span in days, hours, minutes or seconds."""
    seconds = span.total_seconds()
    for size, unit in ((_DAY, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} seconds"


def pause_from_now(cron: str | None) -> timedelta | None:
    """Return the `longest_pause` from the current hour on; None without a schedule."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return None if cron is None else _pause(cron, hour)


_pause: Final = lru_cache(longest_pause)
"""`longest_pause`, cached: it is asked for each part of a source, and again by Dagster's checks."""


CHECK_RULES: Final = about(
    "retention",
    CheckRule(
        "retention",
        "binlog_expire_logs_seconds, expire_logs_days, binlog_expire_logs_auto_purge, and the "
        "longest pause of the schedule",
        "warning",
        f"logs that are purged before they are read lose the position (warning below {_FACTOR} "
        f"pauses or {_SHORT.days} days, refusal below one pause)",
        _KEEP,
        _retention,
    ),
    CheckRule(
        "reading tables",
        "binlog_expire_logs_seconds, against `max_seconds` under [sources.snapshot]",
        "warning",
        "the log waits while a run reads tables from the source. It stops reading them after half "
        "of the time that the log is kept, so that takes more runs, and a table that cannot be cut "
        "into chunks may never be read",
        _KEEP,
        _loading,
    ),
    CheckRule(
        "log size limit",
        "max_binlog_total_size, binlog_space_limit",
        "warning",
        "logs are purged by size, however long they should be kept",
        set_global("max_binlog_total_size", "0"),
        _size_limit,
    ),
    CheckRule(
        "managed service",
        "signs of Amazon RDS (basedir, aurora_version)",
        "warning",
        "it purges logs by a setting of its own",
        "call mysql.rds_set_configuration('binlog retention hours', 168);",
        _managed,
    ),
)
