"""How a segment's columns are encoded in Parquet: chosen by looking at the first rows.

A dictionary makes a column of few values small and fast, and one of many values slow: it
is built, outgrown and thrown away (three times the seconds and the bytes for a table of
numbers). Numbers that are no dictionary's business are written as differences
(DELTA_BINARY_PACKED), which Spark, delta-rs and DuckDB read.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

SAMPLE_ROWS = 8192
FEW = 16
"""A dictionary is worth its while where so many rows share a value, on average."""


@dataclass(frozen=True, slots=True)
class Encodings:
    """`dictionary`: columns with one; `delta`: columns written as differences."""

    dictionary: tuple[str, ...]
    delta: tuple[str, ...]


def choose(rows: pa.Table) -> Encodings:
    """Encodings for a file that begins with these rows."""
    dictionary, delta = [], []
    sample = rows.slice(0, SAMPLE_ROWS)
    for column in sample.schema:
        if _hashable(column.type) and _few(sample.column(column.name)):
            dictionary.append(column.name)
        elif _counted(column.type):
            delta.append(column.name)
    return Encodings(tuple(dictionary), tuple(delta))


def _few(values: pa.ChunkedArray) -> bool:
    return bool(pc.count_distinct(values, mode="all").as_py() * FEW <= len(values))


def _hashable(kind: pa.DataType) -> bool:
    return not (pa.types.is_nested(kind) or pa.types.is_boolean(kind))


def _counted(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_temporal(kind))
