"""Nothing gets through that is not whole, known and where it should be."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.binlog.stream.control import read_description
from lockstep.pipeline.binlog.stream.framing import EventType, read_event
from lockstep.pipeline.values.errors import (
    DamagedEvent,
    LockstepError,
    PositionPurged,
    SourceUnavailable,
    UnsupportedEvent,
)
from lockstep.pipeline.values.position import Coordinates, LogFile
from tests.pipeline.buffered import START, a_buffer, feed
from tests.pipeline.made import (
    Log,
    format_description,
    gtid,
    packet,
    query,
    rotate,
    rows,
    table_map,
    wire,
)

FILE = LogFile("binlog", 1)


def read(events: list[bytes]) -> list[str]:
    return [out.gtid for out in feed(a_buffer(), [wire(events)])]


@given(st.data())
def test_a_flipped_bit_never_passes(data: st.DataObject) -> None:
    """Whatever bit of an event is flipped, the run stops with a typed error."""
    log = Log()
    log.transaction(1)
    number = data.draw(st.integers(0, len(log.packets) - 1))
    hurt = bytearray(log.packets[number])
    bit = data.draw(st.integers(0, len(hurt) * 8 - 1))
    if number == 0 and bit // 8 == 17:
        return  # the format description's flags: "in use" is not under its checksum
    hurt[bit // 8] ^= 1 << bit % 8
    with pytest.raises((DamagedEvent, UnsupportedEvent)):
        read([*log.packets[:number], bytes(hurt), *log.packets[number + 1 :]])


@given(st.integers(0, 47))
def test_a_truncated_event_never_passes(cut: int) -> None:
    """An event that lost its tail is not an event."""
    log = Log()
    log.transaction(1)
    with pytest.raises((DamagedEvent, UnsupportedEvent)):
        read([*log.packets[:2], log.packets[2][:cut]])


@pytest.mark.parametrize("code", [5, 13, 14, 17, 18])
def test_what_belongs_to_a_statement_for_rows_stands_within_a_transaction(code: int) -> None:
    """INTVAR, RAND, USER_VAR and the files of LOAD DATA."""
    log = Log()
    log.add(code, b"")
    with pytest.raises(DamagedEvent):
        read(log.packets)


@pytest.mark.parametrize("code", [0, 1, 6, 20, 26, 36, 43, 99, 159, 172, 255])
def test_types_not_on_the_list_stop_the_run(code: int) -> None:
    """INCIDENT and whatever comes one day: unknown means stop."""
    log = Log()
    log.add(code, b"")
    with pytest.raises(UnsupportedEvent, match=f"type {code},"):
        read(log.packets)


def test_a_gap_in_the_offsets_is_damage() -> None:
    """An event that says it stands elsewhere means that one is missing."""
    log = Log()
    log.packets.append(packet(EventType.GTID, gtid(1), log.offset + 8))
    with pytest.raises(DamagedEvent, match="does not end at the offset in its header"):
        read(log.packets)


def test_an_offset_of_zero_says_nothing() -> None:
    """MariaDB 11 leaves it out inside a transaction; its size counts all the same."""
    log = Log()
    log.add(EventType.GTID, gtid(1))
    log.add(EventType.QUERY, query("BEGIN"), end=0)
    log.add(EventType.TABLE_MAP, table_map(), end=0)
    log.add(EventType.WRITE_ROWS, rows(1), end=0)
    log.add(EventType.XID, bytes(8))
    (out,) = feed(a_buffer(), [log.wire()])
    assert (out.values, out.end) == ([1], log.offset)


def test_a_missing_packet_is_noticed() -> None:
    """Packets are numbered, and nothing may come twice or not at all."""
    log = Log()
    log.transaction(1)
    data = log.wire()
    first = 4 + 1 + len(log.packets[0])
    with pytest.raises(DamagedEvent, match="packet"):
        list(feed(a_buffer(), [data[first:]]))


def test_a_rotation_leads_into_the_next_file() -> None:
    """ROTATE names the file; what the server repeats for the dump moves nothing."""
    log = Log()
    log.transaction(1)
    log.add(EventType.ROTATE, rotate("binlog.000002"))
    again = Log()
    again.packets.insert(0, packet(EventType.ROTATE, rotate("binlog.000002"), 0, flags=0x20, end=0))
    again.transaction(2)
    buffer = a_buffer()
    outs = list(feed(buffer, [wire([*log.packets, *again.packets])]))
    assert [out.values for out in outs] == [[1], [2]]
    assert buffer.at == Coordinates(LogFile("binlog", 2), again.offset)


def test_a_rotation_to_another_log_stops() -> None:
    """Another base name is another history."""
    log = Log()
    log.add(EventType.ROTATE, rotate("other.000002"))
    with pytest.raises(DamagedEvent, match="another log"):
        read(log.packets)


@pytest.mark.parametrize(
    ("body", "error"),
    [
        (struct.pack("<H", 1236) + b"#HY000Could not find first log file name", PositionPurged),
        (struct.pack("<H", 1053) + b"#08S01Server shutdown in progress", SourceUnavailable),
    ],
)
def test_a_refusal_in_the_stream_is_typed(body: bytes, error: type[LockstepError]) -> None:
    """The server may end a dump at any packet, and says why."""
    data = wire(Log().packets, end=False) + struct.pack("<I", len(body) + 1)[:3] + b"\x03\xff"
    with pytest.raises(error):
        list(feed(a_buffer(), [data + body]))


@pytest.mark.parametrize(
    ("version", "flavour"),
    [("9.7.4", "mysql"), ("5.7.44-log", "mysql"), ("10.11.6-MariaDB", "mariadb")],
)
def test_the_format_description_tells_the_dialect(version: str, flavour: str) -> None:
    """Version, flavour, checksum and the file's beginning."""
    body = struct.pack("<H50sIB", 4, version.encode(), 0, 19) + bytes(40) + b"\x01"
    event = read_event(packet(15, body, 4), START, checksum=True)
    found = read_description(event)
    assert (found.server_version, found.writer.flavour, found.has_checksums) == (
        version,
        flavour,
        True,
    )


