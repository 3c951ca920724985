"""The framing of events, and the bodies of control events: nothing gets through that is not whole,
known and where it should be."""

from __future__ import annotations

import struct
from collections.abc import Iterable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockstep.pipeline.binlog.stream.control import (
    decode_gtid_set,
    encode_gtid_set,
    is_uncommitted_alter,
    read_description,
    read_mariadb_gtid,
    read_query,
    read_tagged_gtid,
    read_xa_prepare,
    read_xid,
    savepoint_name,
)
from lockstep.pipeline.binlog.stream.framing import Event, EventType, read_event
from lockstep.pipeline.binlog.stream.ring import ANONYMOUS, MYSQL
from lockstep.pipeline.binlog.transactions.identity import read_identity
from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.values.errors import (
    DamagedEvent,
    LockstepError,
    PositionPurged,
    SourceUnavailable,
    UnsupportedEvent,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import LogFile
from tests.pipeline.buffered import START, a_buffer, feed
from tests.pipeline.dialects_made import tagged_gtid
from tests.pipeline.made import (
    SERVER,
    Log,
    format_description,
    gtid,
    mariadb_gtid,
    packet,
    query,
    rotate,
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
    """INCIDENT, PARTIAL_ROW_DATA of MariaDB 12, and whatever comes one day: unknown means stop,
    also within a transaction, with the name if it has one."""
    name = {26: "INCIDENT", 172: "PARTIAL_ROW_DATA"}.get(code, "")
    for events in ((), ((EventType.GTID, gtid(1)), (EventType.QUERY, query("BEGIN")))):
        log = Log()
        for kind, body in (*events, (code, b"")):
            log.add(kind, body)
        with pytest.raises(UnsupportedEvent, match=f"type {code},") as refused:
            read(log.packets)
        assert name in str(refused.value)


def test_a_gap_in_the_offsets_is_damage() -> None:
    """An event that says it stands elsewhere means that one is missing."""
    log = Log()
    log.packets.append(packet(EventType.GTID, gtid(1), log.offset + 8))
    with pytest.raises(DamagedEvent, match="does not end at the offset in its header"):
        read(log.packets)


def test_a_missing_packet_is_noticed() -> None:
    """Packets are numbered, and nothing may come twice or not at all."""
    log = Log()
    log.transaction(1)
    data = log.wire()
    first = 4 + 1 + len(log.packets[0])
    with pytest.raises(DamagedEvent, match="packet"):
        list(feed(a_buffer(), [data[first:]]))


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
    event = read_event(packet(15, body, 4), START, has_checksum=True)
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


UUIDS = st.uuids()
U63 = st.integers(1, (1 << 63) - 2)
TAGS = st.from_regex(r"[a-z_][a-z0-9_]{0,31}", fullmatch=True)


def event(kind: EventType, body: bytes) -> Event:
    return read_event(packet(kind, body, 4), START, has_checksum=True, log_server_id=7)


def seven(value: int) -> bytes:
    return value.to_bytes(7, "little")


NOW = 1_700_000_000_123_456
CLOCK = b"\x02" + struct.pack("<QQ", 4, 5)
VERSIONS = b"\xfc\x10\x01" + struct.pack("<I", 80036)
GTIDS = {
    "5.6": (b"", 0, 0),
    "5.7": (CLOCK, 0, 0),
    "8.0": (CLOCK + seven(NOW), NOW, NOW),
    "8.0, relayed": (CLOCK + seven(1 << 55 | NOW + 9) + seven(NOW), NOW, NOW + 9),
    "8.0, with versions": (CLOCK + seven(NOW) + VERSIONS, NOW, NOW),
}


@pytest.mark.parametrize("version", GTIDS)
def test_a_gtid_event_of_each_version(version: str) -> None:
    """A clock came with 5.7, with 8.0 when it was committed first, and when here."""
    more, committed_at, here = GTIDS[version]
    found = event(EventType.GTID, gtid(7) + more)
    halves = struct.unpack(">qq", UUID(SERVER).bytes)
    assert read_identity(found, []) == (MYSQL, *halves, 7, committed_at, here)
    unnamed = event(EventType.ANONYMOUS_GTID, gtid(0) + more)
    kind, *_, first, time = read_identity(unnamed, [])
    assert (kind, first, time) == (ANONYMOUS, committed_at, here)


@given(UUIDS, U63, TAGS | st.just(""), U63, U63 | st.none())
def test_a_tagged_gtid_event(
    uuid: UUID, number: int, tag: str, immediate: int, original: int | None
) -> None:
    """Numbers of one to nine bytes; the original commit time is there if it is another."""
    body = tagged_gtid(uuid, tag, number, immediate, original)
    source = f"{uuid}:{tag}" if tag else f"{uuid}"
    expected = source, number, immediate, original or immediate
    assert read_tagged_gtid(event(EventType.GTID_TAGGED, body)) == expected


XID = "07000000 02 02 6774 6271"
FACTS = {
    "plain": ("0500000000000000 00000000 0c 000000000000", 5, False, False, None),
    "DDL": ("0400000000000000 00000000 29 000000000000", 4, True, False, None),
    "group commit": ("6401000000000000 00000000 0e a905000000000000", 356, False, False, None),
    "XA PREPARE": (f"09{'00' * 11} 4c {XID} 01ff", 9, False, True, Xid(7, b"gt", b"bq")),
    "XA COMMIT": (f"0a{'00' * 11} 8d {XID}", 10, True, False, Xid(7, b"gt", b"bq")),
    "START ALTER": ("0b00000000000000 00000000 29 020000000000", 11, True, False, None),
}


@pytest.mark.parametrize("what", FACTS)
def test_a_gtid_event_of_mariadb(what: str) -> None:
    """As 10.11 and 11.4 write them; an XID stands in one that prepares or ends XA."""
    body, number, standalone, prepares, xid = FACTS[what]
    found = read_mariadb_gtid(event(EventType.MARIADB_GTID, bytes.fromhex(body)))
    assert (found.domain, found.number, found.is_standalone) == (0, number, standalone)
    assert (found.is_prepare, found.xid) == (prepares, xid)


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (EventType.GTID, gtid(1)),
        (EventType.ANONYMOUS_GTID, gtid(0)),
        (EventType.GTID_TAGGED, tagged_gtid(UUID(SERVER), "tag", 1, NOW)),
        (EventType.MARIADB_GTID, mariadb_gtid(1)[:13]),
        (EventType.MARIADB_GTID, mariadb_gtid(1, gtrid=b"abc")[:22]),
    ],
    ids=["GTID", "ANONYMOUS", "TAGGED", "MariaDB", "MariaDB with an XID"],
)
def test_a_gtid_event_cut_short_is_damage(kind: EventType, body: bytes) -> None:
    """However short: the transaction has no other name."""
    for size in range(len(body)):
        log = Log()
        log.add(kind, body[:size])
        with pytest.raises(DamagedEvent):
            list(feed(a_buffer(), [log.wire()]))
    log = Log()
    log.add(kind, body)
    assert list(feed(a_buffer(), [log.wire()])) == []


