"""Where reading stops.

Belongs here: limits of the buffer. Does not: how the loop is told (`log_place`), a run's budget,
from which they come (`pipeline.bounds`).
"""

from __future__ import annotations

from dataclasses import dataclass

from pipeline.position import Coordinates, LogFile


@dataclass(frozen=True, slots=True)
class Limits:
    """Where reading stops: at the first place between transactions at or behind `end`, or
    after so many transactions or bytes of the log; None means without limit."""

    end: Coordinates | None = None
    transactions: int | None = None
    log_bytes: int | None = None

    def offset_in(self, file: LogFile) -> int | None:
        """Where in that file the end lies; 0 if before it, None if behind it."""
        if self.end is None or file.number < self.end.file.number:
            return None
        return self.end.offset if file.number == self.end.file.number else 0
