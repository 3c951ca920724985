"""Logs of servers that are not at hand, and MariaDB's events that no server here writes, or lies:
made from their formats' descriptions."""

from __future__ import annotations

import struct
from typing import Any

import pytest

from lockstep.pipeline.binlog.rows.maps import split_by_map
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.values.errors import DamagedEvent, TableError, UnsupportedEvent
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import Column, TableName, TableStructure
from tests.pipeline.buffered import START, Decoders, a_buffer, feed, runs
from tests.pipeline.dialects_made import compressed, log_of, map_of, row_event, update_event
from tests.pipeline.made import (
    SERVER,
    Log,
    gtid,
    mariadb_gtid,
    packet,
    query,
    received,
    rotate,
    table_map,
)

INT, LONG = b"\x03", Column("v", "int")
CLOCK = b"\x02" + struct.pack("<QQ", 0, 1)


def images(log: Log, *columns: Column) -> list[tuple[str, tuple[Any, ...]]]:
    """The row images of the log's only table, as its structure says what they are."""
    structure = TableStructure(TableName("shop", "t"), columns, (columns[0].name,))
    buffer, decoders = a_buffer(), Decoders(lambda _: structure)
    buffer.put(received(log.wire()))
    found = []
    for block in (block for run in runs(buffer) for block in run.blocks):
        for decoded in decoders.read(buffer, block):
            found += [(kind, tuple(row.values())) for kind, row in decoded.rows()]
    return found


def statement(log: Log, table: bytes, *changes: tuple[int, bytes]) -> None:
    """A transaction of one statement."""
    log.add(EventType.GTID, gtid(1) + CLOCK)
    log.say("BEGIN")
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


def test_an_impossible_fraction_is_called_so() -> None:
    """A TIMESTAMP(6) has no time of day that could be wrong, only its million microseconds."""
    log = log_of("8.0.36")
    cell = b"\0" + struct.pack(">I", 1_700_000_000) + (1_000_000).to_bytes(3, "big")
    statement(log, map_of(b"\x11", b"\6"), (30, row_event(1, 1, cell, extra=b"")))
    with pytest.raises(DamagedEvent, match="fraction"):
        images(log, Column("a", "timestamp", length=6))


@pytest.mark.parametrize("year", [10_000, (1 << 15) - 1])
def test_a_date_after_the_year_9999_is_damage(year: int) -> None:
    """A DATE has room for more years than MySQL stores, as a DATETIME has."""
    log = log_of("8.0.36")
    cell = b"\0" + (year << 9 | 1 << 5 | 1).to_bytes(3, "little")
    statement(log, map_of(b"\x0a"), (30, row_event(1, 1, cell, extra=b"")))
    with pytest.raises(DamagedEvent, match="year"):
        images(log, Column("a", "date"))


JSON = Column("d", "json", length=4)


def partial(options: bytes, document: bytes) -> Log:
    """PARTIAL_UPDATE_ROWS of one row (1, 7), whose after image has the options before it."""
    log = log_of("8.0.36")
    body = update_event(1, 2, b"", extra=b"")
    before, after = b"\0" + struct.pack("<i", 1) + SEVEN, b"\0" + struct.pack("<i", 1) + document
    statement(log, map_of(b"\x03\xf5", b"\4"), (39, body + before + options + after))
    return log


SEVEN, EIGHT = (struct.pack("<I", 3) + bytes([5, number, 0]) for number in (7, 8))


