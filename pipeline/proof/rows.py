"""Finds the wrong rows of a mirror (the Delta table with the current rows) by the row
hashes of both sides.

The mirror shows an earlier moment than the read of the source, because other sessions
may write meanwhile. A row that the log has not changed in between is the same at both
moments. For a row that it has changed, the log has the earlier values: the image before
the first change. If the first change is an insert, there was no earlier row. Rows of a
table without a key are identified by all their columns, and counted.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.proof.hashes import Hashes

PAIR: Final = np.dtype([("key", np.uint64), ("row", np.uint64)])

Pairs = npt.NDArray[np.void]
"""For each row a pair: the hash of its key, and the hash of all its columns."""


def pairs(keys: Hashes, rows: Hashes) -> Pairs:
    """Return the pairs of these hashes, row by row."""
    result = np.empty(len(keys), PAIR)
    result["key"], result["row"] = keys, rows
    return result


def share_of(keys: Hashes, of: int) -> npt.NDArray[np.intp]:
    """Return, for each key, the number of its share if the rows are divided into `of`
    shares. A key's rows are in the same share on both sides."""
    return np.asarray(keys % np.uint64(of)).astype(np.intp)


def together(batches: Iterable[Pairs]) -> Pairs:
    """Return the pairs of all batches in one array."""
    return np.concatenate([np.empty(0, PAIR), *batches])


@dataclass(frozen=True, slots=True)
class WrongRows:
    """Wrong rows, by the hashes of their keys: rows that only one side has, and rows
    with different values. `incomplete`: number of rows that cannot be compared, because
    the log lacks some of their columns. `kept`: number of deleted rows that the mirror
    keeps as configured; these are right."""

    only_source: frozenset[int] = frozenset()
    only_lake: frozenset[int] = frozenset()
    different: frozenset[int] = frozenset()
    incomplete: int = 0
    kept: int = 0

    @property
    def all(self) -> frozenset[int]:
        return self.only_source | self.only_lake | self.different

    def __or__(self, other: WrongRows) -> WrongRows:
        return WrongRows(
            self.only_source | other.only_source,
            self.only_lake | other.only_lake,
            self.different | other.different,
            self.incomplete + other.incomplete,
            self.kept + other.kept,
        )

    def least(self, most: int) -> WrongRows:
        """Return at most `most` of the wrong rows: those with the smallest hashes."""
        some = frozenset(heapq.nsmallest(most, self.all))
        return WrongRows(
            self.only_source & some,
            self.only_lake & some,
            self.different & some,
            self.incomplete,
            self.kept,
        )


@dataclass(slots=True)
class RowsBeforeLog:
    """Rows as they were before the log first changed them. `was`: by the hash of the
    key, the hash of the row; None if it did not exist. `incomplete`: keys of rows of
    which the log lacks columns."""

    was: dict[int, int | None] = field(default_factory=dict)
    incomplete: set[int] = field(default_factory=set)

    def put(
        self, keys: Hashes, rows: Hashes, comes: npt.NDArray[np.bool_], whole: npt.NDArray[np.bool_]
    ) -> None:
        """Add images in the order of the log. `comes`: whether each shows the row after
        a change; `whole`: whether each has every column."""
        _, firsts = np.unique(keys, return_index=True)
        for at in np.sort(firsts).tolist():
            key = int(keys[at])
            if key in self.was:
                continue
            self.was[key] = None if comes[at] else int(rows[at])
            if not comes[at] and not whole[at]:
                self.incomplete.add(key)

    def shares(self, of: int) -> list[RowsBeforeLog]:
        """Divide the rows into `of` shares, as `share_of` does."""
        shares = [RowsBeforeLog() for _ in range(of)]
        numbers = share_of(np.array(list(self.was), np.uint64), of).tolist()
        for number, (key, row) in zip(numbers, self.was.items(), strict=True):
            shares[number].was[key] = row
            if key in self.incomplete:
                shares[number].incomplete.add(key)
        return shares

    def among(self, keys: Iterable[int]) -> RowsBeforeLog:
        """Return only the rows with these keys."""
        chosen = set(keys)
        was = {key: row for key, row in self.was.items() if key in chosen}
        return RowsBeforeLog(was, self.incomplete & chosen)

    def wrong(self, source: Pairs, lake: Pairs, *, keeps: bool = False) -> WrongRows:
        """Return the wrong rows. `source`: the source's rows as read now; `lake`: the
        mirror's rows. `keeps`: the mirror keeps deleted rows, so it may have one row of
        a key that the source lacks."""
        touched = np.array(sorted(self.was), np.uint64)
        incomplete = np.array(sorted(self.incomplete), np.uint64)
        was = [(key, row) for key, row in self.was.items() if row is not None]
        before = np.array(was, PAIR) if was else np.empty(0, PAIR)
        truth = np.concatenate([source[~np.isin(source["key"], touched)], before])
        truth = truth[~np.isin(truth["key"], incomplete)]
        comparable = lake[~np.isin(lake["key"], incomplete)]
        unequal, surplus = counted(truth, comparable)
        in_source = frozenset(unequal["key"][surplus > 0].tolist())
        in_lake = frozenset(unequal["key"][surplus < 0].tolist())
        both = in_source & in_lake
        kept: frozenset[int] = frozenset()
        if keeps:
            keys, counts = np.unique(comparable["key"], return_counts=True)
            deleted = keys[(counts == 1) & ~np.isin(keys, truth["key"])]
            kept = in_lake & frozenset(deleted.tolist())
        return WrongRows(
            in_source - both, in_lake - both - kept, both, len(self.incomplete), len(kept)
        )


