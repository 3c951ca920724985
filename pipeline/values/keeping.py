"""How long versions of a mirror stay readable: what is promised, and a table's properties for it.

Not here: reading or writing the properties (`resources.lake`), judging those of a mirror
(`pipeline.check.mirrors`).

Format: Delta documentation, "Table properties". VACUUM deletes files that were replaced
longer ago than `delta.deletedFileRetentionDuration`. Each checkpoint deletes commits older
than `delta.logRetentionDuration`, even if their version was the newest until just now.
Therefore the log is kept longer than the files.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

KEEP: Final = timedelta(days=30)
"""The promise if `keep` under [lake] is not set."""

LOG_LONGER: Final = timedelta(days=30)
"""How much longer the log is kept than replaced files. It has to cover the time between two
checkpoints and the time for which a version was the newest before it was replaced."""

FILES: Final = "delta.deletedFileRetentionDuration"
LOG: Final = "delta.logRetentionDuration"
_DEFAULTS: Final = {FILES: timedelta(days=7), LOG: timedelta(days=30)}
_PART: Final = re.compile(r"(\d+)\s+(second|minute|hour|day|week)s?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Retention:
    """How long a table keeps replaced `files`, and commits in its `log`."""

    files: timedelta
    log: timedelta

    @classmethod
    def promising(cls, keep: timedelta) -> Retention:
        """Return the retention with which a mirror is created."""
        return cls(keep, keep + LOG_LONGER)

    @classmethod
    def of(cls, properties: dict[str, str]) -> Retention | None:
        """Return the retention that a table's properties set, or None if one is unreadable."""
        spans = {name: _span(properties[name]) for name in (FILES, LOG) if name in properties}
        files, log = spans.get(FILES, _DEFAULTS[FILES]), spans.get(LOG, _DEFAULTS[LOG])
        return None if files is None or log is None else cls(files, log)

    def properties(self) -> dict[str, str]:
        return {FILES: _text(self.files), LOG: _text(self.log)}

    def holds(self, keep: timedelta) -> bool:
        return min(self.files, self.log) >= keep


def _span(text: str) -> timedelta | None:
    interval = text.strip().lower().removeprefix("interval").strip()
    parts = _PART.findall(interval)
    if not parts or _PART.sub("", interval).strip():
        return None
    return sum((timedelta(**{f"{unit}s": int(number)}) for number, unit in parts), timedelta())


def _text(span: timedelta) -> str:
    if span % timedelta(days=1):
        return f"interval {int(span.total_seconds())} seconds"
    return f"interval {span.days} days"
