"""Moments found in made logs, whatever clocks and sessions did to the times in them; and where a
moment lies among times in any order, beside the count of what is on its wrong side."""

from __future__ import annotations

import random
import struct
from datetime import UTC, datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from lockstep.pipeline.binlog.search.places import find_last_end, find_moment, find_moment_in_file
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.commit_times import NewestCommit
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.model.batch import BatchTimes
from lockstep.pipeline.replay.spans import ids_at_or_after, ids_before
from lockstep.pipeline.values.division import Divider, Division, find_moment_end
from lockstep.pipeline.values.division import find_moment as find_division
from lockstep.pipeline.values.errors import MomentOutOfRange
from lockstep.pipeline.values.position import Coordinates, LogFile
from tests.pipeline.dialects_made import tagged_gtid
from tests.pipeline.logs_made import MadeServer, clock, commit, file_of
from tests.pipeline.made import SERVER, Log, gtid, query

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


def ask(server: MadeServer, wanted: datetime, now: datetime = NOW) -> Coordinates:
    return find_moment(server, server.binlogs, server.head, wanted, now).at


@pytest.mark.parametrize("count", [65, 200, 1000])
def test_a_moment_in_many_files_reads_some_heads(count: int) -> None:
    """A sample of them, and those between two of the sample."""
    server, found = logged(*[(10.0 * n, [10.0 * n + 5]) for n in range(count)])
    for wanted in (moment(3), moment(10 * count / 2), moment(10 * count / 2 + 7), moment(10**4)):
        before = len(server.dumps)
        assert ask(server, wanted) == first(found, wanted, server.head)
        assert len(server.dumps) - before < 64 + count // 64 + 5


def test_the_bytes_read_for_a_moment_add_up() -> None:
    """Files before the first one that is read are read after it; what is told never goes back."""
    server, _ = logged((0, [1.0, 2.0]), (10, [11.0, 12.0]), (20, [21.0, 22.0]))
    told: list[tuple[int, int]] = []
    wanted = moment(20.5)
    find_moment(
        server,
        server.binlogs,
        server.head,
        wanted,
        NOW,
        report_progress=lambda done, total: told.append((done, total)),
    )
    assert len(told) > 1
    assert told == sorted(told)


def test_the_bytes_of_an_older_file_are_known() -> None:
    """Whoever asks for a moment in it, or for its end, hears how far the reading is."""
    server, _ = logged((0, [1.0, 2.0]), (10, [11.0]))
    file, told = LogFile("binlog", 1), list[tuple[int, int]]()

    def tell(done: int, total: int) -> None:
        told.append((done, total))

    binlogs, head = server.binlogs, server.head
    find_moment_in_file(server, file, moment(1.5), head, NOW, binlogs=binlogs, report_progress=tell)
    find_last_end(server, file, head, binlogs=binlogs, report_progress=tell)
    assert len(told) > 1
    assert {total for _, total in told} == {binlogs[0].size}
    assert all(0 < done <= total for done, total in told)


def fewest(
    found: list[tuple[int, Coordinates]], wanted: datetime, head: Coordinates
) -> Coordinates:
    """By counting, for each place, the transactions on its wrong side; the first of the best."""
    least = (wanted - EPOCH) // timedelta(microseconds=1)
    wrong = [
        sum(time >= least for time, _ in found[:place])
        + sum(time < least for time, _ in found[place:])
        for place in range(len(found) + 1)
    ]
    return [*(place for _, place in found), head][wrong.index(min(wrong))]


def test_a_clock_that_was_set_back() -> None:
    """The place with the fewest transactions on its wrong side, be there later files with earlier
    heads."""
    server, found = logged(
        (0, [1, 2]), (100, [101, 150]), (50, [51, 60]), (70, [71, 120]), (200, [201])
    )
    for seconds in (1.5, 40, 51, 65, 90, 110, 149, 151, 199, 201, 300):
        wanted = moment(seconds)
        assert ask(server, wanted) == fewest(found, wanted, server.head), seconds


