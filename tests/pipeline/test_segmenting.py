"""Runs of transactions become numbered rows; a table set aside leaves no part of one."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import pyarrow as pa

from pipeline.binlog.framing import EventType
from pipeline.runs.captured import CapturedTables
from pipeline.runs.segmenting import Segmenter
from pipeline.schema.history import DatabaseVersion, SchemaVersion
from pipeline.schema.policies import LakePolicies
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName
from pipeline.table_state import SetAside
from resources.memory.lake import MemoryLake, MemorySegments
from tests.pipeline.buffered import a_buffer
from tests.pipeline.made import Log, gtid, nested, payload, query, received, rows, table_map

NOW = datetime(2026, 11, 1, 6, tzinfo=UTC)


def named(table: str, table_id: int) -> bytes:
    """A table map with full metadata: one INT column `i`, the key."""
    return table_map(table_id, table) + b"\x01\x01\x00" + b"\x04\x02\x01i" + b"\x08\x01\x00"


def write(log: Log, table: str, table_id: int, *values: int) -> None:
    log.add(EventType.TABLE_MAP, named(table, table_id))
    log.add(EventType.WRITE_ROWS, rows(*values, table_id=table_id))


def odd(log: Log, table: str, table_id: int) -> None:
    """Rows of two columns, where the table map has one."""
    log.add(EventType.TABLE_MAP, named(table, table_id))
    head = struct.pack("<IHHH", table_id, 0, 1, 2) + b"\x02\xff"
    log.add(EventType.WRITE_ROWS, head + bytes(9))


@dataclass(frozen=True, slots=True)
class Captured:
    """What one capture made: rows of each table by name, and what was set aside."""

    tables: dict[str, pa.Table]
    aside: list[SetAside]
    changes: int


class NothingKnown:
    """A history without a version: the log says all."""

    def one(self, table: TableName) -> SchemaVersion | None:
        return None

    def all(self) -> Sequence[SchemaVersion]:
        return ()

    def versions(self, table: TableName) -> Sequence[SchemaVersion]:
        return ()

    def referring(self) -> Sequence[SchemaVersion]:
        return ()

    def databases(self) -> Sequence[DatabaseVersion]:
        return ()

    def last_number(self, table: TableName) -> int:
        return 0


def captured(log: Log, *, ring_bytes: int = 1 << 20) -> Captured:
    lake = MemoryLake()
    store = MemorySegments(lake)
    tables = CapturedTables(store, source="shop", batch=3, states={})
    aside: list[SetAside] = []
    segmenter = Segmenter(
        tables,
        batch=3,
        base=100,
        structures=SchemaTracker(NothingKnown()),
        clock=lambda: NOW,
        captured=lambda _: True,
        policies=LakePolicies(),
        on_set_aside=aside.append,
    )
    buffer = a_buffer(wants=segmenter.wanted, ring_bytes=ring_bytes, run_bytes=1 << 9)
    segmenter.follow(buffer)
    buffer.put(received(log.wire()))
    while (run := buffer.get()) is not None:
        segmenter.put(run)
        buffer.ack()
    found = {
        segment.table.name: store.read(f"shop/_changes/shop/{segment.table.name}", segment.files)
        for segment in tables.finish()
    }
    return Captured(found, aside, segmenter.changes)


def begin(log: Log, number: int) -> None:
    log.add(EventType.GTID, gtid(number))
    log.add(EventType.QUERY, query("BEGIN"))


def test_changes_are_numbered_over_all_tables() -> None:
    """In the order of transaction, event and row, from the batch's base on."""
    log = Log()
    begin(log, 1)
    write(log, "a", 1, 10, 11)
    write(log, "b", 2, 20)
    write(log, "a", 1, 12)
    log.end()
    begin(log, 2)
    write(log, "b", 2, 21)
    log.end()
    done = captured(log)
    numbers = {
        name: dict(zip(t["i"].to_pylist(), t["_sequence"].to_pylist(), strict=True))
        for name, t in done.tables.items()
    }
    assert numbers == {"a": {10: 101, 11: 102, 12: 104}, "b": {20: 103, 21: 105}}
    assert done.tables["a"]["_row"].to_pylist() == [0, 1, 0]
    assert done.changes == 5


def test_a_table_set_aside_ends_between_transactions() -> None:
    """Rows before the bad one's transaction may stay; of that transaction none does, also
    where it came in parts through a file; the other tables lose nothing."""
    for ring_bytes in (1 << 20, 1 << 11):
        log = Log()
        begin(log, 1)
        write(log, "a", 1, 1)
        write(log, "b", 2, 2)
        log.end()
        begin(log, 2)
        for part in range(8):
            write(log, "a", 1, *range(1000 + part * 100, 1100 + part * 100))
            write(log, "b", 2, *range(2000 + part * 100, 2100 + part * 100))
        odd(log, "b", 2)
        write(log, "a", 1, 5000)
        log.end()
        begin(log, 3)
        write(log, "a", 1, 6000)
        write(log, "b", 2, 6001)
        log.end()
        done = captured(log, ring_bytes=ring_bytes)
        assert [str(one.table) for one in done.aside] == ["shop.b"]
        assert done.tables["a"]["i"].to_pylist() == [1, *range(1000, 1800), 5000, 6000]
        kept = done.tables["b"]["i"].to_pylist() if "b" in done.tables else []
        assert kept in ([], [2])


def test_rows_that_share_a_place_are_counted_on() -> None:
    """Inside a payload every row event stands where the payload stands."""
    parts = [nested(EventType.QUERY, query("BEGIN"))]
    for values in ((1, 2), (3,)):
        parts.append(nested(EventType.TABLE_MAP, named("a", 1)))
        parts.append(nested(EventType.WRITE_ROWS, rows(*values)))
    parts.append(nested(EventType.XID, bytes(8)))
    log = Log()
    log.add(EventType.GTID, gtid(1))
    place = log.add(EventType.TRANSACTION_PAYLOAD, payload(b"".join(parts)))
    table = captured(log).tables["a"]
    assert table["_row"].to_pylist() == [0, 1, 2]
    assert set(table["_offset"].to_pylist()) == {place}
