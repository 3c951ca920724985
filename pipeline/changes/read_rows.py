"""Rows of a changelog that no log told: read from the source by a condition, or gone there.

Belongs here: their marks. Does not: images of rows (`marks`), rows that stand for all of a table
(`marker_rows`), where they stand among the log's changes (`runs.capturing.part_rows`).
"""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa

from pipeline.changes.layout import MARKS
from pipeline.position import Coordinates
from pipeline.segment import ChangeType


def derived_rows(
    rows: pa.RecordBatch,
    schema: pa.Schema,
    kind: ChangeType,
    *,
    first_sequence: int,
    first_row: int,
    at: Coordinates,
    moment: datetime,
    batch: int,
    schema_version: int,
) -> pa.RecordBatch:
    """`rows`: a table's columns in their order, as `schema` (a changelog's) has them behind the
    marks. `at`: the place in the log that they are read behind, `moment` when."""
    count = rows.num_rows
    told = {
        "_change_type": kind.value,
        "_file": str(at.file),
        "_offset": at.offset,
        "_committed_at": moment,
        "_executed_at": moment,
        "_batch": batch,
        "_schema_version": schema_version,
        "_derived": True,
    }
    numbers = np.arange(count)
    marks = {
        field.name: pa.repeat(pa.scalar(told.get(field.name), field.type), count) for field in MARKS
    }
    marks["_sequence"] = pa.array(numbers + first_sequence, MARKS.field("_sequence").type)
    marks["_row"] = pa.array(numbers + first_row, MARKS.field("_row").type)
    own = schema.types[len(MARKS) : len(MARKS) + rows.num_columns]
    columns = [column.cast(kind) for column, kind in zip(rows.columns, own, strict=True)]
    arrays = [*(marks[name] for name in MARKS.names), *columns]
    arrays += [pa.nulls(count, kind) for kind in schema.types[len(arrays) :]]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)
