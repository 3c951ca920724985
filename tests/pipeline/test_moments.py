"""Moments found in made logs, whatever clocks and sessions did to the times in them."""

from __future__ import annotations

import random
import struct
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.binlog.search.moments import find_moment, find_moment_in_file
from pipeline.binlog.stream.framing import EventType
from pipeline.errors import MomentOutOfRange
from pipeline.position import Coordinates, LogFile
from tests.pipeline.logs_made import MadeServer, clock, commit, file_of
from tests.pipeline.made import Log, gtid, query

SECOND = 1_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
BASE = 1_800_000_000
NOW = datetime(2040, 1, 1, tzinfo=UTC)


def moment(seconds: float) -> datetime:
    """So many seconds after the first file was made."""
    return EPOCH + timedelta(seconds=BASE, microseconds=round(seconds * SECOND))


def at(file: int, offset: int) -> Coordinates:
    return Coordinates(LogFile("binlog", file), offset)


def micros(seconds: float) -> int:
    return BASE * SECOND + round(seconds * SECOND)


def logged(*files: tuple[float, list[float]]) -> tuple[MadeServer, list[tuple[int, Coordinates]]]:
    """Files made at a second, each with transactions committed then; and where they begin."""
    logs: list[Log] = []
    found: list[tuple[int, Coordinates]] = []
    for number, (created, commits) in enumerate(files, start=1):
        log = file_of(BASE + int(created))
        for one in commits:
            found.append((micros(one), at(number, commit(log, len(found) + 1, micros(one)))))
        logs.append(log)
    return MadeServer(logs), found


def first(found: list[tuple[int, Coordinates]], wanted: datetime, head: Coordinates) -> Coordinates:
    """By looking at all of them, in order."""
    least = (wanted - EPOCH) // timedelta(microseconds=1)
    return next((place for time, place in found if time >= least), head)


def ask(server: MadeServer, wanted: datetime) -> Coordinates:
    return find_moment(server, server.binlogs, server.head, wanted, NOW)


def test_the_first_transaction_at_or_after_a_moment() -> None:
    """To the microsecond, over several files, between them and behind the last."""
    server, found = logged((0, [1.5, 2.000001]), (3, []), (4, [4.1, 4.2, 9]), (10, [10.0]))
    asked = [0, 1.5, 1.500001, 2, 2.000001, 2.000002, 4.15, 4.2, 8, 9.5, 10, 10.5]
    assert [ask(server, moment(s)) for s in asked] == [
        first(found, moment(s), server.head) for s in asked
    ]
    assert ask(server, moment(10.5)) == server.head


def test_a_moment_in_ten_files_reads_one_of_them() -> None:
    """… and the heads of the others."""
    files = [(100.0 * n, [100.0 * n + k / 10 for k in range(1, 900)]) for n in range(10)]
    server, found = logged(*files)
    wanted = moment(650)
    assert ask(server, wanted) == first(found, wanted, server.head)
    heads = 10 * server.piece
    assert server.read < server.logs[6].offset * 0.65 + heads


@pytest.mark.parametrize("count", [65, 200])
def test_a_moment_in_many_files_reads_few_heads(count: int) -> None:
    """They are bisected."""
    server, found = logged(*[(10.0 * n, [10.0 * n + 5]) for n in range(count)])
    for wanted in (moment(3), moment(10 * count / 2), moment(10 * count / 2 + 7), moment(10**4)):
        before = len(server.dumps)
        assert ask(server, wanted) == first(found, wanted, server.head)
        assert len(server.dumps) - before < 15


def test_a_clock_that_was_set_back_hides_nothing() -> None:
    """The first in the order of the log counts, be there later files with earlier heads."""
    server, found = logged(
        (0, [1, 2]), (100, [101, 150]), (50, [51, 60]), (70, [71, 120]), (200, [201])
    )
    for seconds in (1.5, 40, 51, 65, 90, 110, 149, 151, 199, 201, 300):
        wanted = moment(seconds)
        assert ask(server, wanted) == first(found, wanted, server.head), seconds


def test_a_head_with_a_made_up_time_hides_nothing() -> None:
    """FLUSH LOGS in a session with SET TIMESTAMP writes any time into a head."""
    server, found = logged((10, [11, 30]), (1, [40, 60]), (90, [91]))
    for seconds in (20, 35, 50, 61, 91):
        wanted = moment(seconds)
        assert ask(server, wanted) == first(found, wanted, server.head), seconds


