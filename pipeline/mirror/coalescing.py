"""Folding of incomplete row images to one image per key.

A row image is a row before or after a change, as the binary log has it. With
`binlog_row_image` MINIMAL or NOBLOB, an update's images have only the row's key and the
columns that it set. Any other value is taken from the row's newest earlier image that
has the column. That image can have another key, since an update can change the key. If
no image has the column, the value is in the mirror (the Delta table with the table's
present rows). It is looked up there by the key of the row's oldest image, which is
called the row's origin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.mirror.layout import changelog_spelling, keep_names, lack_names, origin_names
from lockstep.pipeline.mirror.mapping import (
    comparable,
    is_present,
    kept_columns,
    mapped,
    outcome,
    row_images,
)
from lockstep.pipeline.ports.mirror_writes import ColumnOrigin, StagedFiles
from lockstep.pipeline.values.errors import Need, StoppedBy, TableError
from lockstep.pipeline.values.row_images import unpack_bits
from lockstep.pipeline.values.segment import ChangeType

Images = tuple[pa.Table, StagedFiles]
"""Row images, and the part of a write whose files contain them."""

Flags = npt.NDArray[np.bool_]
Places = npt.NDArray[np.int64]
"""Indexes of images in the order of `_sequence`."""

OTHER_KEY_REASON = (
    "its row images leave columns out, and the log identifies its rows by another key than the lake"
)
LOST_ROW_REASON = "a row image leaves columns out, and the row it changes is not in the lake"
MOVED_ROW_REASON = (
    "a row image leaves columns out, and the row's key changed while the table was read from the "
    "source, or across a gap or an overlap of the log, so the values left out are unknown"
)
NEXT_RUN_HINT = (
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

    The result has the columns of `mapping.folded`. They are followed by a boolean for
    each of `lacking_columns`, which is true where the value must be looked up in the
    mirror (`layout.lack_names`), and by the key to look it up with
    (`layout.origin_names`).

    `marks`: further columns of the images to keep. `doubtful_through`: a `_sequence`;
    it is unknown which changes up to it the mirror shows, so a row whose key changed up
    to there cannot be looked up. `ignores_deletes`: deletes are ignores_deletes
    (`mapping.outcome`). Raise `TableError` if a row cannot be identified.
    """
    names = ["_change_type", "_sequence", *marks]
    all_images = pa.concat_tables(
        mapped(table, part.columns, schema, names) for table, part in images
    )
    order = np.argsort(all_images.column("_sequence").to_numpy(), kind="stable")
    all_images = all_images.take(pa.array(order))
    spelled = changelog_spelling(schema.names)
    rows = _follow_rows(all_images, [spelled[name] for name in key])
    presence = _Presence(images, order, rows)
    return _Coalescing(all_images, rows, presence, schema, tuple(key)).table(
        kept_columns((part.columns for _, part in images), schema),
        lacking_columns([part for _, part in images], schema),
        marks,
        doubtful_through=doubtful_through,
        ignores_deletes=ignores_deletes,
    )


@dataclass(frozen=True, slots=True)
class _Rows:
    """The rows to which images belong. All arrays have one entry per image, in order of
    `_sequence`, except `last`, which has the index of each key's last image.

    `before`: the index of the same row's previous image, or -1. `moved`: the previous
    image has another key. `begins`: the row has no earlier image with this key.
    `inserted`: the image is an insert. `lost`: the image changes a row that an earlier
    image deleted.
    """

    before: Places
    moved: Flags
    begins: Flags
    inserted: Flags
    lost: Flags
    last: Places


def _follow_rows(all_images: pa.Table, key: Sequence[str]) -> _Rows:
    """Follow each row from image to image. An update's two images have consecutive
    numbers, so a row is found again after an update changed its key."""
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
    was_gone = (preimage | deleted)[before] & (before >= 0)
    lost = was_gone & ~inserted & ~paired
    before = np.where(paired, np.arange(count) - 1, before)
    moved = paired & (identities != identities[before])
    before[inserted | lost] = -1
    last = order[np.append(~has_next_with_key, True)] if count else order
    return _Rows(before, moved, inserted | moved | lost, inserted, lost, last)


def _identities(all_images: pa.Table, key: Sequence[str]) -> Places:
    """Return a number for each image; images with the same key get the same number."""
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
    """Which columns each image has. Images are in the order of `_sequence`."""

    def __init__(self, images: Sequence[Images], order: Places, rows: _Rows) -> None:
        self._parts = [(part.columns, *_bits(table, part)) for table, part in images]
        self._order = order
        self._begins = rows.begins

    def column(self, index: int) -> Flags:
        """Return for each image whether it has the mirror's column `index`. If a
        version of the table does not have the column, a row that begins with an image
        of that version has NULL in it, so that image counts as having the column."""
        has = [_has(columns[index], bits, count) for columns, bits, count in self._parts]
        absent = np.repeat(
            [columns[index].is_absent for columns, _, _ in self._parts],
            [count for _, _, count in self._parts],
        )
        present: Flags = np.concatenate(has)[self._order]
        return present | (absent[self._order] & self._begins)


def _bits(table: pa.Table, part: StagedFiles) -> tuple[Flags | None, int]:
    """Return a bit for each image and column, true if the image has the column, or None
    if all images have all columns; and the number of images."""
    images = row_images(table)
    if part.present_column is None:
        return None, len(images)
    bits = images.column(part.present_column).combine_chunks()
    return unpack_bits(bits), len(images)


