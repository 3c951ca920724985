"""Folding of incomplete row images to one image per key.

A row image is a row before or after a change, as the binary log has it. With
`binlog_row_image` MINIMAL or NOBLOB, an update's images have only the row's key and the
columns that it set. Any other value is taken from the row's newest earlier image that
has the column. That image can have another key, since an update can change the key. If
no image has the column, the value is in the mirror (the Delta table with the table's
current rows). It is looked up there by the key of the row's oldest image, which is
called the row's origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.layout import (
    changelog_spelling,
    keep_flag_names,
    lack_flag_names,
    origin_names,
)
from lockstep.pipeline.mirror.mapping import (
    comparable,
    final_change_types,
    is_present,
    kept_columns,
    mapped,
    row_images,
)
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, StagedFiles
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError
from lockstep.pipeline.values.row_images import unpack_bits
from lockstep.pipeline.values.segment import ChangeType

Images = tuple[pa.Table, StagedFiles]
"""Row images, and the part of a write whose files contain them."""

Flags = npt.NDArray[np.bool_]
Indexes = npt.NDArray[np.int64]
"""Indexes of images in the order of `_sequence`."""

OTHER_KEY_REASON = (
    "its row images leave columns out, and the log identifies its rows by another key than the lake"
)
LOST_ROW_REASON = "a row image leaves columns out, and the row it changes is not in the lake"
MOVED_ROW_REASON = (
    "a row image leaves columns out, and their values are unknown, because the row's key changed "
    "while the table was read from the source, or across a gap or an overlap of the log"
)
_NEXT_RUN_HINT = (
    "wait for the next run, which reads the table from the source again; set binlog_row_image=FULL "
    "to prevent this"
)
RESUME_HINT = (
    "run `lockstep resume TABLE --reason …`, which reads the table from MySQL again; set "
    "binlog_row_image=FULL in every session that writes it to prevent this"
)


def lacking_columns(parts: Sequence[StagedFiles], schema: pa.Schema) -> tuple[str, ...]:
    """Return the mirror's columns that the images of at least one part can leave out."""
    partial = [part.columns for part in parts if part.present_column is not None]
    return tuple(
        name
        for index, name in enumerate(schema.names)
        if any(columns[index].present_bit is not None for columns in partial)
    )


