"""A report's figures as shapes: where each bar begins and how long it is, in percent.

Belongs here: geometry. Does not: markup (`page.html.jinja`).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Final

from pipeline.batch import Batch, CapturedRows
from pipeline.intent import SettledWrite
from pipeline.segment import RowCounts

_MIRRORS: Final = 40
"""Mirrors in one waterfall: those that took longest."""

_COLUMNS: Final = 80
"""Columns of a plot; of more batches, neighbours stand together."""

_LEAST: Final = 0.4
"""Percent of the width that the shortest bar has, to be seen."""


@dataclass(frozen=True, slots=True)
class Bar:
    """`left` and `width` in percent of the time that is shown. `step`: what it was spent on."""

    label: str
    step: str
    left: float
    width: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RowsBar:
    """Rows of neighbouring batches, in percent of the highest column: `deleted` at the bottom,
    then `updated`, `inserted` and `read`. `own`: of the run that is told of."""

    label: str
    read: float
    inserted: float
    updated: float
    deleted: float
    own: bool


def waterfall(batches: Sequence[Batch], writes: Sequence[SettledWrite]) -> tuple[Bar, ...]:
    """From the first batch's beginning to the last moment that the ledger has of them, in the
    order in which things began."""
    spans = [*(span for batch in batches for span in _steps(batch, writes)), *_mirrors(writes)]
    if not spans:
        return ()
    origin = min(begin for _, _, begin, _ in spans)
    whole = max((end - origin).total_seconds() for _, _, _, end in spans) or 1.0
    spans.sort(key=lambda span: (span[2], span[3]))
    return tuple(_bar(*span, origin, whole) for span in spans)


def rows_over_time(
    batches: Sequence[Batch], rows: Iterable[CapturedRows], own: frozenset[int]
) -> tuple[tuple[RowsBar, ...], int]:
    """A column for each batch, or for so many neighbours that all find room; and how many rows
    the highest of them stands for."""
    by_batch: dict[int, list[CapturedRows]] = {}
    for row in rows:
        by_batch.setdefault(row.batch, []).append(row)
    size = -(-len(batches) // _COLUMNS) or 1
    groups = [batches[at : at + size] for at in range(0, len(batches), size)]
    sums = [_sum(group, by_batch) for group in groups]
    highest = max((counts.total + read for counts, read in sums), default=0)
    scale = 100 / max(highest, 1)
    columns = [
        RowsBar(
            label=f"{_told(group)}: {counts.inserted:,} inserted, {counts.updated:,} updated, "
            f"{counts.deleted:,} deleted, {read:,} read from the source",
            read=read * scale,
            inserted=counts.inserted * scale,
            updated=counts.updated * scale,
            deleted=counts.deleted * scale,
            own=any(batch.id in own for batch in group),
        )
        for group, (counts, read) in zip(groups, sums, strict=True)
    ]
    return tuple(columns), highest


def seconds_of(batches: Sequence[Batch]) -> Mapping[str, float]:
    """What each step of all of these batches took together."""
    found: dict[str, float] = {"read": 0.0, "merge": 0.0, "acknowledge": 0.0}
    for batch in batches:
        moments = (batch.created_at, batch.captured_at, batch.merged_at, batch.acknowledged_at)
        for step, (begin, end) in zip(found, pairwise(moments), strict=True):
            if begin is not None and end is not None:
                found[step] += (end - begin).total_seconds()
    return found


Span = tuple[str, str, datetime, datetime]


def _steps(batch: Batch, writes: Sequence[SettledWrite]) -> Iterable[Span]:
    """Reading, publishing (up to the first write), acknowledging (from the last)."""
    own = [w for w in writes if w.intent.first_batch <= batch.id <= w.intent.last_batch]
    if batch.captured_at is None:
        return
    yield f"read batch {batch.id}", "read", batch.created_at, batch.captured_at
    if own:
        first = max(batch.captured_at, min(write.intended_at for write in own))
        yield f"publish batch {batch.id}", "publish", batch.captured_at, first
    if batch.merged_at is not None and batch.acknowledged_at is not None:
        yield (
            f"acknowledge batch {batch.id}",
            "acknowledge",
            batch.merged_at,
            batch.acknowledged_at,
        )


def _mirrors(writes: Sequence[SettledWrite]) -> list[Span]:
    longest = sorted(writes, key=lambda write: write.intended_at - write.settled_at)[:_MIRRORS]
    return [
        (str(write.intent.table), "merge", write.intended_at, write.settled_at) for write in longest
    ]


def _bar(
    label: str, step: str, begin: datetime, end: datetime, origin: datetime, whole: float
) -> Bar:
    seconds = (end - begin).total_seconds()
    width = max(100 * seconds / whole, _LEAST)
    left = min(100 * (begin - origin).total_seconds() / whole, 100 - width)
    return Bar(label, step, round(left, 2), round(width, 2), seconds)


def _sum(
    group: Sequence[Batch], by_batch: Mapping[int, Sequence[CapturedRows]]
) -> tuple[RowCounts, int]:
    those = [rows for batch in group for rows in by_batch.get(batch.id, ())]
    return sum((rows.counts for rows in those), RowCounts()), sum(one.read for one in those)


def _told(group: Sequence[Batch]) -> str:
    first, last = group[0], group[-1]
    moment = last.captured_at or last.created_at
    which = f"batch {last.id}" if first is last else f"batches {first.id} to {last.id}"
    return f"{which}, {moment:%Y-%m-%d %H:%M} UTC"
