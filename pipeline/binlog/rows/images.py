"""From row events to the offset of every cell of every row image.

A row image is a row before or after a change; a cell is the value of one column in it.
The walk checks every length against the event's end, so that the decoders of cells need
no bounds checks.

Format: `Rows_event` in `libs/mysql/binlog/event/rows_event.h` of MySQL's source (sizes
in bytes): table id 6, flags 2; in version 2 a length 2 and extra data (the length
counts both); the number of columns (length-encoded); a bitmap of the columns present
(two for an update); and row images. An image is a bitmap, which marks those of the
columns present that are NULL, and the cells of the others.

In PARTIAL_UPDATE_ROWS, value options (length-encoded) stand before each after image. If
their bit 0 is set, one bit follows for each JSON column of the table, present or not.
It is 1 if the cell is a diff instead of a document. A diff and a document both begin
with a length of 4 bytes (`Field_json::unpack_diff` in `sql/field.cc`). An empty diff
stands for the document of the before image: the server logs one for each JSON column
that a statement did not change.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.arrays.array_access import Bytes, u8, u16
from lockstep.pipeline.binlog.arrays.cells import ABSENT, NULL, Int32s, cell_length
from lockstep.pipeline.binlog.arrays.compiled import kernel, kernel_part
from lockstep.pipeline.binlog.stream import ring
from lockstep.pipeline.binlog.stream.framing import HEADER_BYTES, EventType
from lockstep.pipeline.binlog.stream.ring import Integers

INSERT, BEFORE, AFTER, DELETE = range(4)
"""Kinds of images, numbered as in `pipeline.values.row_images.CHANGE_TYPES`."""

# Outcomes of a walk.
DONE, FULL, DAMAGED, OTHER_COLUMNS, DIFF = range(5)
"""FULL: there is no room for more images; call again. DAMAGED: a length leads out of
the event. OTHER_COLUMNS: the event's number of columns is not that of its table map.
DIFF: an image has a diff that is not empty instead of a JSON document."""

# A walk's state between calls: elements of `state`.
EVENT, AT, ROW, IMAGES, INCOMPLETE = range(5)
"""EVENT: the current event's row in the index. AT: the offset in the event from which
the walk continues, 0 for its beginning. ROW: rows of the event so far. IMAGES: images
that this call found. INCOMPLETE: 1 if an image lacks a column."""

STATE_SIZE: Final = 5


@kernel
def walk(
    data: Bytes,
    events: Integers,
    sizes: Integers,
    is_json: npt.NDArray[np.bool_],
    state: Integers,
    cells: Int32s,
    has_nulls: npt.NDArray[np.bool_],
    event_of: Int32s,
    row_of: Int32s,
    kind_of: npt.NDArray[np.int8],
) -> int:
    """Find the images of `events` from `state[EVENT]` on, as many as there is room for.
    Return why the walk ended (`DONE` …).

    `sizes`: per column, as `cells.Layout.size`. `is_json`: per column, True for JSON.
    The walk writes the offset of each cell to `cells` (columns x images), and the event,
    its row and the kind of each image to `event_of`, `row_of` and `kind_of`. It sets
    `has_nulls[c]` if column c is NULL or absent in an image.
    """
    count = len(sizes)
    capacity = cells.shape[1]
    bitmap_bytes = (count + 7) // 8
    image = 0
    while state[EVENT] < len(events):
        event = state[EVENT]
        begin = events[event, ring.AT]
        end = begin + events[event, ring.SIZE]
        event_type = events[event, ring.TYPE]
        present_at = _skip_head(data, begin + HEADER_BYTES, end, event_type, count)
        if present_at < 0:
            return -present_at
        is_partial = event_type == EventType.PARTIAL_UPDATE_ROWS
        is_update = (
            event_type == EventType.UPDATE_ROWS
            or event_type == EventType.UPDATE_ROWS_V1
            or is_partial
        )
        at = present_at + bitmap_bytes * (2 if is_update else 1)
        if at > end:
            return DAMAGED
        if state[AT]:
            at = begin + state[AT]
        first_kind = INSERT
        if is_update:
            first_kind = BEFORE
        elif event_type == EventType.DELETE_ROWS or event_type == EventType.DELETE_ROWS_V1:
            first_kind = DELETE
        has_all_columns = _all_bits(data, present_at, count, 0xFF)
        has_all_after = not is_update or _all_bits(data, present_at + bitmap_bytes, count, 0xFF)
        if not has_all_columns or not has_all_after:
            state[INCOMPLETE] = 1
        while at < end:
            row_begin = at
            if image + 2 > capacity:
                state[AT] = at - begin
                state[IMAGES] = image
                return FULL
            at = _place_cells(
                data, at, end, present_at, has_all_columns, sizes, cells, image, has_nulls
            )
            if at < 0:
                return DAMAGED
            event_of[image], row_of[image] = event, state[ROW]
            kind_of[image] = first_kind
            image += 1
            if is_update:
                options_at = at
                if is_partial:
                    at = _skip_options(data, at, end, is_json)
                    if at < 0:
                        return DAMAGED
                at = _place_cells(
                    data,
                    at,
                    end,
                    present_at + bitmap_bytes,
                    has_all_after,
                    sizes,
                    cells,
                    image,
                    has_nulls,
                )
                if at < 0:
                    return DAMAGED
                if is_partial and not _put_unchanged(
                    data, options_at, is_json, sizes, cells, image
                ):
                    return DIFF
                event_of[image], row_of[image] = event, state[ROW]
                kind_of[image] = AFTER
                image += 1
            if at == row_begin:
                return DAMAGED  # no column is present: such rows would never end
            state[ROW] += 1
        state[EVENT] += 1
        state[AT] = state[ROW] = 0
    state[IMAGES] = image
    return DONE


@kernel_part
def _skip_head(data: Bytes, at: int, end: int, event_type: int, expected_count: int) -> int:
    """Return the offset of the bitmap of present columns; -DAMAGED, or -OTHER_COLUMNS if
    the event's number of columns is not `expected_count`."""
    at += 8
    if event_type >= EventType.WRITE_ROWS:
        if at + 2 > end or u16(data, at) < 2:
            return -DAMAGED
        at += u16(data, at)
    if at >= end:
        return -DAMAGED
    column_count = u8(data, at)
    at += 1
    if column_count >= 0xFB:
        if column_count != 0xFC or at + 2 > end:
            return -DAMAGED
        column_count = u16(data, at)
        at += 2
    return at if column_count == expected_count else -OTHER_COLUMNS


