"""How long tables may be read before the log is read on, so that the server still has all of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from math import ceil, inf
from typing import Final

from pipeline.snapshot.giving_way import PIECE_SECONDS
from pipeline.snapshot.progress import duration

ROWS_PER_SECOND: Final = 50_000
"""What one connection reads, as long as nothing was measured: 62,000 narrow rows here."""

SHARE: Final = 0.5
"""Of the time that the server keeps its log: the rest is for reading it, and for what comes
between."""

_DAY: Final = 86_400
_WEEK: Final = 7

KEPT_BY: Final = "binlog_expire_logs_seconds (on MySQL 5.7: expire_logs_days)"
"""The variable that says how long a server keeps its log, where its version is not at hand."""


def kept_for(settings: Mapping[str, str]) -> timedelta | None:
    """How long a server with these global variables keeps its logs; None: for ever."""
    if settings.get("binlog_expire_logs_auto_purge", "ON").upper() == "OFF":
        return None
    seconds = float(settings.get("binlog_expire_logs_seconds") or 0)
    total = seconds or float(settings.get("expire_logs_days") or 0) * _DAY
    return timedelta(seconds=total) if total else None


@dataclass(frozen=True, slots=True)
class LogRoom:
    """`kept`: how long the server keeps its log; `wanted`: seconds that a run is to read tables."""

    kept: timedelta | None
    wanted: float

    @property
    def seconds(self) -> float:
        """So long a run reads tables at the most."""
        return min(self.wanted, self._most)

    @property
    def piece_seconds(self) -> float:
        """So long a table may be read in one piece, which nobody can stop half-way."""
        return min(PIECE_SECONDS, self._most)

    @property
    def short(self) -> str | None:
        """What is cut short, and by what; None where nothing is."""
        if self.kept is None or self.seconds == self.wanted:
            return None
        return (
            f"tables are read for {duration(self.seconds)} in a run, not for "
            f"{duration(self.wanted)}: the server keeps its log for "
            f"{duration(self.kept.total_seconds())}"
        )

    def forecast(self, rows: int, connections: int) -> str:
        """How long so many rows take, in how many runs."""
        took = rows / (ROWS_PER_SECOND * connections)
        runs = max(1, ceil(took / self.seconds))
        kept = "until somebody purges it"
        if self.kept is not None:
            kept = f"for {duration(self.kept.total_seconds())}"
        many = "one run" if runs == 1 else f"{runs:,} runs"
        return (
            f"about {duration(took)} in {many}, at {ROWS_PER_SECOND:,} rows a second and "
            f"connection; the server keeps its log {kept}"
        )

    @property
    def _most(self) -> float:
        return inf if self.kept is None else self.kept.total_seconds() * SHARE


def one_week(settings: Mapping[str, str]) -> tuple[str, str]:
    """Return the variable that says how long a server with these global variables keeps its log,
    and its value for a week: MySQL 5.7 and MariaDB before 10.6 count days."""
    if "binlog_expire_logs_seconds" in settings or "expire_logs_days" not in settings:
        return "binlog_expire_logs_seconds", str(_WEEK * _DAY)
    return "expire_logs_days", str(_WEEK)


def keep_longer(settings: Mapping[str, str]) -> str:
    """Return the statement with which such a server keeps its log for a week."""
    name, value = one_week(settings)
    return f"set global {name} = {value};"
