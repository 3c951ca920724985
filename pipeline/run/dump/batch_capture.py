"""The capture of one batch: the log is read into segments (the Parquet files of each
table), and then the record for the ledger and the report for people are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from time import perf_counter

import numpy as np
import pyarrow as pa

from lockstep.pipeline.mirror.layout import MARKS
from lockstep.pipeline.mirror.marks import changelog_rows
from lockstep.pipeline.mirror.merging import ChangelogOrigin
from lockstep.pipeline.model.batch import Batch, CaptureRecord
from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.run.dump.basis import Basis
from lockstep.pipeline.run.dump.log_reader import LogReading
from lockstep.pipeline.run.dump.renames import CopyDecider
from lockstep.pipeline.run.dump.segmenter import Segmenter, SystemTableRows
from lockstep.pipeline.run.dump.table_changes import TableChanges
from lockstep.pipeline.run.dump.table_extents import PartialTables, note_tables_from_log
from lockstep.pipeline.run.load.by_condition import ConditionRead, repeat_hint
from lockstep.pipeline.run.reports import CaptureReport
from lockstep.pipeline.values.errors import RowsNotRead, TableError
from lockstep.pipeline.values.position import Anchor, Position
from lockstep.pipeline.values.segment import ChangeType, RowCounts, rows_by_table
from lockstep.pipeline.values.table import TableName


class BatchCapture:
    """The capture of one batch.

    - `extents`: the tables whose earlier rows the lake lacks, at the start of the
      batch; None for a batch that catches up single tables. Such a batch copies no
      renamed tables and adds no rows to the system tables (transactions and DDL).
    """

    def __init__(self, basis: Basis, batch: Batch, extents: PartialTables | None = None) -> None:
        self.basis, self.batch, self._extents = basis, batch, extents
        ports, shaping = basis.ports, basis.ports.shaping
        decide_copies = None if extents is None else CopyDecider(basis)
        self._system_table_rows = None
        if extents is not None:
            self._system_table_rows = SystemTableRows(
                ports.segments,
                source=ports.source.name,
                batch_id=batch.id,
                hides_values=shaping.has_rules,
            )
        self.table_changes = TableChanges(
            basis.tables,
            basis.structures,
            shaping,
            ports,
            decide_copies=decide_copies,
            extents=extents,
        )
        self.segmenter = Segmenter(
            basis.tables, basis.structures, shaping, self.table_changes, self._system_table_rows
        )
        self.reading = LogReading(basis, self.segmenter, keeps_all_prepared=True, starts_spark=True)

    def rewrite(self, origins: Mapping[TableName, ChangelogOrigin]) -> None:
        """Record that the mirrors of these tables are rewritten from their changelogs.
        The origin names the mirror version with which the new mirror begins, if any."""
        for table, origin in sorted(origins.items()):
            self.basis.ports.progress.note(f"the mirror of {table} is rewritten {origin.clause}")
            self.table_changes.rewrite(table, origin)

    def put_condition_rows(self, read: ConditionRead) -> None:
        """Add rows that were read from MySQL by a condition, before all changes of the
        log. The batch begins at the low watermark of that read (the place of the log
        just before it), so the rows include every change before that place; the log's
        changes after it come later in the changelog and win. Rows that MySQL no longer
        has become deletes; the others become updates. Raise `RowsNotRead` if the table
        was altered or stopped meanwhile."""
        tables, structures = self.basis.tables, self.basis.structures
        moment = self.basis.ports.clock()
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
                indexes = np.arange(batch.num_rows)
                mark_values = {
                    "_change_type": kind.value,
                    "_sequence": pa.array(indexes + tables.last_sequence + 1),
                    "_file": str(read.low.file),
                    "_offset": read.low.offset,
                    "_row": pa.array(indexes + rows_so_far, pa.int32()),
                    "_committed_at": moment,
                    "_executed_at": moment,
                    "_batch": tables.batch_id,
                    "_schema_version": version.version,
                    "_derived": True,
                }
                arrays = [
                    column.cast(data_type)
                    for column, data_type in zip(batch.columns, types, strict=True)
                ]
                segment.first_sequence = segment.first_sequence or tables.last_sequence + 1
                rows_so_far += batch.num_rows
                tables.change_count += batch.num_rows
                segment.last_sequence = tables.last_sequence
                tables.add(
                    segment, changelog_rows(segment.schema, batch.num_rows, mark_values, arrays)
                )
        segment.counts += RowCounts(
            updated=read.matching_rows.row_count, deleted=read.deleted_rows.row_count
        )
        order = read.order
        reason = f"{order.author} had rows read again where {order.condition.text}: {order.reason}"
        tables.record_event(TableEventKind.REFRESHED, version, reason)

    def finish(
        self, *, end: Position, anchor: Anchor, by_gtid: bool, carried_out_orders: tuple[int, ...]
    ) -> CaptureRecord:
        """Close the batch's files, which makes them durable, and return its record."""
        tables, reading = self.basis.tables, self.reading
        segments = tables.finish()
        record = CaptureRecord(
            end=end,
            anchor=anchor,
            changes=tables.change_count,
            transactions=reading.transaction_count,
            log_bytes=reading.log_bytes,
            segments=segments,
            history=self.basis.structures.history,
            events=tuple(tables.events),
            orders_done=carried_out_orders,
            tables=tables.changed_states,
            stopped_tables=tuple(tables.quarantines.values()),
            by_gtid=by_gtid,
            snapshots=tuple(tables.snapshots),
            followed_loads=tuple(tables.followed_loads),
            joined_loads=tuple(tables.joined_loads),
            server_process=self.basis.run_start.facts.server_process,
            passed_statements=sum(reading.row_statements.passed_counts.values()),
            scope=self.basis.ports.source.patterns,
        )
        if self._extents is None or self._system_table_rows is None:
            return record
        note_tables_from_log(self._extents, self.basis)
        self._extents.remove_read(
            snapshot.table for snapshot in record.snapshots if snapshot.columns is None
        )
        prepared = reading.buffer.prepared
        return replace(
            record,
            prepared_transactions=prepared.seal(self.batch.id, reading.buffer.maps),
            ended_transactions=tuple(prepared.ended),
            system_segments=self._system_table_rows.finish(record.history),
            extents=self._extents.changed_extents(end.at),
            set_anchors=reading.last_transactions.anchors(self.basis.ports.server),
        )

    def drop(self) -> None:
        """Discard all rows in memory and in files."""
        self.basis.tables.drop()
        if self._system_table_rows is not None:
            self._system_table_rows.drop()

    def report(self, record: CaptureRecord, timer_start: float) -> CaptureReport:
        """Return the report. `timer_start`: the value of `perf_counter` when the
        capture began."""
        run_start, batch = self.basis.run_start, self.batch
        source = self.basis.ports.source
        loads = self.basis.ports.ledger.open_loads(source.name)
        counts = rows_by_table(record.segments)
        return CaptureReport(
            batch_id=batch.id,
            rule=batch.kind.value if batch.catches_up else run_start.decision.rule.value,
            reason=run_start.decision.reason,
            start=run_start.start,
            end=record.end,
            transactions=record.transactions,
            rows=sum(count.total for count in counts.values()),
            log_bytes=record.log_bytes,
            counts=counts,
            quarantined=record.stopped_tables,
            softened_counts=self.segmenter.nulled_counts + self.segmenter.undefined_code_counts,
            capture_seconds=perf_counter() - timer_start,
            continuity=run_start.decision.continuity,
            ended_early=self.reading.reached_limit is not None or source.until is not None,
            unfinished_loads=tuple(
                load.progress for load in loads if source.patterns.matches(load.table)
            ),
            finished_loads=tuple(self.basis.tables.finished_loads),
            largest_transaction=self.reading.largest_transaction,
            passed_statements=record.passed_statements,
        )
