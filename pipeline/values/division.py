"""The search for a moment in a sequence of items whose times need not ascend.

Not here: the items, which are transactions (`pipeline.binlog.search.places`) or
batches (`pipeline.replay`).

A place divides the sequence. An item is misplaced if it comes before the place although
its time is the moment or later, or after the place although its time is earlier. The
moment lies at the place with the fewest misplaced items; if several places have equally
few, at the first of these places. If times ascend, this is the place before the first
item at or after the moment. A single wrong time, however far off, moves the place past
at most one other item. A misplaced item may count for more than one by its weight: that
of a batch is the number of its transactions.

A time later than `latest`, the time at which the items were read, is not believed. An
item with such a time is treated like the item before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import numpy as np
import numpy.typing as npt

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Division:
    """The place of a moment in a sequence. `place`: number of items before the moment.
    `late_count`: number of items before the place whose time is the moment or later.
    `early_count`: number of items after the place whose time is earlier than the
    moment. `last_place`: number of items before the last of the equally good places.
    `balance`: weight of the items that count as earlier than the moment, minus that of
    all others; the other numbers are without weights."""

    place: int
    late_count: int
    early_count: int
    last_place: int
    balance: int


@dataclass(frozen=True, slots=True)
class Divider:
    """A moment that divides sequences of items by their times. All are microseconds
    since the epoch."""

    moment: int
    latest: int | None = None

    def divide(
        self, times: npt.NDArray[np.int64], weights: npt.NDArray[np.int64] | int = 1
    ) -> Division:
        """Return the moment's place among items with these times and weights."""
        is_earlier = times < self.moment
        steps = np.where(self._with_trusted_times(times, is_earlier), weights, -weights)
        # The place with the highest balance before it has the fewest misplaced items.
        balances = np.concatenate([[0], np.cumsum(steps)])
        place = int(balances.argmax())
        earlier_before = int(is_earlier[:place].sum())
        return Division(
            place,
            place - earlier_before,
            int(is_earlier.sum()) - earlier_before,
            len(times) - int(balances[::-1].argmax()),
            int(balances[-1]),
        )

    def _with_trusted_times(
        self, times: npt.NDArray[np.int64], is_earlier: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Return `is_earlier`. An item whose time is not believed gets the value of the
        nearest believed item before it; True if there is no such item."""
        if self.latest is None or not len(times):
            return is_earlier
        believed_indexes = np.where(times <= self.latest, np.arange(len(times)), -1)
        sources = np.maximum.accumulate(believed_indexes)
        return np.where(sources >= 0, is_earlier[sources], True)


def find_moment(
    times: Sequence[datetime], moment: datetime, weights: Sequence[int] | None = None
) -> Division:
    """Return the place of a moment: items at the moment itself come after it."""
    return Divider(microseconds(moment)).divide(
        np.array(list(map(microseconds, times)), np.int64),
        1 if weights is None else np.array(weights, np.int64),
    )


def find_moment_end(
    times: Sequence[datetime], moment: datetime, weights: Sequence[int] | None = None
) -> Division:
    """Return the place of the moment's end: items at the moment itself come before it."""
    return find_moment(times, moment + timedelta(microseconds=1), weights)


def microseconds(moment: datetime) -> int:
    """Return a moment in microseconds since the epoch, as `Divider` takes it."""
    return (moment - _EPOCH) // timedelta(microseconds=1)
