"""From row events of one table to Arrow columns.

A row image is a row before or after a change. A column that an after image lacks has
kept its value. A column that only the after image has counts as updated: a server that
leaves columns out of images logs such a column only if the statement set it.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import Final, assert_never

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.arrays.array_access import Bytes, equal_bytes
from lockstep.pipeline.binlog.arrays.cells import ABSENT, JSON, Cells, Int32s, Layout, cell_length
from lockstep.pipeline.binlog.arrays.compiled import kernel, kernel_part
from lockstep.pipeline.binlog.rows import images
from lockstep.pipeline.binlog.rows.images import AFTER, BEFORE
from lockstep.pipeline.binlog.rows.maps import split_portions
from lockstep.pipeline.binlog.stream import ring
from lockstep.pipeline.binlog.stream.framing import damaged
from lockstep.pipeline.binlog.stream.ring import Block, Integers
from lockstep.pipeline.binlog.values.charsets import ambiguous_key
from lockstep.pipeline.binlog.values.json import documents
from lockstep.pipeline.binlog.values.numbers import bits, decimals, plain_numbers, years
from lockstep.pipeline.binlog.values.strings import (
    binaries,
    enums,
    geometries,
    sets,
    texts,
    vectors,
)
from lockstep.pipeline.binlog.values.temporal import dates, datetimes, times, timestamps
from lockstep.pipeline.schema.types import Family, family_of
from lockstep.pipeline.values.errors import DamagedEvent, TableError
from lockstep.pipeline.values.row_images import CHANGE_TYPES, RowImages, pack_bits
from lockstep.pipeline.values.table import Column, TableStructure

_MAX_IMAGES: Final = 1 << 17
_MAX_CELLS: Final = 1 << 22
"""Largest numbers of images and of cells that are decoded at a time."""


def cell_decoder(column: Column) -> Callable[[Column, Cells], pa.Array]:
    """Return the function that makes an Arrow array of the column's cells, in the type
    that `schema.types.arrow_type` gives."""
    match family_of(column):
        case Family.INTEGER | Family.FLOATING:
            return plain_numbers
        case Family.DECIMAL:
            return decimals
        case Family.BIT:
            return bits
        case Family.YEAR:
            return years
        case Family.DATE:
            return dates
        case Family.TIME:
            return times
        case Family.DATETIME:
            return datetimes
        case Family.TIMESTAMP:
            return timestamps
        case Family.TEXT:
            return texts
        case Family.ENUM:
            return enums
        case Family.SET:
            return sets
        case Family.BYTES:
            return binaries
        case Family.JSON:
            return documents
        case Family.GEOMETRY:
            return geometries
        case Family.VECTOR:
            return vectors
        case family:
            assert_never(family)


@dataclass(frozen=True, slots=True)
class _Images:
    """Images that `images.walk` located. `cells`: the offset of each cell, columns x
    images, with unused room for images at the end. `has_nulls`: for each column, True
    if a cell is NULL or absent. `event`, `row`, `kind`: for each image its event, its
    row in the event, and its kind. `is_complete`: each image has every column of the
    table map."""

    cells: Int32s
    has_nulls: npt.NDArray[np.bool_]
    event: npt.NDArray[np.int32]
    row: npt.NDArray[np.int32]
    kind: npt.NDArray[np.int8]
    is_complete: bool

    def __len__(self) -> int:
        return len(self.kind)

    def cells_of(self, column: int) -> Int32s:
        """Return the offsets of a column's cells."""
        return self.cells[column, : len(self)]


@dataclass(frozen=True, slots=True)
class ImageCounts:
    """Numbers of images by kind, in the order of `CHANGE_TYPES`, and numbers of rows by
    event."""

    images_by_kind: Integers
    rows_by_event: Integers


