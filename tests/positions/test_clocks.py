"""Moments in logs of real servers whose times do not ascend: sessions with clocks of their own."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.pipeline.ports.source import ServerFacts
from lockstep.pipeline.replay.spans import Span
from lockstep.pipeline.run.find_place import resolve_end
from lockstep.pipeline.run.rebuild import cut_at
from lockstep.pipeline.run.replay.selection import select_batches
from lockstep.pipeline.run.status.version_sets import version_set_at
from lockstep.pipeline.values.errors import PastRefused, VersionSetUnknown
from lockstep.pipeline.values.places import AtMoment, parse_place
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import settings
from tests.positions.follower import SOURCE, Follower
from tests.positions.one_table import Shop, open_shop
from tests.positions.test_ends import has_exact_times, let_a_second_pass, moment

AHEAD, BEHIND = 2_145_000_000, 1_000_000
"""In 2037, and in January 1970."""


@pytest.fixture(
    params=[
        *("mysql_newest", "mariadb"),
        *(pytest.param(s, marks=pytest.mark.soak) for s in ("mysql80", "mysql57", "mariadb11")),
    ]
)
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    found: MySqlStand = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def shop(stand: MySqlStand) -> Iterator[Shop]:
    """A source whose log begins now."""
    stand.execute("flush binary logs")
    with stand.own_database() as name:
        yield open_shop(stand, name)


def put_at(shop: Shop, seconds: int, *keys: int, flush: bool = False) -> None:
    """Transactions, and a log file, of a session that says it is another time."""
    with shop.stand.connect() as connection, connection.cursor() as cursor:
        cursor.execute("show variables like 'original_commit_timestamp'")
        if cursor.fetchall():
            cursor.execute(f"set original_commit_timestamp = {seconds * 1_000_000}")
        cursor.execute(f"set timestamp = {seconds}")
        if flush:
            cursor.execute("flush binary logs")
        for key in keys:
            cursor.execute(f"insert into {shop.name}.t values ({key}, 0)")


def run(shop: Shop, until: str) -> list[str]:
    """A run, and what it told."""
    shop.follower.notes.clear()
    shop.follower.capture(until)
    told = [*shop.follower.notes]
    shop.follower.run(until)
    return told


def test_one_transaction_far_ahead_hides_nothing(shop: Shop) -> None:
    """Whatever comes after it and before the moment is read, and what comes after the moment is
    not; later moments are found as well. Its file may have begun by the same clock. Where the
    moment was taken to lie is told, and how many transactions say otherwise; MySQL 8 has a clock
    that no session changes, and so nothing to tell. One that says it is old lets nothing in."""
    shop.put(1, 2)
    put_at(shop, AHEAD, 3, flush=True)
    shop.put(4, 5)
    first = moment(shop.stand)
    shop.put(6)
    put_at(shop, AHEAD, 7)
    second = moment(shop.stand)
    shop.put(8)
    put_at(shop, BEHIND, 9, flush=True)
    shop.put(10)
    notes = run(shop, first)
    assert shop.keys() == [1, 2, 3, 4, 5]
    exact = has_exact_times(shop.stand)
    wanted = [f"the log's commit times do not ascend around {first}, which is taken to be "]
    assert [note[: len(wanted[0])] for note in notes] == ([] if exact else wanted)
    otherwise = "1 transactions were committed at that moment or later"
    assert all(otherwise in note for note in notes)
    run(shop, second)
    assert shop.keys() == [1, 2, 3, 4, 5, 6, 7]
    shop.follower.run()
    assert shop.keys() == [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]


@pytest.mark.thin
def test_a_start_is_the_same_place_as_an_end(shop: Shop) -> None:
    """What a run up to a moment left is what a run from there on reads, wrong times or not."""
    shop.put(1)
    put_at(shop, AHEAD, 2)
    shop.put(3, 4)
    until = moment(shop.stand)
    shop.put(5)
    put_at(shop, BEHIND, 6)
    shop.put(7)
    follower = Follower(shop.follower.server, shop.follower.tables, start=until)
    fresh = Shop(shop.stand, shop.name, follower)
    fresh.follower.run()
    run(shop, until)
    assert (shop.keys(), fresh.keys()) == ([1, 2, 3, 4], [5, 6, 7])
    shop.follower.choose(until)
    shop.follower.run()
    assert shop.keys() == [1, 2, 3, 4, 5, 6, 7]


WRONG = {2: AHEAD, 3: BEHIND}
"""By the number of a batch, when its last transaction says that it was committed."""


def test_the_ledgers_times_survive_wrong_ones(shop: Shop) -> None:
    """A batch ends with one: what is shown and replayed as of a moment is what was committed then,
    and the time that tells how far the source is has been."""
    moments = list[str]()
    for key in range(1, 5):
        if moments and not has_exact_times(shop.stand):
            moment(shop.stand)  # Nothing is committed in the second that began with the last one.
        shop.put(key)
        if key in WRONG:
            put_at(shop, WRONG[key], 10 * key)
        shop.follower.run()
        batch = shop.follower.batches(limit=1)[0]
        assert batch.end is not None
        assert batch.end.committed_at is not None
        assert batch.end.committed_at <= datetime.now(UTC) + timedelta(seconds=2)
        moments.append(moment(shop.stand))
    ports = shop.follower.ports()
    made = list(reversed(shop.follower.batches(limit=4)))
    numbers = [batch.id for batch in made]
    for number, text in enumerate(moments):
        place = parse_place(text)
        end = made[number].end
        assert end is not None
        if number < 3:
            assert version_set_at(shop.follower.ledger, SOURCE, place).batch == made[number]
            assert cut_at(ports, place).at == end.at
        for later, until in enumerate(moments[number + 1 :], start=number + 1):
            span = Span(place, parse_place(until))
            # The ledger does not tell when the first transaction of a batch was committed.
            touched = [batch.id for batch in select_batches(ports, span).batches]
            assert touched in (numbers[number + 1 : later + 1], numbers[number + 1 : later + 2])


class _Ahead(MySqlServer):
    """A server whose clock is so many seconds ahead of this machine's."""

    seconds = 0

    def facts(self) -> ServerFacts:
        facts = super().facts()
        return replace(facts, read_at=facts.read_at + timedelta(seconds=self.seconds))


