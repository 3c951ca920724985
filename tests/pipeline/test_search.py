"""Places found in made logs: boundaries, ends of GTID sets, files by their heads, the anchor before
a cursor; and a walk over a log by its headers, which ends where the log is damaged."""

from __future__ import annotations

import struct
from collections.abc import Callable
from uuid import UUID

import pytest

from lockstep.pipeline.binlog.search.log_scan import (
    find_file_before,
    read_file_head,
    read_transactions,
    walk,
)
from lockstep.pipeline.binlog.search.places import Boundary, find_boundary, find_end_of, read_anchor
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.values.errors import (
    DamagedEvent,
    EndNotReached,
    NotAnEventBoundary,
    StreamEndedEarly,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Anchor, Coordinates, LogFile, Position
from tests.pipeline.buffered import START, a_buffer, feed
from tests.pipeline.dialects_made import compressed, log_of, tagged_gtid
from tests.pipeline.logs_made import MadeDump, MadeServer, commit, file_of
from tests.pipeline.made import (
    SERVER,
    Log,
    gtid,
    mariadb_gtid,
    nested_transaction,
    payload,
    query,
    rotate,
    rows,
    table_map,
    xa,
    xa_prepare,
)

FILE = LogFile("binlog", 1)
OTHER = "00000002-0000-0000-0000-000000000002"
CREATED = 1_700_000_000


def at(offset: int, file: int = 1) -> Coordinates:
    return Coordinates(LogFile("binlog", file), offset)


def every_kind() -> Log:
    """All kinds of transactions, one after the other, and events between them."""
    log = file_of(CREATED, f"{OTHER}:1-9")
    log.transaction(1)
    log.statement(2, "CREATE TABLE t (a int)")
    log.add(EventType.ANONYMOUS_GTID, gtid(0))
    log.say("BEGIN")
    log.add(EventType.ROWS_QUERY, b"\0insert")
    log.write(1, 2)
    log.end("COMMIT")
    log.add(EventType.GTID, gtid(4))
    log.add(EventType.TRANSACTION_PAYLOAD, payload(nested_transaction(*range(300))))
    log.prepare(5, b"x", 3)
    log.transaction(6, rows=3)
    log.statement(7, "XA COMMIT X'78',X'',1")
    log.statement(8, "XA COMMIT X'77',X'',1")
    log.statement(9, "XA ROLLBACK X'76',X'',1")
    log.add(EventType.GTID_TAGGED, tagged_gtid(UUID(SERVER), "tag", 3, 5))
    log.say("BEGIN")
    log.say("SAVEPOINT `a`")
    log.write(4)
    log.say("ROLLBACK TO `a`")
    log.end("ROLLBACK")
    log.begin(10)
    log.add(EventType.TABLE_MAP, table_map(1, "a"))
    log.add(EventType.TABLE_MAP, table_map(2, "b"))
    log.add(EventType.WRITE_ROWS, rows(1, table_id=1, last=False))
    log.add(EventType.WRITE_ROWS, rows(1, table_id=2))
    log.end()
    return log


def with_what_a_capture_refuses() -> Log:
    """Statements in place of rows, and events that this version does not know."""
    log = file_of(CREATED)
    log.transaction(1)
    for number in range(2, 7):
        log.begin(number)
        log.add(5, b"\x02" + struct.pack("<Q", 1))
        log.say("INSERT INTO t VALUES (1)")
        log.end()
    log.add(26, b"\x01\x00\x00")
    log.transaction(7)
    log.add(EventType.GTID_TAGGED, tagged_gtid(UUID(SERVER), "tag", 3, 5))
    log.say("BEGIN")
    log.say("DELETE FROM t")
    log.end()
    log.add(EventType.ANONYMOUS_GTID, gtid(0))
    log.say("BEGIN")
    log.add(14, b"\x01\x00\x00")
    log.end()
    log.transaction(8)
    return log


def of_mariadb() -> Log:
    """Groups of MariaDB, its list of GTIDs, checkpoints between groups."""
    log = Log()
    log.offset, log.packets = 4, []
    log.add(EventType.FORMAT_DESCRIPTION, _mariadb_description(), timestamp=CREATED)
    listed = struct.pack("<I", 2) + struct.pack("<IIQIIQ", 0, 7, 5, 3, 9, 8)
    log.add(EventType.MARIADB_GTID_LIST, listed)
    log.add(EventType.MARIADB_BINLOG_CHECKPOINT, struct.pack("<I", 13) + b"binlog.000001")
    log.add(EventType.MARIADB_GTID, mariadb_gtid(6, standalone=True))
    log.say("CREATE TABLE t (a int)")
    log.add(EventType.MARIADB_BINLOG_CHECKPOINT, struct.pack("<I", 13) + b"binlog.000001")
    log.add(EventType.MARIADB_GTID, mariadb_gtid(7))
    log.add(EventType.MARIADB_ANNOTATE_ROWS, b"insert")
    log.write(1)
    log.end()
    log.add(EventType.MARIADB_GTID, mariadb_gtid(8, gtrid=b"x"))
    log.write(2)
    log.add(EventType.QUERY, xa("END", b"x"))
    log.add(EventType.XA_PREPARE, xa_prepare(b"x"))
    log.add(EventType.MARIADB_GTID, mariadb_gtid(12, standalone=True))
    log.add(EventType.QUERY, xa("COMMIT", b"x"))
    return log


def _mariadb_description() -> bytes:
    head = struct.pack("<H50sIB", 4, b"10.11.18-MariaDB-log", 0, 19)
    return head + bytes(171) + b"\x01"


GTID_EVENTS = (33, 34, 42, 162)
PLACES = (3, 4, 15, 35, 161, 163, 26)


def naive(log: Log, offset: int, before: str, gtids: list[str]) -> Boundary | None:
    """What a walk over all events says of a place: a transaction ends where the next GTID
    event begins, or an event that stands between two; `gtids` of the transactions in order."""
    if offset == 4:
        return Boundary(at(4), GtidSet.parse(before), None, is_rewound=False)
    here, count = 4, 0
    anchor: Anchor | None = None
    opened: tuple[int, Anchor | None] | None = None
    found: tuple[int, Anchor | None, bool] | None = None
    for packet in [*log.packets, b"\0\0\0\0\x04"]:
        code = packet[4]
        if opened is not None and code in (*GTID_EVENTS, *PLACES):
            opened, count = None, count + 1
        if here == offset:
            inside = opened is not None
            place, shown = opened if opened is not None else (here, anchor)
            found = place, shown, inside
            break
        if code in GTID_EVENTS:
            opened = here, anchor
        crc32 = struct.unpack("<I", packet[-4:])[0] if len(packet) > 5 else 0
        anchor = Anchor(here, len(packet), crc32, "", CREATED)
        here += len(packet)
    if found is None:
        return None
    place, shown, inside = found
    executed = GtidSet.parse(before).union(GtidSet.parse(",".join(g for g in gtids[:count] if g)))
    if shown is not None and count and _ends_transaction(log, shown.offset, place):
        shown = Anchor(shown.offset, shown.length, shown.crc32, gtids[count - 1], CREATED)
    return Boundary(at(place), executed, shown, is_rewound=inside)


def _ends_transaction(log: Log, offset: int, end: int) -> bool:
    here = 4
    for packet in log.packets:
        if here == offset:
            return packet[4] not in PLACES
        here += len(packet)
    return False


def starts(log: Log) -> list[int]:
    found = [4]
    for packet in log.packets:
        found.append(found[-1] + len(packet))
    return found


def uuid_gtids(*numbers: int) -> list[str]:
    return [f"{SERVER}:{number}" if number else "" for number in numbers]


CASES: dict[str, tuple[Callable[[], Log], str, list[str]]] = {
    "every kind": (
        every_kind,
        f"{OTHER}:1-9",
        [*uuid_gtids(1, 2, 0, 4, 5, 6, 7, 8, 9), f"{SERVER}:tag:3", *uuid_gtids(10)],
    ),
    "refused": (
        with_what_a_capture_refuses,
        "",
        [*uuid_gtids(1, 2, 3, 4, 5, 6, 7), f"{SERVER}:tag:3", "", *uuid_gtids(8)],
    ),
    "MariaDB": (of_mariadb, "0-7-5,3-9-8", ["0-7-6", "0-7-7", "0-7-8", "0-7-12"]),
}


@pytest.mark.parametrize("case", CASES)
def test_every_offset_of_a_log_is_a_boundary_or_rewound_or_nowhere(case: str) -> None:
    """The same as a walk over all events says, for each event's beginning and places beside
    it; what stands before a place need not be what a capture can read."""
    make, before, gtids = CASES[case]
    log = make()
    server = MadeServer([log], piece=1 << 16)
    real = set(starts(log))
    for offset in sorted(real):
        assert find_boundary(server, at(offset)) == naive(log, offset, before, gtids), offset
    for offset in (o for start in real for o in (start - 1, start + 1, start + 18)):
        if offset not in real:
            with pytest.raises(NotAnEventBoundary, match="no event begins"):
                find_boundary(server, at(offset))
    assert server.read > 0


@pytest.mark.parametrize("cut", [False, True])
def test_beyond_the_end_of_a_file_is_nowhere(cut: bool) -> None:
    """Its end is the last place there is, whether another file follows or not, and whether a ROTATE
    leads there. The refusal names where an event does begin, so that a person can type it."""
    logs = [file_of(CREATED), file_of(CREATED)]
    second, _ = (log.transaction(1) for log in logs)
    server = MadeServer(logs, cut=cut)
    with pytest.raises(NotAnEventBoundary, match=f"before it is binlog.000001:{second}\n"):
        find_boundary(server, at(second + 3))
    for number, log in enumerate(logs, start=1):
        end = at(log.offset, number)
        assert find_boundary(server, end).at == end
        with pytest.raises(NotAnEventBoundary, match=f"before it is {end}\n"):
            find_boundary(server, at(log.offset + 100, number))


def test_a_place_in_a_transaction_that_the_log_cuts_off_is_rewound() -> None:
    """The log may end within it; it begins all the same."""
    log = file_of(CREATED)
    begin = log.add(EventType.GTID, gtid(1))
    inside = log.say("BEGIN")
    log.add(EventType.TABLE_MAP, table_map())
    boundary = find_boundary(MadeServer([log]), at(inside))
    assert (boundary.at, boundary.is_rewound) == (at(begin), True)


def test_the_bytes_read_for_a_boundary_are_told() -> None:
    """A look tells how far it is; no more than there is."""
    log = file_of(CREATED)
    for number in range(1, 40):
        log.transaction(number)
    told: list[tuple[int, int]] = []
    find_boundary(
        MadeServer([log]),
        at(log.offset),
        report_progress=lambda done, total: told.append((done, total)),
    )
    assert told[-1] == (log.offset, log.offset)
    assert told == sorted(told)


def test_a_compressed_statement_of_mariadb_is_a_transaction() -> None:
    """What follows a long DDL is a boundary; what a compressed CREATE TABLE begins ends at
    its COMMIT."""
    ddl = query("") + compressed(b"CREATE TABLE t " + b"x" * 300)
    log = log_of("10.11.6-MariaDB-log")
    log.add(EventType.MARIADB_GTID, mariadb_gtid(1, standalone=True))
    log.add(EventType.MARIADB_QUERY_COMPRESSED, ddl)
    begin = log.add(EventType.MARIADB_GTID, mariadb_gtid(2))
    inside = log.add(EventType.MARIADB_QUERY_COMPRESSED, ddl)
    log.write(1)
    log.say("COMMIT")
    server = MadeServer([log])
    found = [
        find_boundary(server, at(place))
        for place in (begin, inside, inside + len(log.packets[4]), log.offset)
    ]
    assert [(one.at.offset, one.is_rewound) for one in found] == [
        (begin, False),
        (begin, True),
        (begin, True),
        (log.offset, False),
    ]


def test_a_head_is_read_without_the_file() -> None:
    """A few hundred bytes tell when a file was made and what was executed before it; MariaDB lists
    the last GTID of every domain and server."""
    log = file_of(CREATED, f"{SERVER}:1-5")
    for number in range(6, 1000):
        log.transaction(number)
    server = MadeServer([log])
    head = read_file_head(server, FILE)
    assert (int(head.created.timestamp()), str(head.gtid_set)) == (CREATED, f"{SERVER}:1-5")
    assert server.read <= 512
    assert str(read_file_head(MadeServer([of_mariadb()]), FILE).gtid_set) == "0-7-5,3-9-8"


def test_the_file_before_which_nothing_else_was_executed() -> None:
    """Its head holds nothing that is not in the set; of those it is the newest in which, or
    behind which, some of the set stands, so that nothing which came after it is passed over."""
    logs = [file_of(CREATED, f"{SERVER}:1-{n}") for n in (3, 10, 20, 20, 30)]
    server = MadeServer(logs)
    found = {
        text: find_file_before(server, server.binlogs, GtidSet.parse(text))
        for text in ("", f"{SERVER}:1-9", f"{SERVER}:1-20", f"{SERVER}:1-99", f"{OTHER}:1")
    }
    assert [file.number if file else None for file in found.values()] == [None, 1, 2, 5, None]


def ending() -> MadeServer:
    first, second = file_of(CREATED), file_of(CREATED, f"{SERVER}:1-3")
    for number in (1, 2, 3):
        first.transaction(number)
    for number in (5, 4, 6):
        second.transaction(number)
    return MadeServer([first, second])


START_OF_ALL = Position(at(4), GtidSet(), "uuid")


def test_the_end_of_a_set_is_where_its_last_transaction_ends() -> None:
    """Not the one with the highest number: the order of the log counts. Nothing is read of a set
    that the start holds; what the log lacks is refused by its name, and only that; and a log that
    ends before its head is no answer."""
    server = ending()
    one = len(b"".join(server.logs[0].packets[2:7]))
    heads = [len(b"".join(log.packets[:2])) + 4 for log in server.logs]
    later = Position(at(4, 2), GtidSet.parse(f"{SERVER}:1-3"), "uuid")
    assert find_end_of(server, later, server.head, GtidSet.parse(f"{SERVER}:2")) == later.at
    assert server.dumps == []
    for numbers, end in {
        "1": at(heads[0] + one),
        "1-3": at(heads[0] + 3 * one),
        "5": at(heads[1] + one, 2),
        "1-5": at(heads[1] + 2 * one, 2),
        "1-6": server.head,
    }.items():
        gtids = GtidSet.parse(f"{SERVER}:{numbers}")
        assert find_end_of(server, START_OF_ALL, server.head, gtids) == end
    with pytest.raises(EndNotReached, match=f"have {SERVER}:7-9\n"):
        find_end_of(server, START_OF_ALL, server.head, GtidSet.parse(f"{SERVER}:1-9"))
    with pytest.raises(StreamEndedEarly, match=r"before binlog\.000002:99999"):
        find_end_of(server, START_OF_ALL, at(99999, 2), GtidSet.parse(f"{SERVER}:7"))


def test_the_end_of_a_set_of_mariadb() -> None:
    """A GTID stands for all of its server before it."""
    log = of_mariadb()
    server = MadeServer([log])
    start = Position(at(4), GtidSet.parse("0-7-5"), "uuid")
    found = [
        find_end_of(server, start, server.head, GtidSet.parse(f"0-7-{number}")).offset
        for number in (5, 7, 10, 12)
    ]
    places = starts(log)
    assert found == [4, places[11], log.offset, log.offset]


def test_transactions_of_a_look_that_begins_early_are_left_out() -> None:
    """A server that cannot begin at a place begins before it."""
    server = ending()
    third = commit(server.logs[1], 7, 1)
    server.from_beginning = True
    start = Position(at(third, 2), GtidSet(), "uuid")
    with pytest.raises(EndNotReached):
        find_end_of(server, start, server.head, GtidSet.parse(f"{SERVER}:5"))
    assert find_end_of(server, start, server.head, GtidSet.parse(f"{SERVER}:7")) == server.head
    inside = at(third + 20, 2)
    with pytest.raises(NotAnEventBoundary):
        find_boundary(server, inside)
    assert find_boundary(server, at(third, 2)).at == at(third, 2)


@pytest.mark.parametrize("name", ["other.000002", "binlog", "bi\xfflog.000002"])
def test_a_rotation_elsewhere_is_refused(name: str) -> None:
    """Another base name is another history, a name without a number none at all."""
    log = Log()
    log.transaction(1)
    log.add(EventType.ROTATE, rotate(name))
    with pytest.raises(DamagedEvent, match="the log continues in"):
        list(walk(MadeDump(START, log.wire(), 512), START))


@pytest.mark.parametrize(
    ("kind", "body", "error"),
    [
        (EventType.GTID_TAGGED, tagged_gtid(UUID(int=1), "tag", 1, 1 << 63), "impossible"),
        (EventType.GTID, gtid(1)[:-1], "ends after 24 bytes"),
    ],
)
def test_an_identity_that_nothing_has_room_for_is_refused(
    kind: EventType, body: bytes, error: str
) -> None:
    """Whoever steps over transactions believes a GTID event no more than the buffer does."""
    log = Log()
    log.add(kind, body)
    end = Coordinates(START.file, 1 << 20)
    with pytest.raises(DamagedEvent, match=error):
        read_transactions(MadeDump(START, log.wire(), 512), START, end, 1)
    with pytest.raises(DamagedEvent, match=error):
        list(feed(a_buffer(), [log.wire()]))


def test_a_anchor_reads_back_as_it_was_found() -> None:
    """What the scan recorded is what a dump from its offset shows."""
    log = Log()
    log.transaction(1)
    second = log.transaction(2)
    server = MadeServer([log])
    anchor = find_boundary(server, Coordinates(FILE, second)).anchor
    assert anchor is not None
    again = read_anchor(server, Coordinates(FILE, anchor.offset))
    assert again is not None
    assert (again.length, again.crc32, again.file_created) == (
        anchor.length,
        anchor.crc32,
        anchor.file_created,
    )