def _has(column: ColumnOrigin, bits: Flags | None, count: int) -> Flags:
    if column.is_absent:
        return np.zeros(count, np.bool_)
    if bits is None or column.present_bit is None:
        return np.ones(count, np.bool_)
    return (
        np.ones(count, np.bool_)
        if column.present_bit >= bits.shape[1]
        else bits[:, column.present_bit]
    )


@dataclass(frozen=True, slots=True)
class _Coalescing:
    """All images of a table, from which the last image of each key is completed."""

    all_images: pa.Table
    rows: _Rows
    presence: _Presence
    schema: pa.Schema
    key: tuple[str, ...]

    def table(
        self,
        kept: Sequence[str],
        lacking: Sequence[str],
        marks: Sequence[str],
        *,
        doubtful_through: int,
        ignores_deletes: bool,
    ) -> tuple[pa.Table, tuple[str, ...]]:
        names = self.schema.names
        spelled = changelog_spelling(names)
        last, oldest = self.rows.last, _ends_of(self.rows.before, None)[self.rows.last]
        kind = self.all_images.column("_change_type").take(pa.array(last))
        kind = outcome(kind, ignores_deletes=ignores_deletes)
        # A deleted row needs its values only where it stays in the mirror.
        needs_values = (
            is_present(kind).to_numpy()
            if "_committed_at" not in marks
            else np.ones(len(last), np.bool_)
        )
        columns = {"_change_type": kind}
        columns |= {mark: self.all_images.column(mark).take(pa.array(last)) for mark in marks}
        unknown: dict[str, Flags] = {}
        places: dict[bytes, Places] = {}
        for index, name in enumerate(names):
            origins = last
            if name in kept or name in lacking:
                has = self.presence.column(index)
                if name in self.key and not has.all():
                    raise TableError(OTHER_KEY_REASON, hint=RESUME_HINT)
                origins, unknown[name] = self._newest(has, places)
            values = self.all_images.column(spelled[name])
            columns[spelled[name]] = values.take(pa.array(origins, mask=unknown.get(name)))
        for name in kept:
            if name not in lacking:
                columns[keep_names(names)[name]] = pa.array(unknown[name])
        return self._with_lacks(
            columns, unknown, needs_values, oldest, kept, lacking, doubtful_through=doubtful_through
        )

    def _newest(self, has: Flags, places: dict[bytes, Places]) -> tuple[Places, Flags]:
        """Return for each key the index of its row's newest image that has a column,
        and whether no image has it. `has`: for each image, whether it has the column.
        `places` caches the indexes by `has`, which is equal for most columns."""
        same = has.tobytes()
        if same not in places:
            places[same] = _ends_of(self.rows.before, has)[self.rows.last]
        newest = places[same]
        return newest, ~has[newest]

    def _moved(self, doubtful_through: int) -> Flags:
        """Return for each key whether its row had another key in an image up to a
        `_sequence`."""
        numbers = self.all_images.column("_sequence").to_numpy()
        moved: Flags = self.rows.moved & (numbers <= doubtful_through)
        of_keys: Flags = moved[_ends_of(self.rows.before, moved)[self.rows.last]]
        return of_keys

    def _with_lacks(
        self,
        columns: dict[str, pa.ChunkedArray],
        unknown: dict[str, Flags],
        needs_values: Flags,
        oldest: Places,
        kept: Sequence[str],
        lacking: Sequence[str],
        *,
        doubtful_through: int,
    ) -> tuple[pa.Table, tuple[str, ...]]:
        """Return `columns` with the columns of `lack_names` and `origin_names`; and the
        columns in which at least one row lacks its value. `unknown`: for each column
        and key, whether no image of the row has the column. `needs_values`: for each
        key, whether its row needs all values. `oldest`: for each key, the index of its
        row's oldest image."""
        names = self.schema.names
        lacks = {name: unknown[name] & needs_values for name in lacking}
        for name in kept:
            if name in lacking:
                columns[keep_names(names)[name]] = pa.array(np.zeros(len(oldest), np.bool_))
        asked = np.zeros(len(oldest), np.bool_)
        for mark in lacks.values():
            asked |= mark
        if (asked & self.rows.lost[oldest]).any():
            raise TableError(LOST_ROW_REASON, hint=RESUME_HINT)
        if (asked & self._moved(doubtful_through)).any():
            raise TableError(MOVED_ROW_REASON, hint=NEXT_RUN_HINT, need=Need.ROWS, by=StoppedBy.RUN)
        for name, mark in lacks.items():
            columns[lack_names(names)[name]] = pa.array(mark)
        for name in self.key:
            values = self.all_images.column(changelog_spelling(names)[name])
            columns[origin_names(names)[name]] = values.take(pa.array(oldest))
        return pa.table(columns), tuple(name for name, mark in lacks.items() if mark.any())


def _ends_of(before: Places, stops: Flags | None) -> Places:
    """Follow `before` from each image until `stops` is true or the row's oldest image
    is reached, and return the index of that image. An image at which `stops` is true is
    its own result. Each round doubles the distance, so long chains take few rounds."""
    own = np.arange(len(before))
    ends = before < 0 if stops is None else stops | (before < 0)
    reached = np.where(ends, own, before)
    while True:
        further = reached[reached]
        if (further == reached).all():
            return reached
        reached = further
