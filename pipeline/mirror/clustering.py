"""The columns by which the files of a mirror (the Delta table with a table's present
rows) are clustered (Delta Lake documentation, "Use liquid clustering for Delta
tables").

A setting can name a column that the table does not have (for example after a rename),
or one by which Delta cannot cluster. The table is still written, since clustering
changes no row: the mirror keeps its present clustering, and the commands `check` and
`plan` report the name.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Final

import pyarrow as pa

from lockstep.pipeline.schema.types import comparable_name

_INDEXED_COLUMNS: Final = 32
"""Number of leading columns with minimum and maximum values in Delta's log, unless the
table sets `delta.dataSkippingNumIndexedCols`. Delta clusters only by these columns."""


def unclusterable_names(
    names: Sequence[str], columns: pa.Schema, indexed: Collection[str] | None = None
) -> Iterator[tuple[str, str]]:
    """Yield each name by which a mirror with these columns cannot be clustered, and the
    reason. `indexed`: the columns of which Delta's log has minimum and maximum values;
    None for the first `_INDEXED_COLUMNS`."""
    indexes = {comparable_name(name): index for index, name in enumerate(columns.names)}
    for name in names:
        index = indexes.get(comparable_name(name))
        if index is None:
            yield name, "is not a column of the table"
        elif not _has_statistics(columns.field(index).type):
            yield name, "has a type for which Delta keeps no minimum and maximum"
        elif indexed is None and index >= _INDEXED_COLUMNS:
            yield name, f"is not among the first {_INDEXED_COLUMNS} columns"
        elif indexed is not None and columns.names[index] not in indexed:
            yield name, "has no statistics by the mirror's properties"


def clustering_columns(
    names: Sequence[str], columns: pa.Schema, indexed: Collection[str] | None = None
) -> tuple[str, ...] | None:
    """Return the columns by which to cluster a mirror, spelled as the mirror spells
    them; an empty tuple if `names` is empty. Return None if `unclusterable_names`
    yields a name: the mirror then keeps its present clustering."""
    if any(unclusterable_names(names, columns, indexed)):
        return None
    spelled = {comparable_name(name): name for name in columns.names}
    return tuple(spelled[comparable_name(name)] for name in names)


def _has_statistics(kind: pa.DataType) -> bool:
    return not (pa.types.is_boolean(kind) or pa.types.is_binary(kind) or pa.types.is_nested(kind))