def test_a_clock_that_is_set_back_hides_no_batch(mariadb: MySqlStand) -> None:
    """One transaction was committed while it was an hour ahead. As of a later moment, batches are
    counted by their transactions, as the log is: what is shown, made again and read up to there is
    the same."""
    mariadb.execute("flush binary logs")
    with mariadb.own_database() as name:
        shop = open_shop(mariadb, name)
        shop.follower.server = server = _Ahead(settings(mariadb))
        now = int(datetime.now(UTC).timestamp())
        for seconds, keys in ((3600, [1]), (10, [2, 3, 4]), (20, [5, 6, 7]), (3700, [8])):
            server.seconds = seconds + 1
            put_at(shop, now + seconds, *keys)
            shop.follower.run()
        shop.follower.run()
        ports, batches = shop.follower.ports(), shop.follower.batches(limit=4)
        place = AtMoment(datetime.fromtimestamp(now + 15, UTC))
        end = batches[2].captured_end.at
        assert resolve_end(ports, place, ports.server.facts(), batches[3].start) == end
        assert cut_at(ports, place).at == end
        assert version_set_at(shop.follower.ledger, SOURCE, place).batch == batches[2]


@pytest.mark.thin
def test_a_moment_after_the_last_commit_is_read_once_a_run_found_nothing_after_it(
    shop: Shop,
) -> None:
    """The source is idle: that nothing else was committed by then is known from the run alone, and
    a batch whose run ended before the log's end says nothing of it."""
    shop.put(1)
    shop.follower.run()
    place, ports = parse_place(moment(shop.stand)), shop.follower.ports()
    for is_later in (False, True):
        if is_later:
            let_a_second_pass(shop.stand)
            shop.put(2)
            shop.follower.capture(str(place))
        with pytest.raises(VersionSetUnknown, match="does not show"):
            version_set_at(shop.follower.ledger, SOURCE, place)
        with pytest.raises(PastRefused, match="does not show"):
            cut_at(ports, place)
    shop.stand.rows("select sleep(1.1)")  # what is known from a run has whole seconds
    shop.follower.run()
    [last, first] = shop.follower.batches(limit=2)
    assert version_set_at(shop.follower.ledger, SOURCE, place).batch == first
    later = parse_place(moment(shop.stand))
    shop.stand.rows("select sleep(1.1)")
    shop.follower.run()
    assert shop.follower.batches(limit=1) == [last]
    assert version_set_at(shop.follower.ledger, SOURCE, later).batch == last
    assert last.end is not None
    assert cut_at(ports, later).at == last.end.at