@dataclass(slots=True)
class RowTally:
    """For a table without a key: the number of times that the log inserted each row,
    minus the number of times that it deleted it. `before`: this number up to the low
    mark (the log's end just before the source was read), by the hash of the row.
    `since`: the same number, followed by the number after each later change of the
    row."""

    before: dict[int, int] = field(default_factory=dict)
    since: dict[int, list[int]] = field(default_factory=dict)

    def put(self, rows: Hashes, signs: Sequence[int], *, after_low: bool) -> None:
        """Add images. `after_low`: they come after the low mark."""
        for row, sign in zip(rows.tolist(), signs, strict=True):
            if not after_low:
                self.before[row] = self.before.get(row, 0) + sign
                continue
            sums = self.since.setdefault(row, [self.before.get(row, 0)])
            sums.append(sums[-1] + sign)

    def shares(self, of: int) -> list[RowTally]:
        """Divide the counts into `of` shares, as `share_of` does."""
        shares = [RowTally() for _ in range(of)]
        for row, count in self.before.items():
            shares[row % of].before[row] = count
        for row, sums in self.since.items():
            shares[row % of].since[row] = sums
        return shares

    def wrong(self, source: Pairs, lake: Pairs, *, keeps: bool = False) -> WrongRows:
        """Return the wrong rows. Arguments are as in `RowsBeforeLog.wrong`. If the
        mirror `keeps` deleted rows, surplus rows are right."""
        unequal, surplus = counted(source, lake)
        counts = dict(zip(unequal["key"].tolist(), surplus.tolist(), strict=True))
        only_source: set[int] = set()
        only_lake: set[int] = set()
        for row in {*counts, *self.before, *self.since}:
            possible = self.since.get(row, [self.before.get(row, 0)])
            count = counts.get(row, 0)
            if count in possible:
                continue
            (only_source if count > possible[0] else only_lake).add(row)
        if keeps:
            return WrongRows(frozenset(only_source), kept=len(only_lake))
        return WrongRows(frozenset(only_source), frozenset(only_lake))


def counted(source: Pairs, lake: Pairs) -> tuple[Pairs, npt.NDArray[np.int64]]:
    """Return the pairs that occur more often on one side. Return also their number in
    the source minus that in the lake."""
    both = np.concatenate([source, lake])
    order = np.lexsort((both["row"], both["key"]))
    both = both[order]
    sides = np.where(order < len(source), 1, -1)
    if not len(both):
        return both, sides.astype(np.int64)
    starts = np.flatnonzero(np.concatenate([[True], both[1:] != both[:-1]]))
    surplus = np.add.reduceat(sides, starts)
    unequal = np.flatnonzero(surplus)
    return both[starts[unequal]], surplus[unequal].astype(np.int64)
