"""Which transaction of the log a read of a table stands behind, told by sums alone.

The source's rows were read at some moment between two marks of the log. A mirror that is right
has, carried through the log transaction by transaction, the same rows and the same sum behind one
of them, and one whose rows differ by anything has it behind none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from pipeline.position import Coordinates
from pipeline.proof.hashes import MODULUS, Hashes, RowSum

Counts = npt.NDArray[np.int64]


class Transactions(Protocol):
    """Transactions in the order of the log, by their numbers from 0."""

    @property
    def count(self) -> int: ...

    def end(self, number: int) -> Coordinates: ...

    def through(self, at: Coordinates) -> int:
        """How many of them end at or before a place."""

    def gtids(self, number: int) -> str:
        """All GTIDs up to and with that one, as text."""


@dataclass(frozen=True, slots=True)
class Prefix:
    at: Coordinates
    gtids: str


@dataclass(slots=True)
class Carried:
    """A mirror's sum on its way through the log.

    `state`: the sum behind everything so far, which begins `since`. `target`: the source's, of
    a read between `low` and `high`. `found`: the first place there with that sum; `candidates`:
    at how many states it was looked for. `touched`: changes between the marks.
    """

    state: RowSum
    target: RowSum
    low: Coordinates
    high: Coordinates
    low_set: str
    since: Prefix | None = None
    found: Prefix | None = None
    candidates: int = 0
    touched: int = 0

    def put(
        self,
        transactions: Transactions,
        which: Counts,
        rows: Counts,
        totals: Hashes,
    ) -> None:
        """Transactions that touched the table: `which` of these, ascending, by how many rows
        and by which sum each."""
        if not len(which):
            return
        behind_low, behind_high = transactions.through(self.low), transactions.through(self.high)
        first = int(np.searchsorted(which, behind_low))
        self._add(rows[:first], totals[:first])
        if first:
            self.since = None  # before the low mark
        for at in range(first, len(which)):
            number = int(which[at])
            self._try()
            self._add(rows[at : at + 1], totals[at : at + 1])
            if number >= behind_high:
                self.since = Prefix(transactions.end(number), "")
                continue
            self.touched += 1
            self.since = Prefix(transactions.end(number), transactions.gtids(number))

    def finish(self) -> None:
        """The log was read to the high mark or beyond."""
        self._try()

    @property
    def exact(self) -> bool:
        """Whether nothing touched the table between the marks."""
        return not self.touched

    def _add(self, rows: Counts, totals: Hashes) -> None:
        if len(rows):
            total = int(totals.sum(dtype=np.uint64))
            self.state = self.state + RowSum(int(rows.sum()), total % MODULUS)

    def _try(self) -> None:
        """Hold the state against the target, if it was one between the marks."""
        since = self.since
        if since is not None and since.at > self.high:
            return
        self.candidates += 1
        if self.found is None and self.state == self.target:
            self.found = Prefix(self.low, self.low_set) if since is None else since


def grouped(which: Counts, signs: Counts, hashes: Hashes) -> tuple[Counts, Counts, Hashes]:
    """Images by their transactions: which ones, by how many rows each changed the table, and by
    which sum. `which`: each image's transaction, in any order; `signs`: 1 or -1."""
    numbers, inverse = np.unique(which, return_inverse=True)
    rows = np.zeros(len(numbers), np.int64)
    np.add.at(rows, inverse, signs)
    totals = np.zeros(len(numbers), np.uint64)
    signed = np.where(signs > 0, hashes, np.uint64(0) - hashes)
    np.add.at(totals, inverse, signed)
    return numbers.astype(np.int64), rows, totals
