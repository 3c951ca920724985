"""MariaDB's events, made from their formats: those that no server here writes, or lies."""

from __future__ import annotations

import struct

import pytest

from lockstep.pipeline.binlog.rows.maps import split_by_map
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.values.errors import DamagedEvent, UnsupportedEvent
from lockstep.pipeline.values.position import Coordinates
from tests.pipeline.buffered import START, a_buffer, feed
from tests.pipeline.dialects_made import compressed, log_of, row_event, update_event
from tests.pipeline.made import Log, mariadb_gtid, packet, query, received, rotate, table_map

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


def ints(*values: int) -> bytes:
    return b"".join(b"\0" + struct.pack("<i", value) for value in values)


def read(log: Log, **options: int) -> list[tuple[int, bytes]]:
    """Type and rows of each row event that comes out, without what stands before them."""
    buffer = a_buffer(**options)
    buffer.put(received(log.wire()))
    found = []
    while (run := buffer.get()) is not None:
        for block in run.blocks:
            for _, _, part in split_by_map(block):
                for at, size, _, kind, *_ in part.events.tolist():
                    found.append((kind, part.data[at : at + size].tobytes()[19:]))
        buffer.ack()
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


def test_events_of_later_versions_stop() -> None:
    """PARTIAL_ROW_DATA of MariaDB 12 is not on the list."""
    log = a_log()
    log.add(EventType.MARIADB_GTID, mariadb_gtid(1))
    log.add(172, b"\0")
    with pytest.raises(UnsupportedEvent, match="PARTIAL_ROW_DATA"):
        read(log)