@pytest.mark.parametrize(
    ("kind", "body"),
    [
        (EventType.GTID_TAGGED, tagged_gtid(UUID(SERVER), "t", 1, 1 << 63)),
        (EventType.MARIADB_GTID, b"\xff" * 8 + mariadb_gtid(1, gtrid=b"abc")[8:]),
        (EventType.ROTATE, b"\xff" * 8 + b"binlog.000002"),
    ],
)
def test_numbers_that_no_server_counts_to_are_damage(kind: EventType, body: bytes) -> None:
    """64 bits without sign are more than there are."""
    log = Log()
    log.add(kind, body)
    with pytest.raises(DamagedEvent):
        list(feed(a_buffer(), [log.wire()]))


@given(st.integers(-(1 << 31), (1 << 31) - 1), st.binary(max_size=64), st.binary(max_size=64))
def test_an_xa_prepare_names_the_xid_of_its_commit(form: int, gtrid: bytes, bqual: bytes) -> None:
    """Both parts may hold any byte; the statement has the format id without its sign."""
    body = struct.pack("<BiII", 0, form, len(gtrid), len(bqual)) + gtrid + bqual
    found, one_phase = read_xa_prepare(event(EventType.XA_PREPARE, body))
    assert (found, one_phase) == (Xid(form, gtrid, bqual), False)
    number = form & 0xFFFFFFFF
    text = f"XA COMMIT X'{gtrid.hex()}',X'{bqual.hex()}',{number}"
    assert read_xid(text, START) == found
    for size in range(len(body)):
        with pytest.raises(DamagedEvent):
            read_xa_prepare(event(EventType.XA_PREPARE, body[:size]))


