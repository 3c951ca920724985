"""Folding of a table's row images (rows before and after each change) to the last image
per key, all at once or in buckets of keys.

Images of one key are folded in the same bucket. If images leave columns out, the keys
between which an update moved a row are in the same bucket, too (`KeyChains`), since an
image can get values from images with the row's earlier key. The bucket of a key is
chosen by a hash. Two keys with the same hash share a bucket, which does no harm.
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

from lockstep.pipeline.mirror.coalescing import coalesced
from lockstep.pipeline.mirror.layout import changelog_names, changelog_spelling
from lockstep.pipeline.mirror.mapping import (
    KEPT_CHANGE_TYPE,
    comparable,
    folded,
    is_present,
    kept_columns,
    last_images,
    mapped,
)
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, StagedFiles
from lockstep.pipeline.values.segment import ChangeType
from lockstep.pipeline.values.stamps import Stamp


@dataclass(frozen=True, slots=True)
class Fold:
    """The way to fold a table's row images to one image per key. The images are for a
    mirror (the Delta table with the current rows) with the columns `schema` and the key
    `key`.

    `parts`: one per structure of the images, in the order in which callers pass images;
    their files are not read here. `marks`: further columns of the images to keep, such
    as `_committed_at`. `keeps_sequence`: `_sequence` is kept, too. `doubtful_through`:
    as in `coalesced`. `ignores_deletes`: deleted rows stay (`mapping.final_change_types`).

    `losses`: the changes at which the table lost all rows, such as TRUNCATE, in order;
    the last one is after all images. If there are any, each key's last image becomes a
    delete, with the `_committed_at` and the `stamps` of the change at which its row was
    lost. Without `_committed_at` among the marks, the row stays instead.
    `unmarked_through`: a `_sequence`; deletes up to it get no `_committed_at`, so their
    rows do not stay even if deletes are "soft". With `losses`, `unmarked_through` or
    `keeps_sequence`, every image must have all columns.
    """

    schema: pa.Schema
    key: tuple[str, ...]
    parts: tuple[StagedFiles, ...]
    marks: tuple[str, ...] = ()
    keeps_sequence: bool = False
    doubtful_through: int = 0
    losses: tuple[Stamp, ...] = ()
    ignores_deletes: bool = False
    stamps: tuple[str, ...] = ()
    unmarked_through: int = 0

    @property
    def has_partial_images(self) -> bool:
        """True if some images leave columns out."""
        return any(part.present_column is not None for part in self.parts)

    @property
    def kept_columns(self) -> tuple[str, ...]:
        """The columns that at least one part lacks, in which a row can keep the
        mirror's value."""
        return kept_columns((part.columns for part in self.parts), self.schema)

    def table(self, images: Sequence[pa.Table]) -> tuple[pa.Table, tuple[str, ...]]:
        """Fold `images`, one table for each part. Return the last image of each key,
        and the columns in which at least one row still lacks its value."""
        if self.has_partial_images:
            pairs = list(zip(images, self.parts, strict=True))
            return coalesced(
                pairs,
                self.schema,
                self.key,
                self.marks,
                doubtful_through=self.doubtful_through,
                ignores_deletes=self.ignores_deletes,
            )
        changes = folded(
            [(table, part.columns) for table, part in zip(images, self.parts, strict=True)],
            self.schema,
            self.key,
            self.marks,
            ignores_deletes=self.ignores_deletes,
        )
        if self.losses:
            changes = self._as_deletes(changes)
        elif self.unmarked_through and "_committed_at" in self.marks:
            changes = self._without_early_moments(changes)
        return changes if self.keeps_sequence else changes.drop_columns(["_sequence"]), ()

    @property
    def in_steps(self) -> Fold:
        """The fold to apply to the results of `step`."""
        if not self._can_use_steps:
            return self
        names = changelog_names(self.schema.names)
        columns = tuple(ColumnOrigin(n, f.type) for n, f in zip(names, self.schema, strict=True))
        return replace(self, parts=(StagedFiles((), columns),))

    def step(self, part_index: int, images: pa.Table) -> tuple[int, pa.Table]:
        """Fold some images of a part as far as that is possible without the other
        images. Return the index of their part in `in_steps`, and the images."""
        if not self._can_use_steps:
            return part_index, images
        names = ["_change_type", "_sequence", *self.marks]
        mapped_images = mapped(images, self.parts[part_index].columns, self.schema, names)
        spelled = changelog_spelling(self.schema.names)
        return 0, last_images(mapped_images, [spelled[name] for name in self.key])

    @property
    def _can_use_steps(self) -> bool:
        """True if only each key's last image matters, so that images can be folded in
        pieces."""
        return not self.has_partial_images and not self.kept_columns

    def hashes(self, part_index: int, images: pa.Table) -> Hashes:
        """Return the hash of the key of each of a part's images."""
        key_indexes = [self.schema.get_field_index(name) for name in self.key]
        columns = [self.parts[part_index].columns[index] for index in key_indexes]
        fields = pa.schema([self.schema.field(index) for index in key_indexes])
        return key_hashes(mapped(images, columns, fields, ()))

    def _without_early_moments(self, changes: pa.Table) -> pa.Table:
        """Return the changes with `_committed_at` NULL in deletes up to the change
        `unmarked_through`."""
        deleted = pc.equal(changes.column("_change_type"), ChangeType.DELETE.value)
        early = pc.less_equal(changes.column("_sequence"), self.unmarked_through)
        index = changes.schema.get_field_index("_committed_at")
        moment = changes.column(index)
        kept = pc.if_else(pc.and_(deleted, early), pa.scalar(None, moment.type), moment)
        return changes.set_column(index, "_committed_at", kept)

    def _as_deletes(self, changes: pa.Table) -> pa.Table:
        """Return each last image as a delete. If its row was still present, the delete
        gets the stamps of the next change that emptied the table. Without
        `_committed_at` among the marks, a row that was present stays instead
        (`KEPT_CHANGE_TYPE`)."""
        present = is_present(changes.column("_change_type"))
        if "_committed_at" not in self.marks:
            kinds = pc.if_else(present, KEPT_CHANGE_TYPE, ChangeType.DELETE.value)
            return changes.set_column(0, "_change_type", kinds)
        numbers = np.array([stamp.sequence for stamp in self.losses], np.int64)
        loss_indexes = pa.array(numbers.searchsorted(changes.column("_sequence").to_numpy()))
        spelled = changelog_spelling(self.schema.names)
        # `_committed_at`, which becomes the time of deletion, and the mirror's stamps.
        columns = [("_committed_at", "_committed_at"), *((n, spelled[n]) for n in self.stamps)]
        for name, column in columns:
            index = changes.schema.get_field_index(column)
            own_values = changes.column(index)
            loss_values = [stamp.value(name).as_py() for stamp in self.losses]
            values = pa.array(loss_values, own_values.type).take(loss_indexes)
            changes = changes.set_column(index, column, pc.if_else(present, values, own_values))
        kinds = pa.repeat(ChangeType.DELETE.value, changes.num_rows)
        return changes.set_column(0, "_change_type", kinds)


