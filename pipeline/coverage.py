"""Which tables the patterns of earlier batches left out: a hole in what the lake could know.

A table that is captured again after a time outside the patterns must not go on as if
nothing had happened there. The ledger keeps what each batch was captured with.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.table import TableName
from pipeline.tables import TablePatterns


@dataclass(frozen=True, slots=True)
class CaptureScope:
    """The patterns that a live batch was captured with, and those behind it up to the next
    scope; `begins` is the batch's start in the log."""

    batch: int
    begins: str
    patterns: TablePatterns


@dataclass(frozen=True, slots=True)
class PastRange:
    """Batches up to `last` that were read with these patterns; `end` is the place in the
    log where the next range begins."""

    last: int
    end: str
    patterns: TablePatterns


def past_ranges(scopes: Sequence[CaptureScope], batch: int, place: str) -> list[PastRange]:
    """Ranges read before `batch`, which begins at `place`; both oldest first."""
    before = [scope for scope in scopes if scope.batch < batch]
    ends = [*((scope.batch, scope.begins) for scope in before[1:]), (batch, place)]
    return [
        PastRange(following - 1, begins, scope.patterns)
        for scope, (following, begins) in zip(before, ends, strict=bool(before))
    ]


def hole(table: TableName, first_batch: int | None, past: Sequence[PastRange]) -> str | None:
    """The end of the last earlier range in which the table's changes were not read;
    None where there is none. Ranges that ended before the batch in which the table was
    first seen count only if it was never seen: nobody knows whether it had rows."""
    missed = [
        one.end
        for one in past
        if not one.patterns.matches(table) and (first_batch is None or first_batch <= one.last)
    ]
    return missed[-1] if missed else None
