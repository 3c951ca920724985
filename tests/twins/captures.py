"""What batches captured, in memory: `pipeline.ports.captures`."""

from __future__ import annotations

from dataclasses import replace

from pipeline.batch import Batch, BatchState, CaptureRecord, Prepared
from pipeline.coverage import CaptureScope
from pipeline.decisions import Lease
from pipeline.life.told import capture_events
from pipeline.position import SetWitness
from pipeline.schema.history import Knowledge
from pipeline.segment import Segment, SourcePart
from pipeline.table import TableName
from pipeline.table_state import SnapshotPart, TableEvent, TableEventKind
from resources.postgres.refusals import refusal
from tests.twins import life_events
from tests.twins.batches import may_move
from tests.twins.books import ENDED, MemoryBooks, MemorySubject
from tests.twins.loads import load_of, record_loads
from tests.twins.orders import carry_out
from tests.twins.prepared import ended_prepared, open_prepared, record_prepared
from tests.twins.schemas import record_history
from tests.twins.tables import record_extents, record_handovers

_EXPLAINED = (TableEventKind.REREAD, TableEventKind.REFRESHED, TableEventKind.REBUILT)


class MemoryCaptures(MemorySubject):
    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        with self._step(lease) as books:
            begun = books.batch(lease.source, batch)
            if begun.state is not BatchState.CAPTURING and record.segments:
                raise refusal("segments_while_capturing")
            if begun.state is not BatchState.CAPTURING and record.source_parts:
                raise refusal("source_files_while_capturing")
            record_history(books, begun, record)
            told = capture_events(
                batch,
                begun.start.at,
                record.end.at,
                rejoined=[carry_out(books, begun, one) for one in record.orders_done],
                tables=record.tables,
                handovers=record.handovers,
                quarantined=record.quarantined,
                loaded=[one.table for one in record.joined],
            )
            life_events.record(books, lease.source, told, begun)
            record_handovers(books, begun, record)
            record_loads(books, begun, record)
            _record_events(books, begun, record)
            record_prepared(books, begun, record)
            record_extents(books, begun, record.extents)
            _record_scope(books, begun, record)
            _record_set_witnesses(books, begun, record)
            may_move(books, begun, BatchState.CAPTURED)
            _may_capture(books, begun, record)
            books.segments[batch] = record.segments
            books.source_parts[batch] = _source_parts(record)
            for quarantined in record.quarantined:
                life_events.count_behind(books, lease.source, quarantined.table)
            life_events.count_behind_of_loading(books, lease.source)
            books.batches[batch] = replace(
                begun,
                state=BatchState.CAPTURED,
                end=record.end,
                witness=record.witness,
                changes=record.changes,
                transactions=record.transactions,
                log_bytes=record.log_bytes,
                passed_statements=record.passed_statements,
                captured_at=self._clock(),
                by_gtid=record.by_gtid,
                life=record.life,
            )

    def segments(self, batch: int) -> list[Segment]:
        return list(self.books.segments.get(batch, ()))

    def source_parts(self, batch: int) -> list[SourcePart]:
        return list(self.books.source_parts.get(batch, ()))

    def table_events(self, source: str, batch: int) -> list[TableEvent]:
        known = self.books.batches.get(batch)
        return list(self.books.events.get(batch, ())) if known and known.source == source else []

    def snapshots(self, source: str, batch: int) -> list[SnapshotPart]:
        known = self.books.batches.get(batch)
        return list(self.books.snapshots.get(batch, ())) if known and known.source == source else []

    def open_prepared(self, source: str) -> list[Prepared]:
        return open_prepared(self.books, source)

    def ended_prepared(self, batch: int) -> list[Prepared]:
        return ended_prepared(self.books, batch)

    def set_witnesses(self, source: str, batch: int) -> list[SetWitness]:
        found: dict[str, SetWitness] = {}
        for one in reversed(self.books.of_source(source, *ENDED)):
            if one.id <= batch:
                for witness in self.books.set_witnesses.get(one.id, ()):
                    found.setdefault(witness.origin, witness)
        return list(found.values())

    def capture_scopes(self, source: str) -> list[CaptureScope]:
        return _scopes(self.books, source)


