"""Runs of transactions become numbered rows; a table quarantined leaves no part of one."""

from __future__ import annotations

from pipeline.binlog.stream.framing import EventType
from tests.pipeline.made import Log, gtid, nested, payload, query, rows
from tests.pipeline.segmented import begin, captured, named, odd, write


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


def test_a_table_quarantined_ends_between_transactions() -> None:
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
        assert [str(one.table) for one in done.quarantined] == ["shop.b"]
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
