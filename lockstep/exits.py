"""Exit codes, and which of several is told."""

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

_BY_WEIGHT = (
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
    """The code told for several sources; 0 for none."""
    return min(codes, key=_BY_WEIGHT.index, default=DONE)
