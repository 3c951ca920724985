"""Finds the rows of a mirror (the Delta table with the current rows) that differ from
the newest change of their key, and the rows in which two sets of files differ. Pure.

A mirror's rows are compared by 64-bit hashes of their keys and values. Two different
rows have the same hash once in 2^64 pairs; such a difference is not found. Files are
compared by their values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.fold import Hashes, key_hashes
from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.mirror.mapping import is_present
from lockstep.pipeline.proof.hashes import Flags, membership, sorted_unique

DIFFERENT, MISSING, SURPLUS = "different", "not in the mirror", "only in the mirror"

_SEPARATOR: Final = "\x1f"
_ABSENT: Final = object()


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A row that differs between log and lake. `kind`: `DIFFERENT`, `MISSING` or
    `SURPLUS`. `key`: its key as text. `columns`: the columns that differ, if both sides
    have the row. `log`: the values in its newest change. `lake`: the values in the
    lake. Both are texts by column name, or None unless values were asked for."""

    json_keys: ClassVar = ("kind", "key", "columns", "log as told", "lake as shown")

    kind: str
    key: str
    columns: tuple[str, ...] = ()
    log: Mapping[str, str] | None = None
    lake: Mapping[str, str] | None = None

    @property
    def values_by_side(self) -> dict[str, Mapping[str, str] | None]:
        return {"the log says": self.log, "the lake has": self.lake}


@dataclass(frozen=True, slots=True)
class RowComparison:
    """Compares a mirror's rows with folded changes (the newest change of each key) in
    the columns `names`. The changes have the mirror's names and types, and
    `_change_type`. `has_soft_deletes`: deleted rows stay in the mirror with a mark.
    Then the changes also have `_committed_at`, and the mirror has `_deleted_at`."""

    key: Sequence[str]
    names: Sequence[str]
    has_soft_deletes: bool

    def wrong_flags(self, changes: pa.Table, mirror: Iterable[pa.Table]) -> Flags:
        """Return for each change whether the mirror's row with its key differs from it.
        `mirror`: the mirror's rows, in pieces."""
        present, expected = self._expected(changes)
        changed_keys = self._keys(changes)
        sorted_keys = sorted_unique(changed_keys)
        mirror_keys, mirror_pairs = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
        for keys, rows in self._matching_rows(mirror, sorted_keys):
            mirror_keys.append(keys)
            mirror_pairs.append(_pair_hashes(keys, _row_hashes(rows)))
        all_pairs = sorted_unique(np.concatenate(mirror_pairs))
        differs = ~membership(_pair_hashes(changed_keys, _row_hashes(expected)), all_pairs)
        if self.has_soft_deletes:
            return differs
        is_in_mirror = membership(changed_keys, sorted_unique(np.concatenate(mirror_keys)))
        return np.where(present, differs, is_in_mirror)

    def differences(
        self, wrong: pa.Table, mirror: Iterable[pa.Table], *, show_values: bool
    ) -> Iterator[ReplayDifference]:
        """Yield the difference of each of the changes `wrong`, which `wrong_flags`
        found."""
        present, expected = self._expected(wrong)
        wrong_keys = self._keys(wrong)
        mirror_rows: dict[int, Mapping[str, Any]] = {}
        for keys, rows in self._matching_rows(mirror, sorted_unique(wrong_keys)):
            mirror_rows.update(zip(keys.tolist(), rows.to_pylist(), strict=True))
        for key, row, exists in zip(
            wrong_keys.tolist(), expected.to_pylist(), present.tolist(), strict=True
        ):
            yield row_difference(
                row if exists or self.has_soft_deletes else None,
                mirror_rows.get(key),
                {name: row[name] for name in self.key},
                show_values=show_values,
            )

    @property
    def _all_names(self) -> list[str]:
        return [*self.names, *([DELETED_AT.name] if self.has_soft_deletes else [])]

    def _keys(self, rows: pa.Table) -> Hashes:
        return key_hashes(rows.select(list(self.key)))

    def _expected(self, changes: pa.Table) -> tuple[Flags, pa.Table]:
        """Return for each change whether its row exists, and the row that the mirror
        must have. Without soft deletes, only the rows that exist count."""
        present = is_present(changes.column("_change_type")).to_numpy()
        rows = _with_deletion_times(changes, present) if self.has_soft_deletes else changes
        return present, rows.select(self._all_names)

    def _matching_rows(
        self, mirror: Iterable[pa.Table], sorted_keys: Hashes
    ) -> Iterator[tuple[Hashes, pa.Table]]:
        """Yield the mirror's rows with these keys, and the hashes of their keys."""
        for piece in mirror:
            keys = self._keys(piece)
            matching = membership(keys, sorted_keys)
            if matching.any():
                rows = piece.filter(pa.array(matching)).select(self._all_names)
                yield keys[matching], rows


