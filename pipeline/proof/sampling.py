"""Which rows a sample of a table holds.

A sample is some stretches of rows that follow one another by their key, each from a place that
chance chose: so a row that only one side has stands out as one that differs does.
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

from pipeline.table import TableStructure

STRETCH: Final = 20
"""Rows of a stretch."""


@dataclass(frozen=True, slots=True)
class ValueRange:
    """Values of a column from `low` to `high`, both included."""

    low: Any
    high: Any


def stretches(rows: int) -> int:
    return max(1, -(-rows // STRETCH))


def is_number(structure: TableStructure) -> bool:
    """Whether the key is one column of whole numbers: both sides have their order."""
    columns = {column.name: column for column in structure.columns}
    kinds = [columns[name].type for name in structure.primary_key]
    return len(kinds) == 1 and kinds[0].endswith("int")


def numbers_between(least: int, most: int, rows: int, chance: Random) -> list[int]:
    """Where stretches with that many rows begin, from `least` to `most`; all of the table is in
    them if it has no room for more. Each begins in a part of its own, and ends in it where no
    number is left out, so that they do not overlap."""
    count, numbers = stretches(rows), most - least + 1
    if numbers <= count * STRETCH:
        return list(range(least, most + 1, STRETCH))
    edges = [least + part * numbers // count for part in range(count + 1)]
    return [chance.randint(begin, max(begin, end - STRETCH)) for begin, end in pairwise(edges)]


def some_of(batches: Iterable[pa.RecordBatch], count: int, chance: Random) -> list[tuple[Any, ...]]:
    """So many of all rows, each as likely as any other."""
    kept: list[tuple[float, tuple[Any, ...]]] = []
    for batch in batches:
        drawn = sorted((chance.random(), at) for at in range(batch.num_rows))[:count]
        kept += [
            (draw, tuple(column[at].as_py() for column in batch.columns)) for draw, at in drawn
        ]
        kept = sorted(kept, key=lambda one: one[0])[:count]
    return [values for _, values in kept]


def covered(starts: Sequence[int], rows: Sequence[pa.Table], column: str) -> list[ValueRange]:
    """What stretches cover of a key that is a whole number. `rows`: those of each stretch."""
    found = []
    for start, one in zip(starts, rows, strict=True):
        values = one.column(column)
        short = one.num_rows < STRETCH
        high = _most(values.type) if short else int(pc.max(values).as_py())
        found.append(ValueRange(start, high))
    return found


def inside(values: pa.Array, spans: Sequence[ValueRange]) -> pa.Array:
    found = pa.array(np.zeros(len(values), np.bool_))
    for span in spans:
        low, high = (pa.scalar(one, values.type) for one in (span.low, span.high))
        within = pc.and_(pc.greater_equal(values, low), pc.less_equal(values, high))
        found = pc.or_(found, within)
    return pc.fill_null(found, False)


def _most(kind: pa.DataType) -> int:
    digits = kind.precision if pa.types.is_decimal(kind) else 0
    bits: int = kind.bit_width
    most: int = 10**digits - 1 if digits else (1 << bits - 1) - 1
    return most
