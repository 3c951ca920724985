"""How long a server keeps its log, and so how long a run may read tables: the server
must not purge the log that the run reads after the tables."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, inf
from typing import Final

from lockstep.pipeline.snapshot.pace import PIECE_SECONDS
from lockstep.pipeline.snapshot.progress import duration
from lockstep.pipeline.values.shown import pluralize

ROWS_PER_SECOND: Final = 50_000
"""Assumed speed of one connection, for forecasts. With narrow rows it can be 62,000."""

READING_SHARE: Final = 0.5
"""Part of the server's log retention that may be used to read tables. The rest is for
reading the log, and for delays."""

RETENTION_VARIABLE: Final = "binlog_expire_logs_seconds (on MySQL 5.7: expire_logs_days)"
"""The variable for the log's retention, for a server whose version is unknown."""


def log_retention(settings: Mapping[str, str]) -> timedelta | None:
    """Return how long a server with these global variables keeps its log; None if it
    never purges it."""
    if settings.get("binlog_expire_logs_auto_purge", "ON").upper() == "OFF":
        return None
    seconds = _number(settings, "binlog_expire_logs_seconds")
    return timedelta(seconds=seconds or 86_400 * _number(settings, "expire_logs_days")) or None


def _number(settings: Mapping[str, str], name: str) -> float:
    return float(settings.get(name) or 0)


@dataclass(frozen=True, slots=True)
class ReadingTime:
    """The time that a run has for reading tables. `log_retention`: how long the server
    keeps its log, None if for ever. `wanted_seconds`: the configured time for reading
    tables in a run."""

    log_retention: timedelta | None
    wanted_seconds: float

    @property
    def seconds(self) -> float:
        """The longest time, in seconds, for which a run reads tables."""
        return min(self.wanted_seconds, self._most_seconds)

    @property
    def piece_seconds(self) -> float:
        """The longest time, in seconds, for a table that is read in one piece. The next
        run cannot continue such a read."""
        return min(PIECE_SECONDS, self._most_seconds)

    @property
    def shortening_sentence(self) -> str | None:
        """A sentence that says why tables are read for a shorter time than configured;
        None if they are not."""
        if self.log_retention is None or self.seconds == self.wanted_seconds:
            return None
        return (
            f"tables are read for {duration(self.seconds)} in a run, not for "
            f"{duration(self.wanted_seconds)}: the server keeps its log for "
            f"{duration(self.log_retention.total_seconds())}"
        )

    def forecast(self, rows: int, connections: int) -> str:
        """Return a sentence on how long it takes to read this number of rows."""
        seconds = rows / (ROWS_PER_SECOND * connections)
        run_count = max(1, ceil(seconds / self.seconds))
        retention = "until somebody purges it"
        if self.log_retention is not None:
            retention = f"for {duration(self.log_retention.total_seconds())}"
        return (
            f"about {duration(seconds)} in {pluralize(run_count, 'run')}, at "
            f"{ROWS_PER_SECOND:,} rows a second and connection; the server keeps its log "
            f"{retention}"
        )

    @property
    def _most_seconds(self) -> float:
        if self.log_retention is None:
            return inf
        return self.log_retention.total_seconds() * READING_SHARE


def week_setting(settings: Mapping[str, str]) -> tuple[str, str]:
    """Return the variable for the log's retention on a server with these global
    variables, and its value for a week. MySQL 5.7 and MariaDB before 10.6 count days.
    MySQL 8.0 may count either, and refuses seconds while `expire_logs_days` is set (its
    manual, "Binary Logging Options and Variables")."""
    days, seconds = "expire_logs_days", "binlog_expire_logs_seconds"
    only_days = days in settings and seconds not in settings
    if only_days or (_number(settings, days) and not _number(settings, seconds)):
        return days, "7"
    return seconds, str(7 * 86_400)


def week_statement(settings: Mapping[str, str]) -> str:
    """Return the statement that makes a server with these global variables keep its log
    for a week."""
    name, value = week_setting(settings)
    return f"set global {name} = {value};"
