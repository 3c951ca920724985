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
from dataclasses import dataclass, field, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.proof.hashes import Hashes, membership, sorted_unique

ROW_HASH_TYPE: Final = np.dtype([("key", np.uint64), ("row", np.uint64)])

RowHashes = npt.NDArray[np.void]
"""For each row a pair: the hash of its key (`key`), and the hash of all its columns
(`row`)."""


def pair_hashes(keys: Hashes, rows: Hashes) -> RowHashes:
    """Return the pairs of these hashes, row by row."""
    result = np.empty(len(keys), ROW_HASH_TYPE)
    result["key"], result["row"] = keys, rows
    return result


def share_indexes(keys: Hashes, share_count: int) -> npt.NDArray[np.intp]:
    """Return, for each key, the index of its share if the rows are divided into
    `share_count` shares. A key's rows are in the same share on both sides."""
    return np.asarray(keys % np.uint64(share_count)).astype(np.intp)


def concatenated(batches: Iterable[RowHashes]) -> RowHashes:
    """Return the pairs of all batches in one array."""
    return np.concatenate([np.empty(0, ROW_HASH_TYPE), *batches])


@dataclass(frozen=True, slots=True)
class WrongRows:
    """Wrong rows, by the hashes of their keys: rows that only one side has, and rows
    with different values. `incomplete_count`: number of rows that cannot be compared,
    because the log lacks some of their columns. `kept_count`: number of deleted rows
    that the mirror keeps as configured; these are right."""

    only_source: frozenset[int] = frozenset()
    only_lake: frozenset[int] = frozenset()
    different: frozenset[int] = frozenset()
    incomplete_count: int = 0
    kept_count: int = 0

    @property
    def all_keys(self) -> frozenset[int]:
        return self.only_source | self.only_lake | self.different

    def __or__(self, other: WrongRows) -> WrongRows:
        return WrongRows(
            self.only_source | other.only_source,
            self.only_lake | other.only_lake,
            self.different | other.different,
            self.incomplete_count + other.incomplete_count,
            self.kept_count + other.kept_count,
        )

    def first(self, count: int) -> WrongRows:
        """Return at most `count` of the wrong rows: those with the smallest hashes."""
        keys = frozenset(heapq.nsmallest(count, self.all_keys))
        return replace(
            self,
            only_source=self.only_source & keys,
            only_lake=self.only_lake & keys,
            different=self.different & keys,
        )


@dataclass(slots=True)
class RowsBeforeLog:
    """Rows as they were before the log first changed them. `earlier_rows`: hash of a
    row's key → hash of the row, None if the row did not exist. `incomplete_keys`: key
    hashes of the rows for which the log does not have all columns."""

    earlier_rows: dict[int, int | None] = field(default_factory=dict)
    incomplete_keys: set[int] = field(default_factory=set)

    def put(
        self,
        keys: Hashes,
        rows: Hashes,
        is_after_change: npt.NDArray[np.bool_],
        is_complete: npt.NDArray[np.bool_],
    ) -> None:
        """Add images in the order of the log. `is_after_change`: for each image,
        whether it shows the row after a change; `is_complete`: whether it has every
        column."""
        _, first_indexes = np.unique(keys, return_index=True)
        for index in np.sort(first_indexes).tolist():
            key = int(keys[index])
            if key in self.earlier_rows:
                continue
            self.earlier_rows[key] = None if is_after_change[index] else int(rows[index])
            if not is_after_change[index] and not is_complete[index]:
                self.incomplete_keys.add(key)

    def shares(self, count: int) -> list[RowsBeforeLog]:
        """Divide the rows into `count` shares, as `share_indexes` does."""
        shares = [RowsBeforeLog() for _ in range(count)]
        for key, row in self.earlier_rows.items():
            shares[key % count].earlier_rows[key] = row
        for key in self.incomplete_keys:
            shares[key % count].incomplete_keys.add(key)
        return shares

    def with_keys(self, keys: Iterable[int]) -> RowsBeforeLog:
        chosen = set(keys)
        rows = {key: row for key, row in self.earlier_rows.items() if key in chosen}
        return RowsBeforeLog(rows, self.incomplete_keys & chosen)

    def wrong_rows(
        self, source: RowHashes, lake: RowHashes, *, keeps_deleted: bool = False
    ) -> WrongRows:
        """Return the wrong rows. `source`: the source's rows as read now; `lake`: the
        mirror's rows. `keeps_deleted`: the mirror keeps deleted rows, so it may have
        one row of a key that the source lacks."""
        changed_keys = np.array(sorted(self.earlier_rows), np.uint64)
        incomplete_keys = np.array(sorted(self.incomplete_keys), np.uint64)
        pairs = [(key, row) for key, row in self.earlier_rows.items() if row is not None]
        earlier = np.array(pairs, ROW_HASH_TYPE) if pairs else np.empty(0, ROW_HASH_TYPE)
        expected = np.concatenate([source[~membership(source["key"], changed_keys)], earlier])
        expected = expected[~membership(expected["key"], incomplete_keys)]
        comparable = lake[~membership(lake["key"], incomplete_keys)]
        unequal, surplus = unequal_rows(expected, comparable)
        in_source = frozenset(unequal["key"][surplus > 0].tolist())
        in_lake = frozenset(unequal["key"][surplus < 0].tolist())
        both = in_source & in_lake
        kept: frozenset[int] = frozenset()
        if keeps_deleted:
            keys, counts = np.unique(comparable["key"], return_counts=True)
            expected_keys = sorted_unique(expected["key"])
            deleted = keys[(counts == 1) & ~membership(keys, expected_keys)]
            kept = in_lake & frozenset(deleted.tolist())
        return WrongRows(
            in_source - both, in_lake - both - kept, both, len(self.incomplete_keys), len(kept)
        )


