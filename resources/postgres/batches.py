"""The chain of batches on Postgres, and what the batches captured. Each batch captured
a range of the log."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import count
from typing import Any

from lockstep.pipeline.model.batch import (
    Batch,
    BatchContent,
    BatchKind,
    BatchState,
    BatchTimes,
    CaptureRecord,
    Cursor,
    Cursors,
    ExtraRows,
    PreparedTransaction,
    RequestCounts,
    SpecialBatches,
    WaitingFile,
    Xid,
)
from lockstep.pipeline.model.life import capture_events
from lockstep.pipeline.model.table_state import SnapshotFiles, TableEvent, TableEventKind
from lockstep.pipeline.ports.ledger import LAST_BATCH
from lockstep.pipeline.values.decisions import Continuity, Lease
from lockstep.pipeline.values.intent import SettledWrite
from lockstep.pipeline.values.position import (
    Anchor,
    Coordinates,
    Position,
    ServerPeriod,
    ServerProcess,
    SetAnchor,
)
from lockstep.pipeline.values.segment import RowCounts, Segment, SystemTable, SystemTableSegment
from lockstep.pipeline.values.table import CaptureScope, TableName, TablePatterns
from lockstep.resources.postgres import life_events, tables
from lockstep.resources.postgres.life_events import undo_batch
from lockstep.resources.postgres.refusals import refusal
from lockstep.resources.postgres.rows import (
    Row,
    columns_of,
    coordinate_columns,
    coordinates_of,
    file_rows,
    files_of,
    position_columns,
    position_of,
    table_columns,
    table_of,
    value_of,
)
from lockstep.resources.postgres.schemas import record_history
from lockstep.resources.postgres.session import LedgerPort, Transaction, Value
from lockstep.resources.postgres.tables import mark_carried_out, record_loads
from lockstep.resources.postgres.writes import settled_write

_CHANGED_BY_PROGRESS = ("batches", "unfinished_batches", "live_batches", "cursors", "gaps")
"""Cached statements (`LedgerPort._cached`) whose rows change when a batch is merged or
acknowledged."""

_CHANGED_BY_BEGINNING = ("batches", "unfinished_batches", "live_batches", "gaps")
"""Cached statements whose rows change when a batch begins."""


class PostgresBatches(LedgerPort):
    """The port `Batches` (`pipeline.ports.ledger`), which describes each method, on
    Postgres."""

    # -- the chain -----------------------------------------------------------------------------

    def cursors(self, source: str) -> Cursors:
        return Cursors(**dict(self._cached(_cursor, "cursors", source=source)))

    def batches(self, source: str, *, limit: int | None = 20) -> list[Batch]:
        return self._cached(batch_of, "batches", source=source, limit=limit)

    def unfinished_batches(self, source: str) -> list[Batch]:
        return self._cached(batch_of, "unfinished_batches", source=source)

    def live_batches(
        self,
        source: str,
        first: int = 0,
        last: int = LAST_BATCH,
        *,
        continuity: Continuity | None = None,
        run: str | None = None,
        limit: int | None = None,
    ) -> list[Batch]:
        bounds = {"first": first, "last": last, "limit": limit}
        values = {**bounds, "continuity": continuity, "run": run}
        if continuity is not None:
            return self._cached(batch_of, "live_batches", source=source, **values)
        return [batch_of(row) for row in self._all("live_batches", source=source, **values)]

    def captured_batch(
        self,
        source: str,
        server_uuid: str,
        at: Coordinates,
    ) -> Batch | None:
        values = {"server_uuid": server_uuid, **coordinate_columns(at)}
        row = self._first("captured_batch", source=source, **values)
        return None if row is None else batch_of(row)

    def server_periods(self, source: str) -> tuple[ServerPeriod, ...]:
        rows = self._all("server_periods", source=source)
        return tuple(ServerPeriod(row["server_uuid"], row["since"]) for row in rows)

    def begin_batch(
        self,
        lease: Lease,
        start: Position,
        *,
        continued_batch: int | None,
        start_decision: int | None,
        kind: BatchKind = BatchKind.ORDINARY,
    ) -> Batch:
        with self._transaction(lease, changes=_CHANGED_BY_BEGINNING) as transaction:
            row = transaction.only(
                "begin_batch",
                source=lease.source,
                token=lease.token,
                continued_batch=continued_batch,
                start_decision=start_decision,
                kind=kind.value,
                **position_columns(start),
            )
            return batch_of(row)

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        with self._transaction(lease) as transaction:
            values = {"source": lease.source, "batch": batch, "reason": reason}
            transaction.run_or_refuse("abandon", "batches_known", **values)
            undo_batch(transaction, lease, batch)

    def mark_merged(self, lease: Lease) -> list[int]:
        with self._transaction(lease, changes=_CHANGED_BY_PROGRESS) as transaction:
            return sorted(row["id"] for row in transaction.all("mark_merged", source=lease.source))

    def acknowledge(self, lease: Lease, batch: int, requests: RequestCounts | None = None) -> None:
        with self._transaction(lease, changes=_CHANGED_BY_PROGRESS) as transaction:
            keys = {"source": lease.source, "batch": batch}
            counts = {
                "own": requests and requests.lockstep,
                "spark": requests and requests.spark,
            }
            transaction.run_or_refuse("acknowledge", "batches_known", **keys, **counts)
            transaction.run("record_version_set", **keys)

    # -- what one batch captured ---------------------------------------------------------------

    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        source = lease.source
        keys = {"source": source, "batch": batch}
        with self._transaction(lease) as transaction:
            start_rows = transaction.all("batch_start", **keys)
            if not start_rows:
                raise refusal("batches_known")
            record_history(transaction, source, batch, record.history)
            events = capture_events(
                batch,
                coordinates_of(start_rows[0], "start_"),
                record.end.at,
                rejoined=[
                    mark_carried_out(transaction, source, batch, order)
                    for order in record.orders_done
                ],
                tables=record.tables,
                handovers=record.handovers,
                quarantined=record.stopped_tables,
                loaded=[load.table for load in record.joined_loads],
            )
            life_events.record_events(transaction, lease, events, batch)
            _record_segments(transaction, keys, record.segments)
            _record_system_segments(transaction, keys, record.system_segments)
            # Events refer to the versions and states of their tables.
            _record_table_events(transaction, keys, record.events)
            _record_snapshots(transaction, keys, record.snapshots)
            record_loads(transaction, source, batch, record)
            tables.record_extents(transaction, source, batch, record.extents)
            for stopped in record.stopped_tables:
                tables.note_missing_batches(transaction, source, stopped.table)
            transaction.run("note_missing_batches_of_loading", source=source)
            _record_prepared(transaction, source, batch, record)
            if record.scope is not None:
                include, exclude = list(record.scope.include), list(record.scope.exclude)
                transaction.run("record_scope", **keys, include=include, exclude=exclude)
            _record_set_anchors(transaction, keys, record.set_anchors)
            transaction.run("end_capture", **keys, **_capture_columns(record))

    def contents(
        self, source: str, first: int, last: int, tables: Collection[TableName] | None = None
    ) -> list[BatchContent]:
        values = {
            "first": first,
            "last": last,
            "databases": None if tables is None else sorted({table.database for table in tables}),
            "names": None if tables is None else sorted({table.name for table in tables}),
        }
        if tables is None and first == last:
            return self._cached(_content, "contents", source=source, **values)
        contents = [_content(row) for row in self._all("contents", source=source, **values)]
        if tables is None:
            return contents
        # The query selects by database and by name separately, so it returns some
        # tables too many.
        contents = [content.for_tables(frozenset(tables)) for content in contents]
        return [content for content in contents if content.changed_tables]

    def open_prepared(self, source: str) -> list[PreparedTransaction]:
        return self._cached(_prepared, "open_prepared", source=source)

    def set_anchors(self, source: str, batch: int) -> list[SetAnchor]:
        rows = self._all("set_anchors", source=source, batch=batch)
        return [value_of(SetAnchor, row) for row in rows]

    def capture_scopes(self, source: str) -> list[CaptureScope]:
        return self._cached(_capture_scope, "capture_scopes", source=source)

    # -- what many batches captured ------------------------------------------------------------

    def batch_times(self, source: str) -> list[BatchTimes]:
        return [value_of(BatchTimes, row) for row in self._all("batch_times", source=source)]

    def first_changes(self, source: str, first: int, last: int) -> dict[TableName, int]:
        rows = self._all("first_changes", source=source, first=first, last=last)
        return {table_of(row): row["batch"] for row in rows}

    def special_batches(self, source: str, first: int, last: int) -> SpecialBatches:
        rows = self._all("special_batches", source=source, first=first, last=last)
        return SpecialBatches(
            {row["batch"]: ExtraRows(row["extra_rows"]) for row in rows if row["extra_rows"]},
            frozenset(row["batch"] for row in rows if row["with_structures"]),
            {row["batch"]: row["revisions"] for row in rows if row["revisions"]},
        )

    def writes_within(self, source: str, first: int, last: int) -> list[SettledWrite]:
        rows = self._all("writes_within", source=source, first=first, last=last)
        return [settled_write(row) for row in rows]


# -- the chain -------------------------------------------------------------------------


def batch_of(row: Row) -> Batch:
    is_captured = row["captured_at"] is not None
    return value_of(
        Batch,
        row,
        state=BatchState(row["state"]),
        start=position_of(row, "start_"),
        continued_batch=row["continued_batch"] or row["forgotten_batch"],
        end=position_of(row, "end_") if is_captured else None,
        anchor=value_of(Anchor, row, "anchor_") if is_captured else None,
        previous_batch=row["forgotten_batch"] or row["previous_batch"],
        continuity=Continuity(row["continuity"]) if row["continuity"] else None,
        kind=BatchKind(row["kind"]),
        server_process=_server_process(row),
        requests=_requests(row),
    )


def _requests(row: Row) -> RequestCounts | None:
    own = row["lockstep_requests"]
    return None if own is None else RequestCounts(own, row["spark_requests"])


def _server_process(row: Row) -> ServerProcess | None:
    if row["server_started_at"] is None:
        return None
    return ServerProcess(row["server_started_at"], row["server_resets"])


def _cursor(row: Row) -> tuple[str, Cursor]:
    """Return the name of a field of `Cursors`, and the cursor."""
    end, anchor = position_of(row, "end_"), value_of(Anchor, row, "anchor_")
    return row["which"], Cursor(row["id"], end, anchor, row["resumable"], row["was_by_gtid"])


# -- what one batch captured -----------------------------------------------------------


def _record_segments(transaction: Transaction, keys: Row, segments: Sequence[Segment]) -> None:
    rows = [{**keys, **_segment_columns(segment)} for segment in segments]
    ids = {
        (table_of(row), row["schema_version"]): row["id"]
        for row in transaction.insert("record_segments", rows)
    }
    files = [
        {"segment": ids[segment.table, segment.schema_version], **file}
        for segment in segments
        for file in file_rows(segment.files)
    ]
    transaction.insert("record_segment_files", files)


def _record_system_segments(
    transaction: Transaction, keys: Row, segments: Sequence[SystemTableSegment]
) -> None:
    files = [
        {**keys, "name": segment.table.value, **file}
        for segment in segments
        for file in file_rows(segment.files)
    ]
    transaction.insert("record_system_files", files)


def _record_table_events(transaction: Transaction, keys: Row, events: Sequence[TableEvent]) -> None:
    ordinals: dict[TableName, Iterator[int]] = defaultdict(count)
    rows = [
        {**keys, "ordinal": next(ordinals[event.table]), **_event_columns(event)}
        for event in events
    ]
    transaction.insert("record_table_events", rows)


def _record_snapshots(
    transaction: Transaction, keys: Row, snapshots: Sequence[SnapshotFiles]
) -> None:
    rows = [{**keys, **_snapshot_columns(snapshot)} for snapshot in snapshots]
    ids = {table_of(row): row["id"] for row in transaction.insert("record_snapshots", rows)}
    files = [
        {"snapshot": ids[snapshot.table], **file}
        for snapshot in snapshots
        for file in file_rows(snapshot.files)
    ]
    transaction.insert("record_snapshot_files", files)


def _record_prepared(
    transaction: Transaction, source: str, batch: int, record: CaptureRecord
) -> None:
    """Record ended XA transactions before prepared ones, because an XID may be used
    again once its transaction has ended."""
    for ended in record.ended_transactions:
        transaction.run_or_refuse(
            "record_end",
            "prepared_known",
            source=source,
            ended_by=batch,
            committed=ended.committed,
            **_prepared_columns(ended.prepared),
        )
    for prepared in record.prepared_transactions:
        transaction.run("record_prepared", source=source, **_prepared_columns(prepared))


def _record_set_anchors(transaction: Transaction, keys: Row, anchors: Sequence[SetAnchor]) -> None:
    rows = [
        {**keys, "ordinal": ordinal, "origin": anchor.origin, **columns_of(anchor)}
        for ordinal, anchor in enumerate(anchors)
    ]
    transaction.insert("record_set_anchors", rows)


def _capture_columns(value: CaptureRecord) -> dict[str, Any]:
    """Return the columns of the batch's own row; all else is in rows of other tables."""
    process = value.server_process
    return {
        **position_columns(value.end),
        **columns_of(value.anchor, prefix="anchor_"),
        **columns_of(value, "changes", "transactions", "log_bytes", "passed_statements", "by_gtid"),
        "server_started_at": process and process.started_at,
        "server_resets": process and process.resets,
    }


