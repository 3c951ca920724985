"""Keys as numbers: equal keys have equal ones, so that changes can be folded in parts.

Two keys may share a number; then they are folded in the same part, which is no harm.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.mapping import comparable
from pipeline.segment import ChangeType

Hashes = npt.NDArray[np.uint64]

_ODD = 0x9E3779B97F4A7C15
_WINDOW = 1 << 20
"""Bytes of text that are hashed at once; each takes some dozens of bytes meanwhile."""


def key_hashes(keys: pa.Table) -> Hashes:
    """A number for each row of the key's columns, which have the mirror's types."""
    found = np.zeros(keys.num_rows, np.uint64)
    for column in keys.columns:
        found = _mixed(found * np.uint64(_ODD) + _of_column(comparable(column)))
    return found


def _of_column(column: pa.ChunkedArray) -> Hashes:
    values = column.combine_chunks()
    if isinstance(values, pa.ChunkedArray):
        parts = [_of_array(chunk) for chunk in values.chunks]
        return np.concatenate(parts) if parts else np.zeros(0, np.uint64)
    return _of_array(values)


def _of_array(values: pa.Array) -> Hashes:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        found = _of_text(values)
    elif pa.types.is_decimal128(kind):
        halves = _numbers(values, np.dtype(np.uint64), 2).reshape(-1, 2)
        found = halves[:, 0] * np.uint64(_ODD) + halves[:, 1]
    else:
        if pa.types.is_boolean(kind):
            values = values.cast(pa.int8())
        found = _numbers(values, np.dtype(f"u{values.type.bit_width // 8}"), 1).astype(np.uint64)
    if values.null_count:
        found = np.where(pc.is_null(values).to_numpy(zero_copy_only=False), np.uint64(0), found)
    return found


def _numbers(values: pa.Array, kind: np.dtype[np.unsignedinteger], each: int) -> Hashes:
    if not len(values):
        return np.zeros(0, np.uint64)
    buffer = values.buffers()[1]
    found = np.frombuffer(buffer, kind)
    return found[values.offset * each : (values.offset + len(values)) * each]


def _of_text(values: pa.Array) -> Hashes:
    """Each text is a polynomial over its bytes, taken out of running sums over all of them."""
    found = np.zeros(len(values), np.uint64)
    _, places, content = values.buffers()
    if not len(values) or content is None:
        return found
    ends = np.frombuffer(places, np.int32)[values.offset :][: len(values) + 1].astype(np.int64)
    data = np.frombuffer(content, np.uint8)
    at = 0
    while at < len(values):
        behind = int(np.searchsorted(ends, ends[at] + _WINDOW, "right")) - 1
        behind = min(max(behind, at + 1), len(values))
        begin = ends[at]
        there = data[begin : ends[behind]].astype(np.uint64) + np.uint64(1)
        up, down = _powers(max(_WINDOW, len(there)))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(there * up[: len(there)])])
        local = ends[at : behind + 1] - begin
        found[at:behind] = (sums[local[1:]] - sums[local[:-1]]) * down[local[:-1]]
        at = behind
    return found


@cache
def _powers(count: int) -> tuple[Hashes, Hashes]:
    """Of a number and of its inverse modulo 2^64."""
    inverse = pow(_ODD, -1, 1 << 64)
    up, down = np.full((2, count + 1), 1, np.uint64)
    up[1:], down[1:] = np.uint64(_ODD), np.uint64(inverse)
    return np.cumprod(up), np.cumprod(down)


def _mixed(found: Hashes) -> Hashes:
    """Every bit of the answer depends on every bit (splitmix64)."""
    found = (found ^ (found >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    found = (found ^ (found >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return found ^ (found >> np.uint64(31))


class KeyChains:
    """Keys that rows were moved between, by their numbers: an update's image before it has one
    key, the image after it another, and what the later one leaves out is told by the earlier.

    All images are added, in any pieces; then `roots` gives keys that belong together one number.
    """

    def __init__(self) -> None:
        self._moves: list[npt.NDArray[np.uint64]] = []
        self._halves: list[npt.NDArray[np.uint64]] = []
        self._keys: Hashes | None = None
        self._roots = np.zeros(0, np.uint64)

    def add(self, images: pa.Table, hashes: Hashes) -> None:
        """`images` have `_change_type` and `_sequence`."""
        kind = images.column("_change_type")
        halves = [ChangeType.UPDATE_PREIMAGE.value, ChangeType.UPDATE_POSTIMAGE.value]
        wanted = pc.is_in(kind, value_set=pa.array(halves)).to_numpy()
        after = pc.equal(kind, ChangeType.UPDATE_POSTIMAGE.value).to_numpy()
        sequence = images.column("_sequence").to_numpy().astype(np.uint64)
        rows = np.column_stack([sequence, hashes, after.astype(np.uint64)])
        self._halves.append(self._paired(rows[wanted]))

    def _paired(self, rows: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Images whose other half is not among them: they may be in another piece."""
        rows = rows[np.argsort(rows[:, 0], kind="stable")]
        first = np.zeros(len(rows), np.bool_)
        if len(rows):
            first[:-1] = (np.diff(rows[:, 0]) == 1) & (rows[:-1, 2] == 0) & (rows[1:, 2] == 1)
        second = np.roll(first, 1)
        moves = np.column_stack([rows[first][:, 1], rows[second][:, 1]])
        moves = moves[moves[:, 0] != moves[:, 1]]
        if len(moves):
            self._moves.append(moves)
        return rows[~(first | second)]

    def roots(self, hashes: Hashes) -> Hashes:
        """For each key's number the one that all keys of its chain have in common."""
        if self._keys is None:
            if self._halves:
                self._paired(np.concatenate(self._halves))
            self._keys, self._roots = _joined(self._moves)
            self._halves.clear()
        if not len(self._keys):
            return hashes
        at = np.minimum(np.searchsorted(self._keys, hashes), len(self._keys) - 1)
        return np.where(self._keys[at] == hashes, self._roots[at], hashes)


def _joined(moves: list[npt.NDArray[np.uint64]]) -> tuple[Hashes, Hashes]:
    """All keys of some move, ascending, and for each the least one of those it is joined to."""
    if not moves:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    keys, places = np.unique(np.concatenate(moves), return_inverse=True)
    pairs = places.reshape(-1, 2)
    label = np.arange(len(keys))
    while True:
        one, other = label[pairs[:, 0]], label[pairs[:, 1]]
        apart = one != other
        if not apart.any():
            return keys, keys[label]
        np.minimum.at(label, np.maximum(one, other)[apart], np.minimum(one, other)[apart])
        while (label != label[label]).any():
            label = label[label]
