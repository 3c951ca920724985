"""From row events to the place of every cell of every row image.

A row image is a row before or after a change; a cell is the value of one column in it.
The walk checks every length against the event's end, so that the decoders of cells need
no bounds checks.

Format: `Rows_event` in `libs/mysql/binlog/event/rows_event.h` of MySQL's source (sizes
in bytes): table id 6, flags 2; in version 2 a length 2 and extra data, which the length
includes with itself; the number of columns (length-encoded); a bitmap of the columns
present (two for an update); and row images. An image is a bitmap of nulls among the
columns present, and their cells.

In PARTIAL_UPDATE_ROWS, value options (length-encoded) stand before each after image. If
their bit 0 is set, one bit follows for each JSON column of the table, present or not.
It is 1 if the cell is a diff instead of a document. Both begin with a length of 4 bytes
(`Field_json::unpack_diff` in `sql/field.cc`). An empty diff stands for the document of
the before image: the server logs one for each JSON column that a statement did not
change.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from lockstep.pipeline.binlog.arrays.array_access import Bytes, u8, u16
from lockstep.pipeline.binlog.arrays.cells import ABSENT, NULL, Places, cell_length
from lockstep.pipeline.binlog.arrays.compiled import kernel, part
from lockstep.pipeline.binlog.stream import ring as columns
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

STATE_SIZE: Final = 5
"""EVENT: the current event's row in the index. AT: the offset in the event from which
the walk continues, 0 for its beginning. ROW: rows of the event so far. IMAGES: images
that this call found. INCOMPLETE: 1 if an image lacks a column."""


@kernel
def walk(
    data: Bytes,
    events: Integers,
    sizes: Integers,
    json: npt.NDArray[np.bool_],
    state: Integers,
    cells: Places,
    nulls: npt.NDArray[np.bool_],
    event_of: Places,
    row_of: Places,
    kind_of: npt.NDArray[np.int8],
) -> int:
    """Find the images of `events` from `state[EVENT]` on, as many as there is room for.
    Return why it ended (`DONE` …).

    `sizes`: per column, as `cells.Layout.size`. `json`: per column, True for JSON. The
    walk writes the place of each cell to `cells` (columns x images), and the event, its
    row and the kind of each image to `event_of`, `row_of` and `kind_of`. It sets
    `nulls[c]` if column c is NULL or absent in an image.
    """
    count = len(sizes)
    room = cells.shape[1]
    bitmap = (count + 7) // 8
    image = 0
    while state[EVENT] < len(events):
        event = state[EVENT]
        begin = events[event, columns.AT]
        end = begin + events[event, columns.SIZE]
        code = events[event, columns.TYPE]
        body = _skip_head(data, begin + HEADER_BYTES, end, code, count)
        if body < 0:
            return DAMAGED if body == -1 else OTHER_COLUMNS
        partial = code == EventType.PARTIAL_UPDATE_ROWS
        update = code == EventType.UPDATE_ROWS or code == EventType.UPDATE_ROWS_V1 or partial
        at = body + bitmap * (2 if update else 1)
        if at > end:
            return DAMAGED
        if state[AT]:
            at = begin + state[AT]
        first = INSERT
        if update:
            first = BEFORE
        elif code == EventType.DELETE_ROWS or code == EventType.DELETE_ROWS_V1:
            first = DELETE
        whole = _all_bits(data, body, count, 0xFF)
        whole_after = _all_bits(data, body + bitmap, count, 0xFF) if update else True
        if not whole or not whole_after:
            state[INCOMPLETE] = 1
        while at < end:
            row = at
            if image + 2 > room:
                state[AT] = at - begin
                state[IMAGES] = image
                return FULL
            at = _image(data, at, end, body, whole, sizes, cells, image, nulls)
            if at < 0:
                return DAMAGED
            event_of[image], row_of[image] = event, state[ROW]
            kind_of[image] = first
            image += 1
            if update:
                options = at
                if partial:
                    at = _skip_options(data, at, end, json)
                    if at < 0:
                        return DAMAGED
                at = _image(data, at, end, body + bitmap, whole_after, sizes, cells, image, nulls)
                if at < 0:
                    return DAMAGED
                if partial and not _put_unchanged(data, options, json, sizes, cells, image):
                    return DIFF
                event_of[image], row_of[image] = event, state[ROW]
                kind_of[image] = AFTER
                image += 1
            if at == row:
                return DAMAGED  # no column is present: such rows would never end
            state[ROW] += 1
        state[EVENT] += 1
        state[AT] = state[ROW] = 0
    state[IMAGES] = image
    return DONE


@part
def _skip_head(data: Bytes, at: int, end: int, code: int, count: int) -> int:
    """Return the place of the bitmap of present columns; -1 if the event is damaged, -2
    if its number of columns is not `count`."""
    at += 8
    if code >= EventType.WRITE_ROWS:
        if at + 2 > end or u16(data, at) < 2:
            return -1
        at += u16(data, at)
    if at >= end:
        return -1
    first = u8(data, at)
    number = first
    at += 1
    if first >= 0xFB:
        if first != 0xFC or at + 2 > end:
            return -1
        number = u16(data, at)
        at += 2
    return at if number == count else -2


@part
def _all_bits(data: Bytes, at: int, count: int, byte: int) -> bool:
    """Return whether the first `count` bits at `at` are all 1 (`byte` 0xFF) or all 0
    (`byte` 0)."""
    for n in range(count // 8):
        if u8(data, at + n) != byte:
            return False
    mask = (1 << count % 8) - 1
    return mask == 0 or u8(data, at + count // 8) & mask == byte & mask


@part
def _image(
    data: Bytes,
    at: int,
    end: int,
    present: int,
    whole: bool,
    sizes: Integers,
    cells: Places,
    image: int,
    nulls: npt.NDArray[np.bool_],
) -> int:
    """Set the places of one image's cells; return its end, or -1 if it is damaged.
    `present`: the place of the bitmap of present columns. `whole`: all columns are
    present."""
    count = len(sizes)
    columns_present = count
    if not whole:
        columns_present = 0
        for column in range(count):
            columns_present += u8(data, present + (column >> 3)) >> (column & 7) & 1
    bitmap = at
    at += (columns_present + 7) // 8
    if at > end:
        return -1
    if whole and _all_bits(data, bitmap, count, 0):
        for column in range(count):
            cells[column, image] = at
            size = sizes[column]
            if size < 0:
                size = _length(data, at, end, size)
                if size < 0:
                    return -1
            at += size
            if at > end:
                return -1
        return at
    bit = 0
    for column in range(count):
        if not whole and not u8(data, present + (column >> 3)) >> (column & 7) & 1:
            cells[column, image] = ABSENT
            nulls[column] = True
            continue
        null = u8(data, bitmap + (bit >> 3)) >> (bit & 7) & 1
        bit += 1
        if null:
            cells[column, image] = NULL
            nulls[column] = True
            continue
        cells[column, image] = at
        size = sizes[column]
        if size < 0:
            size = _length(data, at, end, size)
            if size < 0:
                return -1
        at += size
        if at > end:
            return -1
    return at


@part
def _length(data: Bytes, at: int, end: int, size: int) -> int:
    """Return the cell's size with its length bytes; -1 if those are not all in the
    event."""
    return -1 if at - size > end else cell_length(data, at, -size) - size


@part
def _skip_options(data: Bytes, at: int, end: int, json: npt.NDArray[np.bool_]) -> int:
    """Return the place after value options and their bits; -1 if they are damaged."""
    if at >= end:
        return -1
    options = u8(data, at)
    at += 1
    if options >= 0xFB:
        return -1
    if options & 1:
        documents = 0
        for column in range(len(json)):
            documents += json[column]
        at += (documents + 7) // 8
    return at if at <= end else -1


@part
def _put_unchanged(
    data: Bytes,
    options: int,
    json: npt.NDArray[np.bool_],
    sizes: Integers,
    cells: Places,
    image: int,
) -> bool:
    """Replace empty diffs in an after image by the cells of its before image, `image -
    1`. Return False if a diff is not empty, or if the before image lacks the column.
    `options`: place of the value options."""
    if not u8(data, options) & 1:
        return True
    document = 0
    for column in range(len(json)):
        if not json[column]:
            continue
        is_diff = u8(data, options + 1 + (document >> 3)) >> (document & 7) & 1
        document += 1
        if not is_diff or cells[column, image] < 0:
            continue
        before = cells[column, image - 1]
        if before == ABSENT or cell_length(data, cells[column, image], -sizes[column]) != 0:
            return False
        cells[column, image] = before
    return True
