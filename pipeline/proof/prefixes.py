"""Finds the transaction after which a consistent read of a table was made, by sums of
row hashes.

The source's rows were read at some moment between two marks: the ends of the log before
and after the read. The sum of the mirror (the Delta table with the current rows) is
carried through the log, transaction by transaction. If the mirror is right, it has the
sum of the source's rows after one of the transactions between the marks. If any row
differs, it never does.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.proof.hashes import MODULUS, Hashes, RowSum
from lockstep.pipeline.values.position import Coordinates

Counts = npt.NDArray[np.int64]


class Transactions(Protocol):
    """Transactions in the order of the log, numbered from 0."""

    @property
    def count(self) -> int: ...

    def end(self, number: int) -> Coordinates: ...

    def through(self, at: Coordinates) -> int:
        """Return how many of the transactions end at or before a place."""

    def gtids(self, number: int) -> str:
        """Return all GTIDs up to a transaction, including its own, as text."""


@dataclass(frozen=True, slots=True)
class Prefix:
    """A place between two transactions, and the GTIDs executed before it."""

    at: Coordinates
    gtids: str


@dataclass(slots=True)
class CarriedSum:
    """A mirror's sum, carried through the log.

    `state`: the sum after the transactions so far. `target`: the sum of the source's
    rows, which were read between the marks `low` and `high`. `low_set`: the GTIDs
    before `low`. `since`: the place from which on the table has the sum `state`; None
    if that is before `low`. `found`: the first place between the marks with the
    target's sum, or None. `candidates`: number of states that were compared with the
    target. `touched`: number of transactions between the marks that changed the table.
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
        """Add transactions that changed the table. `which`: their numbers among
        `transactions`, ascending; `rows`, `totals`: what each adds to the number of
        rows and to the sum."""
        if not len(which):
            return
        through_low, through_high = transactions.through(self.low), transactions.through(self.high)
        first = int(np.searchsorted(which, through_low))
        self._add(rows[:first], totals[:first])
        if first:
            self.since = None
        for at in range(first, len(which)):
            number = int(which[at])
            self._try()
            self._add(rows[at : at + 1], totals[at : at + 1])
            if number >= through_high:
                self.since = Prefix(transactions.end(number), "")
                continue
            self.touched += 1
            self.since = Prefix(transactions.end(number), transactions.gtids(number))

    def finish(self) -> None:
        """Compare the last state. Call this once the log is read up to the high mark or
        further."""
        self._try()

    @property
    def exact(self) -> bool:
        """True if no transaction between the marks changed the table."""
        return not self.touched

    def _add(self, rows: Counts, totals: Hashes) -> None:
        if len(rows):
            total = int(totals.sum(dtype=np.uint64))
            self.state = self.state + RowSum(int(rows.sum()), total % MODULUS)

    def _try(self) -> None:
        """Compare the state with the target, if the state occurs between the marks."""
        since = self.since
        if since is not None and since.at > self.high:
            return
        self.candidates += 1
        if self.found is None and self.state == self.target:
            self.found = Prefix(self.low, self.low_set) if since is None else since


def grouped(which: Counts, signs: Counts, hashes: Hashes) -> tuple[Counts, Counts, Hashes]:
    """Group images by transaction. Return the numbers of the transactions, and what
    each adds to the number of rows and to the sum. `which`: each image's transaction,
    in any order; `signs`: 1 for an image after a change, -1 for one before it."""
    numbers, inverse = np.unique(which, return_inverse=True)
    rows = np.zeros(len(numbers), np.int64)
    np.add.at(rows, inverse, signs)
    totals = np.zeros(len(numbers), np.uint64)
    signed = np.where(signs > 0, hashes, np.uint64(0) - hashes)
    np.add.at(totals, inverse, signed)
    return numbers.astype(np.int64), rows, totals
