"""Places found in the logs of real servers, beside what the servers list of them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.pipeline.binlog.search.log_scan import find_file_before, read_file_head
from lockstep.pipeline.binlog.search.places import (
    find_boundary,
    find_end_of,
    find_moment,
    find_moment_in_file,
)
from lockstep.pipeline.binlog.stream.commit_times import latest_commit_times
from lockstep.pipeline.binlog.stream.control import to_datetime
from lockstep.pipeline.binlog.stream.ring import BEGIN_OFFSET, FILE
from lockstep.pipeline.ports.source import BinlogDump, BinlogSize, Received
from lockstep.pipeline.values.errors import NotAnEventBoundary
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile, Position
from lockstep.resources.mysql.server import MySqlServer
from tests.chance import by_chance
from tests.fix_mysql import MySqlStand, end_prepared
from tests.mysql.chunked import Sliced
from tests.mysql.logged import head
from tests.mysql.reading import runs, server

_GTIDS = ("Gtid", "Anonymous_Gtid", "Gtid_tagged_log_event")
_BETWEEN = (*_GTIDS, "Rotate", "Stop", "Binlog_checkpoint", "Previous_gtids", "Gtid_list")
_TEXT = re.compile(r"'([0-9a-f-]{36}:[^']+)'|GTID (\d+-\d+-\d+)")

_ANY_SERVER = (
    (
        "create table t (id int primary key, v text)",
        "insert into t values (1, 'a'), (2, 'b')",
        "begin",
        "update t set v = 'c' where id = 1",
        "savepoint a",
        "delete from t where id = 2",
        "rollback to a",
        "insert into t values (3, 'c')",
        "commit",
        "set timestamp = 1000000000",
        "insert into t values (4, 'long ago')",
        "set timestamp = default",
        "create table made select * from t",
    ),
    ("xa start 'x'", "insert into t values (5, 'prepared')", "xa end 'x'", "xa prepare 'x'"),
    ("insert into t values (6, 'between')", "xa commit 'x'"),
    ("xa start 'z'", "insert into made values (9, 'z')", "xa end 'z'", "xa prepare 'z'"),
    ("xa rollback 'z'", "truncate table made"),
    (
        "xa start 'y'",
        "insert into t values (7, 'one phase')",
        "xa end 'y'",
        "xa commit 'y' one phase",
    ),
)
"""What sessions do, one after the other."""

_STATEMENTS = (
    # Instead of rows: a capture refuses them, a search looks behind them.
    "set session binlog_format = statement",
    "insert into t values (9, 'statement')",
    "set session binlog_format = row",
    "insert into t values (10, 'last')",
)
_MYSQL = (
    "set session binlog_transaction_compression = on",
    "insert into t select id + 100, repeat(v, 99) from t",
    "set session binlog_transaction_compression = off",
    "set session gtid_next = 'AUTOMATIC:a_tag'",
    "insert into t values (8, 'tagged')",
    "set session gtid_next = 'AUTOMATIC'",
    "set session binlog_rows_query_log_events = on",
    "delete from t where id > 100",
    *_STATEMENTS,
)
_MARIADB = (
    "set session gtid_domain_id = 3",
    "insert into t values (8, 'another domain')",
    "set session gtid_domain_id = 0",
    *_STATEMENTS,
)


def written(stand: MySqlStand, database: str, *sessions: tuple[str, ...]) -> LogFile:
    """The log file that holds what these sessions do and nothing else."""
    stand.execute("flush binary logs")
    file = head(stand).file
    for session in sessions:
        with stand.connect(database) as connection, connection.cursor() as cursor:
            for statement in session:
                end_prepared(cursor.execute, statement)
    return file


def binlogs_from(stand: MySqlStand, file: LogFile) -> list[BinlogSize]:
    """The server's log files from this one on."""
    listed_logs = [
        BinlogSize(LogFile.parse(name), int(size))
        for name, size, *_ in stand.rows("show binary logs")
    ]
    return [log for log in listed_logs if log.file.number >= file.number]


def of_server(events: list[Listed]) -> dict[int, tuple[int, bool, GtidSet]]:
    """For each place where an event begins: where its transaction does, whether that is
    another place, and what was executed before."""
    found: dict[int, tuple[int, bool, GtidSet]] = {}
    begin: int | None = None
    gtids, text = GtidSet(), ""
    for event in events:
        if event.kind in _BETWEEN:
            gtids = gtids.union(GtidSet.parse(text)) if begin is not None else gtids
            begin = None
        # The set of the head stands there from the file's beginning on.
        if event.kind in ("Previous_gtids", "Gtid_list"):
            gtids = GtidSet.parse(event.info.strip("[]"))
            found = {place: (at, inside, gtids) for place, (at, inside, _) in found.items()}
        found[event.begin] = event.begin if begin is None else begin, begin is not None, gtids
        if event.kind in _GTIDS:
            begin = event.begin
            name = _TEXT.search(event.info)
            text = (name[1] or name[2]) if name else ""
    gtids = gtids.union(GtidSet.parse(text)) if begin is not None else gtids
    found[events[-1].end] = events[-1].end, False, gtids
    return found


