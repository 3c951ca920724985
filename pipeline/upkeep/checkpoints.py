"""Which checkpoints of a table's log go. Pure.

Belongs here: the decision. Does not: finding them, or deleting (`resources.lake.checkpoints`).

With every tenth commit Delta writes a checkpoint, and it keeps each as long as the log. Those of a
table that is written to every minute are thousands, and each lists all files and those that were
removed within `keep`. A version is read from the newest checkpoint at or before it and the commits
behind that. So of those that are older than a day the first of each day stays, and the first of
each thousand versions: what is promised stays readable, from at most that many commits, and Delta,
which deletes commits by their age, takes no more than a day of versions with a checkpoint.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

DAY: Final = timedelta(days=1)
VERSIONS: Final = 1000
NEWEST: Final = 2
"""So many stay, however old."""


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """Of a version, with its size in bytes."""

    version: int
    made_at: datetime
    size: int


def superfluous(checkpoints: Sequence[Checkpoint], now: datetime) -> list[Checkpoint]:
    """Those that go; `found`: all there are, in any order."""
    ordered = sorted(checkpoints, key=lambda one: one.version)
    gone = []
    kept: Checkpoint | None = None
    for checkpoint in ordered[:-NEWEST]:
        if kept is None or now - checkpoint.made_at < DAY or not _near(kept, checkpoint):
            kept = checkpoint
        else:
            gone.append(checkpoint)
    return gone


def _near(kept: Checkpoint, checkpoint: Checkpoint) -> bool:
    """Whether versions behind it can as well be read from the one that is kept."""
    return (
        kept.version // VERSIONS == checkpoint.version // VERSIONS
        and timedelta() <= checkpoint.made_at - kept.made_at < DAY
    )
