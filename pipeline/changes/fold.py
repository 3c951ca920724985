"""The last image per key: the one fold there is, of all images at once or of a part of the keys;
keys as numbers, so that changes can be folded in parts; and the least and greatest of them.

Images of one key must be folded together, in one part. Where images leave columns out, so must
images of keys that a row was moved between (`KeyChains`). Two keys may share a number; then they
are folded in the same part, which is no harm.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipeline.changes.coalescing import coalesced, lacking_columns
from pipeline.changes.layout import changelog_names
from pipeline.changes.mapping import (
    KEPT,
    Mapped,
    comparable,
    folded,
    is_present,
    kept_columns,
    mapped,
    newest,
)
from pipeline.ports.mirror_writes import PartColumn, StagedFiles
from pipeline.segment import ChangeType
from pipeline.stamps import Stamp

Bounds = Mapping[str, tuple[Any, Any]]
"""The mirror's column → least and greatest value."""


def key_bounds(changes: pa.Table, key: Mapping[str, str]) -> Bounds:
    """For key columns whose type orders the same in Arrow, Parquet statistics and Spark.
    `key`: a column of `changes` → the mirror's column.

    Integers, decimals and dates only: text has collations, floats have NaN.
    """
    bounds = {}
    for spelled, name in key.items():
        column = changes.column(spelled)
        if _family(column.type) in _LITERALS and len(column):
            ends = pc.min_max(column)
            bounds[name] = (ends["min"].as_py(), ends["max"].as_py())
    return {name: ends for name, ends in bounds.items() if ends[0] is not None}


def joined_bounds(one: Bounds, other: Bounds) -> Bounds:
    """Of the changes of both, which have the same columns; a side without any has none."""
    if not one or not other:
        return one or other
    return {
        name: (min(one[name][0], other[name][0]), max(one[name][1], other[name][1]))
        for name in one
        if name in other
    }


def bounds_literals(bounds: Bounds, kinds: pa.Schema) -> tuple[tuple[str, str, str], ...]:
    """(column, least, greatest) as SQL literals; `kinds` are the mirror's columns."""
    found = []
    for name, ends in bounds.items():
        least, greatest = map(_LITERALS[_family(kinds.field(name).type)], ends)
        found.append((name, least, greatest))
    return tuple(found)


