"""Whether a Delta table has the columns a write brings: asked before, because Spark would
convert a value of another type without a word, and delta-rs would not look at all."""

from __future__ import annotations

import pyarrow as pa
from deltalake import DeltaTable, Schema

from pipeline.errors import TableError

_CURE = "the table's structure changed: compare it at the source and in the lake"


def refuse_other_columns(table: DeltaTable, brought: pa.Schema, *, all_of_them: bool) -> None:
    """`TableError` for a column of `brought` that is not in the table with that type; with
    `all_of_them`, also for one of the table's that is not in `brought`."""
    have = {field.name: field.type for field in table.schema().fields}
    for field in Schema.from_arrow(brought).fields:
        if field.name not in have:
            raise TableError(f"column {field.name!r} is not in the lake's table", hint=_CURE)
        if have[field.name] != field.type:
            raise TableError(
                f"column {field.name!r} has another type in the lake's table", hint=_CURE
            )
    lacking = have.keys() - set(brought.names)
    if all_of_them and lacking:
        raise TableError(
            f"column {min(lacking)!r} of the lake's table is gone at the source", hint=_CURE
        )
