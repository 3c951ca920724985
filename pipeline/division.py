"""Where a moment lies in a sequence of things whose times may not ascend.

Not here: the things that have them: transactions (`pipeline.binlog.search.moments`),
batches (`pipeline.replay`).

A moment lies where the fewest things are on its wrong side: before the place, things whose time is
the moment or later; after it, things whose time is earlier. Of several such places it is the first.
Where times only ascend, this is the place before the first thing at or after the moment. A single
time that is wrong, however far ahead or behind, moves the place past one other thing at most.

A time later than `latest`, when the things were read, is not believed: such a thing
counts with the one before it.
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
class Division:
    """`place`: number of things before the moment. `late`: how many of those have the moment or a
    later one as their time; `early`: how many of the others have an earlier one. `last`: number of
    things before the last of the places that are equally good."""

    place: int
    late: int
    early: int
    last: int


class Divider:
    """The search for a moment in a sequence that is given piece by piece; times are in microseconds
    since the epoch."""

    def __init__(self, moment: int, latest: int | None = None) -> None:
        self.moment = moment
        self.latest = _NEVER if latest is None else latest
        self._best = 0
        self._earlier = 0
        self._earlier_before = 0
        self._last = True
        self.count = 0
        self.place = 0
        self._last_place = 0
        self.balance = 0
        """Number of things so far that count as earlier than the moment, minus the number of those
        that do not."""

    def restarted(self) -> Divider:
        return Divider(self.moment, self.latest)

    def put(self, times: npt.NDArray[np.int64]) -> None:
        if not len(times):
            return
        earlier = times < self.moment
        steps = np.where(self._believed(times, earlier), 1, -1)
        heights = self.balance + np.cumsum(steps)
        highest = int(heights.argmax())
        if heights[highest] >= self._best:
            self._last_place = self.count + len(heights) - int(heights[::-1].argmax())
        if heights[highest] > self._best:
            self._best = int(heights[highest])
            self.place = self.count + highest + 1
            self._earlier_before = self._earlier + int(earlier[: highest + 1].sum())
        self._earlier += int(earlier.sum())
        self.balance = int(heights[-1])
        self.count += len(times)

    def _believed(
        self, times: npt.NDArray[np.int64], earlier: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.bool_]:
        """Return `earlier`, with the answer of the thing before wherever a time is not believed."""
        known = np.where(times <= self.latest, np.arange(len(times)), -1)
        source = np.maximum.accumulate(known)
        believed = np.where(source >= 0, earlier[source], self._last)
        self._last = bool(believed[-1])
        return believed

    @property
    def division(self) -> Division:
        late, early = self.place - self._earlier_before, self._earlier - self._earlier_before
        return Division(self.place, late, early, self._last_place)


def divided(
    times: Sequence[datetime], moment: datetime, latest: datetime | None = None
) -> Division:
    divider = Divider(microseconds(moment), None if latest is None else microseconds(latest))
    divider.put(np.array([microseconds(at) for at in times], np.int64))
    return divider.division


def divided_after(
    times: Sequence[datetime], moment: datetime, latest: datetime | None = None
) -> Division:
    """Return where the end of the moment lies: things at the moment itself come before it."""
    return divided(times, moment + timedelta(microseconds=1), latest)


def microseconds(at: datetime) -> int:
    return (at - _EPOCH) // timedelta(microseconds=1)
