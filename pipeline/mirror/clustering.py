"""The columns by which a mirror's files are clustered (Delta Lake documentation, "Use liquid
clustering for Delta tables").

A setting can name a column that a table does not have, or cannot be clustered by. That stops no
table, since clustering changes no row: the mirror keeps the clustering that it has, such as that of
a column which was renamed since, and `check` and `plan` report the name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

import pyarrow as pa

from lockstep.pipeline.schema.column_names import folded

_WITH_STATISTICS: Final = 32
"""Number of leading columns with minimum and maximum values in Delta's log, unless the table sets
`delta.dataSkippingNumIndexedCols`; Delta clusters by no other column."""


def unclusterable(names: Sequence[str], columns: pa.Schema) -> Iterator[tuple[str, str]]:
    """Yield the names that a mirror with these columns cannot be clustered by, and why."""
    places = {folded(name): place for place, name in enumerate(columns.names)}
    for name in names:
        place = places.get(folded(name))
        if place is None:
            yield name, "is not a column of the table"
        elif not _has_order(columns.field(place).type):
            yield name, "has a type for which Delta keeps no minimum and maximum"
        elif place >= _WITH_STATISTICS:
            yield name, f"is not among the first {_WITH_STATISTICS} columns"


def clustered_by(names: Sequence[str], columns: pa.Schema) -> tuple[str, ...] | None:
    """Return the columns to cluster a mirror by, in its spelling; an empty tuple for no names. None
    if it cannot be clustered by some of them: then its present clustering stays."""
    if any(unclusterable(names, columns)):
        return None
    own = {folded(name): name for name in columns.names}
    return tuple(own[folded(name)] for name in names)


def _has_order(kind: pa.DataType) -> bool:
    return not (pa.types.is_boolean(kind) or pa.types.is_binary(kind) or pa.types.is_nested(kind))