def coalesced(
    images: Sequence[Images],
    schema: pa.Schema,
    key: Sequence[str],
    marks: Sequence[str] = (),
    *,
    doubtful_through: int = 0,
    ignores_deletes: bool = False,
) -> tuple[pa.Table, tuple[str, ...]]:
    """Return the last image of each key over all parts, with missing values filled from
    earlier images; and the columns in which at least one row still lacks its value.

    The result has the columns of `mapping.folded` without `_sequence`. They are
    followed by a boolean for each of `lacking_columns`, which is true where the value
    must be looked up in the mirror (`layout.lack_flag_names`), and by the key to look
    it up with (`layout.origin_names`).

    `marks`: columns of the changelog (`layout.MARKS`) that the result keeps.
    `doubtful_through`: up to this `_sequence` it is unknown which changes the mirror
    shows. If one of these changes moved a row to another key, the row cannot be looked
    up.
    `ignores_deletes`: deleted rows stay (`mapping.final_change_types`). Raise `TableError`
    if a row cannot be identified.
    """
    names = schema.names
    spelled = changelog_spelling(names)
    kept = kept_columns((part.columns for _, part in images), schema)
    lacking = lacking_columns([part for _, part in images], schema)
    images = [(row_images(table), part) for table, part in images]
    all_images = pa.concat_tables(
        mapped(table, part.columns, schema, ["_change_type", "_sequence", *marks])
        for table, part in images
    )
    order = np.argsort(all_images.column("_sequence").to_numpy(), kind="stable")
    all_images = all_images.take(pa.array(order))
    rows = _follow_rows(all_images, [spelled[name] for name in key])
    presence = _Presence(images, order, rows)

    columns = {
        name: all_images.column(name).take(pa.array(rows.last)) for name in ("_change_type", *marks)
    }
    kind = final_change_types(columns["_change_type"], ignores_deletes=ignores_deletes)
    columns["_change_type"] = kind
    unknown: dict[str, Flags] = {}
    for index, name in enumerate(names):
        image_indexes = rows.last
        if name in kept or name in lacking:
            if name in key and not presence.of_column(index).all():
                raise TableError(OTHER_KEY_REASON, hint=RESUME_HINT)
            image_indexes, unknown[name] = presence.newest(index)
        values = all_images.column(spelled[name])
        columns[spelled[name]] = values.take(pa.array(image_indexes, mask=unknown.get(name)))

    # A deleted row needs its values only if it stays in the mirror, marked as deleted.
    # Then `_committed_at` is one of the marks.
    needs_values = "_committed_at" in marks or is_present(kind).to_numpy()
    lacks = {name: unknown[name] & needs_values for name in lacking}
    is_doubtful = all_images.column("_sequence").to_numpy() <= doubtful_through
    oldest = rows.oldest()
    _refuse_impossible_lookups(rows, oldest, np.any(list(lacks.values()), axis=0), is_doubtful)
    for name in kept:
        # The missing values of a column in `lacking` are looked up: no row keeps one.
        keeps_value = np.zeros(len(kind), np.bool_) if name in lacking else unknown[name]
        columns[keep_flag_names(names)[name]] = pa.array(keeps_value)
    for name in lacking:
        columns[lack_flag_names(names)[name]] = pa.array(lacks[name])
    for name in key:
        values = all_images.column(spelled[name])
        columns[origin_names(names)[name]] = values.take(pa.array(oldest))
    return pa.table(columns), tuple(name for name in lacking if lacks[name].any())


def _refuse_impossible_lookups(
    rows: _Rows, oldest: Indexes, is_looked_up: Flags, is_doubtful: Flags
) -> None:
    """Raise TableError if a row cannot be looked up in the mirror by the key of its
    oldest image. `is_looked_up`: for each key, whether its row lacks a value.
    `is_doubtful`: for each image, true if it is unknown whether the mirror shows it."""
    if (is_looked_up & rows.lost[oldest]).any():
        raise TableError(LOST_ROW_REASON, hint=RESUME_HINT)
    if (is_looked_up & rows.has(rows.moved & is_doubtful)).any():
        raise TableError(MOVED_ROW_REASON, hint=_NEXT_RUN_HINT, need=Need.ROWS, by=StoppedBy.RUN)


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows to which images belong. All arrays have one entry per image, in order of
    `_sequence`, except `last`, which has the index of each key's last image.

    `before`: the index of the same row's previous image, or -1. `moved`: the previous
    image has another key. `lost`: the image changes a row that an earlier image
    deleted. `begins`: the image is an insert, is `moved`, or is `lost`.
    """

    before: Indexes
    moved: Flags
    begins: Flags
    lost: Flags
    last: Indexes

    def newest(self, wanted: Flags) -> Indexes:
        """Return for each key the index of its row's newest wanted image, or of the
        row's oldest image if none is wanted. Each round doubles the distance, so long
        chains take few rounds."""
        indexes = np.arange(len(self.before))
        targets = np.where(wanted | (self.before < 0), indexes, self.before)
        while True:
            next_targets = targets[targets]
            if (next_targets == targets).all():
                return targets[self.last]
            targets = next_targets

    def oldest(self) -> Indexes:
        """Return for each key the index of its row's oldest image."""
        return self.newest(np.zeros(len(self.before), np.bool_))

    def has(self, wanted: Flags) -> Flags:
        """Return for each key whether its row has a wanted image."""
        return wanted[self.newest(wanted)]