@pytest.mark.parametrize(
    ("options", "document", "after"),
    [
        (b"\0", EIGHT, "8"),
        (b"\1\0", EIGHT, "8"),
        (b"\1\xfe", EIGHT, "8"),
        (b"\1\1", bytes(4), "7"),
        (b"\1\1", struct.pack("<I", 256) + bytes(256), TableError),
        *((options, EIGHT, DamagedEvent) for options in (b"\xfb", b"\xff", b"\xfc\1\0")),
    ],
)
def test_partial_updates(options: bytes, document: bytes, after: str | type[Exception]) -> None:
    """No option, or a bit for each JSON column that says that its document is whole; the byte's
    other bits say nothing, and other options there are not. A diff without a byte is a document
    that a statement did not change; one with bytes is nobody's damage: the session's setting is."""
    log = partial(options, document)
    if isinstance(after, str):
        assert images(log, LONG, JSON) == [
            ("update_preimage", (1, "7")),
            ("update_postimage", (1, after)),
        ]
        return
    with pytest.raises(after, match="PARTIAL_JSON" if after is TableError else None):
        images(log, LONG, JSON)


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


CHECKPOINT = struct.pack("<I", 13) + b"binlog.000001"
ENCRYPTION = b"\1\1\0\0\0" + bytes(12)
GTID_LIST = struct.pack("<IIIQ", 1, 0, 1, 5)
VERSION = "10.11.6-MariaDB-log"


def a_log() -> Log:
    """A file's beginning: description, encryption, the GTIDs before it, and checkpoints."""
    log = log_of(VERSION)
    log.add(EventType.MARIADB_START_ENCRYPTION, ENCRYPTION, flags=0x80)
    log.add(EventType.MARIADB_GTID_LIST, GTID_LIST)
    log.add(EventType.MARIADB_BINLOG_CHECKPOINT, CHECKPOINT)
    log.add(EventType.MARIADB_BINLOG_CHECKPOINT, CHECKPOINT)
    return log


def group(log: Log, number: int, *changes: tuple[int, bytes]) -> None:
    """A transaction of one table and so many statements."""
    log.add(EventType.MARIADB_GTID, mariadb_gtid(number))
    for kind, body in changes:
        log.add(EventType.MARIADB_ANNOTATE_ROWS, b"insert into t values (?)")
        log.add(EventType.TABLE_MAP, table_map())
        log.add(kind, body)
    log.end()


def read(log: Log, **options: int) -> list[tuple[int, bytes]]:
    """Type and rows of each row event that comes out, without what stands before them."""
    buffer = a_buffer(**options)
    buffer.put(received(log.wire()))
    found = []
    for block in (block for run in runs(buffer) for block in run.blocks):
        for _, _, part in split_by_map(block):
            for at, size, _, kind, *_ in part.events.tolist():
                found.append((kind, part.data[at : at + size].tobytes()[19:]))
    assert buffer.at.offset == log.offset
    return found


def test_a_file_begins_with_what_is_no_transaction() -> None:
    """Each moves the position; a checkpoint may also stand between two groups."""
    log = a_log()
    group(log, 1, (23, row_event(1, 1, ints(1))))
    log.add(EventType.MARIADB_BINLOG_CHECKPOINT, CHECKPOINT)
    group(log, 2, (23, row_event(1, 1, ints(2))))
    log.add(EventType.STOP, b"")
    assert [body[10:] for _, body in read(log)] == [ints(1), ints(2)]


def test_a_dump_from_the_middle_repeats_what_the_file_begins_with() -> None:
    """ROTATE, description and START_ENCRYPTION have no offset there, and take no place."""
    whole = a_log()
    log = log_of(VERSION)
    log.offset = whole.offset
    log.packets = [
        packet(EventType.ROTATE, rotate("binlog.000001", whole.offset), 0, flags=0x20, end=0),
        packet(EventType.FORMAT_DESCRIPTION, log.packets[0][19:-4], 0, end=0),
        packet(EventType.MARIADB_START_ENCRYPTION, ENCRYPTION, 0, flags=0x80, end=0),
    ]
    group(log, 1, (23, row_event(1, 1, ints(1))))
    buffer = a_buffer(start=Coordinates(START.file, whole.offset))
    (one,) = feed(buffer, [log.wire()])
    assert (one.gtid, one.end) == ("0-7-1", log.offset)