def row_difference(
    expected: Mapping[str, Any] | None,
    actual: Mapping[str, Any] | None,
    key: Mapping[str, Any],
    *,
    show_values: bool,
) -> ReplayDifference:
    """Return the difference of one row. `expected`: its newest change; `actual`: the
    lake's row; None if that side has no row."""
    columns: tuple[str, ...] = ()
    kind = MISSING if actual is None else SURPLUS
    if expected is not None and actual is not None:
        kind = DIFFERENT
        columns = tuple(
            name
            for name in dict.fromkeys((*expected, *actual))
            if expected.get(name, _ABSENT) != actual.get(name, _ABSENT)
        )
    texts = [
        {} if row is None else {name: repr(row[name]) for name in columns or row if name in row}
        for row in (expected, actual)
    ]
    return ReplayDifference(
        kind,
        ", ".join(f"{name}={value!r}" for name, value in key.items()),
        columns,
        *(texts if show_values else (None, None)),
    )


def _pair_hashes(keys: Hashes, rows: Hashes) -> Hashes:
    return keys * np.uint64(0x9E3779B97F4A7C15) + rows


def _with_deletion_times(changes: pa.Table, present: Flags) -> pa.Table:
    """Add the mirror's column with the time of deletion; it is NULL for rows that
    exist."""
    deleted = pa.array(~present)
    moment = pc.if_else(deleted, changes.column("_committed_at"), pa.scalar(None, DELETED_AT.type))
    return changes.append_column(DELETED_AT, moment)


def _row_hashes(rows: pa.Table) -> Hashes:
    """Return a hash of each row's values; NULL has a hash of its own."""
    columns = []
    for column in rows.columns:
        if pa.types.is_list(column.type):
            column = _list_texts(column)
        columns += [column, pc.is_null(column)]
    return key_hashes(pa.table(columns, names=[str(index) for index in range(len(columns))]))


def _list_texts(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return each list as a text: the number of elements, then the elements."""
    texts = column.cast(pa.list_(pa.string()))
    joined = pc.binary_join(texts, _SEPARATOR)
    count = pc.list_value_length(texts).cast(pa.string())
    return pc.binary_join_element_wise(count, joined, _SEPARATOR)


# -- two sets of files, row by row -----------------------------------------------------


@dataclass(frozen=True, slots=True)
class ContentDifference:
    """How the rows of two sides differ. `row_count`: the number of rows that differ;
    `columns`: the columns in which at least one differs; `examples`: some pairs of rows
    (left, right). Rows that only one side has are counted but are no examples."""

    row_count: int
    columns: tuple[str, ...]
    examples: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...] = ()


def have_same_rows(left: Iterable[pa.Table], right: Iterable[pa.Table]) -> bool:
    """Return whether both sides have the same rows in the same order, with columns of
    the same names, types and values."""
    return all(
        a is not None and b is not None and a.schema.equals(b.schema) and a.equals(b)
        for a, b in _aligned_pieces(left, right)
    )


def content_difference(
    left: Iterable[pa.Table], right: Iterable[pa.Table], *, most: int
) -> ContentDifference:
    """Return how the rows of both sides differ, with at most `most` pairs of rows."""
    count = 0
    columns: dict[str, None] = {}
    sample: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    for a, b in _aligned_pieces(left, right):
        if a is None or b is None:
            count += sum(table.num_rows for table in (a, b) if table is not None)
            continue
        wrong = np.zeros(a.num_rows, np.bool_)
        for name in dict.fromkeys([*a.column_names, *b.column_names]):
            differs = _differs(a, b, name)
            if differs.any():
                columns[name] = None
                wrong |= differs
        count += int(wrong.sum())
        rows = pa.array(np.flatnonzero(wrong)[: most - len(sample)])
        sample += zip(a.take(rows).to_pylist(), b.take(rows).to_pylist(), strict=True)
    return ContentDifference(count, tuple(columns), tuple(sample))


def _differs(a: pa.Table, b: pa.Table, name: str) -> Flags:
    """Return for each row whether a column differs. Every row differs if one table
    lacks the column or has it with another type."""
    if name not in a.column_names or name not in b.column_names:
        return np.ones(a.num_rows, np.bool_)
    left, right = (table.column(name).combine_chunks() for table in (a, b))
    if left.type != right.type:
        return np.ones(a.num_rows, np.bool_)
    if left.equals(right):
        return np.zeros(a.num_rows, np.bool_)
    if pa.types.is_nested(left.type):
        pairs = zip(left.to_pylist(), right.to_pylist(), strict=True)
        return np.array([first != second for first, second in pairs], np.bool_)
    unequal = pc.fill_null(pc.not_equal(left, right), True)
    both_null = pc.and_(pc.is_null(left), pc.is_null(right))
    flags = pc.and_not(unequal, both_null).to_numpy(zero_copy_only=False)
    return np.asarray(flags, np.bool_)


def _aligned_pieces(
    left: Iterable[pa.Table], right: Iterable[pa.Table]
) -> Iterator[tuple[pa.Table | None, pa.Table | None]]:
    """Yield the rows of both sides in pieces of equal length; None for a side that has
    ended."""
    lefts, rights = _non_empty(left), _non_empty(right)
    a, b = next(lefts, None), next(rights, None)
    while a is not None or b is not None:
        count = min(table.num_rows for table in (a, b) if table is not None)
        yield (
            None if a is None else a.slice(0, count),
            None if b is None else b.slice(0, count),
        )
        a = next(lefts, None) if a is None or count == a.num_rows else a.slice(count)
        b = next(rights, None) if b is None or count == b.num_rows else b.slice(count)


def _non_empty(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    return (piece for piece in pieces if piece.num_rows)