def test_a_head_with_a_made_up_time_hides_nothing() -> None:
    """FLUSH LOGS in a session with SET TIMESTAMP writes any time into a head."""
    files = [(10.0, [11, 30.0]), (40.0, [41, 60.0]), (70.0, [71, 80.0]), (90.0, [91.0])]
    asked = (20, 35, 50, 61, 75, 91, 95)
    for number in (1, 2, 3):
        for made in (0, 55, 85, 10**4, 10**8):
            lied = [*files]
            lied[number] = (made, files[number][1])
            server, found = logged(*lied)
            for seconds in asked:
                wanted = moment(seconds)
                places = (wanted, server.head)
                assert ask(server, wanted) == first(found, *places), (number, made, seconds)


@pytest.mark.parametrize("lie", [-(10**6), -50, 15, 10**8])
@pytest.mark.parametrize("number", range(8))
def test_one_wrong_time_moves_no_other_transaction(number: int, lie: float) -> None:
    """Far ahead it does not hide what comes after it, far behind it does not let in what comes
    before it: the place is the one of the log without that transaction, on either side of it; or
    one transaction before, where it lies by a time that the log may have and no more than one that
    comes after it tells otherwise."""
    times = [1, 2, 3, 10.0, 20, 30, 40, 50]
    lied = [*times]
    lied[number] = times[number] + lie
    server, found = logged((0, lied[:4]), (15, lied[4:]))
    honest = [(micros(time), place) for time, (_, place) in zip(times, found, strict=True)]
    others = [one for one in honest if one is not honest[number]]
    for seconds in (0.5, 1.5, 2.5, 5, 10, 15, 25, 35, 45, 55):
        wanted = moment(seconds)
        at = ask(server, wanted, moment(60))
        before = [place for _, place in others if place < at]
        expected = [place for time, place in others if time < micros(seconds)]
        assert before in ([expected] if lie != 15 else [expected, expected[:-1]]), seconds


def test_what_stands_on_the_wrong_side_is_told() -> None:
    """How many on either side, and the place that was taken."""
    server, found = logged((0, [1, 9, 2, 3, 5, 6, 2, 7]))
    answer = find_moment(server, server.binlogs, server.head, moment(4), NOW)
    assert (answer.at, answer.late_count, answer.early_count) == (found[4][1], 1, 1)
    assert answer.first_begin == found[1][1]
    sentence = answer.warning("then")
    assert sentence is not None
    assert f"taken to be {found[4][1]}" in sentence
    assert "1 transactions were committed at that moment or later" in sentence
    honest, _ = logged((0, [1, 2, 5]))
    told = find_moment(honest, honest.binlogs, honest.head, moment(4), NOW).warning("then")
    assert told is None


@st.composite
def clocks(draw: st.DrawFn) -> list[list[float]]:
    """Times of transactions, file by file: of a clock that goes on, and jumps back and forth; of
    sessions that set any time; many at one moment."""
    now, files = 100.0, []
    for _ in range(draw(st.integers(1, 4))):
        times: list[float] = []
        for _ in range(draw(st.integers(0, 8))):
            now += draw(st.sampled_from([0, 0, 1, 2, 5]))
            now = max(now + draw(st.sampled_from([0] * 8 + [-40, 40])), 1)
            lie = draw(st.sampled_from([None] * 5 + [0, 50, 10**4, 10**9]))
            times.append(now if lie is None else lie)
        files.append(times)
    return files


@given(files=clocks(), seconds=st.integers(0, 300))
def test_a_moment_in_one_file_has_the_fewest_on_its_wrong_side(
    files: list[list[float]], seconds: int
) -> None:
    """Whatever clocks and sessions did."""
    server, found = logged((0, [time for times in files for time in times]))
    wanted, late = moment(seconds), moment(10**10)
    at = find_moment(server, server.binlogs, server.head, wanted, late).at
    assert at == fewest(found, wanted, server.head)


@given(files=clocks(), seconds=st.integers(0, 300), lies=st.lists(st.integers(0, 400), max_size=4))
def test_a_moment_is_a_place_of_the_log_whatever_its_heads_say(
    files: list[list[float]], seconds: int, lies: list[int]
) -> None:
    """What is told of either side stands in the log, and the first that is late is at or before
    the place."""
    heads = [0, *lies, 200, 250, 300][: len(files)]
    server, found = logged(*zip(map(float, heads), files, strict=True))
    wanted = moment(seconds)
    answer = find_moment(server, server.binlogs, server.head, wanted, moment(10**10))
    places = [place for _, place in found]
    assert answer.at in [*places, server.head]
    before = [time >= micros(seconds) for time, place in found if place < answer.at]
    after = [time < micros(seconds) for time, place in found if place >= answer.at]
    assert answer.late_count <= sum(before)
    assert answer.early_count <= sum(after)
    if answer.first_begin is not None and answer.late_count:
        assert answer.first_begin < answer.at


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
    """Where the log has seconds only, replicated transactions have their own server's: the file
    before is looked at."""
    logs = [file_of(BASE), file_of(BASE + 100)]
    places = [
        at(1, _replicated(logs[0], 1, BASE + 99 + 300)),
        at(2, _replicated(logs[1], 2, BASE + 101 + 300)),
    ]
    server = MadeServer(logs)
    assert ask(server, moment(350)) == places[0]
    assert ask(server, moment(400)) == places[1]


