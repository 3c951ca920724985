"""Moments in logs of real servers whose times do not ascend: sessions with clocks of their own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from pipeline.places import moment_text, parse_place
from pipeline.replay.spans import Span
from pipeline.runs.capture import capture
from pipeline.runs.inspecting.version_sets import version_set_at
from pipeline.runs.rebuilding.origin import cut_at
from pipeline.runs.replaying.recapture import select
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE
from tests.positions.one_table import Shop, open_shop
from tests.positions.test_ends import Told

AHEAD, BEHIND = 2_145_000_000, 1_000_000
"""In 2037, and in January 1970."""


@pytest.fixture(
    params=[
        *("mysql_newest", "mysql80", "mysql57", "mariadb"),
        pytest.param("mariadb11", marks=pytest.mark.soak),
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


def a_moment(shop: Shop) -> str:
    """Now, by the server's clock. Where commits have whole seconds alone, nothing is committed in
    those on either side of it."""
    exact = shop.stand.rows("show variables like 'original_commit_timestamp'")
    apart = 0.01 if exact else 1.01
    time.sleep(apart)
    [(now,)] = shop.stand.rows("select utc_timestamp(6)")
    time.sleep(apart)
    return moment_text(datetime.fromisoformat(str(now)).replace(tzinfo=UTC))


def run(shop: Shop, until: str) -> list[str]:
    """A run, and what it told."""
    told = Told()
    with shop.follower.ledger.lock(SOURCE, "test", None) as lease:
        capture(replace(shop.follower.work(until), progress=told), lease)
    shop.follower.run(until)
    return told.notes


def test_one_transaction_far_ahead_hides_nothing(shop: Shop) -> None:
    """Whatever comes after it and before the moment is read, and what comes after the moment is
    not; later moments are found as well. Its file may have begun by the same clock."""
    shop.put(1, 2)
    put_at(shop, AHEAD, 3, flush=True)
    shop.put(4, 5)
    first = a_moment(shop)
    shop.put(6)
    put_at(shop, AHEAD, 7)
    second = a_moment(shop)
    shop.put(8)
    run(shop, first)
    assert shop.keys() == [1, 2, 3, 4, 5]
    run(shop, second)
    assert shop.keys() == [1, 2, 3, 4, 5, 6, 7]
    shop.follower.run()
    assert shop.keys() == [1, 2, 3, 4, 5, 6, 7, 8]


def test_one_transaction_far_behind_lets_in_nothing(shop: Shop) -> None:
    """What comes after the moment is not read because one of it says that it is old."""
    shop.put(1, 2)
    moment = a_moment(shop)
    shop.put(3, 4)
    put_at(shop, BEHIND, 5, flush=True)
    shop.put(6)
    run(shop, moment)
    assert shop.keys() == [1, 2]
    shop.follower.run()
    assert shop.keys() == [1, 2, 3, 4, 5, 6]


def test_a_start_is_the_same_place_as_an_end(shop: Shop) -> None:
    """What a run up to a moment left is what a run from there on reads, wrong times or not."""
    shop.put(1)
    put_at(shop, AHEAD, 2)
    shop.put(3, 4)
    moment = a_moment(shop)
    shop.put(5)
    put_at(shop, BEHIND, 6)
    shop.put(7)
    fresh = open_shop_again(shop, moment)
    fresh.follower.run()
    run(shop, moment)
    assert (shop.keys(), fresh.keys()) == ([1, 2, 3, 4], [5, 6, 7])
    shop.follower.choose(moment)
    shop.follower.run()
    assert shop.keys() == [1, 2, 3, 4, 5, 6, 7]


def open_shop_again(shop: Shop, start: str) -> Shop:
    """Another source of the same table, which begins at a moment."""
    follower = type(shop.follower)(shop.follower.server, shop.follower.tables, start=start)
    return Shop(shop.stand, shop.name, follower)


def test_a_log_whose_times_do_not_ascend_is_told(shop: Shop) -> None:
    """Where the moment was taken to lie, and how many transactions say otherwise; MySQL 8 has a
    clock that no session changes, and so nothing to tell."""
    shop.put(1, 2)
    put_at(shop, AHEAD, 3)
    shop.put(4)
    moment = a_moment(shop)
    shop.put(5)
    notes = run(shop, moment)
    exact = shop.stand.rows("show variables like 'original_commit_timestamp'")
    wanted = [f"the log's times do not ascend where {moment} lies, which is taken to be "]
    assert [note[: len(wanted[0])] for note in notes] == ([] if exact else wanted)
    assert all(
        "1 transactions say that they were committed at that moment or later" in note
        for note in notes
    )


@pytest.mark.thin
@pytest.mark.parametrize("seconds", [AHEAD, BEHIND])
def test_the_ledgers_times_survive_a_wrong_one(shop: Shop, seconds: int) -> None:
    """A batch ends with it: what is shown and replayed as of a moment is what was committed then,
    and the time that tells how far the source is has been."""
    moments = []
    for key in range(1, 6):
        shop.put(key)
        if key == 3:
            put_at(shop, seconds, 30)
        shop.follower.run()
        batch = shop.follower.ledger.batches(SOURCE, limit=1)[0]
        assert batch.end is not None
        assert batch.end.committed_at is not None
        assert batch.end.committed_at <= datetime.now(UTC) + timedelta(seconds=2)
        moments.append(a_moment(shop))
    work = shop.follower.work()
    made = list(reversed(shop.follower.ledger.batches(SOURCE, limit=5)))
    numbers = [batch.id for batch in made]
    for number, moment in enumerate(moments):
        place = parse_place(moment)
        assert version_set_at(shop.follower.ledger, SOURCE, place).batch == made[number]
        end = made[number].end
        assert end is not None
        if number < 4:
            assert cut_at(work, place).at == end.at
        for later, until in enumerate(moments[number + 1 :], start=number + 1):
            span = Span(place, parse_place(until))
            # The ledger does not tell when the first transaction of a batch was committed.
            touched = [batch.id for batch in select(work, span).batches]
            assert touched in (numbers[number + 1 : later + 1], numbers[number + 1 : later + 2])
