"""Updates that gave a column another value, told from the bytes alone.

Belongs here: comparing the two images of each update, cell by cell. Does not: what is in a
cell (`values`), finding the cells (`images`).

An after image that leaves a column out leaves its value alone. A column that only the after
image has counts as updated: servers leave out of it what an update did not change.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.binlog.arrays.array_access import Bytes, u8, u16, u32
from pipeline.binlog.arrays.cells import ABSENT, Places
from pipeline.binlog.arrays.compiled import kernel, part
from pipeline.binlog.rows.images import AFTER, BEFORE
from pipeline.binlog.stream.ring import Integers


@kernel
def first_changed(data: Bytes, at: Places, kinds: npt.NDArray[np.int8], size: int) -> int:
    """The first image before an update that gave the column another value; -1 for none.

    `at`: the column's cell in each image, `inputs`: what the images are, `size`: as
    `cells.Layout.size`.
    """
    for image in range(len(at) - 1):
        if kinds[image] == BEFORE and _changed(data, at[image], at[image + 1], size):
            return image
    return -1


@kernel
def put_changed(
    data: Bytes,
    cells: Places,
    kinds: npt.NDArray[np.int8],
    sizes: Integers,
    changed: npt.NDArray[np.bool_],
) -> None:
    """Say of each after image which columns the update gave another value.

    `cells`: columns x room, of which as many images count as `inputs` has; `sizes`: per column,
    as `cells.Layout.size`. `changed` (images x columns) is written in the rows of after images.
    """
    for column in range(len(sizes)):
        for image in range(1, len(kinds)):
            if kinds[image] == AFTER:
                old, new = cells[column, image - 1], cells[column, image]
                changed[image, column] = _changed(data, old, new, sizes[column])


@part
def _changed(data: Bytes, old: int, new: int, size: int) -> bool:
    if new == ABSENT or old == new:
        return False
    return old < 0 or new < 0 or not _same(data, old, new, size)


@part
def _same(data: Bytes, old: int, new: int, size: int) -> bool:
    length = _length(data, old, size)
    if length != _length(data, new, size):
        return False
    same = 0
    while same < length and u8(data, old + same) == u8(data, new + same):
        same += 1
    return same == length


@part
def _length(data: Bytes, at: int, size: int) -> int:
    """The whole cell's size, its length bytes included."""
    if size >= 0:
        return size
    if size == -1:
        return 1 + u8(data, at)
    if size == -2:
        return 2 + u16(data, at)
    if size == -3:
        return 3 + (u16(data, at) | u8(data, at + 2) << 16)
    return 4 + u32(data, at)
