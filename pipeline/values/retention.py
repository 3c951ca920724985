"""The time for which the versions of a mirror (the Delta table with a table's current
rows) stay readable, as Delta's table properties set it.

Not here: reading, writing and judging the properties of a mirror (`resources.lake`,
`pipeline.check.mirrors`).

Delta documentation, "Table properties": VACUUM deletes files that were replaced longer
ago than `delta.deletedFileRetentionDuration`. Each checkpoint deletes commits older
than `delta.logRetentionDuration`, even if their version was the newest until just now.
Therefore the log is kept longer than the files.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

DEFAULT_KEEP: Final = timedelta(days=30)
"""Time for which versions stay readable if `keep` under [lake] is not set."""

EXTRA_LOG_RETENTION: Final = timedelta(days=30)
"""Time for which the log is kept longer than replaced files. A version is read from the
checkpoint before it. So this time covers the longest one for which a version stays the
newest, and the time between two checkpoints."""

FILES_PROPERTY: Final = "delta.deletedFileRetentionDuration"
LOG_PROPERTY: Final = "delta.logRetentionDuration"


@dataclass(frozen=True, slots=True)
class Retention:
    """The times for which a Delta table keeps replaced `files`, and commits in its
    `log`."""

    files: timedelta
    log: timedelta

    @classmethod
    def for_keep(cls, keep: timedelta) -> Retention:
        """Return the retention of a new mirror whose versions are to stay readable for
        `keep`."""
        return cls(keep, keep + EXTRA_LOG_RETENTION)

    @classmethod
    def of(cls, properties: Mapping[str, str]) -> Retention | None:
        """Return the retention that a table's properties set, with Delta's defaults for
        missing properties; None if a property is unreadable."""
        files = _parse_interval(properties.get(FILES_PROPERTY, "interval 1 week"))
        log = _parse_interval(properties.get(LOG_PROPERTY, "interval 30 days"))
        return None if files is None or log is None else cls(files, log)

    def properties(self) -> dict[str, str]:
        """Return the table properties that set this retention."""
        return {FILES_PROPERTY: _interval(self.files), LOG_PROPERTY: _interval(self.log)}

    def covers(self, keep: timedelta) -> bool:
        """Return whether versions stay readable for `keep`."""
        return min(self.files, self.log) >= keep


_DURATION: Final = re.compile(r"(\d+)\s+(second|minute|hour|day|week)s?")


def _parse_interval(text: str) -> timedelta | None:
    durations = text.strip().lower().removeprefix("interval").strip()
    if not durations or _DURATION.sub("", durations).strip():
        return None
    parts = _DURATION.findall(durations)
    try:
        return sum((timedelta(**{f"{unit}s": int(n)}) for n, unit in parts), timedelta())
    except OverflowError:  # Delta has more days than Python.
        return None


def _interval(span: timedelta) -> str:
    if span % timedelta(days=1):
        return f"interval {int(span.total_seconds())} seconds"
    return f"interval {span.days} days"
