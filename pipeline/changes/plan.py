"""How a table's captured changes get into its mirror: append, merge or fold, with which bounds.

Pure: from counts and folded keys to a plan. Writing it is `resources.lake`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from pipeline.segment import RowCounts


def only_inserts(counts: Iterable[RowCounts]) -> bool:
    """Whether the changes can be appended as they are.

    A range of the log that follows on what the mirror holds, and holds inserts only,
    has each key once and none that the mirror has: MySQL's primary key forbids both.
    """
    total = sum(counts, RowCounts())
    return total.updated == total.deleted == 0


FOLDED_IMAGES = 4_000_000
FOLDED_BYTES = 192 << 20
"""What is folded in this process's memory at most: row images, and bytes of their values."""


def too_many_to_fold(images: int, unpacked: int) -> bool:
    """Whether a table's changes are to be folded by the lake, on disk."""
    return images > FOLDED_IMAGES or unpacked > FOLDED_BYTES


def key_bounds(changes: pa.Table, key: Mapping[str, str]) -> tuple[tuple[str, str, str], ...]:
    """(mirror's column, least, greatest) as SQL literals, for key columns whose type
    orders the same in Arrow, Parquet statistics and Spark; they let Delta skip files.
    `key`: a column of `changes` → the mirror's column.

    Integers, decimals and dates only: text has collations, floats have NaN.
    """
    bounds = []
    for spelled, name in key.items():
        column = changes.column(spelled)
        literal = _LITERALS.get(_family(column.type))
        if literal is None or not len(column):
            continue
        ends = pc.min_max(column)
        least, greatest = ends["min"].as_py(), ends["max"].as_py()
        if least is not None:
            bounds.append((name, literal(least), literal(greatest)))
    return tuple(bounds)


def _family(kind: pa.DataType) -> str:
    if pa.types.is_integer(kind):
        return "integer"
    if pa.types.is_decimal(kind):
        return "decimal"
    return "date" if pa.types.is_date(kind) else ""


_LITERALS: Mapping[str, Callable[[Any], str]] = {
    "integer": str,
    "decimal": lambda value: f"{value:f}BD",
    "date": lambda value: f"DATE'{value.isoformat()}'",
}