class TableDecoder:
    """Decodes events that refer to one table map.

    `layouts`: the columns as the table map lays them out. `structure`: their names,
    signs, character sets and members, from the same map or from the recorded history of
    the schema. `schema`: the Arrow types that they become (`schema.types`).
    `further_keys`: key columns besides the structure's primary key. `hidden_indexes`:
    indexes of layouts whose columns the structure does not have. `reports_updates`:
    report which columns each update changed. `is_complete`: every image so far had
    every column (binlog_row_image=FULL).
    """

    def __init__(
        self,
        structure: TableStructure,
        layouts: tuple[Layout, ...],
        schema: pa.Schema,
        further_keys: Collection[str] = (),
        *,
        hidden_indexes: Collection[int] = (),
        reports_updates: bool = False,
    ) -> None:
        visible = [index for index in range(len(layouts)) if index not in hidden_indexes]
        if len(visible) != len(structure.columns):
            raise TableError(
                f"the log has {len(visible)} columns of the table, its recorded structure has "
                f"{len(structure.columns)}",
                hint="report this log to us",
            )
        self._structure = structure
        self._layouts = tuple(layouts[index] for index in visible)
        self._visible_indexes = np.array(visible, np.int64) if hidden_indexes else None
        self._schema = schema
        self._key_columns = frozenset((*structure.primary_key, *further_keys))
        self._logged_sizes = np.array([layout.size for layout in layouts], np.int64)
        self._sizes = self._logged_sizes[visible]
        self._json = np.array([layout.code == JSON for layout in layouts], np.bool_)
        self._reports_updates = reports_updates
        self.is_complete = True

    def decode(self, block: Block) -> Iterator[RowImages]:
        """Yield the images of the block's events in the order of the log, in batches.
        `RowImages.event` is the index of an image's event in the block.

        Raise DamagedEvent if an event does not fit its table map; TableError for a
        value that cannot be decoded, and for other events that this version does not
        read.
        """
        for first_event, portion in split_portions(block):
            for located in self._locate(portion):
                yield self._decode_images(portion, located, first_event)

    def first_changed_events(self, block: Block, candidates: Collection[int]) -> dict[int, int]:
        """Return the columns of `candidates` whose bytes an update changed, each with
        the index in the block of the first event that did. Columns are indexes in the
        structure. Raise the same errors as `count_images`."""
        first_events: dict[int, int] = {}
        for located in self._locate(block):
            for column in [index for index in candidates if index not in first_events]:
                cells, size = located.cells_of(column), self._layouts[column].size
                image = _first_changed_image(block.data, cells, located.kind, size)
                if image >= 0:
                    first_events[column] = int(located.event[image])
        return first_events

    def count_images(self, block: Block) -> ImageCounts:
        """Count the rows of the block's events without decoding values. Raise the same
        errors as `decode`, except those for values."""
        by_kind = np.zeros(len(CHANGE_TYPES), np.int64)
        by_event = np.zeros(len(block.events), np.int64)
        for located in self._locate(block):
            by_kind += np.bincount(located.kind, minlength=len(by_kind))
            row_events = located.event[located.kind != BEFORE]
            by_event += np.bincount(row_events, minlength=len(by_event))
        return ImageCounts(images_by_kind=by_kind, rows_by_event=by_event)

    def _locate(self, block: Block) -> Iterator[_Images]:
        """Yield the images of the block's events in batches, with the offsets of the
        cells of visible columns."""
        state = np.zeros(images.STATE_SIZE, np.int64)
        events, column_count = block.events, len(self._logged_sizes)
        capacity = self._image_capacity(events)
        outcome = images.FULL
        while outcome == images.FULL:  # the arrays had no room for the images that are left
            cells = np.empty((column_count, capacity), np.int32)
            has_nulls = np.zeros(column_count, np.bool_)
            event, row = np.empty(capacity, np.int32), np.empty(capacity, np.int32)
            kind = np.empty(capacity, np.int8)
            state[images.INCOMPLETE] = 0
            outcome = images.walk(
                block.data,
                events,
                self._logged_sizes,
                self._json,
                state,
                cells,
                has_nulls,
                event,
                row,
                kind,
            )
            if outcome not in (images.DONE, images.FULL):
                raise self._walk_error(outcome, int(events[state[images.EVENT], ring.OFFSET]))
            is_complete = not state[images.INCOMPLETE]
            self.is_complete = self.is_complete and is_complete
            if self._visible_indexes is not None:
                cells, has_nulls = cells[self._visible_indexes], has_nulls[self._visible_indexes]
            count = int(state[images.IMAGES])
            if count:
                yield _Images(
                    cells, has_nulls, event[:count], row[:count], kind[:count], is_complete
                )

    def _image_capacity(self, events: Integers) -> int:
        """Return the number of images for which to allocate: the most that can be in
        the events' bytes, or the limit. `images.walk` continues only while two more
        images fit, as many as an update has."""
        width = len(self._logged_sizes)
        least_size = max((width + 7) // 8, 1)
        possible = int(events[:, ring.SIZE].sum()) // least_size + 2
        return max(min(possible, _MAX_IMAGES, _MAX_CELLS // max(width, 1)), 2)

    def _decode_images(self, block: Block, located: _Images, first_event: int) -> RowImages:
        updated = self._changed_columns(block.data, located) if self._reports_updates else None
        # Absent cells are filled only now, because they count as unchanged.
        present = None if located.is_complete else _fill_absent_cells(located)
        arrays, nulled_counts, undefined_code_counts = [], {}, {}
        for index, (column, layout) in enumerate(
            zip(self._structure.columns, self._layouts, strict=True)
        ):
            is_in_key = column.name in self._key_columns
            has_nulls = bool(located.has_nulls[index])
            cells = Cells(block.data, located.cells_of(index), layout, has_nulls, in_key=is_in_key)
            arrays.append(cell_decoder(column)(column, cells))
            if is_in_key and cells.nulled_count:
                # NULL for each such date would give the same key to different rows.
                raise TableError(
                    f"key column {column.name!r} holds a zero or partial date",
                    hint="correct those rows in the source, or exclude the table",
                )
            if cells.ambiguous_image >= 0:
                event = located.event[cells.ambiguous_image]
                row = located.row[cells.ambiguous_image]
                offset = int(block.events[event, ring.OFFSET])
                place = f"row {row} of the event at offset {offset} of the log"
                raise ambiguous_key(column, place)
            if cells.nulled_count:
                nulled_counts[column.name] = cells.nulled_count
            if cells.undefined_code_count:
                undefined_code_counts[column.name] = cells.undefined_code_count
        return RowImages(
            columns=pa.RecordBatch.from_arrays(arrays, schema=self._schema),
            event=pa.array(located.event + np.int32(first_event)),
            row=pa.array(located.row),
            change_type=pa.array(located.kind),
            nulled_counts=nulled_counts,
            undefined_code_counts=undefined_code_counts,
            present=present,
            logged=present,  # when the caller fills in defaults, it extends only `present`
            updated=updated,
        )

    def _changed_columns(self, data: Bytes, located: _Images) -> pa.Array:
        """Return `RowImages.updated`."""
        changed = np.zeros((len(located), len(self._layouts)), np.bool_)
        _fill_changed(data, located.cells, located.kind, self._sizes, changed)
        return pack_bits(changed, whole=located.kind != AFTER)

    def _walk_error(self, outcome: int, offset: int) -> DamagedEvent | TableError:
        name = self._structure.name
        if outcome == images.DIFF:
            return TableError(
                "a row event has a change of a JSON document in place of the document "
                "(binlog_row_value_options=PARTIAL_JSON)",
                hint="set binlog_row_value_options='' for every session that writes the table",
            )
        if outcome == images.OTHER_COLUMNS:
            return TableError(
                f"a row event at offset {offset} does not have as many columns as its table map",
                hint="report this log to us",
            )
        return damaged(f"a row event of {name} does not match its table map, at offset {offset}")


def _fill_absent_cells(located: _Images) -> pa.Array | None:
    """Use the before image's cell wherever an after image lacks one, because the
    statement did not change it. Return `RowImages.present`; None if no cell is absent
    any more."""
    cells = located.cells[:, : len(located)]
    after = np.flatnonzero(located.kind == AFTER)
    new_cells = cells[:, after]
    cells[:, after] = np.where(new_cells == ABSENT, cells[:, after - 1], new_cells)
    present = cells != ABSENT
    complete = present.all(axis=0)
    return None if complete.all() else pack_bits(present.T, complete)


@kernel
def _first_changed_image(data: Bytes, at: Int32s, kinds: npt.NDArray[np.int8], size: int) -> int:
    """Return the first before image whose update changed the column; -1 if there is
    none.

    `at`: the column's cell in each image. `size`: its `cells.Layout.size`.
    """
    for image in range(len(at) - 1):
        if kinds[image] == BEFORE and _cell_changed(data, at[image], at[image + 1], size):
            return image
    return -1


@kernel
def _fill_changed(
    data: Bytes,
    cells: Int32s,
    kinds: npt.NDArray[np.int8],
    sizes: Integers,
    changed: npt.NDArray[np.bool_],
) -> None:
    """Set in `changed` (images x columns), for each after image, the columns that
    changed.

    `cells`: columns x images, of which only the first `len(kinds)` are read. `sizes`:
    the `cells.Layout.size` of each column.
    """
    for column in range(len(sizes)):
        for image in range(1, len(kinds)):
            if kinds[image] == AFTER:
                old, new = cells[column, image - 1], cells[column, image]
                changed[image, column] = _cell_changed(data, old, new, sizes[column])


@kernel_part
def _cell_changed(data: Bytes, old: int, new: int, size: int) -> bool:
    """Return whether an update changed a cell. `old`, `new`: its offsets in the images
    before and after, negative if it is NULL or absent there (`cells`)."""
    if new == ABSENT or old == new:
        return False
    return old < 0 or new < 0 or not _same_bytes(data, old, new, size)


@kernel_part
def _same_bytes(data: Bytes, old: int, new: int, size: int) -> bool:
    length = size
    if size < 0:
        prefix = -size
        length = prefix + cell_length(data, old, prefix)
        if length != prefix + cell_length(data, new, prefix):
            return False
    return equal_bytes(data, old, data, new, length)
