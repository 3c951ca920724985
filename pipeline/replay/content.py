"""Whether two sets of files hold the same rows in the same order, and in what they differ. Pure.

Belongs here: the comparison, however the rows are cut into pieces. Does not: reading the pieces.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

Flags = npt.NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class ContentDifference:
    """How many rows differ, in which columns any of them does, and some of them: each as it is in
    the one, and in the other. Where one has fewer rows, the others are not among them."""

    rows: int
    columns: tuple[str, ...]
    some: tuple[tuple[Mapping[str, Any], Mapping[str, Any]], ...] = ()


def same_rows(one: Iterable[pa.Table], other: Iterable[pa.Table]) -> bool:
    """All columns, by name, type and value."""
    return all(
        a is not None and b is not None and a.schema.equals(b.schema) and a.equals(b)
        for a, b in _aligned(one, other)
    )


def differences(
    one: Iterable[pa.Table], other: Iterable[pa.Table], *, most: int
) -> ContentDifference:
    """In what they differ, with `most` of the rows."""
    count, columns = 0, dict[str, None]()
    some: list[tuple[Mapping[str, Any], Mapping[str, Any]]] = []
    for a, b in _aligned(one, other):
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
        rows = pa.array(np.flatnonzero(wrong)[: most - len(some)])
        some += zip(a.take(rows).to_pylist(), b.take(rows).to_pylist(), strict=True)
    return ContentDifference(count, tuple(columns), tuple(some))


def _differs(one: pa.Table, other: pa.Table, name: str) -> Flags:
    """Of each row; all of them where one has no such column, or of another type."""
    if name not in one.column_names or name not in other.column_names:
        return np.ones(one.num_rows, np.bool_)
    ours, theirs = (table.column(name).combine_chunks() for table in (one, other))
    if ours.type != theirs.type:
        return np.ones(one.num_rows, np.bool_)
    if ours.equals(theirs):
        return np.zeros(one.num_rows, np.bool_)
    if pa.types.is_nested(ours.type):
        pairs = zip(ours.to_pylist(), theirs.to_pylist(), strict=True)
        return np.array([a != b for a, b in pairs], np.bool_)
    values = pc.fill_null(pc.not_equal(ours, theirs), True)
    neither = pc.and_(pc.is_null(ours), pc.is_null(theirs))
    flags = pc.and_not(values, neither).to_numpy(zero_copy_only=False)
    return np.asarray(flags, np.bool_)


def _aligned(
    one: Iterable[pa.Table], other: Iterable[pa.Table]
) -> Iterator[tuple[pa.Table | None, pa.Table | None]]:
    """The same rows of both, cut alike; None behind the end of one."""
    ones, others = _filled(one), _filled(other)
    a, b = next(ones, None), next(others, None)
    while a is not None or b is not None:
        count = min(table.num_rows for table in (a, b) if table is not None)
        yield (
            None if a is None else a.slice(0, count),
            None if b is None else b.slice(0, count),
        )
        a = next(ones, None) if a is None or count == a.num_rows else a.slice(count)
        b = next(others, None) if b is None or count == b.num_rows else b.slice(count)


def _filled(pieces: Iterable[pa.Table]) -> Iterator[pa.Table]:
    return (piece for piece in pieces if piece.num_rows)
