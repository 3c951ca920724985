"""How far the reading of a table has come, in numbers and in a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from pipeline.table import TableName

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """`rows` of a table in `seconds` of reading; `estimated_rows`: those that it has, as its server
    guesses (None: it does not). The guess of a server may be far off either way."""

    json_keys: ClassVar = ("rows", "estimated_rows", "percent", "remaining_seconds")

    table: TableName
    rows: int
    estimated_rows: int | None
    seconds: float
    finished: bool = False

    @property
    def percent(self) -> int | None:
        """0 to 100, which only a finished table has; None where more rows came than were
        estimated, or nobody estimates."""
        if self.finished:
            return 100
        if not self.estimated_rows or self.rows > self.estimated_rows:
            return None
        return min(99, self.rows * 100 // self.estimated_rows)

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds that the rest takes at the speed so far; None where nobody can tell."""
        if self.finished:
            return 0.0
        total = self.estimated_rows
        if self.percent is None or total is None or not self.rows or self.seconds <= 0:
            return None
        return (total - self.rows) * self.seconds / self.rows

    def sentence(self) -> str:
        rows, total, left = self.rows, self.estimated_rows, self.remaining_seconds
        if self.finished:
            return f"{self.table}: all {rows:,} rows"
        if self.percent is None:
            return f"{self.table}: {rows:,} rows" + (
                f", more than the {total:,} estimated" if total else ""
            )
        time = "" if left is None else f", about {duration(left)} left"
        return f"{self.table}: {rows:,} of about {total:,} rows, {self.percent} %{time}"


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
