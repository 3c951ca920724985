"""Where a moment lies among batches, by the times of their ends. Pure.

Belongs here: which batches have something at or after a moment, or before it. Does not: other
places (`spans`, `as_of`), the rule itself (`pipeline.division`).

A batch that caught tables up read again what others had read: it is judged by its own ends alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Final

from pipeline.batch import Batch, BatchTimes
from pipeline.division import divided

_BEFORE_ALL: Final = datetime(1970, 1, 1, tzinfo=UTC)
"""When the first transaction of a first batch may have been committed: nobody knows."""


def times_of(batches: Iterable[Batch]) -> list[BatchTimes]:
    return [BatchTimes.of(batch) for batch in batches if batch.end is not None]


def at_or_after(times: Sequence[BatchTimes], moment: datetime) -> frozenset[int]:
    """Return the batches that have a transaction committed at the moment or later."""
    counted = [one for one in _with_transactions(times) if one.end is not None]
    chain = [one for one in counted if not one.catches_up]
    place = divided([_end(one) for one in chain], moment).place
    again = [one for one in counted if one.catches_up and _end(one) >= moment]
    return frozenset(one.id for one in (*chain[place:], *again))


def before_moment(times: Sequence[BatchTimes], moment: datetime) -> frozenset[int]:
    """Return the batches that may have a transaction committed before the moment: the one before
    their first was. If the place of the moment is in doubt, it is the last one possible here, and
    the first one in `at_or_after`, so that a span between moments has too much and not too little.
    """
    counted = _with_transactions(times)
    chain = [one for one in counted if not one.catches_up]
    place = divided([_begin(one) for one in chain], moment).last
    again = [one for one in counted if one.catches_up and _begin(one) < moment]
    return frozenset(one.id for one in (*chain[:place], *again))


def _with_transactions(times: Sequence[BatchTimes]) -> Collection[BatchTimes]:
    return [one for one in times if one.transactions]


def _begin(one: BatchTimes) -> datetime:
    return one.begin or _BEFORE_ALL


def _end(one: BatchTimes) -> datetime:
    assert one.end is not None, "only those with a time are asked"
    return one.end