def _follow_rows(all_images: pa.Table, key: Sequence[str]) -> _Rows:
    """Follow each row from image to image. An update's two images have consecutive
    values of `_sequence`, so a row is found again after an update changed its key."""
    kind = all_images.column("_change_type")
    inserted, updated, preimage, deleted = (
        pc.equal(kind, change_type.value).to_numpy().astype(np.bool_)
        for change_type in (
            ChangeType.INSERT,
            ChangeType.UPDATE_POSTIMAGE,
            ChangeType.UPDATE_PREIMAGE,
            ChangeType.DELETE,
        )
    )
    count = len(all_images)
    identities = _identities(all_images, key)
    # Images sorted by key, then by `_sequence`: `has_next_with_key` is true if the next
    # image has the same key.
    order = np.argsort(identities, kind="stable")
    has_next_with_key = identities[order][1:] == identities[order][:-1]
    before = np.full(count, -1, np.int64)
    before[order[1:][has_next_with_key]] = order[:-1][has_next_with_key]
    paired = np.zeros(count, np.bool_)
    if count:
        paired[1:] = preimage[:-1] & updated[1:]
        paired[1:] &= np.diff(all_images.column("_sequence").to_numpy()) == 1
    was_gone = (before >= 0) & (preimage | deleted)[before]
    lost = was_gone & ~inserted & ~paired
    before = np.where(paired, np.arange(count) - 1, before)
    moved = paired & (identities != identities[before])
    before[inserted | lost] = -1
    last = order[np.append(~has_next_with_key, True)] if count else order
    return _Rows(before, moved, inserted | moved | lost, lost, last)


def _identities(all_images: pa.Table, key: Sequence[str]) -> npt.NDArray[np.int64]:
    """Return a number for each image, the same for all images with the same key."""
    identities = np.zeros(len(all_images), np.int64)
    for name in key:
        column = comparable(all_images.column(name))
        codes = pc.dictionary_encode(column.combine_chunks()).indices.fill_null(-1)
        numbers = codes.to_numpy(zero_copy_only=False).astype(np.int64) + 1
        identities = identities * (int(numbers.max(initial=0)) + 1) + numbers
        # Renumbered after each column, so that the product stays within 64 bits.
        identities = np.unique(identities, return_inverse=True)[1].astype(np.int64)
    return identities


class _Presence:
    """The columns that each image has. Images are in the order of `_sequence`."""

    def __init__(self, images: Sequence[Images], order: Indexes, rows: _Rows) -> None:
        self._parts = [(part.columns, _present_bits(table, part)) for table, part in images]
        self._order = order
        self._rows = rows
        self._newest: dict[bytes, Indexes] = {}

    def of_column(self, index: int) -> Flags:
        """Return for each image whether it has the mirror's column `index`. An image at
        which a row begins (`_Rows.begins`) has every column that its version of the
        table lacks, too: the new row has NULL there."""
        present = [_has_column(columns[index], bits) for columns, bits in self._parts]
        absent = [np.full(len(bits), columns[index].is_absent) for columns, bits in self._parts]
        starts_absent: Flags = np.concatenate(absent)[self._order] & self._rows.begins
        return starts_absent | np.concatenate(present)[self._order]

    def newest(self, index: int) -> tuple[Indexes, Flags]:
        """Return for each key the index of its row's newest image that has the column,
        and whether no image has it."""
        present = self.of_column(index)
        # Most columns are present in the same images.
        cache_key = present.tobytes()
        if cache_key not in self._newest:
            self._newest[cache_key] = self._rows.newest(present)
        newest = self._newest[cache_key]
        return newest, ~present[newest]


def _present_bits(images: pa.Table, part: StagedFiles) -> Flags:
    """Return for each image and each `ColumnOrigin.present_bit` whether the image has
    that column."""
    bits = [column.present_bit for column in part.columns if column.present_bit is not None]
    bit_count = max(bits, default=-1) + 1
    if part.present_column is None:
        return np.broadcast_to(np.True_, (len(images), bit_count))
    return unpack_bits(images.column(part.present_column).combine_chunks(), bit_count)


def _has_column(column: ColumnOrigin, bits: Flags) -> Flags:
    if column.present_bit is None:
        return np.full(len(bits), not column.is_absent)
    return bits[:, column.present_bit]
