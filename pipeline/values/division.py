"""The search for a moment in a sequence of items whose times need not ascend.

Not here: the items, which are transactions (`pipeline.binlog.search.moments`) or
batches (`pipeline.replay`).

At each place of the sequence, an item is misplaced if it comes before the place
although its time is the moment or later, or after the place although its time is
earlier. The moment lies at the place with the fewest misplaced items; if several places
have equally few, at the first of them. If times ascend, this is the place before the
first item at or after the moment. A single wrong time, however far off, moves the place
by at most one other item.

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
_NEVER: Final = int(np.iinfo(np.int64).max)


@dataclass(frozen=True, slots=True)
class MomentPlace:
    """The place of a moment in a sequence. `place`: number of items before the moment.
    `late_count`: number of items before the place whose time is the moment or later.
    `early_count`: number of items after the place whose time is earlier than the
    moment. `last_place`: number of items before the last of the equally good places."""

    place: int
    late_count: int
    early_count: int
    last_place: int


class MomentSearch:
    """The search for a moment in a sequence that arrives piece by piece. Times are
    microseconds since the epoch."""

    def __init__(self, moment: int, latest: int | None = None) -> None:
        self.moment = moment
        self.latest = _NEVER if latest is None else latest
        self._best = 0
        self._earlier = 0
        self._earlier_before_place = 0
        self._last_is_earlier = True
        self.count = 0
        self.place = 0
        self._last_place = 0
        self.balance = 0
        """Number of items so far that count as earlier than the moment, minus the
        number of all other items so far. A place has the fewest misplaced items if the
        balance of the items before it is the highest."""

    def restart(self) -> MomentSearch:
        """Return a new search for the same moment."""
        return MomentSearch(self.moment, self.latest)

    def add(self, times: npt.NDArray[np.int64]) -> None:
        """Add the times of the next items of the sequence."""
        if not len(times):
            return
        earlier = times < self.moment
        steps = np.where(self._with_trusted_times(times, earlier), 1, -1)
        heights = self.balance + np.cumsum(steps)
        highest = int(heights.argmax())
        if heights[highest] >= self._best:
            self._last_place = self.count + len(heights) - int(heights[::-1].argmax())
        if heights[highest] > self._best:
            self._best = int(heights[highest])
            self.place = self.count + highest + 1
            self._earlier_before_place = self._earlier + int(earlier[: highest + 1].sum())
        self._earlier += int(earlier.sum())
        self.balance = int(heights[-1])
        self.count += len(times)

    def _with_trusted_times(
        self, times: npt.NDArray[np.int64], earlier: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Return `earlier`, but wherever a time is not believed, the value of the
        nearest believed item before it."""
        credible = np.where(times <= self.latest, np.arange(len(times)), -1)
        source = np.maximum.accumulate(credible)
        believed = np.where(source >= 0, earlier[source], self._last_is_earlier)
        self._last_is_earlier = bool(believed[-1])
        return believed

    @property
    def result(self) -> MomentPlace:
        late_count = self.place - self._earlier_before_place
        early_count = self._earlier - self._earlier_before_place
        return MomentPlace(self.place, late_count, early_count, self._last_place)


def find_moment(
    times: Sequence[datetime], moment: datetime, latest: datetime | None = None
) -> MomentPlace:
    """Return the place of a moment: items at the moment itself come after it."""
    search = MomentSearch(microseconds(moment), None if latest is None else microseconds(latest))
    search.add(np.array([microseconds(at) for at in times], np.int64))
    return search.result


def find_moment_end(times: Sequence[datetime], moment: datetime) -> MomentPlace:
    """Return the place of the moment's end: items at the moment itself come before it."""
    return find_moment(times, moment + timedelta(microseconds=1))


def microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
