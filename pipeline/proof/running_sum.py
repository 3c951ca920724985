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
class TransactionBoundary:
    """A place between two transactions, and the GTIDs executed before it."""

    at: Coordinates
    gtids: str


@dataclass(slots=True)
class RunningSum:
    """The sum of a mirror's rows, carried through the log.

    - `sum`: the sum after the transactions so far. `sum_since`: the place from which on
      the table has this sum; None if that place is before `low`.
    - `target`: the sum of the source's rows, which were read between the marks `low`
      and `high`.
    - `low_gtids`: the GTIDs before `low`.
    - `match`: the first place between the marks at which the table has the target's
      sum, or None.
    - `changes`: number of transactions between the marks that changed the table.
    """

    sum: RowSum
    target: RowSum
    low: Coordinates
    high: Coordinates
    low_gtids: str
    sum_since: TransactionBoundary | None = None
    match: TransactionBoundary | None = None
    changes: int = 0

    def put(
        self, transactions: Transactions, numbers: Counts, row_counts: Counts, hash_sums: Hashes
    ) -> None:
        """Add transactions that changed the table. `numbers`: their numbers among
        `transactions`, ascending; `row_counts`, `hash_sums`: what each adds to the
        number of rows and to the sum of hashes."""
        if not len(numbers):
            return
        through_low, through_high = transactions.through(self.low), transactions.through(self.high)
        first = int(np.searchsorted(numbers, through_low))
        self._add(row_counts[:first], hash_sums[:first])
        if first:
            self.sum_since = None
        for index in range(first, len(numbers)):
            number = int(numbers[index])
            self.compare()
            self._add(row_counts[index : index + 1], hash_sums[index : index + 1])
            is_between_marks = number < through_high
            self.changes += is_between_marks
            gtids = transactions.gtids(number) if is_between_marks else ""
            self.sum_since = TransactionBoundary(transactions.end(number), gtids)

    def _add(self, row_counts: Counts, hash_sums: Hashes) -> None:
        if len(row_counts):
            hash_sum = int(hash_sums.sum(dtype=np.uint64))
            self.sum = self.sum + RowSum(int(row_counts.sum()), hash_sum % MODULUS)

    def compare(self) -> None:
        """Compare the sum with the target, if the table has this sum between the marks.
        `put` compares each sum except the last, so callers call this once the log is
        read up to the high mark or further."""
        since = self.sum_since
        if since is not None and since.at > self.high:
            return
        if self.match is None and self.sum == self.target:
            before_all = TransactionBoundary(self.low, self.low_gtids)
            self.match = before_all if since is None else since


def sums_by_transaction(
    transactions: Counts, signs: Counts, hashes: Hashes
) -> tuple[Counts, Counts, Hashes]:
    """Group images by transaction. Return the numbers of the transactions, and what
    each adds to the number of rows and to the sum of hashes. `transactions`: the number
    of each image's transaction, in any order; `signs`: 1 for an image after a change,
    -1 for one before it."""
    numbers, inverse = np.unique(transactions, return_inverse=True)
    row_counts = np.zeros(len(numbers), np.int64)
    np.add.at(row_counts, inverse, signs)
    hash_sums = np.zeros(len(numbers), np.uint64)
    signed_hashes = np.where(signs > 0, hashes, np.uint64(0) - hashes)
    np.add.at(hash_sums, inverse, signed_hashes)
    return numbers.astype(np.int64), row_counts, hash_sums
