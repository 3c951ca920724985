"""Rows that were read from MySQL by a WHERE condition, as changes of a batch. The batch
begins at the low watermark of that read (the place of the log just before it). The rows
include every change before that place; the log's changes after it come later in the
changelog and win."""

from __future__ import annotations

from datetime import datetime

import numpy as np
import pyarrow as pa

from lockstep.pipeline.mirror.layout import MARKS
from lockstep.pipeline.mirror.marks import changelog_rows
from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.run.dump.captured_tables import CapturedTables
from lockstep.pipeline.run.load.by_condition import ConditionRead, repeat_hint
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.values.errors import RowsNotRead, TableError
from lockstep.pipeline.values.segment import ChangeType, RowCounts


def put_condition_rows(
    read: ConditionRead,
    tables: CapturedTables,
    structures: SchemaTracker,
    moment: datetime,
) -> None:
    """Add rows that were read from MySQL by a condition, before all changes of the log.
    Rows that MySQL no longer has become deletes; the others become updates. `moment`:
    their commit time. Raise `RowsNotRead` if the table was altered or stopped
    meanwhile."""
    version = structures.version(read.table)
    if (
        version is None
        or version.schema is None
        or version.shown_structure != read.structure
        or not tables.is_wanted(read.table)
    ):
        raise RowsNotRead(
            f"{read.table} was altered, or stopped, while its rows were read",
            hint=repeat_hint(read.table),
        )
    try:
        segment = tables.segment(version)
    except TableError as error:
        raise RowsNotRead(f"{read.table}: {error.reason}", hint=error.hint) from error
    types = segment.schema.types[len(MARKS) : len(MARKS) + len(read.structure.columns)]
    rows_so_far = 0
    for kind, rows in (
        (ChangeType.DELETE, read.deleted_rows),
        (ChangeType.UPDATE_POSTIMAGE, read.matching_rows),
    ):
        for batch in rows.batches():
            numbers = np.arange(batch.num_rows)
            mark_values = {
                "_change_type": kind.value,
                "_sequence": pa.array(numbers + tables.last_sequence + 1),
                "_file": str(read.low.file),
                "_offset": read.low.offset,
                "_row": pa.array(numbers + rows_so_far, pa.int32()),
                "_committed_at": moment,
                "_executed_at": moment,
                "_batch": tables.batch_id,
                "_schema_version": version.version,
                "_derived": True,
            }
            arrays = [column.cast(to) for column, to in zip(batch.columns, types, strict=True)]
            segment.first_sequence = segment.first_sequence or tables.last_sequence + 1
            rows_so_far += batch.num_rows
            tables.change_count += batch.num_rows
            segment.last_sequence = tables.last_sequence
            tables.add(segment, changelog_rows(segment.schema, batch.num_rows, mark_values, arrays))
    segment.counts += RowCounts(
        updated=read.matching_rows.row_count, deleted=read.deleted_rows.row_count
    )
    order = read.order
    reason = f"{order.author} had rows read again where {order.condition.text}: {order.reason}"
    tables.record_event(TableEventKind.REFRESHED, version, reason)
