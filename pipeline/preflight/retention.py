"""Rules about how long the log is kept, against how often it is read.

Variables: MySQL manual, "Binary Log Expiration"; MariaDB documentation, "Purging Log
Files"; Amazon RDS user guide, "mysql.rds_set_configuration".
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Final

from pipeline.preflight.evidence import SourceEvidence
from pipeline.preflight.findings import CheckRule, Fault, Fine, Verdict, about
from pipeline.preflight.log import set_global
from pipeline.snapshot.log_room import LogRoom, kept_for, one_week

_DAY: Final = 86_400
SHORT: Final = timedelta(days=2)
"""Less than this loses the position over a weekend, whatever the schedule."""

FACTOR: Final = 3
"""How many scheduled runs in a row may fail before the log they need is gone."""

WINDOW: Final = timedelta(days=100)
ALIKE: Final = timedelta(days=2)
"""Of a schedule that is the same on each day, all pauses are in these."""
STEP: Final = timedelta(hours=6)

_KEEP: Final = set_global(*one_week({}))
_RDS_PATH: Final = "/rdsdbbin"


def longest_pause(cron: str, now: datetime) -> timedelta:
    """The longest time between two ticks of a cron expression in the 100 days after `now`;
    exact where it is over 6 hours.

    A pause longer than the best one found so far holds at least one of the moments that
    lie that far apart, so only those are looked at.
    """
    from croniter import croniter  # runs import these rules too, and need no schedule

    ticks = croniter(cron, now)
    _minute, _hour, *days = ticks.expanded[:5]
    until = now + (ALIKE if days == [["*"]] * 3 else WINDOW)
    best, at = timedelta(), now
    while at < until:
        ticks.set_current(at, force=True)
        before = ticks.get_prev(datetime)
        after = ticks.get_next(datetime)
        best = max(best, after - before)
        at = max(at + max(best, STEP), after)
    return best


def _retention(looked: SourceEvidence) -> Iterator[Verdict]:
    kept = kept_for(looked.survey.settings)
    cure = set_global(*one_week(looked.survey.settings))
    if kept is None:
        yield Fine("logs are kept until somebody purges them; watch the disk")
    elif looked.pause is not None and kept <= looked.pause:
        yield Fault(
            f"logs are kept for {spoken(kept)}, and the schedule's longest pause is "
            f"{spoken(looked.pause)}: the position would be lost",
            cure=cure,
            level="refusal",
        )
    elif looked.pause is not None and kept < FACTOR * looked.pause:
        yield Fault(
            f"logs are kept for {spoken(kept)}, and the schedule's longest pause is "
            f"{spoken(looked.pause)}: a failed run or two lose the position",
            cure=cure,
        )
    elif kept < SHORT:
        yield Fault(
            f"logs are kept for {spoken(kept)}: a longer pause loses the position", cure=cure
        )
    else:
        yield Fine(f"logs are kept for {spoken(kept)}")


def _loading(looked: SourceEvidence) -> Iterator[Verdict]:
    room = LogRoom(kept_for(looked.survey.settings), looked.reading.seconds)
    if room.short is not None:
        yield Fault(room.short, cure=set_global(*one_week(looked.survey.settings)))


def _size_limit(looked: SourceEvidence) -> Iterator[Verdict]:
    for name in ("max_binlog_total_size", "binlog_space_limit"):
        limit = int(looked.setting(name) or 0)
        if limit:
            yield Fault(
                f"{name} is {limit} bytes: a burst of writes purges logs before they are read",
                cure=set_global(name, "0"),
            )
            return


def _managed(looked: SourceEvidence) -> Iterator[Verdict]:
    folder = looked.setting("basedir") or ""
    if folder.startswith(_RDS_PATH) or looked.setting("aurora_version") is not None:
        yield Fault("this looks like Amazon RDS, which purges logs as soon as it can")


def spoken(span: timedelta) -> str:
    """A span in the unit that a person would take."""
    seconds = span.total_seconds()
    for size, unit in ((_DAY, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= size:
            return f"{seconds / size:.1f}".removesuffix(".0") + f" {unit}"
    return f"{seconds:.0f} seconds"


def pause_from_now(cron: str | None) -> timedelta | None:
    """`longest_pause` from the present hour on; None without a schedule."""
    hour = datetime.now(UTC).replace(minute=0, second=0, microsecond=0)
    return None if cron is None else _pause(cron, hour)


_pause: Final = lru_cache(longest_pause)
"""Asked for each part of a source, and again at each look of Dagster's."""


CHECK_RULES: Final = about(
    "retention",
    CheckRule(
        "retention",
        "binlog_expire_logs_seconds, expire_logs_days, binlog_expire_logs_auto_purge, and the "
        "longest pause of the schedule",
        "warning",
        f"logs that are purged before they are read lose the position (warning below {FACTOR} "
        f"pauses or {SHORT.days} days, refusal below one pause)",
        _KEEP,
        _retention,
    ),
    CheckRule(
        "reading tables",
        "binlog_expire_logs_seconds, against `max_seconds` under [sources.snapshot]",
        "warning",
        "the log waits while tables are read from the source: that ends after half of the time "
        "that the log is kept, so it takes more runs, and a table that cannot be cut into chunks "
        "may never be read",
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
