"""Which rows of a mirror are wrong, told by the hashes of all of them.

A row that no change since then touched is at the source what it was. Of one that was touched, the
image before its first change says what it was, or that it was not there. So rows are told while
others write, whatever moment the source was read at. Rows of a table without a key are told from
each other by all of their columns, and counted.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt

from pipeline.proof.hashes import Hashes

PAIR: Final = np.dtype([("key", np.uint64), ("row", np.uint64)])

Pairs = npt.NDArray[np.void]
"""A row each: the hash of its key, and of all of it."""


def pairs(keys: Hashes, rows: Hashes) -> Pairs:
    found = np.empty(len(keys), PAIR)
    found["key"], found["row"] = keys, rows
    return found


def share_of(keys: Hashes, of: int) -> npt.NDArray[np.intp]:
    """Which of so many shares of a table's rows each key belongs to: those of one key, on either
    side, are in one share."""
    return np.asarray(keys % np.uint64(of)).astype(np.intp)


def together(batches: Iterable[Pairs]) -> Pairs:
    return np.concatenate([np.empty(0, PAIR), *batches])


@dataclass(frozen=True, slots=True)
class Wrong:
    """Hashes of keys: rows that only one side has, rows that both have with other values; and of
    how many nothing can be told, because the log has not all of their columns. `kept`: how many
    the lake keeps that are gone at the source, as it is to; these are not wrong."""

    only_source: frozenset[int] = frozenset()
    only_lake: frozenset[int] = frozenset()
    different: frozenset[int] = frozenset()
    untold: int = 0
    kept: int = 0

    @property
    def all(self) -> frozenset[int]:
        return self.only_source | self.only_lake | self.different

    def __or__(self, other: Wrong) -> Wrong:
        return Wrong(
            self.only_source | other.only_source,
            self.only_lake | other.only_lake,
            self.different | other.different,
            self.untold + other.untold,
            self.kept + other.kept,
        )

    def least(self, most: int) -> Wrong:
        """Those with the least hashes, as many as `most`."""
        some = frozenset(heapq.nsmallest(most, self.all))
        return Wrong(
            self.only_source & some,
            self.only_lake & some,
            self.different & some,
            self.untold,
            self.kept,
        )


@dataclass(slots=True)
class FirstTouch:
    """What rows were before the log first touched them. `was`: by the hash of the key,
    the hash of the row, None where there was none; `untold`: keys of rows of which the log has
    not every column."""

    was: dict[int, int | None] = field(default_factory=dict)
    untold: set[int] = field(default_factory=set)

    def put(
        self, keys: Hashes, rows: Hashes, comes: npt.NDArray[np.bool_], whole: npt.NDArray[np.bool_]
    ) -> None:
        """Images in the order of the log. `comes`: whether the row is there behind it; `whole`:
        whether the image has every column."""
        _, firsts = np.unique(keys, return_index=True)
        for at in np.sort(firsts).tolist():
            key = int(keys[at])
            if key in self.was:
                continue
            self.was[key] = None if comes[at] else int(rows[at])
            if not comes[at] and not whole[at]:
                self.untold.add(key)

    def shares(self, of: int) -> list[FirstTouch]:
        found = [FirstTouch() for _ in range(of)]
        numbers = share_of(np.array(list(self.was), np.uint64), of).tolist()
        for number, (key, row) in zip(numbers, self.was.items(), strict=True):
            found[number].was[key] = row
            if key in self.untold:
                found[number].untold.add(key)
        return found

    def among(self, keys: Iterable[int]) -> FirstTouch:
        """What it says of these alone."""
        known = set(keys)
        was = {key: row for key, row in self.was.items() if key in known}
        return FirstTouch(was, self.untold & known)

    def wrong(self, source: Pairs, lake: Pairs, *, keeps: bool = False) -> Wrong:
        """`source`: the rows as they were read now; `lake`: the mirror's, which `keeps` rows that
        are gone at the source: one for a key that the source does not have is as it should be."""
        touched = np.array(sorted(self.was), np.uint64)
        untold = np.array(sorted(self.untold), np.uint64)
        was = [(key, row) for key, row in self.was.items() if row is not None]
        before = np.array(was, PAIR) if was else np.empty(0, PAIR)
        truth = np.concatenate([source[~np.isin(source["key"], touched)], before])
        truth = truth[~np.isin(truth["key"], untold)]
        there = lake[~np.isin(lake["key"], untold)]
        found, surplus = counted(truth, there)
        more = frozenset(found["key"][surplus > 0].tolist())
        less = frozenset(found["key"][surplus < 0].tolist())
        both = more & less
        kept: frozenset[int] = frozenset()
        if keeps:
            once, counts = np.unique(there["key"], return_counts=True)
            stays = once[(counts == 1) & ~np.isin(once, truth["key"])]
            kept = less & frozenset(stays.tolist())
        return Wrong(more - both, less - both - kept, both, len(self.untold), len(kept))


@dataclass(slots=True)
class RowTally:
    """How often the log added each row of a table without a key. `before`: up to the
    low mark of the source's read; `since`: what the sums behind it were, one after the other."""

    before: dict[int, int] = field(default_factory=dict)
    since: dict[int, list[int]] = field(default_factory=dict)

    def put(self, rows: Hashes, signs: Sequence[int], *, behind_low: bool) -> None:
        """Images of one stretch of the log, before the low mark or behind it."""
        for row, sign in zip(rows.tolist(), signs, strict=True):
            if not behind_low:
                self.before[row] = self.before.get(row, 0) + sign
                continue
            sums = self.since.setdefault(row, [self.before.get(row, 0)])
            sums.append(sums[-1] + sign)

    def shares(self, of: int) -> list[RowTally]:
        found = [RowTally() for _ in range(of)]
        for row, sign in self.before.items():
            found[row % of].before[row] = sign
        for row, sums in self.since.items():
            found[row % of].since[row] = sums
        return found

    def wrong(self, source: Pairs, lake: Pairs, *, keeps: bool = False) -> Wrong:
        """As `FirstTouch.wrong`; but no row of the lake is too many where it `keeps` some."""
        found, surplus = counted(source, lake)
        more = dict(zip(found["key"].tolist(), surplus.tolist(), strict=True))
        only_source: set[int] = set()
        only_lake: set[int] = set()
        for row in {*more, *self.before, *self.since}:
            told = self.since.get(row, [self.before.get(row, 0)])
            surplus_of = more.get(row, 0)
            if surplus_of in told:
                continue
            (only_source if surplus_of > told[0] else only_lake).add(row)
        if keeps:
            return Wrong(frozenset(only_source), kept=len(only_lake))
        return Wrong(frozenset(only_source), frozenset(only_lake))


def counted(source: Pairs, lake: Pairs) -> tuple[Pairs, npt.NDArray[np.int64]]:
    """The pairs that one side has more often than the other, and how much more often the source
    has them."""
    both = np.concatenate([source, lake])
    order = np.lexsort((both["row"], both["key"]))
    both = both[order]
    sides = np.where(order < len(source), 1, -1)
    if not len(both):
        return both, sides.astype(np.int64)
    starts = np.flatnonzero(np.concatenate([[True], both[1:] != both[:-1]]))
    surplus = np.add.reduceat(sides, starts)
    kept = np.flatnonzero(surplus)
    return both[starts[kept]], surplus[kept].astype(np.int64)
