"""The progress of reading a table from the source, in numbers and as a sentence."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Final

from lockstep.pipeline.values.shown import pluralize
from lockstep.pipeline.values.table import TableName

_MINUTE: Final = 60
_HOUR: Final = 3600
_DAY: Final = 86_400


@dataclass(frozen=True, slots=True)
class LoadProgress:
    """A load that has read `rows` rows in `seconds`. `estimated_rows`: the server's
    estimate of the table's rows, which may be much too high or too low; None without
    one. `is_undivided`: the table is read in one piece, so `rows` is 0 until the
    end."""

    json_keys: ClassVar = ("rows", "estimated_rows", "percent", "remaining_seconds")

    table: TableName
    rows: int
    estimated_rows: int | None
    seconds: float
    is_finished: bool = False
    is_undivided: bool = False

    @property
    def percent(self) -> int | None:
        """The percentage of rows read, at most 99 until the load is finished. None
        without an estimate, or if the estimate was too low."""
        if self.is_finished:
            return 100
        if not self.estimated_rows or self.rows > self.estimated_rows:
            return None
        return min(99, self.rows * 100 // self.estimated_rows)

    @property
    def remaining_seconds(self) -> float | None:
        """Seconds until the load ends at the same speed; None if unknown."""
        if self.is_finished:
            return 0.0
        total = self.estimated_rows or 0
        if not 0 < self.rows <= total or self.seconds <= 0:
            return None
        return (total - self.rows) * self.seconds / self.rows

    def sentence(self) -> str:
        rows, total, left = self.rows, self.estimated_rows or 0, self.remaining_seconds
        if self.is_finished:
            return f"{self.table}: all {pluralize(rows, 'row')}"
        if self.percent is None:
            return f"{self.table}: {pluralize(rows, 'row')}" + (
                f", more than the {total:,} estimated" if total else ""
            )
        time = "" if left is None else f", about {duration(left)} left"
        return f"{self.table}: {rows:,} of about {pluralize(total, 'row')}, {self.percent} %{time}"


def duration(seconds: float) -> str:
    """Return a duration as a rounded number of seconds, minutes, hours or days; at
    least 1 s."""
    rounded = max(1, round(seconds))
    if rounded < 2 * _MINUTE:
        return f"{rounded} s"
    if rounded < 2 * _HOUR:
        return f"{round(rounded / _MINUTE)} min"
    if rounded < 2 * _DAY:
        return f"{round(rounded / _HOUR)} h"
    return f"{round(rounded / _DAY)} days"