@pytest.mark.parametrize(
    "text",
    ["XA COMMIT 'a'", "XA COMMIT X'6',X'',1", "XA COMMIT X'61',X''", "XA COMMIT X'zz',X'',1"],
)
def test_an_xa_statement_without_an_xid_is_damage(text: str) -> None:
    """Half a byte is none."""
    with pytest.raises(DamagedEvent, match="names no XID"):
        read_xid(text, START)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("SAVEPOINT `a`", "ROLLBACK TO `A`", True),
        ("SAVEPOINT `a b`", "ROLLBACK TO `A B`", True),
        ("SAVEPOINT `É`", "ROLLBACK TO `e`", True),
        ("SAVEPOINT `ß`", "ROLLBACK TO `s`", True),
        ("SAVEPOINT `ø`", "ROLLBACK TO `o`", False),
        ("SAVEPOINT `a``b`", "ROLLBACK TO `a`", False),
        ("SAVEPOINT `a`", "ROLLBACK WORK TO SAVEPOINT `a`", True),
    ],
)
def test_savepoints_have_the_names_they_have_to_the_server(
    one: str, other: str, same: bool
) -> None:
    """MySQL 9.7 finds É by e and ß by s, and does not find ø by o."""
    assert (savepoint_name(one) == savepoint_name(other)) == same


SPANS = st.lists(st.tuples(st.integers(1, 1 << 62), st.integers(0, 9)), min_size=1, max_size=4)


def a_set(sources: Iterable[tuple[UUID, str, list[tuple[int, int]]]]) -> GtidSet:
    parts = [
        ":".join([str(uuid), *([tag] if tag else []), *(f"{a}-{a + n}" for a, n in spans)])
        for uuid, tag, spans in sources
    ]
    return GtidSet.parse(",".join(parts))


@given(st.lists(st.tuples(UUIDS, TAGS | st.just(""), SPANS), max_size=5))
def test_a_set_survives_its_coding(sources: list[tuple[UUID, str, list[tuple[int, int]]]]) -> None:
    """Of many sources, with tags or without; cut anywhere it is damage."""
    one = a_set(sources)
    body = encode_gtid_set(one)
    assert decode_gtid_set(body) == one
    for size in range(len(body)):
        with pytest.raises(DamagedEvent):
            decode_gtid_set(body[:size])


def test_a_set_without_tags_is_coded_as_ever() -> None:
    """Eight bytes of count, the source, its intervals, each with its end behind it."""
    numbers = struct.pack("<QQQ", 1, 3, 8)
    expected = struct.pack("<Q", 1) + UUID(SERVER).bytes + numbers
    assert encode_gtid_set(GtidSet.parse(f"{SERVER}:3-7")) == expected


def test_a_query_s_text_is_behind_its_status() -> None:
    """Status variables are stepped over; what is not UTF-8 keeps every byte."""
    head = struct.pack("<IIBHH", 1, 0, 4, 0, 5) + b"\x00\0\0\0\0" + b"shop\0"
    found = read_query(event(EventType.QUERY, head + b"INSERT '\xe9'"))
    assert (found.database, found.text) == ("shop", "INSERT 'é'")
    with pytest.raises(DamagedEvent):
        read_query(event(EventType.QUERY, head[:15]))
    loaded = head[:13] + bytes(13) + head[13:] + b"LOAD DATA INFILE 'x' INTO TABLE t"
    found = read_query(event(EventType.EXECUTE_LOAD_QUERY, loaded))
    assert (found.database, found.text[:9]) == ("shop", "LOAD DATA")


MODES = "00 00000000 01 0000000000540000"
STATUS = {
    "10.11": f"{MODES} 06 03 737464 04 2d002d000800",
    "11.4": f"{MODES} 06 03 737464 83 01 2d000009 04 2d0000090800 80 010203",
    "all": f"{MODES} 03 01000100 05 03 555443 07 0100 08 0800 09 {'00' * 8} 0a 00000000 "
    f"0b 01 61 02 6263 81 {'00' * 8}",
}


@pytest.mark.parametrize("before", STATUS)
@pytest.mark.parametrize(
    ("flags", "nothing"), [("8202", True), ("8208" + "00" * 8, True), ("8204" + "00" * 8, False)]
)
def test_an_alter_of_mariadb_in_two_phases(before: str, flags: str, nothing: bool) -> None:
    """START and ROLLBACK ALTER are told by a status variable, wherever it stands; COMMIT
    ALTER changes the table."""
    status = bytes.fromhex(STATUS[before] + flags)
    body = struct.pack("<IIBHH", 1, 0, 4, 0, len(status)) + status + b"shop\0ALTER TABLE t ADD x"
    assert is_uncommitted_alter(event(EventType.QUERY, body)) == nothing
    plain = query("ALTER TABLE t ADD x INT")
    assert not is_uncommitted_alter(event(EventType.QUERY, plain))


def test_a_status_that_nobody_knows_ends_the_search() -> None:
    """What stands behind it cannot be found."""
    status = b"\xf0\x82\x02"
    body = struct.pack("<IIBHH", 1, 0, 0, 0, len(status)) + status + b"\0ALTER TABLE t ADD x"
    assert not is_uncommitted_alter(event(EventType.QUERY, body))
