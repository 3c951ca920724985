"""Which rows of a mirror are not what the newest change of their key says. Pure.

Rows meet by numbers for their keys and their values: two rows that differ have the same number
once in 2^64, and then stay as they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.fold import Hashes, key_hashes
from pipeline.changes.layout import DELETED_AT
from pipeline.changes.mapping import is_present

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
    """Of each folded change whether the mirror shows its key otherwise.

    `changes` have the mirror's own names and types, `_change_type` and, where deletes are "soft",
    `_committed_at`; `mirror` has `key`, `compared` and then `_deleted_at`.
    """
    names = [*compared, *([DELETED_AT.name] if soft else [])]
    present = is_present(changes.column("_change_type")).to_numpy()
    wanted = key_hashes(changes.select(list(key)))
    shown = _as_shown(changes, present) if soft else changes
    rows = _row_hashes(shown.select(names))
    near_ones = ordered(wanted)
    keys, pairs = [np.zeros(0, np.uint64)], [np.zeros(0, np.uint64)]
    for piece in mirror:
        hashes = key_hashes(piece.select(list(key)))
        near = among(hashes, near_ones)
        if near.any():
            some = piece.filter(pa.array(near))
            keys.append(hashes[near])
            pairs.append(_both(hashes[near], _row_hashes(some.select(names))))
    differs = ~among(_both(wanted, rows), ordered(np.concatenate(pairs)))
    if soft:
        return differs
    return np.where(present, differs, among(wanted, ordered(np.concatenate(keys))))


@dataclass(frozen=True, slots=True)
class ReplayDifference:
    """A row that the lake has otherwise: how, its key as text, and the columns that differ, where
    both have the row. `told`: what its newest change says, `shown`: what the lake has, as text by
    column; None unless values were asked for."""

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
    """What is wrong with the rows of these changes, all of which `wrong_rows` found."""
    present = is_present(wrong.column("_change_type")).to_numpy()
    names = [*compared, *([DELETED_AT.name] if soft else [])]
    wanted = key_hashes(wrong.select(list(key)))
    near_ones = ordered(wanted)
    there: dict[int, Mapping[str, Any]] = {}
    for piece in mirror:
        hashes = key_hashes(piece.select(list(key)))
        near = among(hashes, near_ones)
        rows = piece.filter(pa.array(near)).select(names).to_pylist()
        there.update(zip(hashes[near].tolist(), rows, strict=True))
    told = (_as_shown(wrong, present) if soft else wrong).select(names).to_pylist()
    for number, row, stays in zip(wanted.tolist(), told, present.tolist(), strict=True):
        yield difference(
            row if stays or soft else None,
            there.get(number),
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
    """Of one row as it should be and as it is."""
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
    """Each number once, ascending."""
    sort = np.sort(numbers)
    first = np.ones(len(sort), np.bool_)
    first[1:] = sort[1:] != sort[:-1]
    return sort[first]


def among(numbers: Hashes, some: Hashes) -> Flags:
    """Of each number whether it is one of `some`, which are `ordered`."""
    if not len(some):
        return np.zeros(len(numbers), np.bool_)
    at = np.minimum(np.searchsorted(some, numbers), len(some) - 1)
    return np.asarray(some[at] == numbers)


def _as_shown(changes: pa.Table, present: Flags) -> pa.Table:
    """With the moment that marks deleted rows."""
    gone = pa.array(~present)
    moment = pc.if_else(gone, changes.column("_committed_at"), pa.scalar(None, DELETED_AT.type))
    return changes.append_column(DELETED_AT, moment)


def _row_hashes(rows: pa.Table) -> Hashes:
    """Numbers for all values of each row, NULL apart from any value."""
    columns = []
    for column in rows.columns:
        if pa.types.is_list(column.type):
            column = _joined(column)
        columns += [column, pc.is_null(column)]
    return key_hashes(pa.table(columns, names=[str(at) for at in range(len(columns))]))


def _joined(column: pa.ChunkedArray) -> pa.ChunkedArray:
    texts = column.cast(pa.list_(pa.string()))
    joined = pc.binary_join(texts, _BETWEEN)
    count = pc.list_value_length(texts).cast(pa.string())
    return pc.binary_join_element_wise(count, joined, _BETWEEN)