def _content(row: Row) -> BatchContent:
    def values(column: str, to_value: Callable[[Row], Value]) -> tuple[Value, ...]:
        return tuple(to_value(part) for part in row[column] or ())

    return BatchContent(
        row["batch"],
        segments=values("segments", _segment),
        system_segments=values("system_segments", _system_segment),
        events=values("events", _event),
        snapshots=values("snapshots", _snapshot),
        ended_transactions=values("ended", _ended),
    )


def _system_segment(row: Row) -> SystemTableSegment:
    return SystemTableSegment(SystemTable(row["name"]), files_of(row))


def _ended(row: Row) -> PreparedTransaction:
    """Return an ended XA transaction from JSON, where bytes are hexadecimal digits."""
    binary = {name: bytes.fromhex(row[name] or "") for name in ("gtrid", "bqual", "file_key")}
    return _prepared({**row, **binary})


def _segment(row: Row) -> Segment:
    counts = value_of(RowCounts, row)
    return value_of(Segment, row, table=table_of(row), files=files_of(row), counts=counts)


def _segment_columns(value: Segment) -> dict[str, Any]:
    return {**columns_of(value), **table_columns(value.table), **columns_of(value.counts)}


def _event(row: Row) -> TableEvent:
    origin = None
    if row["origin_name"] is not None:
        origin = TableName(row["origin_database"], row["origin_name"])
    return value_of(
        TableEvent,
        row,
        table=table_of(row),
        kind=TableEventKind(row["kind"]),
        place=coordinates_of(row, "place_"),
        origin=origin,
    )


