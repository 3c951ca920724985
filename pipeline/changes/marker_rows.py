"""Rows of a changelog that stand for no row of the table: it was emptied, or read anew.

Belongs here: their marks; every column of the table is NULL in them. Does not: images of
rows (`marks`).
"""

from __future__ import annotations

from datetime import datetime

import pyarrow as pa

from pipeline.position import Coordinates
from pipeline.segment import ChangeType


def mark_row(
    schema: pa.Schema,
    kind: ChangeType,
    *,
    sequence: int,
    at: Coordinates,
    gtid: str,
    committed_at: datetime,
    executed_at: datetime,
    batch: int,
    schema_version: int,
) -> pa.RecordBatch:
    """One row of a changelog with that schema; `at` is where its statement's transaction
    begins."""
    told = {
        "_change_type": kind.value,
        "_sequence": sequence,
        "_file": str(at.file),
        "_offset": at.offset,
        "_row": 0,
        "_gtid": gtid or None,
        "_committed_at": committed_at,
        "_executed_at": executed_at,
        "_batch": batch,
        "_schema_version": schema_version,
        "_derived": False,
    }
    return pa.RecordBatch.from_arrays(
        [pa.array([told.get(field.name)], field.type) for field in schema], schema=schema
    )