def _replicated(log: Log, number: int, second: int, times: bytes = b"") -> int:
    begin = log.add(EventType.GTID, gtid(number) + times, server_id=99, timestamp=second)
    log.add(EventType.QUERY, query("CREATE TABLE t (a int)"), server_id=99, timestamp=second)
    return begin


def test_which_of_the_times_counts() -> None:
    """Of the log's own transactions that of its server's clock, whatever a session said; of another
    server's its commit there, but no later than here."""
    log = file_of(BASE)
    ahead, behind = micros(10**6), micros(2)
    places = [at(1, commit(log, 1, micros(1)))]
    for here, there in ((10, ahead), (20, behind)):
        body = gtid(len(places) + 1) + clock(micros(here), there)
        places.append(at(1, log.add(EventType.GTID, body)))
        log.say("CREATE TABLE t (a int)")
    for here, there in ((30, ahead), (40, behind)):
        body = tagged_gtid(UUID(SERVER), "a", len(places) + 1, micros(here), there)
        places.append(at(1, log.add(EventType.GTID_TAGGED, body)))
        log.say("CREATE TABLE t (a int)")
    for here, there in ((50, ahead), (60, micros(55))):
        times = clock(micros(here), there)
        places.append(at(1, _replicated(log, len(places) + 1, BASE, times)))
    server = MadeServer([log])
    between = [5, 15, 25, 35, 45, 52]
    assert [ask(server, moment(s)) for s in between] == places[1:]
    assert ask(server, moment(56)) == server.head


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
    assert find_moment(server, server.binlogs, head, moment(1.5), NOW).at == head


def test_a_moment_in_one_file() -> None:
    """Its first transaction at or after it; else none, whatever the next one has."""
    server, found = logged((0, [1, 2]), (10, [11, 12]), (20, [21]))
    file = LogFile("binlog", 2)
    asked = [moment(s) for s in (0, 11.5, 12.5, 21)]

    def found_in(file: LogFile, wanted: datetime, end: Coordinates) -> Coordinates | None:
        answer = find_moment_in_file(server, file, wanted, end, NOW)
        return None if answer is None else answer.at

    assert [found_in(file, m, server.head) for m in asked] == [
        found[2][1], found[3][1], None, None,
    ]  # fmt: skip
    assert found_in(file, moment(11.5), found[3][1]) is None
    last = found_in(LogFile("binlog", 3), moment(22), server.head)
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


TIMES = st.lists(st.integers(0, 30), max_size=40)


def after_epoch(second: float) -> datetime:
    return EPOCH + timedelta(seconds=second)


def by_counting(times: list[int], moment: int) -> Division:
    """For each place, what is on its wrong side; the first of the best."""
    sides = [
        (
            sum(time >= moment for time in times[:place]),
            sum(time < moment for time in times[place:]),
        )
        for place in range(len(times) + 1)
    ]
    wrong = [late + early for late, early in sides]
    place = wrong.index(min(wrong))
    last = len(wrong) - 1 - wrong[::-1].index(min(wrong))
    return Division(place, *sides[place], last, wrong[0] - wrong[-1])


@given(times=TIMES, moment=st.integers(0, 31))
def test_the_place_has_the_fewest_on_its_wrong_side(times: list[int], moment: int) -> None:
    assert find_division([after_epoch(time) for time in times], after_epoch(moment)) == by_counting(
        times, moment
    )


