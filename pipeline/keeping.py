"""How long versions of a mirror stay readable: what was promised, and what a table keeps.

Not here: reading or writing them (`resources.lake`), judging a mirror's
(`pipeline.preflight.keeping`).

Format: Delta documentation, "Table properties". VACUUM deletes files that were replaced
longer ago than `delta.deletedFileRetentionDuration`. With each checkpoint, commits that
are older than `delta.logRetentionDuration` go, also of a version that was the newest
until now: so the log is kept longer.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

KEEP: Final = timedelta(days=30)
"""What is promised unless `keep` under [lake] says otherwise."""

LOG_LONGER: Final = timedelta(days=30)
"""So much longer the log is kept than files: the time between two checkpoints, and that for which
a version may have been the newest before it was replaced."""

FILES: Final = "delta.deletedFileRetentionDuration"
LOG: Final = "delta.logRetentionDuration"
_DEFAULTS: Final = {FILES: timedelta(days=7), LOG: timedelta(days=30)}
_PART: Final = re.compile(r"(\d+)\s+(second|minute|hour|day|week)s?", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Retention:
    """`files`: how long replaced files stay, `log`: how long commits do."""

    files: timedelta
    log: timedelta

    @classmethod
    def promising(cls, keep: timedelta) -> Retention:
        """What a mirror has from its creation on."""
        return cls(keep, keep + LOG_LONGER)

    @classmethod
    def of(cls, properties: dict[str, str]) -> Retention | None:
        found = {name: _span(properties[name]) for name in (FILES, LOG) if name in properties}
        files, log = found.get(FILES, _DEFAULTS[FILES]), found.get(LOG, _DEFAULTS[LOG])
        return None if files is None or log is None else cls(files, log)

    def properties(self) -> dict[str, str]:
        return {FILES: _text(self.files), LOG: _text(self.log)}

    def holds(self, keep: timedelta) -> bool:
        return min(self.files, self.log) >= keep


def _span(text: str) -> timedelta | None:
    told = text.strip().lower().removeprefix("interval").strip()
    parts = _PART.findall(told)
    if not parts or _PART.sub("", told).strip():
        return None
    return sum((timedelta(**{f"{unit}s": int(number)}) for number, unit in parts), timedelta())


def _text(span: timedelta) -> str:
    if span % timedelta(days=1):
        return f"interval {int(span.total_seconds())} seconds"
    return f"interval {span.days} days"
