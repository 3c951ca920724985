"""Finds the rows of a mirror (the Delta table with the current rows) that differ from
the newest change of their key. Pure.

Rows are compared by 64-bit hashes of their keys and values. Two different rows have the
same hash once in 2^64 pairs; such a difference is not found.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.fold import Hashes, key_hashes
from lockstep.pipeline.mirror.layout import DELETED_AT
from lockstep.pipeline.mirror.mapping import is_present

DIFFERENT, MISSING, SURPLUS = "different", "not in the mirror", "only in the mirror"

_BETWEEN = "\x1f"
_NOTHING: Final = object()
Flags = npt.NDArray[np.bool_]


def wrong_rows(
    changes: pa.Table,
    mirror: Iterable[pa.Table],
    *,
    key: Sequence[str],
    compared: Sequence[str],
    soft: bool,
) -> Flags:
    """Return, for each folded change (the newest of its key), whether the mirror's row
    of that key differs.

    `changes` has the mirror's names and types, and `_change_type`; `mirror` has the
    columns `key` and `compared`, in pieces. `soft`: deleted rows stay in the mirror
    with a mark. Then `changes` also has `_committed_at`, and `mirror` has
    `_deleted_at`.
    """
    names = [*compared, *([DELETED_AT.name] if soft else [])]
    present = is_present(changes.column("_change_type")).to_numpy()
    wanted = key_hashes(changes.select(list(key)))
    shown = _as_shown(changes, present) if soft else changes
    rows = _row_hashes(shown.select(names))
    wanted_keys = ordered(wanted)
    keys, pairs = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
    for piece in mirror:
        hashes = key_hashes(piece.select(list(key)))
        matching = among(hashes, wanted_keys)
        if matching.any():
            candidates = piece.filter(pa.array(matching))
            keys.append(hashes[matching])
            pairs.append(_both(hashes[matching], _row_hashes(candidates.select(names))))
    differs = ~among(_both(wanted, rows), ordered(np.concatenate(pairs)))
    if soft:
        return differs
    return np.where(present, differs, among(wanted, ordered(np.concatenate(keys))))


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A row that differs between log and lake. `kind`: different, missing or surplus.
    `key`: its key as text. `columns`: the columns that differ if both sides have the
    row. `told`: the values by its newest change; `shown`: the values in the lake; both
    as text by column name, None unless values were asked for."""

    kind: str
    key: str
    columns: tuple[str, ...] = ()
    told: Mapping[str, str] | None = None
    shown: Mapping[str, str] | None = None


def row_differences(
    wrong: pa.Table,
    mirror: Iterable[pa.Table],
    *,
    key: Sequence[str],
    compared: Sequence[str],
    soft: bool,
    show_values: bool,
) -> Iterator[ReplayDifference]:
    """Yield the differences of the changes that `wrong_rows` found. Arguments are as
    there."""
    present = is_present(wrong.column("_change_type")).to_numpy()
    names = [*compared, *([DELETED_AT.name] if soft else [])]
    wanted = key_hashes(wrong.select(list(key)))
    wanted_keys = ordered(wanted)
    mirror_rows: dict[int, Mapping[str, Any]] = {}
    for piece in mirror:
        hashes = key_hashes(piece.select(list(key)))
        matching = among(hashes, wanted_keys)
        rows = piece.filter(pa.array(matching)).select(names).to_pylist()
        mirror_rows.update(zip(hashes[matching].tolist(), rows, strict=True))
    expected = (_as_shown(wrong, present) if soft else wrong).select(names).to_pylist()
    for key_hash, row, exists in zip(wanted.tolist(), expected, present.tolist(), strict=True):
        yield difference(
            row if exists or soft else None,
            mirror_rows.get(key_hash),
            {name: row[name] for name in key},
            show_values=show_values,
        )


def difference(
    told: Mapping[str, Any] | None,
    shown: Mapping[str, Any] | None,
    key: Mapping[str, Any],
    *,
    show_values: bool,
) -> ReplayDifference:
    """Return the difference of one row. `told`: its newest change, `shown`: the lake's
    row; None if that side has no row."""
    columns: tuple[str, ...] = ()
    kind = MISSING if shown is None else SURPLUS
    if told is not None and shown is not None:
        names = dict.fromkeys((*told, *shown))
        differ = (name for name in names if told.get(name, _NOTHING) != shown.get(name, _NOTHING))
        kind, columns = DIFFERENT, tuple(differ)
    texts = [
        {} if row is None else {name: repr(row[name]) for name in columns or row if name in row}
        for row in (told, shown)
    ]
    return ReplayDifference(
        kind,
        ", ".join(f"{name}={value!r}" for name, value in key.items()),
        columns,
        *(texts if show_values else (None, None)),
    )


def _both(keys: Hashes, rows: Hashes) -> Hashes:
    return keys * np.uint64(0x9E3779B97F4A7C15) + rows


def ordered(numbers: Hashes) -> Hashes:
    """Return each number once, ascending."""
    ascending = np.sort(numbers)
    first = np.ones(len(ascending), np.bool_)
    first[1:] = ascending[1:] != ascending[:-1]
    return ascending[first]


def among(numbers: Hashes, some: Hashes) -> Flags:
    """Return for each number whether it is one of `some`, which are `ordered`."""
    if not len(some):
        return np.zeros(len(numbers), np.bool_)
    at = np.minimum(np.searchsorted(some, numbers), len(some) - 1)
    return np.asarray(some[at] == numbers)


def _as_shown(changes: pa.Table, present: Flags) -> pa.Table:
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
            column = _joined(column)
        columns += [column, pc.is_null(column)]
    return key_hashes(pa.table(columns, names=[str(at) for at in range(len(columns))]))


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return each list as a text: the number of elements, then the elements."""
    texts = column.cast(pa.list_(pa.string()))
    joined = pc.binary_join(texts, _BETWEEN)
    count = pc.list_value_length(texts).cast(pa.string())
    return pc.binary_join_element_wise(count, joined, _BETWEEN)