def test_another_format_is_refused() -> None:
    """Version 3 logs, other header lengths, other fixed parts: nobody described them."""
    lengths = bytearray(40)
    lengths[30 - 1] = 12
    for body in (
        struct.pack("<H50sIB", 3, b"4.1", 0, 19) + bytes(40) + b"\x01",
        struct.pack("<H50sIB", 4, b"9.7", 0, 27) + bytes(40) + b"\x01",
        struct.pack("<H50sIB", 4, b"9.7", 0, 19) + bytes(lengths) + b"\x01",
    ):
        with pytest.raises(UnsupportedEvent, match="format"):
            read([packet(15, body, 4)])
    assert read([packet(15, format_description(), 4)]) == []


def test_a_log_without_checksums_is_read() -> None:
    """The last byte of the format description says so; the anchor is computed by us."""
    plain = Log()
    plain.packets = []
    plain.offset = 4
    body = struct.pack("<H50sIB", 4, b"9.7", 0, 19) + bytes(40) + b"\x00"
    plain.add(15, body)

    def bare(event: bytes) -> bytes:
        whole = bytearray(event[:-4])
        whole[9:13] = struct.pack("<I", len(whole))
        return bytes(whole)

    events = [plain.packets[0]]
    at = len(plain.packets[0]) + 4
    made = Log()
    made.transaction(1)
    for event in made.packets[2:]:
        short = bytearray(bare(event))
        at += len(short)
        short[13:17] = struct.pack("<I", at)
        events.append(bytes(short))
    buffer = a_buffer()
    (out,) = feed(buffer, [wire(events)])
    assert (out.values, out.end) == ([1], at)
    assert buffer.anchor is not None
    assert buffer.anchor.length == len(events[-1])