def _event_columns(value: TableEvent) -> dict[str, Any]:
    origin = value.origin
    return {
        **columns_of(value),
        **table_columns(value.table),
        **coordinate_columns(value.place, "place_"),
        "origin_database": origin and origin.database,
        "origin_name": origin and origin.name,
    }


def _snapshot(row: Row) -> SnapshotFiles:
    columns = None if row["columns"] is None else tuple(row["columns"])
    return value_of(SnapshotFiles, row, table=table_of(row), files=files_of(row), columns=columns)


def _snapshot_columns(value: SnapshotFiles) -> dict[str, Any]:
    columns = None if value.columns is None else list(value.columns)
    return {**columns_of(value), **table_columns(value.table), "columns": columns}


def _prepared(row: Row) -> PreparedTransaction:
    file = None
    if row["path"] is not None:
        file = WaitingFile(row["path"], row["size"], row["sha256"], bytes(row["file_key"]))
    xid = Xid(row["format_id"], bytes(row["gtrid"]), bytes(row["bqual"]))
    return PreparedTransaction(xid, row["batch"], row["position"], file)


def _prepared_columns(value: PreparedTransaction) -> dict[str, Any]:
    file = value.file
    return {
        **columns_of(value, "batch", "position"),
        **columns_of(value.xid),
        "path": file and file.path,
        "size": file and file.size,
        "sha256": file and file.sha256,
        "file_key": file and file.key,
    }


def _capture_scope(row: Row) -> CaptureScope:
    patterns = TablePatterns(tuple(row["include"]), tuple(row["exclude"]))
    return CaptureScope(row["batch"], str(coordinates_of(row, "start_")), patterns)
