"""Which tables the patterns of earlier runs left out: a hole in what the lake could know.

A table that is captured again after a time outside the patterns must not go on as if
nothing had happened there. The start decisions in the ledger hold the patterns of each
run and the batch it went on behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.decisions import RecordedDecision
from pipeline.table import TableName
from pipeline.tables import TablePatterns


@dataclass(frozen=True, slots=True)
class PastRange:
    """Batches up to `last` that were read with these patterns; `end` is the place in the
    log where the next range begins."""

    last: int
    end: str
    patterns: TablePatterns


def past_ranges(decisions: Sequence[RecordedDecision], batch: int, place: str) -> list[PastRange]:
    """Earlier ranges read with patterns of their own, oldest first, equal neighbours
    joined. `decisions` newest first, as the ledger gives them; `batch` begins at `place`
    now."""
    found: list[PastRange] = []
    last, end = batch - 1, place
    for one in decisions:
        facts = one.decision.facts
        if one.decision.kind != "start" or "tables" not in facts:
            continue
        tables = facts["tables"]
        patterns = TablePatterns(tuple(tables["include"]), tuple(tables["exclude"]))
        if last <= facts["after"]:
            continue  # nothing came of it, or it was abandoned
        if not found or found[-1].patterns != patterns:
            found.append(PastRange(last, end, patterns))
        last, end = facts["after"], facts["at"]
    return found[::-1]


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