class KeyChains:
    """The chains of keys between which updates moved rows; a key is known by its hash.

    The two images of an update can have different keys, and the image before the update
    has values that the image after it leaves out. So both must be folded in the same
    bucket. Callers first `add` all images, in pieces of any size; then `roots` gives
    all keys of a chain the same number.
    """

    def __init__(self) -> None:
        self._moves: list[npt.NDArray[np.uint64]] = []
        self._halves: list[npt.NDArray[np.uint64]] = []
        self._keys: Hashes | None = None
        self._roots = np.zeros(0, np.uint64)

    def add(self, images: pa.Table, hashes: Hashes) -> None:
        """Add images, which have `_change_type` and `_sequence`, and the hashes of
        their keys."""
        kind = images.column("_change_type")
        update_types = [ChangeType.UPDATE_PREIMAGE.value, ChangeType.UPDATE_POSTIMAGE.value]
        is_half = pc.is_in(kind, value_set=pa.array(update_types)).to_numpy()
        is_after = pc.equal(kind, ChangeType.UPDATE_POSTIMAGE.value).to_numpy()
        sequence = images.column("_sequence").to_numpy().astype(np.uint64)
        rows = np.column_stack([sequence, hashes, is_after.astype(np.uint64)])
        self._halves.append(self._record_moves(rows[is_half]))

    def _record_moves(self, halves: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
        """Record a move for each update whose two images have different keys. Return
        the images whose other half is in another piece. Columns of `halves`:
        `_sequence`, hash of the key, 1 for the image after the update and 0 for the
        image before."""
        halves = halves[np.argsort(halves[:, 0], kind="stable")]
        first = np.zeros(len(halves), np.bool_)
        if len(halves):
            is_next = np.diff(halves[:, 0]) == 1
            first[:-1] = is_next & (halves[:-1, 2] == 0) & (halves[1:, 2] == 1)
        second = np.roll(first, 1)
        moves = np.column_stack([halves[first][:, 1], halves[second][:, 1]])
        moves = moves[moves[:, 0] != moves[:, 1]]
        if len(moves):
            self._moves.append(moves)
        return halves[~(first | second)]

    def roots(self, hashes: Hashes) -> Hashes:
        """Return for the hash of each key the number that all keys of its chain share."""
        if self._keys is None:
            if self._halves:
                self._record_moves(np.concatenate(self._halves))
            self._keys, self._roots = _chain_roots(self._moves)
            self._halves.clear()
        if not len(self._keys):
            return hashes
        indexes = np.minimum(np.searchsorted(self._keys, hashes), len(self._keys) - 1)
        return np.where(self._keys[indexes] == hashes, self._roots[indexes], hashes)


def _chain_roots(moves: list[npt.NDArray[np.uint64]]) -> tuple[Hashes, Hashes]:
    """Return all moved keys, ascending, and for each the least key of its chain. Each
    round gives both keys of a move the lower of their labels, until no label
    changes."""
    if not moves:
        return np.zeros(0, np.uint64), np.zeros(0, np.uint64)
    keys, indexes = np.unique(np.concatenate(moves), return_inverse=True)
    pairs = indexes.reshape(-1, 2)
    labels = np.arange(len(keys))
    while True:
        left, right = labels[pairs[:, 0]], labels[pairs[:, 1]]
        differs = left != right
        if not differs.any():
            return keys, keys[labels]
        np.minimum.at(labels, np.maximum(left, right)[differs], np.minimum(left, right)[differs])
        while (labels != labels[labels]).any():
            labels = labels[labels]


Hashes = npt.NDArray[np.uint64]

_ODD = 0x9E3779B97F4A7C15
"""The base of the polynomials; since it is odd, it has an inverse modulo 2^64."""
_WINDOW = 1 << 20
"""Bytes of text that are hashed at once; each takes some dozens of bytes of memory."""


def key_hashes(keys: pa.Table) -> Hashes:
    """Return a hash of each row of the key's columns, which have the mirror's types."""
    hashes = np.zeros(keys.num_rows, np.uint64)
    for column in keys.columns:
        column_hashes = _array_hashes(comparable(column).combine_chunks())
        hashes = _mix_bits(hashes * np.uint64(_ODD) + column_hashes)
    return hashes


def _array_hashes(values: pa.Array) -> Hashes:
    kind = values.type
    if pa.types.is_string(kind) or pa.types.is_binary(kind):
        hashes = _text_hashes(values)
    elif pa.types.is_decimal128(kind):
        halves = _numbers(values, np.dtype(np.uint64), 2).reshape(-1, 2)
        hashes = halves[:, 0] * np.uint64(_ODD) + halves[:, 1]
    else:
        if pa.types.is_boolean(kind):
            values = values.cast(pa.int8())
        hashes = _numbers(values, np.dtype(f"u{values.type.bit_width // 8}"), 1).astype(np.uint64)
    if values.null_count:
        hashes = np.where(pc.is_null(values).to_numpy(zero_copy_only=False), np.uint64(0), hashes)
    return hashes


def _numbers(values: pa.Array, kind: np.dtype[np.unsignedinteger], each: int) -> Hashes:
    """Return the bits of fixed-width values as unsigned numbers of type `kind`; each
    value gives `each` numbers."""
    if not len(values):
        return np.zeros(0, np.uint64)
    numbers = np.frombuffer(values.buffers()[1], kind)
    return numbers[values.offset * each : (values.offset + len(values)) * each]


def _text_hashes(values: pa.Array) -> Hashes:
    """Hash each text as a polynomial in `_ODD` over its bytes, without a loop over
    texts: running sums of the polynomial are computed over all texts together. The hash
    of a text is the sum at its end minus the sum at its beginning, divided by the power
    at which it begins."""
    hashes = np.zeros(len(values), np.uint64)
    _, offsets, content = values.buffers()
    if not len(values) or content is None:
        return hashes
    ends = np.frombuffer(offsets, np.int32)[values.offset :][: len(values) + 1].astype(np.int64)
    data = np.frombuffer(content, np.uint8)
    start = 0  # index of the first text of a window, whose last one is before `end`
    while start < len(values):
        end = int(np.searchsorted(ends, ends[start] + _WINDOW, "right")) - 1
        end = min(max(end, start + 1), len(values))
        begin = ends[start]
        window = data[begin : ends[end]].astype(np.uint64) + np.uint64(1)
        up, down = _powers(max(_WINDOW, len(window)))
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(window * up[: len(window)])])
        bounds = ends[start : end + 1] - begin
        hashes[start:end] = (sums[bounds[1:]] - sums[bounds[:-1]]) * down[bounds[:-1]]
        start = end
    return hashes