@kernel_part
def _all_bits(data: Bytes, at: int, count: int, byte: int) -> bool:
    """Return whether the first `count` bits at `at` are all 1 (`byte` 0xFF) or all 0
    (`byte` 0)."""
    for n in range(count // 8):
        if u8(data, at + n) != byte:
            return False
    mask = (1 << count % 8) - 1
    return mask == 0 or u8(data, at + count // 8) & mask == byte & mask


@kernel_part
def _place_cells(
    data: Bytes,
    at: int,
    end: int,
    present_bitmap: int,
    has_all_columns: bool,
    sizes: Integers,
    cells: Int32s,
    image: int,
    has_nulls: npt.NDArray[np.bool_],
) -> int:
    """Set the offsets of one image's cells; return its end, or -1 if it is damaged.
    `present_bitmap`: the offset of the bitmap of present columns. `has_all_columns`: all
    columns are present."""
    count = len(sizes)
    columns_present = count
    if not has_all_columns:
        columns_present = 0
        for column in range(count):
            columns_present += u8(data, present_bitmap + (column >> 3)) >> (column & 7) & 1
    null_bitmap = at
    at += (columns_present + 7) // 8
    if at > end:
        return -1
    # The two loops share no function, because a call that takes an array would cost
    # more than the rest of their work (`address_access`).
    if has_all_columns and _all_bits(data, null_bitmap, count, 0):
        for column in range(count):
            cells[column, image] = at
            size = sizes[column]
            if size < 0:
                size = _cell_size(data, at, end, size)
                if size < 0:
                    return -1
            at += size
            if at > end:
                return -1
        return at
    bit_index = 0
    for column in range(count):
        if not has_all_columns and not u8(data, present_bitmap + (column >> 3)) >> (column & 7) & 1:
            cells[column, image] = ABSENT
            has_nulls[column] = True
            continue
        is_null = u8(data, null_bitmap + (bit_index >> 3)) >> (bit_index & 7) & 1
        bit_index += 1
        if is_null:
            cells[column, image] = NULL
            has_nulls[column] = True
            continue
        cells[column, image] = at
        size = sizes[column]
        if size < 0:
            size = _cell_size(data, at, end, size)
            if size < 0:
                return -1
        at += size
        if at > end:
            return -1
    return at


@kernel_part
def _cell_size(data: Bytes, at: int, end: int, size: int) -> int:
    """Return the size of a cell and of the -`size` length bytes before it; -1 if these
    bytes are not all in the event."""
    return -1 if at - size > end else cell_length(data, at, -size) - size


@kernel_part
def _skip_options(data: Bytes, at: int, end: int, is_json: npt.NDArray[np.bool_]) -> int:
    """Return the offset after value options and their bits; -1 if they are damaged."""
    if at >= end:
        return -1
    option_bits = u8(data, at)
    at += 1
    if option_bits >= 0xFB:
        return -1
    if option_bits & 1:
        document_count = 0
        for column in range(len(is_json)):
            document_count += is_json[column]
        at += (document_count + 7) // 8
    return at if at <= end else -1


@kernel_part
def _put_unchanged(
    data: Bytes,
    options_at: int,
    is_json: npt.NDArray[np.bool_],
    sizes: Integers,
    cells: Int32s,
    image: int,
) -> bool:
    """Replace empty diffs in an after image by the cells of its before image, `image -
    1`. Return False if a diff is not empty, or if the before image lacks the column.
    `options_at`: offset of the value options."""
    if not u8(data, options_at) & 1:
        return True
    document_index = 0
    for column in range(len(is_json)):
        if not is_json[column]:
            continue
        is_diff = u8(data, options_at + 1 + (document_index >> 3)) >> (document_index & 7) & 1
        document_index += 1
        if not is_diff or cells[column, image] < 0:
            continue
        before = cells[column, image - 1]
        if before == ABSENT or cell_length(data, cells[column, image], -sizes[column]) != 0:
            return False
        cells[column, image] = before
    return True
