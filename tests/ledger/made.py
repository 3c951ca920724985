"""Values the ledger's tests record, short to write. No assertions here."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

from lockstep.pipeline.model.batch import (
    Batch,
    BatchKind,
    CaptureRecord,
    PreparedTransaction,
    WaitingFile,
    Xid,
)
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.schema.history import BatchHistory, Knowledge, SchemaVersion, VersionOrigin
from lockstep.pipeline.schema.model import ColumnSchema, KeyPart, KeySchema, TableSchema
from lockstep.pipeline.values.decisions import Continuity, Decision, Lease
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.intent import Intent
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile, Position
from lockstep.pipeline.values.segment import RowCounts, Segment, SegmentFile
from lockstep.pipeline.values.table import TableName

SERVER = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
OTHER = "4e11fa47-71ca-11e1-9e33-c80aa9429562"
ORDERS = TableName("shop", "orders")
STOCK = TableName("shop", "stock")
DECISION = Decision("start", "earliest", "nothing was read before", {"binlogs": ["binlog.000001"]})
MOMENT = datetime(2026, 11, 1, 6, 0, 0, 123456, tzinfo=UTC)
GAP = Decision(
    "start",
    "chosen-start",
    "the disk was lost",
    author="ada",
    continuity=Continuity.GAP,
    gap_tables=("shop.orders", "shop.stock"),
)
OVERLAP = replace(GAP, continuity=Continuity.OVERLAP, gap_tables=())
CONTIGUOUS = replace(GAP, continuity=Continuity.CONTIGUOUS, gap_tables=())
ANCHOR = Anchor(offset=100, length=31, crc32=0xFFFFFFFF, gtid=f"{SERVER}:5", file_created=7)


def position(offset: int, number: int = 1) -> Position:
    gtids = GtidSet.parse(f"{SERVER}:1-{offset}")
    return Position(Coordinates(LogFile("binlog", number), offset), gtids, SERVER, MOMENT)


def place(offset: int, number: int = 1) -> Coordinates:
    return Coordinates(LogFile("binlog", number), offset)


def schema(table: TableName, *columns: str) -> TableSchema:
    """An id, these columns, and an enum."""
    return TableSchema(
        table,
        (
            ColumnSchema("id", "int", nullable=False, auto_increment=True),
            *(ColumnSchema(name, "varchar", length=20, charset="latin1") for name in columns),
            ColumnSchema("state", "enum", members=("a", "b\0"), charset="utf8mb4"),
        ),
        (KeySchema("PRIMARY", "primary", (KeyPart("id"),)),),
        charset="utf8mb4",
    )


def version(table: TableName, number: int = 1, offset: int = 4, *columns: str) -> SchemaVersion:
    """A known version that holds from that offset on."""
    return SchemaVersion(
        table,
        number,
        place(offset),
        Knowledge.KNOWN,
        VersionOrigin.BASELINE if number == 1 else VersionOrigin.STATEMENT,
        schema(table, *columns),
    )


def state(table: TableName) -> TableState:
    path = f"{table.database}/{table.name}"
    return TableState(table, TableCondition.FOLLOWING, 1, f"s/{path}", f"s/_changes/{path}")


def segment(table: TableName, first: int, last: int) -> Segment:
    files = (
        SegmentFile(f"{first}-0.parquet", 1, 1000, "0" * 64),
        SegmentFile(f"{first}-1.parquet", last - first, 2000, "f" * 64),
    )
    return Segment(table, 1, files, RowCounts(1, 2, 3), first, last)


def record(
    batch: Batch, *tables: TableName, end: Position | None = None, first: bool = False
) -> CaptureRecord:
    """Ten row images per table; `first` also records the tables and their versions."""
    changes = 10 * len(tables)
    return CaptureRecord(
        end=end or position(batch.start.at.offset + 100),
        anchor=ANCHOR,
        changes=changes,
        transactions=3,
        log_bytes=100,
        segments=tuple(
            segment(
                table,
                batch.sequence_before + 10 * index + 1,
                batch.sequence_before + 10 * index + 10,
            )
            for index, table in enumerate(tables)
        ),
        tables=tuple(state(table) for table in tables) if first else (),
        stopped_tables=(),
        history=BatchHistory(versions=tuple(map(version, tables))) if first else BatchHistory(),
    )


def prepared(batch: Batch, gtrid: bytes, file: WaitingFile | None = None) -> PreparedTransaction:
    return PreparedTransaction(Xid(-1, gtrid, b"\x00\xff"), batch.id, "binlog.000001:50", file)


def begun(ledger: Ledger, lease: Lease) -> Batch:
    """A source's first batch, capturing, by a start decision."""
    decided = ledger.decide(lease, DECISION)
    return ledger.begin_batch(lease, position(4), continued_batch=None, start_decision=decided.id)


def first_captured(ledger: Ledger, lease: Lease, *tables: TableName) -> Batch:
    batch = begun(ledger, lease)
    ledger.record_capture(lease, batch.id, record(batch, *tables, first=True))
    return newest(ledger, lease)


def next_captured(ledger: Ledger, lease: Lease, *tables: TableName) -> Batch:
    batch = following(ledger, lease)
    ledger.record_capture(lease, batch.id, record(batch, *tables))
    return newest(ledger, lease)


def following(ledger: Ledger, lease: Lease) -> Batch:
    """A capturing batch that goes on where the newest captured one ends."""
    cursor = ledger.cursors(lease.source).captured
    assert cursor is not None
    return ledger.begin_batch(
        lease, cursor.position, continued_batch=cursor.batch, start_decision=None
    )


def elsewhere(
    ledger: Ledger,
    lease: Lease,
    follows: Batch,
    decision: Decision = GAP,
    start: Position | None = None,
    kind: BatchKind = BatchKind.ORDINARY,
) -> Batch:
    """A capturing batch that goes on behind another one, but not at its end."""
    decided = ledger.decide(lease, replace(decision, previous_batch=follows.id))
    return ledger.begin_batch(
        lease,
        start or position(4, number=3),
        continued_batch=None,
        start_decision=decided.id,
        kind=kind,
    )


def captured_elsewhere(
    ledger: Ledger, lease: Lease, batch: Batch, end: Position | None = None
) -> Batch:
    recorded = record(batch, end=end or replace(batch.start, at=position(500, number=3).at))
    ledger.record_capture(lease, batch.id, recorded)
    return newest(ledger, lease)


def on(server: str, start: Position, *, minutes: int = 0) -> Position:
    moved = start.committed_at + timedelta(minutes=minutes) if start.committed_at else None
    return replace(start, server_uuid=server, committed_at=moved)


def newest(ledger: Ledger, lease: Lease) -> Batch:
    (batch,) = ledger.batches(lease.source, limit=1)
    return batch


def intended(ledger: Ledger, lease: Lease, table: TableName, first: int, last: int) -> Intent:
    return begun_write(ledger, lease, table, f"{lease.source}/{table}@1", first, last)


def begun_write(
    ledger: Ledger,
    lease: Lease,
    table: TableName,
    app_id: str,
    first: int,
    last: int,
    step: str = "merge",
) -> Intent:
    return ledger.intend(lease, [Intent(0, table, app_id, 0, first, last, step)])[table]


def merged(
    ledger: Ledger, lease: Lease, table: TableName, first: int, last: int, delta_version: int
) -> Intent:
    intent = intended(ledger, lease, table, first, last)
    ledger.settle(lease, intent, delta_version)
    return intent