def _may_capture(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    """The record fits its batch; its tables and versions are already recorded."""
    if min(record.changes, record.transactions, record.log_bytes) < 0:
        raise refusal("batches_totals_count")
    ends, starts = record.end.at, batch.start.at
    if (ends.file.number, ends.offset) < (starts.file.number, starts.offset):
        raise refusal("batches_end_not_before_start")
    seen: set[tuple[TableName, int]] = set()
    for segment in record.segments:
        versions = books.versions.get((batch.source, segment.table), ())
        if (batch.source, segment.table) not in books.states:
            raise refusal("segments_table")
        found = [one for one in versions if one.version == segment.schema_version]
        if not found:
            raise refusal("segments_version")
        (version,) = found
        if version.knowledge is not Knowledge.KNOWN:
            raise refusal("segments_of_known_versions")
        if (segment.table, segment.schema_version) in seen:
            raise refusal("segments_once")
        seen.add((segment.table, segment.schema_version))
        if segment.first_sequence > segment.last_sequence:
            raise refusal("segments_sequences_ascend")
        if (
            segment.first_sequence <= batch.base
            or segment.last_sequence > batch.base + record.changes
        ):
            raise refusal("batches_sequences_within")


def _record_events(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    """Events and snapshots; their tables, versions and states are recorded."""
    capturing = batch.state is BatchState.CAPTURING
    if record.events and not capturing:
        raise refusal("table_events_while_capturing")
    if record.snapshots and not capturing:
        raise refusal("snapshots_while_capturing")
    before: dict[TableName, TableEvent] = {}
    for event in record.events:
        _require_recorded(books, batch, event.table, event.version, "table_events")
        if event.kind in _EXPLAINED and event.reason is None:
            raise refusal("table_events_reread_explained")
        if event.table in before and event.sequence < before[event.table].sequence:
            raise refusal("table_events_ascend")
        before[event.table] = event
    for part in record.snapshots:
        _require_recorded(books, batch, part.table, part.version, "snapshots")
    if len({part.table for part in record.snapshots}) < len(record.snapshots):
        raise refusal("snapshots_once")
    numbers = [event.sequence for event in record.events]
    numbers += [part.low_sequence for part in record.snapshots if not _joins(books, batch, part)]
    if any(not batch.base <= number <= batch.base + record.changes for number in numbers):
        raise refusal("batches_sequences_within")
    books.events[batch.id] = tuple(sorted(record.events, key=lambda event: event.table))
    books.snapshots[batch.id] = tuple(sorted(record.snapshots, key=lambda part: part.table))


def _joins(books: MemoryBooks, batch: Batch, part: SnapshotPart) -> bool:
    """Whether the rows belong behind a change of an earlier batch, as their load says."""
    load = load_of(books, batch, part.table)
    return (
        load is not None
        and load.followed is not None
        and (load.followed.sequence == part.low_sequence)
    )


def _require_recorded(
    books: MemoryBooks, batch: Batch, table: TableName, number: int, what: str
) -> None:
    if (batch.source, table) not in books.states:
        raise refusal(f"{what}_table")
    if number not in [one.version for one in books.versions.get((batch.source, table), ())]:
        raise refusal(f"{what}_version")


def _source_parts(record: CaptureRecord) -> tuple[SourcePart, ...]:
    """What a capture adds to its source's own tables, by their names."""
    if len({part.table for part in record.source_parts}) < len(record.source_parts):
        raise refusal("source_files_pk")
    return tuple(sorted(record.source_parts, key=lambda part: part.table))


def _record_scope(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    known = _scopes(books, batch.source)
    if record.scope is None or (known and known[-1].patterns == record.scope):
        return
    if batch.state is not BatchState.CAPTURING:
        raise refusal("capture_scopes_while_capturing")
    books.scopes[batch.id] = record.scope


def _scopes(books: MemoryBooks, source: str) -> list[CaptureScope]:
    return [
        CaptureScope(one.id, str(one.start), books.scopes[one.id])
        for one in books.of_source(source, *ENDED)
        if one.id in books.scopes
    ]


def _record_set_witnesses(books: MemoryBooks, batch: Batch, record: CaptureRecord) -> None:
    if record.set_witnesses and batch.state is not BatchState.CAPTURING:
        raise refusal("set_witnesses_while_capturing")
    if len({witness.origin for witness in record.set_witnesses}) < len(record.set_witnesses):
        raise refusal("set_witnesses_once")
    for witness in record.set_witnesses:
        if witness.committed_at < 0:
            raise refusal("set_witnesses_moment_counts")
        if (witness.committed_at == 0) != bool(witness.digest):
            raise refusal("set_witnesses_told")
    books.set_witnesses[batch.id] = record.set_witnesses
