"""Exit codes of the command line, and their order of seriousness."""

from __future__ import annotations

from collections.abc import Iterable

DONE = 0
DEFECT = 1
USAGE = 2
TRY_AGAIN = 3
DIFFERENCES = 4
OPERATOR = 5
QUARANTINED = 6
INTERRUPTED = 130
TERMINATED = 143

_MOST_SERIOUS_FIRST = (
    TERMINATED,
    INTERRUPTED,
    DEFECT,
    USAGE,
    OPERATOR,
    TRY_AGAIN,
    DIFFERENCES,
    QUARANTINED,
    DONE,
)


def most_serious(codes: Iterable[int]) -> int:
    """Return the exit code of a command that worked on several sources; 0 for no source."""
    return min(codes, key=_MOST_SERIOUS_FIRST.index, default=DONE)
