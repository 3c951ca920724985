"""How far the reading of a table has come, in numbers and in a sentence.

Belongs here: what follows from rows, an estimate and a measured time. Does not: estimating
(`resources.mysql.chunks`), adding up chunks (whoever reads them).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pipeline.table import TableName

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """`done` rows of a table in `seconds` of reading; `estimated`: rows that it has, as its server
    guesses (None: it does not). The guess of a server may be far off either way."""

    table: TableName
    done: int
    estimated: int | None
    seconds: float
    finished: bool = False

    @property
    def percent(self) -> int | None:
        """0 to 100, which only a finished table has; None where more rows came than were
        estimated, or nobody estimates."""
        if self.finished:
            return 100
        if not self.estimated or self.done > self.estimated:
            return None
        return min(99, self.done * 100 // self.estimated)

    @property
    def remaining(self) -> float | None:
        """Seconds that the rest takes at the speed so far; None where nobody can tell."""
        if self.finished:
            return 0.0
        if self.percent is None or self.estimated is None or not self.done or self.seconds <= 0:
            return None
        return (self.estimated - self.done) * self.seconds / self.done

    def sentence(self) -> str:
        if self.finished:
            return f"{self.table}: all {self.done:,} rows"
        if self.percent is None:
            more = "" if not self.estimated else f", more than the {self.estimated:,} estimated"
            return f"{self.table}: {self.done:,} rows{more}"
        share = f"{self.done:,} of about {self.estimated:,} rows, {self.percent} %"
        left = "" if self.remaining is None else f", about {duration(self.remaining)} left"
        return f"{self.table}: {share}{left}"


def duration(seconds: float) -> str:
    """In the unit that says it in one or two numbers."""
    whole = max(1, round(seconds))
    if whole < 2 * _MINUTE:
        return f"{whole} s"
    if whole < 2 * _HOUR:
        return f"{round(whole / _MINUTE)} min"
    if whole < 2 * _DAY:
        return f"{round(whole / _HOUR)} h"
    return f"{round(whole / _DAY)} days"
