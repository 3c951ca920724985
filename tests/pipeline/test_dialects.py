"""Logs of servers that are not at hand, made from their formats' descriptions."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.values.errors import DamagedEvent, TableError, UnsupportedEvent
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from tests.pipeline.buffered import START, Decoders, a_buffer, feed
from tests.pipeline.dialects_made import (
    log_of,
    map_of,
    row_event,
    update_event,
)
from tests.pipeline.made import (
    SERVER,
    Log,
    gtid,
    packet,
    query,
    received,
)

INT, LONG = b"\x03", Column("v", "int")
CLOCK = b"\x02" + struct.pack("<QQ", 0, 1)


def images(log: Log, *columns: Column) -> list[tuple[str, tuple[Any, ...]]]:
    """The row images of the log's only table, as its structure says what they are."""
    structure = TableStructure(TableName("shop", "t"), columns, (columns[0].name,))
    buffer, decoders = a_buffer(), Decoders(lambda _: structure)
    buffer.put(received(log.wire()))
    found = []
    while (run := buffer.get()) is not None:
        for block in run.blocks:
            for decoded in decoders.read(buffer, block):
                found += [(kind, tuple(row.values())) for kind, row in decoded.rows()]
        buffer.ack()
    return found


def statement(log: Log, table: bytes, *changes: tuple[int, bytes]) -> None:
    """A transaction of one statement."""
    log.add(EventType.GTID, gtid(1) + CLOCK)
    log.add(EventType.QUERY, query("BEGIN"))
    for kind, body in changes:
        log.add(EventType.TABLE_MAP, table)
        log.add(kind, body)
    log.end()


def ints(*values: int) -> bytes:
    return b"".join(b"\0" + struct.pack("<i", value) for value in values)


@pytest.mark.parametrize(
    ("kinds", "extra"),
    [
        ((23, 24, 25), None),
        ((30, 31, 32), b""),
        ((30, 31, 32), b"\0\x0b\xffinfo"),
        ((30, 31, 32), b"x" * 300),
    ],
    ids=["v1", "v2", "v2 with NDB's extra data", "v2 with more of it"],
)
def test_row_events_of_each_version(kinds: tuple[int, int, int], extra: bytes | None) -> None:
    """Version 2 has data between head and rows, whose length counts itself."""
    log = log_of("5.7.44-log")
    write, update, delete = kinds
    statement(
        log,
        map_of(INT),
        (write, row_event(1, 1, ints(1, 2), extra=extra)),
        (update, update_event(1, 1, ints(1, 3), extra=extra)),
        (delete, row_event(1, 1, ints(2), extra=extra)),
    )
    assert images(log, LONG) == [
        ("insert", (1,)),
        ("insert", (2,)),
        ("update_preimage", (1,)),
        ("update_postimage", (3,)),
        ("delete", (2,)),
    ]


@pytest.mark.parametrize("length", [0, 1, 500])
def test_extra_data_that_leaves_its_event_is_damage(length: int) -> None:
    """A length below two has no room for itself, and a large one leads out."""
    log = log_of("5.7.44-log")
    body = struct.pack("<IHHH", 1, 0, 1, length) + b"\1\xff" + ints(1)
    statement(log, map_of(INT), (30, body))
    with pytest.raises(DamagedEvent):
        images(log, LONG)


def test_the_oldest_times_are_read() -> None:
    """TIMESTAMP, TIME and DATETIME as before 5.6.4: no metadata, numbers of seconds and digits."""
    log = log_of("5.7.44-log")
    cells = struct.pack("<I", 1_700_000_000) + (-(8385959)).to_bytes(3, "little", signed=True)
    cells += struct.pack("<Q", 20240229235958)
    statement(log, map_of(b"\x07\x0b\x0c"), (23, row_event(1, 3, b"\0" + cells)))
    kinds = [Column("a", "timestamp"), Column("b", "time"), Column("c", "datetime")]
    ((_, (stamp, time, moment)),) = images(log, *kinds)
    assert (stamp.isoformat(), time) == ("2023-11-14T22:13:20+00:00", "-838:59:59")
    assert moment.isoformat() == "2024-02-29T23:59:58"


