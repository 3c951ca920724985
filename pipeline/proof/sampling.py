"""Chooses the rows of a random sample of a table.

A sample consists of stretches: rows with consecutive keys, from a random key on. So it
can show missing and surplus rows as well as rows that differ.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from lockstep.pipeline.values.table import TableStructure

STRETCH_ROWS: Final = 20
"""Number of rows in a stretch."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Values of a column from `low` to `high`, both included."""

    low: Any
    high: Any


def stretch_count(rows: int) -> int:
    """Return the number of stretches in a sample of `rows` rows."""
    return max(1, -(-rows // STRETCH_ROWS))


def has_integer_key(structure: TableStructure) -> bool:
    """Return whether the key is one column of integers, which both sides order alike."""
    columns = {column.name: column for column in structure.columns}
    kinds = [columns[name].type for name in structure.primary_key]
    return len(kinds) == 1 and kinds[0].endswith("int")


def stretch_starts(min_key: int, max_key: int, rows: int, random: Random) -> list[int]:
    """Return the keys at which stretches begin. `rows`: size of the sample. If the
    table has no more rows than that, the stretches cover all keys. Otherwise each
    begins in another part of the range of keys. The rows of two stretches overlap only
    where keys are missing."""
    count = stretch_count(rows)
    key_count = max_key - min_key + 1
    if key_count <= count * STRETCH_ROWS:
        return list(range(min_key, max_key + 1, STRETCH_ROWS))
    edges = [min_key + part * key_count // count for part in range(count + 1)]
    return [random.randint(begin, max(begin, end - STRETCH_ROWS)) for begin, end in pairwise(edges)]


def random_rows(
    batches: Iterable[pa.RecordBatch], count: int, random: Random
) -> list[tuple[Any, ...]]:
    """Return a random sample of `count` rows, as tuples of values."""
    sample: list[tuple[float, tuple[Any, ...]]] = []
    for batch in batches:
        drawn = sorted((random.random(), index) for index in range(batch.num_rows))[:count]
        sample += [
            (draw, tuple(column[index].as_py() for column in batch.columns))
            for draw, index in drawn
        ]
        sample = sorted(sample, key=lambda drawn_row: drawn_row[0])[:count]
    return [values for _, values in sample]


def covered_ranges(
    starts: Sequence[int], rows: Sequence[pa.Table], column: str
) -> list[ValueRange]:
    """Return the range of an integer key that each stretch covers. `starts`, `rows`:
    the first key and the rows of each. A stretch with fewer rows than `STRETCH_ROWS`
    ended with the table, so its range reaches to the largest number."""
    ranges = []
    for start, stretch in zip(starts, rows, strict=True):
        values = stretch.column(column)
        is_last = stretch.num_rows < STRETCH_ROWS
        high = _max_value(values.type) if is_last else int(pc.max(values).as_py())
        ranges.append(ValueRange(start, high))
    return ranges


def is_in_ranges(values: pa.Array, ranges: Sequence[ValueRange]) -> pa.Array:
    """Return, for each value, whether it is in one of the ranges; false for NULL."""
    result = pa.array(np.zeros(len(values), np.bool_))
    for value_range in ranges:
        low = pa.scalar(value_range.low, values.type)
        high = pa.scalar(value_range.high, values.type)
        within = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        result = pc.or_(result, within)
    return pc.fill_null(result, False)


def _max_value(kind: pa.DataType) -> int:
    """Return the largest number that an integer or decimal type can hold."""
    digits = kind.precision if pa.types.is_decimal(kind) else 0
    bits: int = kind.bit_width
    value: int = 10**digits - 1 if digits else (1 << bits - 1) - 1
    return value