@pytest.mark.parametrize("kind", [161, 163, 164, 3])
def test_what_belongs_between_groups_is_damage_in_one(kind: int) -> None:
    """No server writes it there."""
    log = a_log()
    log.add(EventType.MARIADB_GTID, mariadb_gtid(1))
    log.add(kind, CHECKPOINT)
    with pytest.raises(DamagedEvent, match="inside BEGIN"):
        read(log)


def plain_and_packed(kind: int, extra: bytes | None) -> tuple[bytes, bytes]:
    """A row event's body of a hundred rows, and the same with its rows compressed."""
    images = ints(*range(100))
    make = update_event if kind in (24, 31) else row_event
    return make(1, 1, images, extra=extra), make(1, 1, compressed(images), extra=extra)


@pytest.mark.parametrize("ring", [1 << 9, 1 << 14])
@pytest.mark.parametrize("extra", [b"", b"\0\5abc"])
@pytest.mark.parametrize("kind", [23, 24, 25, 30, 31, 32])
def test_compressed_row_events_are_the_plain_ones(kind: int, extra: bytes, ring: int) -> None:
    """Of version 1 and 2, of one bitmap or two, whatever they unpack to."""
    packed_kind = {23: 166, 24: 167, 25: 168, 30: 169, 31: 170, 32: 171}[kind]
    plain, packed = plain_and_packed(kind, extra if kind >= 30 else None)
    log = a_log()
    group(log, 1, (packed_kind, packed), (packed_kind, packed))
    group(log, 2, (kind, plain))
    assert read(log, ring_bytes=ring) == [(kind, plain)] * 3


def test_a_compressed_statement_is_its_text() -> None:
    """What stands before the text is not compressed."""
    text = "CREATE TABLE `u` (" + "x" * 999 + ")"
    head = query("", "shop")
    log = a_log()
    log.add(EventType.MARIADB_GTID, mariadb_gtid(1, standalone=True))
    log.add(EventType.MARIADB_QUERY_COMPRESSED, head + compressed(text.encode()))
    (one,) = feed(a_buffer(), [log.wire()])
    assert (one.statements, one.end) == ((text,), log.offset)


LIES = {
    "too short": compressed(ints(1, 2), declared=9),
    "too long": compressed(ints(1, 2), declared=11),
    "far too long": compressed(ints(1, 2), declared=0xFFFFFFFF),
    "nothing": b"",
    "no flag": compressed(ints(1, 2), head=0),
    "no length": b"\x80" + compressed(ints(1, 2))[2:],
    "a length of seven bytes": b"\x87" + bytes(6) + compressed(ints(1, 2))[1:],
    "cut": compressed(ints(1, 2))[:-5],
    "no checksum": compressed(ints(1, 2))[:-1],
    "other bytes": compressed(ints(1, 2))[:4] + b"nothing packed",
}


@pytest.mark.parametrize("what", LIES)
@pytest.mark.parametrize("kind", [165, 166, 170])
def test_a_compressed_event_that_lies_is_damage(kind: int, what: str) -> None:
    """About its size, or about being compressed; no memory is taken on its word."""
    log = a_log()
    log.add(EventType.MARIADB_GTID, mariadb_gtid(1))
    log.add(EventType.TABLE_MAP, table_map())
    heads = {165: query("", "shop"), 166: row_event(1, 1, b"")}
    log.add(kind, heads.get(kind, update_event(1, 1, b"", extra=b"")) + LIES[what])
    with pytest.raises(DamagedEvent, match="a compressed event"):
        read(log)


def test_another_algorithm_stops_by_its_number() -> None:
    """Zlib is the only one that a server has had."""
    log = a_log()
    body = row_event(1, 1, compressed(ints(1), head=0x90))
    group(log, 1, (166, body))
    with pytest.raises(UnsupportedEvent, match="algorithm 1"):
        read(log)
