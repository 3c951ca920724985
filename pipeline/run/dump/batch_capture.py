"""The capture of one batch, which reads the log into segments, and then makes the record for
the ledger and the report for people."""

from __future__ import annotations

from collections.abc import Mapping
from time import perf_counter

from lockstep.pipeline.mirror.merging import ChangelogOrigin
from lockstep.pipeline.model.batch import Batch, CaptureRecord
from lockstep.pipeline.run.dump.basis import Basis
from lockstep.pipeline.run.dump.log_reader import LogReading
from lockstep.pipeline.run.dump.renames import DecideCopies
from lockstep.pipeline.run.dump.segment_builder import Segmenter, SourceRows
from lockstep.pipeline.run.dump.table_extents import PartialTables
from lockstep.pipeline.run.reports import CaptureReport
from lockstep.pipeline.values.position import Anchor, Position
from lockstep.pipeline.values.segment import rows_by_table
from lockstep.pipeline.values.table import TableName


class BatchCapture:
    """The capture of one batch. A catch-up batch has none of the following: `source_rows`, the
    rows for the source's own tables; `copies`, which decides where renamed tables get their rows
    from; `extents`, the partial tables."""

    def __init__(
        self,
        basis: Basis,
        batch: Batch,
        *,
        source_rows: SourceRows | None = None,
        copies: DecideCopies | None = None,
        extents: PartialTables | None = None,
    ) -> None:
        self.basis = basis
        self._batch = batch
        self.segmenter = Segmenter(
            basis.tables,
            basis.structures,
            basis.work.shaping,
            basis.work,
            source_rows=source_rows,
            copies=copies,
            extents=extents,
        )
        self.reading = LogReading(basis, self.segmenter, keeps=True)

    def rewrite(self, origins: Mapping[TableName, ChangelogOrigin]) -> None:
        """Record for each table in `origins` that its mirror is written again from its changelog,
        beginning at the origin."""
        for table, origin in sorted(origins.items()):
            self.basis.work.progress.note(f"the mirror of {table} is rewritten {origin.told}")
            self.segmenter.rewrite(table, origin)

    def record(
        self, *, end: Position, anchor: Anchor, by_gtid: bool, orders_done: tuple[int, ...]
    ) -> CaptureRecord:
        """Close the batch's files, which makes them durable, and return its record."""
        tables, reading = self.basis.tables, self.reading
        segments = tables.finish()
        return CaptureRecord(
            end=end,
            anchor=anchor,
            changes=self.segmenter.changes,
            transactions=reading.transactions,
            log_bytes=reading.log_bytes,
            segments=segments,
            history=self.basis.structures.history,
            events=tuple(tables.events),
            orders_done=orders_done,
            tables=tables.touched,
            quarantined=tuple(tables.stopped.values()),
            by_gtid=by_gtid,
            snapshots=tuple(tables.snapshots),
            followed=tuple(tables.followed),
            joined=tuple(tables.joined),
            life=self.basis.run_start.facts.life,
            passed_statements=sum(reading.row_statements.passed.values()),
        )

    def report(
        self,
        record: CaptureRecord,
        *,
        began: float,
        start_seconds: float = 0.0,
        repaired: tuple[str, ...] = (),
    ) -> CaptureReport:
        """Return the report. `began`: the value of `perf_counter` when the capture began;
        `start_seconds`: time that finding the start took; `repaired`: sentences on what was
        repaired before."""
        run_start, batch = self.basis.run_start, self._batch
        source = self.basis.work.source
        loads = self.basis.work.ledger.open_loads(source.name)
        counts = rows_by_table(record.segments)
        return CaptureReport(
            batch=batch.id,
            rule=batch.kind.value if batch.catches_up else run_start.decision.rule.value,
            reason=run_start.decision.reason,
            start=run_start.start,
            end=record.end,
            transactions=record.transactions,
            rows=sum(count.total for count in counts.values()),
            log_bytes=record.log_bytes,
            counts=counts,
            quarantined=record.quarantined,
            softened=self.segmenter.softened + self.segmenter.unknown,
            repaired=repaired,
            start_seconds=start_seconds,
            capture_seconds=perf_counter() - began,
            continuity=run_start.decision.continuity,
            short=self.reading.spent is not None or source.until is not None,
            loading=tuple(load.progress for load in loads if source.patterns.matches(load.table)),
            loaded=tuple(self.basis.tables.loaded),
            largest=self.reading.largest,
            passed=record.passed_statements,
        )