JSON = Column("d", "json", length=4)


def partial(options: bytes, document: bytes) -> Log:
    """PARTIAL_UPDATE_ROWS of one row (1, 7), whose after image has the options before it."""
    whole = struct.pack("<I", 3) + b"\x05\x07\0"
    log = log_of("8.0.36")
    body = update_event(1, 2, b"", extra=b"")
    before, after = b"\0" + struct.pack("<i", 1) + whole, b"\0" + struct.pack("<i", 1) + document
    statement(log, map_of(b"\x03\xf5", b"\4"), (39, body + before + options + after))
    return log


@pytest.mark.parametrize("options", [b"\0", b"\1\0", b"\1\xfe"])
def test_partial_updates_with_whole_documents(options: bytes) -> None:
    """No option, or a bit for each JSON column that says that its document is whole; the
    byte's other bits say nothing."""
    log = partial(options, struct.pack("<I", 3) + b"\x05\x08\0")
    assert images(log, LONG, JSON) == [
        ("update_preimage", (1, "7")),
        ("update_postimage", (1, "8")),
    ]


def test_a_diff_without_a_byte_is_the_document_before() -> None:
    """So the server logs a document that a statement did not change."""
    assert images(partial(b"\1\1", struct.pack("<I", 0)), LONG, JSON) == [
        ("update_preimage", (1, "7")),
        ("update_postimage", (1, "7")),
    ]


def test_a_partial_update_with_a_diff_concerns_its_table() -> None:
    """It is nobody's damage: the session's setting is."""
    with pytest.raises(TableError, match="PARTIAL_JSON"):
        images(partial(b"\1\1", struct.pack("<I", 256) + bytes(256)), LONG, JSON)


@pytest.mark.parametrize("options", [b"\xfb", b"\xff", b"\xfc\1\0"])
def test_options_that_there_are_not_are_damage(options: bytes) -> None:
    """They are a small number."""
    with pytest.raises(DamagedEvent):
        images(partial(options, struct.pack("<I", 3) + b"\x05\x08\0"), LONG, JSON)


def test_an_incident_stops_by_its_name() -> None:
    """The server says that events may be missing."""
    log = log_of("8.0.36")
    log.add(26, struct.pack("<HB", 1, 4) + b"lost")
    with pytest.raises(UnsupportedEvent, match="INCIDENT"):
        list(feed(a_buffer(), [log.wire()]))


def test_a_view_change_stands_inside_a_transaction() -> None:
    """Group replication logs one with an identity of its own; heartbeats are anywhere."""
    log = log_of("8.0.36")
    beat = b"\1\x0dbinlog.000001\2\1\4\0"
    for step in ((33, gtid(1)), (2, query("BEGIN")), (37, bytes(52)), (2, query("COMMIT"))):
        log.add(*step)
        log.packets.append(packet(EventType.HEARTBEAT_V2, beat, log.offset, end=log.offset))
    log.transaction(2)
    found = [(one.gtid, one.values) for one in feed(a_buffer(), [log.wire()])]
    assert found == [(f"{SERVER}:1", []), (f"{SERVER}:2", [2])]


def test_a_transaction_that_crosses_four_gib() -> None:
    """The header's offsets wrap within it, between any two of its events."""
    begin = Log()
    begin.transaction(1, rows=3)
    sizes = [len(one) for one in begin.packets[2:]]
    for before in range(1, len(sizes)):
        start = Coordinates(START.file, (1 << 32) - sum(sizes[:before]) - 3)
        log = log_of("8.0.36")
        log.packets = [packet(15, log.packets[0][19:-4], 0, flags=0x20, end=0)]
        log.offset = start.offset
        log.transaction(1, rows=3)
        buffer = a_buffer(start=start)
        (one,) = feed(buffer, [log.wire()])
        assert (one.values, one.end) == ([1, 1, 1], log.offset)
        assert log.offset > 1 << 32
