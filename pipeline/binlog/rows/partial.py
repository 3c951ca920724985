"""After images of PARTIAL_UPDATE_ROWS: diffs where documents would stand.

Belongs here: which JSON columns of an after image hold a diff, and those diffs that need
no more than the before image. Does not: the images' cells (`images`), applying a diff.

Format: `Rows_event` in `libs/mysql/binlog/event/rows_event.h` and `Field_json::unpack_diff`
in `sql/field.cc` of MySQL's source. Before each after image stand value options
(length-encoded); if their bit 0 is set, behind them one bit per JSON column of the table,
present or not, that tells a diff from a document. A diff has the length of 4 bytes that a
document has. Without a byte it says that the document is that of the before image: the
server logs so whatever JSON a statement did not change.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pipeline.binlog.arrays.array_access import Bytes, u8
from pipeline.binlog.arrays.cells import ABSENT, Places
from pipeline.binlog.arrays.compiled import part
from pipeline.binlog.stream.ring import Integers


@part
def behind_options(data: Bytes, at: int, end: int, json: npt.NDArray[np.bool_]) -> int:
    """The place behind value options that begin at `at`, and their bits; -1 damaged."""
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
def put_unchanged(
    data: Bytes,
    options: int,
    json: npt.NDArray[np.bool_],
    sizes: Integers,
    cells: Places,
    image: int,
) -> bool:
    """Put cells of the before image, which is the one before `image`, where diffs without a
    byte stand; False if there is another diff, or nothing to put. `options`: their place."""
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
        if before == ABSENT or not _is_empty(data, cells[column, image], sizes[column]):
            return False
        cells[column, image] = before
    return True


@part
def _is_empty(data: Bytes, cell: int, size: int) -> bool:
    """Whether a cell that begins with -`size` bytes of length has nothing else."""
    length = 0
    for byte in range(-size):
        length |= u8(data, cell + byte)
    return length == 0