def require_places(stand: MySqlStand, file: LogFile, share: float) -> None:
    """Places of the file, drawn anew in each run, are what the server's own list of it says."""
    source = server(stand)
    events = listed(stand, file)
    places = list(of_server(events).items())
    for offset, (begin, inside, gtids) in by_chance().sample(places, round(len(places) * share)):
        boundary = find_boundary(source, Coordinates(file, offset))
        found = boundary.at.offset, boundary.is_rewound, str(boundary.gtid_set)
        assert found == (begin, inside, str(gtids)), offset
        before = boundary.anchor
        if before is not None:
            assert before.offset + before.length == begin
            assert before.offset in {event.begin for event in events}
    for event in events[:: max(len(events) // 9, 1)]:
        with pytest.raises(NotAnEventBoundary, match=f"before it is {file}:{event.begin}\n"):
            find_boundary(source, Coordinates(file, event.begin + 5))


FLAVOURS = ("mysql", "mariadb", "mariadb11")


@pytest.mark.parametrize(
    ("fixture", "share"),
    [
        *((fixture, 0.4) for fixture in ("mysql", "mariadb11")),
        *(pytest.param(fixture, 1, marks=pytest.mark.soak) for fixture in FLAVOURS),
    ],
)
@pytest.mark.since(8, 0, 21)
def test_places_of_a_log(fixture: str, share: float, request: pytest.FixtureRequest) -> None:
    """All kinds of transactions; a place is proven, rewound or refused as SHOW BINLOG EVENTS has
    it. Not all events of MariaDB 11 say where they end."""
    stand: MySqlStand = request.getfixturevalue(fixture)
    own = _MYSQL if fixture == "mysql" else _MARIADB
    with stand.own_database() as name:
        require_places(stand, written(stand, name, *_ANY_SERVER, own), share)


def several_files(stand: MySqlStand, database: str) -> Coordinates:
    """Transactions in five files, some of them by sessions with clocks of their own; where
    the first file begins."""
    stand.execute("flush binary logs")
    start = Coordinates(head(stand).file, 4)
    stand.execute("create table t (id int primary key)", database=database)
    for number in range(5):
        ten = [f"insert into t values ({10 * number + n})" for n in range(10)]
        ten.insert(3, "set timestamp = 1000000000")
        ten.insert(6, "set timestamp = default")
        stand.execute(*ten, "flush binary logs", database=database)
    stand.execute("insert into t values (99)", database=database)
    return start


def every_commit(stand: MySqlStand, start: Coordinates) -> list[tuple[int, Coordinates]]:
    return [
        (time, Coordinates(run.files[row[FILE]], int(row[BEGIN_OFFSET])))
        for _, run in runs(server(stand), start)
        for time, row in zip(
            latest_commit_times(run.transactions).tolist(), run.transactions, strict=True
        )
    ]


def test_any_moment_has_the_fewest_transactions_on_its_wrong_side(place: Sliced) -> None:
    """To the microsecond where the log has it, by seconds elsewhere; sessions that set their
    clocks back included. The first of such places in the order of the log counts."""
    stand, start = place.stand, several_files(place.stand, place.table.database)
    source, end_of_log = server(stand), head(stand)
    binlogs = binlogs_from(stand, start.file)
    commits = every_commit(stand, start)
    created = read_file_head(source, start.file).created
    now = datetime.now(UTC) + timedelta(seconds=2)
    asked = [created] + [
        to_datetime(time + more) for time, _ in commits[::7] for more in (-1, 0, 1)
    ]
    for wanted in (at for at in asked if created <= at <= now):
        least = (wanted - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(microseconds=1)
        found = find_moment(source, binlogs, end_of_log, wanted, now)
        assert found.at == fewest(commits, least, end_of_log)
        for log in binlogs[1:3]:
            own = [(time, place) for time, place in commits if place.file == log.file]
            inside = find_moment_in_file(source, log.file, wanted, end_of_log, now)
            assert (inside.at if inside else end_of_log) == fewest(own, least, end_of_log)


def fewest(commits: list[tuple[int, Coordinates]], least: int, end: Coordinates) -> Coordinates:
    """By counting, for each place, the transactions on its wrong side; the first of the best."""
    wrong = sum(time < least for time, _ in commits)
    counts = [wrong := wrong + (1 if time >= least else -1) for time, _ in commits]
    before = [sum(time < least for time, _ in commits), *counts]
    return [*(place for _, place in commits), end][before.index(min(before))]


def test_a_moment_in_several_files_reads_two_of_them(mysql: MySqlStand, database: str) -> None:
    """… as far as heads can tell, and the beginnings of the others: no more than a receiver's
    buffer of each. The second is the one on the side where its own has more transactions."""
    mysql.execute("flush binary logs")
    first = head(mysql).file
    mysql.execute("create table t (id int primary key, v mediumblob)", database=database)
    for number in range(6):
        rows = [f"insert into t values ({8 * number + n}, repeat('x', 1000000))" for n in range(8)]
        mysql.execute(*rows, "flush binary logs", database=database)
    end_of_log, binlogs = head(mysql), binlogs_from(mysql, first)
    commits = every_commit(mysql, Coordinates(first, 4))
    in_third = [commit for commit in commits if commit[1].file.number == first.number + 2]
    counted = CountedDumps(server(mysql))
    wanted = to_datetime(in_third[6][0])
    found = find_moment(counted, binlogs, end_of_log, wanted, datetime.now(UTC))
    assert found.at == in_third[6][1]
    buffers = len(counted.dumps) << 20
    # Heads have whole seconds: files made in the one that is looked for are looked through.
    second = in_third[6][0] // 1_000_000
    heads = [read_file_head(server(mysql), log.file).created.timestamp() for log in binlogs]
    start = max(next((n for n, made in enumerate(heads) if made >= second), 3) - 1, 0)
    most = sum(log.size for log in binlogs[min(start, 2) : 4])
    assert counted.read <= most + buffers < sum(log.size for log in binlogs)


def test_the_end_of_a_set_and_the_file_before_it(place: Sliced) -> None:
    """Every transaction's own GTIDs, executed up to it, lead to its end, and to its file."""
    stand, start = place.stand, several_files(place.stand, place.table.database)
    source, end_of_log = server(stand), head(stand)
    binlogs = binlogs_from(stand, start.file)
    begun = find_boundary(source, start)
    places = [
        place
        for log in binlogs
        for place, (_, inside, _) in of_server(listed(stand, log.file)).items()
        if not inside
    ]
    assert len(places) > 50
    position = Position(start, begun.gtid_set, "uuid")
    for log in binlogs[1:]:
        for offset, (_, inside, gtids) in list(of_server(listed(stand, log.file)).items())[3::9]:
            if inside:
                continue
            end = find_end_of(source, position, end_of_log, gtids)
            assert end <= Coordinates(log.file, offset)
            assert find_boundary(source, end).gtid_set == gtids
            file = find_file_before(source, binlogs, gtids)
            assert file is not None
            assert gtids.contains(read_file_head(source, file).gtid_set)
            assert file.number >= end.file.number


@dataclass(slots=True)
class CountedDump:
    """A dump that counts what is taken out of it."""

    dump: BinlogDump
    read: int = 0
    closed: bool = False

    @property
    def begins(self) -> Coordinates | None:
        return self.dump.begins

    def __iter__(self) -> Iterator[Received]:
        for received in self.dump:
            self.read += received.end - received.begin
            yield received

    def close(self) -> None:
        self.closed = True
        self.dump.close()


@dataclass(slots=True)
class CountedDumps:
    """`looking.Dumps` of a server."""

    server: MySqlServer
    dumps: list[CountedDump] = field(default_factory=list)

    def dump(self, start: Coordinates) -> CountedDump:
        self.dumps.append(CountedDump(self.server.dump(start)))
        return self.dumps[-1]

    @property
    def read(self) -> int:
        """Bytes taken out of all dumps; each must be closed."""
        assert all(dump.closed for dump in self.dumps)
        return sum(dump.read for dump in self.dumps)


@dataclass(frozen=True, slots=True)
class Listed:
    """A line of SHOW BINLOG EVENTS."""

    begin: int
    kind: str
    end: int
    info: str


def listed(stand: MySqlStand, file: LogFile) -> list[Listed]:
    """The file's events, as the server lists them, those inside a payload left out."""
    rows = stand.rows(f"show binlog events in '{file}'")
    found = [Listed(int(row[1]), row[2], int(row[4]), row[5]) for row in rows]
    # MariaDB 11 may say 0 for an end; what a payload holds begins and ends at its end.
    return [event for event in found if event.begin != event.end]
