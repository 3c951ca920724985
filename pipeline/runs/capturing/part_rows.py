"""Rows of a table that were read by a condition, put before what a batch captures of the log.

Belongs here: their numbers, and that the table is still the one that was read. Does not: reading
them (`pipeline.runs.loading.part`), their marks (`pipeline.changes.read_rows`).

The batch begins where the reading's low is: nothing before it is left out of what was read, and
what the log has behind it stands behind these rows, and wins.
"""

from __future__ import annotations

from datetime import datetime

from pipeline.changes.read_rows import derived_rows
from pipeline.errors import RowsNotRead, TableError
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.change_numbers import Numbers
from pipeline.runs.capturing.table_files import CapturedTable
from pipeline.runs.loading.part import AGAIN, PartRead, Waiting
from pipeline.schema.rows import row_structure
from pipeline.schema.tracker import SchemaTracker
from pipeline.segment import ChangeType, RowCounts
from pipeline.table_state import TableEventKind


def put_part(
    part: PartRead,
    tables: CapturedTables,
    structures: SchemaTracker,
    numbers: Numbers,
    moment: datetime,
) -> None:
    """Who is gone at the source first, then the rows that are there."""
    version = structures.version(part.table)
    if (
        version is None
        or version.schema is None
        or row_structure(version.schema) != part.structure
        or not tables.wanted(part.table)
    ):
        raise RowsNotRead(
            f"{part.table} was altered, or stopped, while it was read",
            hint=AGAIN.format(part.table),
        )
    try:
        table = tables.opened(version, part.low)
    except TableError as error:
        raise RowsNotRead(f"{part.table}: {error.reason}", hint=error.hint) from error
    putting = _Putting(part, tables, table, numbers, moment)
    putting.put(part.gone, ChangeType.DELETE)
    putting.put(part.rows, ChangeType.UPDATE_POSTIMAGE)
    table.counts += RowCounts(updated=part.rows.rows, deleted=part.gone.rows)
    order = part.order
    tables.happened(
        TableEventKind.REFRESHED,
        version,
        sequence=numbers.last,
        reason=f"{order.author} had rows read again where {order.condition.text}: {order.reason}",
    )


class _Putting:
    def __init__(
        self,
        part: PartRead,
        tables: CapturedTables,
        table: CapturedTable,
        numbers: Numbers,
        moment: datetime,
    ) -> None:
        self._part, self._tables, self._table = part, tables, table
        self._numbers, self._moment = numbers, moment
        self._rows = 0

    def put(self, waiting: Waiting, kind: ChangeType) -> None:
        table, numbers = self._table, self._numbers
        for batch in waiting.batches():
            first = numbers.last + 1
            rows = derived_rows(
                batch,
                table.schema,
                kind,
                first_sequence=first,
                first_row=self._rows,
                at=self._part.low,
                moment=self._moment,
                batch=numbers.batch,
                schema_version=table.version.version,
            )
            numbers.changes += batch.num_rows
            self._rows += batch.num_rows
            table.first, table.last = table.first or first, numbers.last
            self._tables.files.hold(table, rows)