@dataclass(slots=True)
class RowTally:
    """For a table without a key: the number of times that the log inserted each row,
    minus the number of times that it deleted it. `counts_at_low`: this number up to the
    low mark (the log's end just before the source was read), by the hash of the row.
    `counts_after_low`: for a row that changed later, the same number, followed by the
    number after each later change."""

    counts_at_low: dict[int, int] = field(default_factory=dict)
    counts_after_low: dict[int, list[int]] = field(default_factory=dict)

    def put(self, rows: Hashes, signs: Sequence[int], *, after_low: bool) -> None:
        """Add images. `after_low`: they come after the low mark."""
        for row, sign in zip(rows.tolist(), signs, strict=True):
            if not after_low:
                self.counts_at_low[row] = self.counts_at_low.get(row, 0) + sign
                continue
            counts = self.counts_after_low.setdefault(row, [self.counts_at_low.get(row, 0)])
            counts.append(counts[-1] + sign)

    def shares(self, share_count: int) -> list[RowTally]:
        """Divide the counts into `share_count` shares, as `share_indexes` does."""
        shares = [RowTally() for _ in range(share_count)]
        for row, count in self.counts_at_low.items():
            shares[row % share_count].counts_at_low[row] = count
        for row, counts in self.counts_after_low.items():
            shares[row % share_count].counts_after_low[row] = counts
        return shares

    def wrong_rows(
        self, source: RowHashes, lake: RowHashes, *, keeps_deleted: bool = False
    ) -> WrongRows:
        """Return the wrong rows; the arguments are those of `RowsBeforeLog.wrong_rows`.
        With `keeps_deleted`, surplus rows are right."""
        unequal, surplus = unequal_rows(source, lake)
        counts = dict(zip(unequal["key"].tolist(), surplus.tolist(), strict=True))
        only_source: set[int] = set()
        only_lake: set[int] = set()
        for row in {*counts, *self.counts_at_low, *self.counts_after_low}:
            possible_counts = self.counts_after_low.get(row, [self.counts_at_low.get(row, 0)])
            count = counts.get(row, 0)
            if count not in possible_counts:
                (only_source if count > possible_counts[0] else only_lake).add(row)
        if keeps_deleted:
            return WrongRows(frozenset(only_source), kept_count=len(only_lake))
        return WrongRows(frozenset(only_source), frozenset(only_lake))


def unequal_rows(source: RowHashes, lake: RowHashes) -> tuple[RowHashes, npt.NDArray[np.int64]]:
    """Return the pairs that occur more often on one side. Return also their number in
    the source minus that in the lake."""
    pairs = np.concatenate([source, lake])
    order = np.lexsort((pairs["row"], pairs["key"]))
    pairs = pairs[order]
    sides = np.where(order < len(source), 1, -1)
    if not len(pairs):
        return pairs, sides.astype(np.int64)
    starts = np.flatnonzero(np.concatenate([[True], pairs[1:] != pairs[:-1]]))
    surplus = np.add.reduceat(sides, starts)
    unequal = np.flatnonzero(surplus)
    return pairs[starts[unequal]], surplus[unequal].astype(np.int64)
