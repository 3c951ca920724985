"""Folding changes to the last image per key, before anything is joined.

Every image names its key and whether the row is there after it: an insert or a
postimage says yes, a delete or a preimage says no. The last word on a key wins, in the
order of `_sequence`. A key-changing update needs no rule of its own: its preimage speaks
for the old key, its postimage for the new one.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc


def latest_rows(changes: pa.Table, key: Sequence[str]) -> pa.Array:
    """Indexes (int64, ascending) of the last image per key.

    `changes` holds the key columns and `_sequence` (unique, any order of rows).
    """
    numbered = changes.select([*key, "_sequence"]).append_column(
        "_at", pa.array(np.arange(changes.num_rows, dtype=np.int64))
    )
    newest = numbered.group_by(list(key), use_threads=True).aggregate([("_sequence", "max")])
    wanted = newest.column("_sequence_max").combine_chunks()
    mask = pc.is_in(changes.column("_sequence"), value_set=wanted)
    return pc.indices_nonzero(mask).cast(pa.int64())


def is_present(change_type: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether the row is there after each image (boolean)."""
    return pc.is_in(change_type, value_set=pa.array(["insert", "update_postimage"]))