def _family(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_decimal(kind):
        return "decimal"
    return "date" if pa.types.is_date(kind) else ""


_LITERALS: Mapping[str, Callable[[Any], str]] = {
    "integer": str,
    "decimal": lambda value: f"{value:f}BD",
    "date": lambda value: f"DATE'{value.isoformat()}'",
}


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


@dataclass(frozen=True, slots=True)
class Fold:
    """How a table's images are folded to rows of a mirror with `schema` and `key`.

    `parts`: a kind of images each, in the order in which they are given; their files do not
    matter here. `marks`: further columns of each image that stay, such as `_committed_at`.
    `numbered`: whether `_sequence` stays. `doubtful`: see `coalesced`. `emptied`: changes behind
    which no row was there any more, ascending, of which the last is behind all images: then every
    image that is left is a delete, whose `_committed_at` is the moment at which the row went, and
    so are those of its columns that are `stamps`; without that mark the rows that were there stay.
    These images leave no columns out. `ignored`: rows stay that were deleted (`mapping.outcome`).
    `unmarked`: deletes up to that change have no `_committed_at`, so that they leave no row; then
    images leave no columns out.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    parts: tuple[StagedFiles, ...]
    marks: tuple[str, ...] = ()
    numbered: bool = False
    doubtful: int = 0
    emptied: tuple[Stamp, ...] = ()
    ignored: bool = False
    stamps: tuple[str, ...] = ()
    unmarked: int = 0

    @property
    def partial(self) -> bool:
        """Whether images leave columns out."""
        return any(part.present is not None for part in self.parts)

    @property
    def kept(self) -> tuple[str, ...]:
        """Columns whose value in the mirror may stay."""
        return kept_columns((part.columns for part in self.parts), self.schema)

    @property
    def lacking(self) -> tuple[str, ...]:
        """Columns whose value may have to be looked up."""
        return lacking_columns(self.parts, self.schema)

    def table(self, images: Sequence[pa.Table]) -> tuple[pa.Table, tuple[str, ...]]:
        """The images of each part, folded; and the columns that some row lacks."""
        if self.partial:
            pairs = list(zip(images, self.parts, strict=True))
            return coalesced(
                pairs,
                self.schema,
                self.key,
                self.marks,
                doubtful=self.doubtful,
                ignored=self.ignored,
            )
        whole = [(one, part.columns) for one, part in zip(images, self.parts, strict=True)]
        if self.emptied:
            return self._gone(self._folded(whole, numbered=True)), ()
        if self.unmarked and "_committed_at" in self.marks:
            return self._unmarked(self._folded(whole, numbered=True)), ()
        return self._folded(whole, numbered=self.numbered), ()

    def _folded(self, images: Sequence[Mapped], *, numbered: bool) -> pa.Table:
        return folded(
            images, self.schema, self.key, self.marks, numbered=numbered, ignored=self.ignored
        )

    @property
    def in_steps(self) -> Fold:
        """What is left to do for what `step` made."""
        if not self._by_steps:
            return self
        names = changelog_names(self.schema.names)
        own = tuple(PartColumn(n, f.type) for n, f in zip(names, self.schema, strict=True))
        return replace(self, parts=(StagedFiles((), own),))

    def step(self, number: int, images: pa.Table) -> tuple[int, pa.Table]:
        """Some images of a part, folded as far as that can be done without the others; and the
        part of `in_steps` that they belong to."""
        if not self._by_steps:
            return number, images
        names = ["_change_type", "_sequence", *self.marks]
        whole = mapped(images, self.parts[number].columns, self.schema, names)
        spelled = dict(zip(self.schema.names, changelog_names(self.schema.names), strict=True))
        return 0, newest(whole, [spelled[name] for name in self.key])

    @property
    def _by_steps(self) -> bool:
        """The last image is all that counts."""
        return not self.partial and not self.kept

    def hashes(self, number: int, images: pa.Table) -> Hashes:
        """A number for the key of each of a part's row images."""
        places = [self.schema.get_field_index(name) for name in self.key]
        columns = [self.parts[number].columns[at] for at in places]
        fields = pa.schema([self.schema.field(at) for at in places])
        return key_hashes(mapped(images, columns, fields, ()))

    def _unmarked(self, changes: pa.Table) -> pa.Table:
        deleted = pc.equal(changes.column("_change_type"), ChangeType.DELETE.value)
        early = pc.less_equal(changes.column("_sequence"), self.unmarked)
        at = changes.schema.get_field_index("_committed_at")
        moment = changes.column(at)
        kept = pc.if_else(pc.and_(deleted, early), pa.scalar(None, moment.type), moment)
        changes = changes.set_column(at, "_committed_at", kept)
        return changes if self.numbered else changes.drop_columns(["_sequence"])

    def _gone(self, changes: pa.Table) -> pa.Table:
        """The last image per key as a delete: of a row that was there behind it, at the moment at
        which the table was emptied next. Where rows stay unmarked, as one that is kept."""
        there = is_present(changes.column("_change_type"))
        if "_committed_at" not in self.marks:
            kinds = pc.if_else(there, KEPT, ChangeType.DELETE.value)
            return changes.set_column(0, "_change_type", kinds).drop_columns(["_sequence"])
        numbers = np.array([stamp.sequence for stamp in self.emptied], np.int64)
        at = pa.array(numbers.searchsorted(changes.column("_sequence").to_numpy()))
        spelled = dict(zip(self.schema.names, changelog_names(self.schema.names), strict=True))
        for mark, column in [
            ("_committed_at", "_committed_at"),
            *((name, spelled[name]) for name in self.stamps),
        ]:
            place = changes.schema.get_field_index(column)
            own = changes.column(place)
            values = pa.array([one.value(mark).as_py() for one in self.emptied], own.type).take(at)
            changes = changes.set_column(place, column, pc.if_else(there, values, own))
        kinds = pa.repeat(ChangeType.DELETE.value, changes.num_rows)
        changes = changes.set_column(0, "_change_type", kinds)
        return changes.drop_columns(["_sequence"])