def test_header_times_that_step_back_count_only_where_there_are_no_others() -> None:
    """SET TIMESTAMP changes the headers, not the commit time of MySQL 8."""
    log = file_of(BASE)
    places = [
        at(1, commit(log, n, micros(n), header=header))
        for n, header in enumerate((BASE + 90, BASE - 9, BASE + 3), start=1)
    ]
    assert ask(MadeServer([log]), moment(1.5)) == places[1]


def test_a_second_counts_to_its_end() -> None:
    """Where headers have seconds only, a moment within one is not missed."""
    log = file_of(BASE)
    places = []
    for n, second in enumerate((1, 2, 3), start=1):
        places.append(at(1, log.add(EventType.GTID, gtid(n), timestamp=0)))
        log.add(EventType.QUERY, query("BEGIN"), timestamp=0)
        log.add(EventType.XID, struct.pack("<Q", n), timestamp=BASE + second)
    server = MadeServer([log])
    assert [ask(server, moment(s)) for s in (1, 1.9, 2, 2.5, 3.999999)] == [
        places[0], places[0], places[1], places[1], places[2],
    ]  # fmt: skip


def test_another_servers_clock_may_run_ahead() -> None:
    """Replicated transactions have their own server's times: the file before is looked at."""
    logs = [file_of(BASE), file_of(BASE + 100)]
    places = [
        at(1, _replicated(logs[0], 1, micros(99), micros(99 + 300))),
        at(2, _replicated(logs[1], 2, micros(101), micros(101 + 300))),
    ]
    server = MadeServer(logs)
    assert ask(server, moment(350)) == places[0]
    assert ask(server, moment(400)) == places[1]


def _replicated(log: Log, number: int, here: int, there: int) -> int:
    body = gtid(number) + clock(here, there)
    begin = log.add(EventType.GTID, body, server_id=99)
    log.add(EventType.QUERY, query("CREATE TABLE t (a int)"), server_id=99)
    return begin


def test_a_moment_out_of_range_names_the_range() -> None:
    """Before the oldest file, or later than now."""
    server, _ = logged((5, [6]), (10, [11]))
    ends = "reaches from 2027-01-15T08:00:05Z to 2040-01-01T00:00:00Z"
    with pytest.raises(MomentOutOfRange, match=ends):
        ask(server, moment(4.999))
    with pytest.raises(MomentOutOfRange, match=ends):
        ask(server, NOW + timedelta(microseconds=1))
    assert ask(server, NOW) == server.head


def test_a_transaction_behind_the_head_is_none() -> None:
    """The log grows while one looks; what was asked for ends at the head."""
    server, found = logged((0, [1, 2, 3]))
    head = found[1][1]
    assert find_moment(server, server.binlogs, head, moment(1.5), NOW) == head


def test_a_moment_in_one_file() -> None:
    """Its first transaction at or after it; else none, whatever the next one has."""
    server, found = logged((0, [1, 2]), (10, [11, 12]), (20, [21]))
    file = LogFile("binlog", 2)
    asked = [moment(s) for s in (0, 11.5, 12.5, 21)]
    assert [find_moment_in_file(server, file, m, server.head) for m in asked] == [
        found[2][1], found[3][1], None, None,
    ]  # fmt: skip
    assert find_moment_in_file(server, file, moment(11.5), found[3][1]) is None
    last = find_moment_in_file(server, LogFile("binlog", 3), moment(22), server.head)
    assert (last, server.read > 0) == (None, True)


def test_random_logs_are_searched_as_by_looking_at_everything() -> None:
    """Clocks that go forward only, transactions at random."""
    generator = random.Random(7)
    for _ in range(30):
        times = sorted(generator.uniform(0, 100) for _ in range(generator.randint(4, 40)))
        cuts = sorted(generator.sample(range(len(times)), 3))
        parts = [times[a:b] for a, b in zip([0, *cuts], [*cuts, len(times)], strict=True)]
        files = [
            (0.0 if n == 0 else part[0] if part else 100.0, part) for n, part in enumerate(parts)
        ]
        server, found = logged(*files)
        for _ in range(10):
            wanted = moment(generator.uniform(0, 101))
            assert ask(server, wanted) == first(found, wanted, server.head)
