"""Which columns a row image has, where the server may leave some out.

Belongs here: what `binlog_row_image=MINIMAL` and NOBLOB leave out, as places of cells and as
bits. Does not: finding the cells (`images`), defaults (`pipeline.changes.defaults`), what
older rows know (`pipeline.changes.coalescing`).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.binlog.arrays.cells import ABSENT, Places
from pipeline.binlog.rows.images import AFTER
from pipeline.row_images import packed


def put_before(cells: Places, kinds: npt.NDArray[np.int8]) -> None:
    """Give after images the cells they leave out and their before images have: the statement
    did not change those. `cells`: columns x images, changed in place."""
    after = np.flatnonzero(kinds == AFTER)
    there = cells[:, after]
    cells[:, after] = np.where(there == ABSENT, cells[:, after - 1], there)


def present(cells: Places) -> pa.Array | None:
    """Per image a bit for each column, the first one lowest, that says whether it is there;
    NULL for an image that has them all. None if every image has."""
    there = cells != ABSENT
    whole = there.all(axis=0)
    if whole.all():
        return None
    return packed(there.T, whole)
