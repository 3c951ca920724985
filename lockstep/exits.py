"""Exit codes of the command line, and their order of seriousness.

DEFECT: Lockstep itself has a defect. USAGE: the command line or the configuration is
wrong. TRY_AGAIN: the same command may succeed later. DIFFERENCES: a comparison found
differences. OPERATOR: a person has to decide. QUARANTINED: the command did its work,
but a table is stopped.
"""

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
    """Return the exit code of a command from those of its sources; 0 if there are
    none."""
    return min(codes, key=_MOST_SERIOUS_FIRST.index, default=DONE)
