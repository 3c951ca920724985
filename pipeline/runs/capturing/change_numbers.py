"""The numbers that changes get, and the rows of a changelog that stand for all rows of a table: it
was emptied, or read anew.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import pyarrow as pa

from pipeline.position import Coordinates
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.schema.history import SchemaVersion
from pipeline.segment import ChangeType


@dataclass(slots=True)
class Numbers:
    """The numbers that a batch gives to changes: so many so far, above `base`."""

    batch: int
    base: int
    changes: int = 0

    @property
    def last(self) -> int:
        return self.base + self.changes


@dataclass(frozen=True, slots=True)
class TableMark:
    """What a row of a changelog says that stands for all rows of the table."""

    kind: ChangeType
    at: Coordinates
    gtid: str
    committed_at: datetime
    executed_at: datetime


def put_mark(
    tables: CapturedTables, numbers: Numbers, version: SchemaVersion, mark: TableMark
) -> None:
    """It is the next change."""
    numbers.changes += 1
    table = tables.opened(version, mark.at)
    number = numbers.last
    row = mark_row(
        table.schema,
        mark.kind,
        sequence=number,
        at=mark.at,
        gtid=mark.gtid,
        committed_at=mark.committed_at,
        executed_at=mark.executed_at,
        batch=numbers.batch,
        schema_version=version.version,
    )
    table.first, table.last = table.first or number, number
    tables.files.hold(table, row)


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