@given(
    items=st.lists(st.tuples(st.integers(0, 30), st.integers(1, 5)), max_size=20),
    moment=st.integers(0, 31),
)
def test_an_item_counts_as_often_as_it_weighs(items: list[tuple[int, int]], moment: int) -> None:
    each = by_counting([time for time, weight in items for _ in range(weight)], moment)
    times, weights = [after_epoch(time) for time, _ in items], [weight for _, weight in items]
    division = find_division(times, after_epoch(moment), weights)
    assert sum(weights[: division.place]) == each.place
    assert sum(weights[: division.last_place]) == each.last_place


@given(times=TIMES.map(sorted), moment=st.integers(0, 31))
def test_where_times_ascend_it_is_before_the_first_at_or_after(
    times: list[int], moment: int
) -> None:
    """And the end of a moment is before the first that comes later."""
    told = [after_epoch(time) for time in times]
    place = sum(time < moment for time in times)
    balance = place - (len(times) - place)
    assert find_division(told, after_epoch(moment)) == Division(place, 0, 0, place, balance)
    assert find_moment_end(told, after_epoch(moment)).place == sum(time <= moment for time in times)


@given(times=TIMES, moments=st.tuples(st.integers(0, 31), st.integers(0, 31)).map(sorted))
def test_a_later_moment_lies_no_earlier(times: list[int], moments: list[int]) -> None:
    """Whatever the times: what is between two moments is between their places."""
    told = [after_epoch(time) for time in times]
    first, second = (find_division(told, after_epoch(moment)).place for moment in moments)
    assert first <= second


@given(times=TIMES.map(sorted), lies=st.lists(st.integers(0, 40), max_size=9), m=st.integers(0, 30))
@example(times=[1, 2], lies=[1], m=5)
def test_an_impossible_time_is_that_of_the_one_before(
    times: list[int], lies: list[int], m: int
) -> None:
    """However many there are, what is at its place without them stays there."""
    lied = [*times]
    for lie in lies:
        lied.insert(min(lie, len(lied)), 10**6)
    place = Divider(m, 100).divide(np.array(lied, np.int64)).place
    honest = [time for time in lied[:place] if time < 100]
    assert honest == [time for time in times if time < m]


def chain(*ends: int) -> list[BatchTimes]:
    begins = [None, *map(after_epoch, ends)]
    return [
        BatchTimes(number, "s", True, False, 1, begins[number], after_epoch(end))
        for number, end in enumerate(ends)
    ]


@pytest.mark.parametrize(
    ("ends", "later", "earlier"),
    [
        ((10, 20, 30, 40, 50), {2, 3, 4}, {0, 1, 2}),
        ((10, 20, 30, 40, 5), {2, 3, 4}, {0, 1, 2}),
        ((10, 90, 20, 30, 40), {1, 2, 3, 4}, {0, 1, 2, 3}),
        ((10, 20, 30, 1, 40), {2, 3, 4}, {0, 1, 2, 3, 4}),
    ],
)
def test_batches_of_a_moment(ends: tuple[int, ...], later: set[int], earlier: set[int]) -> None:
    """One that ends with a wrong time hides none of the others; where it leaves open which are
    meant, all are."""
    times = chain(*ends)
    assert ids_at_or_after(times, after_epoch(25)) == later
    assert ids_before(times, after_epoch(25)) == earlier


def test_a_batch_that_catches_up_is_judged_by_itself() -> None:
    """It stands behind the batches whose times it has."""
    again = BatchTimes(9, "s", True, True, 1, after_epoch(5), after_epoch(15))
    times = [*chain(10, 20, 30, 40), again]
    assert ids_at_or_after(times, after_epoch(12)) == {1, 2, 3, 9}
    assert ids_before(times, after_epoch(12)) == {0, 1, 9}
    assert 9 not in ids_at_or_after(times, after_epoch(16))
    assert 9 not in ids_before(times, after_epoch(5))


def test_the_newest_commit_of_a_batch() -> None:
    """Of those that were possible when it was read; if none was, that is when it ends."""

    def newest(*seconds: int) -> datetime | None:
        commit = NewestCommit(after_epoch(1000))
        for second in seconds:
            row = np.zeros((1, columns.TRANSACTION_COLUMNS), np.int64)
            row[0, columns.LAST_TIMESTAMP] = second
            commit.add(row)
        return commit.time

    assert newest() is None
    assert newest(5, 9, 7) == after_epoch(9)
    assert newest(5, 4_000_000_000, 7) == after_epoch(7)
    assert newest(4_000_000_000) == after_epoch(1000)
    assert newest(1030) == after_epoch(1030), "clocks differ a little"