@cache
def _powers(count: int) -> tuple[Hashes, Hashes]:
    """Return the powers of `_ODD` and of its inverse, modulo 2^64."""
    inverse = pow(_ODD, -1, 1 << 64)
    up, down = np.full((2, count + 1), 1, np.uint64)
    up[1:], down[1:] = np.uint64(_ODD), np.uint64(inverse)
    return np.cumprod(up), np.cumprod(down)


def _mix_bits(hashes: Hashes) -> Hashes:
    """Mix the bits of each hash, so that each bit of the result depends on all bits of
    the hash (splitmix64)."""
    hashes = (hashes ^ (hashes >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    hashes = (hashes ^ (hashes >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return hashes ^ (hashes >> np.uint64(31))


Bounds = Mapping[str, tuple[Any, Any]]
"""The mirror's column → its least and its greatest value."""


def key_bounds(changes: pa.Table, key: Mapping[str, str]) -> Bounds:
    """Return the bounds of the key columns with integers, decimals or dates, whose
    order is the same in Arrow, Parquet statistics and Spark. Text is left out since it
    has collations, and floats since they have NaN. `key`: a column of `changes` → the
    mirror's column."""
    bounds = {}
    for spelled, name in key.items():
        column = changes.column(spelled)
        if _family(column.type) in _LITERALS and len(column):
            ends = pc.min_max(column)
            bounds[name] = (ends["min"].as_py(), ends["max"].as_py())
    return {name: ends for name, ends in bounds.items() if ends[0] is not None}


def union_of_bounds(left: Bounds, right: Bounds) -> Bounds:
    """Return the bounds of two sets of changes together; an empty set has none."""
    if not left or not right:
        return left or right
    return {
        name: (min(left[name][0], right[name][0]), max(left[name][1], right[name][1]))
        for name in left
        if name in right
    }


def bounds_literals(bounds: Bounds, kinds: pa.Schema) -> tuple[tuple[str, str, str], ...]:
    """Return (column, least, greatest) as SQL literals; `kinds` are the mirror's
    columns."""
    literals = []
    for name, ends in bounds.items():
        least, greatest = map(_LITERALS[_family(kinds.field(name).type)], ends)
        literals.append((name, least, greatest))
    return tuple(literals)


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
