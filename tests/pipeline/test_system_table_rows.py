"""Rows of `_transactions` while runs are numbered, over logs made here."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest

from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.run.dump.captured_tables import CapturedTables
from lockstep.pipeline.run.dump.segmenter import SystemTableRows
from lockstep.pipeline.schema.history import BatchHistory
from lockstep.pipeline.values import row_groups
from lockstep.pipeline.values.segment import SystemTable
from tests.pipeline.buffered import a_buffer
from tests.pipeline.made import Log, gtid, nested, payload, query, received, rows
from tests.pipeline.segmented import begin, made_segmenter, named, odd, write
from tests.twins.lake import MemoryLake
from tests.twins.segments import MemorySegments


def told(log: Log, *, ring_bytes: int = 1 << 20, wanted: str = "") -> list[dict[str, Any]]:
    """The rows of a batch whose changes are numbered from 101; `wanted`: tables that are
    captured, by their first letters, all without."""
    store = MemorySegments(MemoryLake())
    tables = CapturedTables(store, source="shop", batch_id=3, last_sequence_before=100, states={})
    source = SystemTableRows(store, source="shop", batch_id=3)
    segmenter = made_segmenter(tables, source)
    buffer = a_buffer(
        is_captured=lambda table: segmenter.is_wanted(table) and table.name.startswith(wanted),
        ring_bytes=ring_bytes,
        group_bytes=1 << 9,
    )
    segmenter.use_buffer(buffer)
    buffer.put(received(log.wire()))
    while (run := buffer.get()) is not None:
        segmenter.put(run)
        buffer.ack()
    (part,) = source.finish(BatchHistory())
    assert part.table is SystemTable.TRANSACTIONS
    found: list[dict[str, Any]] = pa.concat_tables(
        store.pieces("shop/_transactions", part.files)
    ).to_pylist()
    return found


def numbers(found: list[dict[str, Any]]) -> list[tuple[int, int | None, int | None]]:
    return [(row["rows"], row["first_sequence"], row["last_sequence"]) for row in found]


def test_every_transaction_is_told() -> None:
    """Where it begins and ends, its server, and its numbers if it has any."""
    log = Log()
    places = [log.offset]
    for number, tables in enumerate((("a", "a"), ("other",), ("a", "b")), start=1):
        begin(log, number)
        for table in tables:
            write(log, table, ord(table[0]), number, number + 10)
        log.end()
        places.append(log.offset)
    log.add(EventType.GTID, gtid(4))
    log.add(EventType.QUERY, query("create table x (i int)"))
    found = told(log)
    assert [(row["_offset"], row["end_offset"]) for row in found[:3]] == list(pairwise(places))
    assert numbers(found) == [(4, 101, 104), (2, 105, 106), (4, 107, 110), (0, None, None)]
    assert [row["_gtid"].rpartition(":")[2] for row in found] == ["1", "2", "3", "4"]
    assert {row["_server_id"] for row in found} == {7}
    foreign = numbers(told(log, wanted="a"))
    assert foreign == [(4, 101, 104), (0, None, None), (2, 105, 106), (0, None, None)]


@pytest.mark.parametrize("ring_bytes", [1 << 20, 1 << 11])
def test_rows_taken_back_are_not_counted(ring_bytes: int) -> None:
    """Of a table that is quarantined in a transaction; also where that comes in parts."""
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
    log.end()
    first, second, third = told(log, ring_bytes=ring_bytes)
    assert (second["rows"], third["rows"]) == (801, 1)
    assert first["last_sequence"] < second["first_sequence"]
    assert second["last_sequence"] < third["first_sequence"]


def test_rows_are_written_in_the_order_of_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where they are more than a row group."""
    monkeypatch.setattr(row_groups, "GROUP_ROWS", 3)
    log = Log()
    for number in range(1, 11):
        begin(log, number)
        write(log, "a", 1, number)
        log.end()
    assert [first for _, first, _ in numbers(told(log))] == list(range(101, 111))


def test_a_compressed_transaction_reaches_to_its_payloads_end() -> None:
    """Its rows are found where the payload stands, and counted as any others."""
    parts = [nested(EventType.QUERY, query("BEGIN"))]
    parts.append(nested(EventType.TABLE_MAP, named("a", 1)))
    parts.append(nested(EventType.WRITE_ROWS, rows(1, 2, 3)))
    parts.append(nested(EventType.XID, bytes(8)))
    log = Log()
    begins = log.add(EventType.GTID, gtid(1))
    log.add(EventType.TRANSACTION_PAYLOAD, payload(b"".join(parts)))
    found = told(log)
    assert [(row["_offset"], row["end_offset"]) for row in found] == [(begins, log.offset)]
    assert numbers(found) == [(3, 101, 103)]
