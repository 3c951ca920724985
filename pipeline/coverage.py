"""Which tables the patterns of earlier runs left out: a hole in what the lake could know.

A table that is captured again after a time outside the patterns must not go on as if
nothing had happened there. The start decisions in the ledger hold the patterns and the
place of each run; a run's range reaches to the next run's place.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pipeline.batch import RecordedDecision
from pipeline.position import Coordinates
from pipeline.table import TableName
from pipeline.tables import TablePatterns


@dataclass(frozen=True, slots=True)
class PastRange:
    """A range of the log that was read with these patterns, up to `end`."""

    end: Coordinates
    patterns: TablePatterns


def past_ranges(decisions: Sequence[RecordedDecision], now: Coordinates) -> list[PastRange]:
    """Earlier ranges read with patterns of their own, oldest first, equal neighbours
    joined. `decisions` newest first, as the ledger gives them; `now` is this run's start."""
    found: list[PastRange] = []
    end = now
    for one in decisions:
        facts = one.decision.facts
        if one.decision.kind != "start" or "tables" not in facts:
            continue
        tables = facts["tables"]
        patterns = TablePatterns(tuple(tables["include"]), tuple(tables["exclude"]))
        if not found or found[-1].patterns != patterns:
            found.append(PastRange(end, patterns))
        end = Coordinates.parse(facts["at"])
    return found[::-1]


def hole(
    table: TableName, first_seen: Coordinates | None, past: Sequence[PastRange]
) -> Coordinates | None:
    """The end of the last earlier range in which the table's changes were not read;
    None where there is none. Ranges that ended before the table was first seen count
    only if it was never seen: nobody knows whether it had rows."""
    missed = [
        one.end
        for one in past
        if not one.patterns.matches(table) and (first_seen is None or first_seen < one.end)
    ]
    return missed[-1] if missed else None
