"""Folding changes to the last image per key, before anything is joined.

Every image names its key and whether the row is there after it: an insert or a
postimage says yes, a delete or a preimage says no. The last word on a key wins, in the
order of `_sequence`. A key-changing update needs no rule of its own: its preimage speaks
for the old key, its postimage for the new one.
"""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa
import pyarrow.compute as pc


def latest(changes: pa.Table, key: Sequence[str], *, numbered: bool = False) -> pa.Table:
    """The last image per key, `_change_type` "delete" wherever the row is gone after it.

    `changes` holds the key columns, `_change_type`, `_sequence` (unique, rows in any
    order) and whatever else; the answer has the same columns, without `_sequence` unless
    `numbered`.
    """
    kept = changes.take(_latest_rows(changes, key))
    if not numbered:
        kept = kept.drop_columns(["_sequence"])
    kind = kept.column("_change_type")
    at = kept.schema.get_field_index("_change_type")
    return kept.set_column(at, "_change_type", pc.if_else(is_present(kind), kind, "delete"))


def _latest_rows(changes: pa.Table, key: Sequence[str]) -> pa.Array:
    """Indexes (ascending) of the last image per key."""
    keys = [comparable(changes.column(name)) for name in key]
    columns = pa.table([*keys, changes.column("_sequence")], names=[*key, "_sequence"])
    newest = columns.group_by(list(key)).aggregate([("_sequence", "max")])
    wanted = newest.column("_sequence_max").combine_chunks()
    return pc.indices_nonzero(pc.is_in(changes.column("_sequence"), value_set=wanted))


def comparable(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """-0.0 and 0.0 are one key to MySQL and to Spark, two to a grouping by bits."""
    if not pa.types.is_floating(column.type):
        return column
    return pc.add(column, pa.scalar(0.0, column.type))


def is_present(change_type: pa.ChunkedArray) -> pa.ChunkedArray:
    """Whether the row is there after each image (boolean)."""
    return pc.is_in(change_type, value_set=pa.array(["insert", "update_postimage"]))
