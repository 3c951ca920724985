"""Tables read from a replica, while the log comes from the source: the lake equals the source,
in whatever order the replica commits, and however late it is."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest

from lockstep.pipeline.snapshot.pace import Pace
from lockstep.pipeline.source_plan import SnapshotPlan
from lockstep.pipeline.values.errors import ServerSettings
from lockstep.pipeline.values.retries import REPLICA
from lockstep.resources.mysql import replica as replica_module
from lockstep.resources.mysql.replica import _replication_status
from lockstep.resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import until
from tests.mysql.reading import server, settings
from tests.positions.follower import SOURCE, Follower
from tests.positions.four_writers import MIXED, four_write, of_one_row
from tests.positions.paused import Shop
from tests.positions.servers import Pair, catch_up, promote, replicate

ROWS = 300
TWENTY = SnapshotPlan(
    max_seconds=0.2, connections=3, pace=Pace(1e-9, least_rows=20, first_rows=20, most_rows=20)
)


@pytest.fixture
def shop(pair: Pair) -> Iterator[Shop]:
    """A source with rows that no log has, and a replica with four workers, each of which commits
    when it is done."""
    values = ", ".join(f"({number}, 0)" for number in range(ROWS))
    pair.b.execute(
        "set global replica_preserve_commit_order = OFF", "set global replica_parallel_workers = 4"
    )
    replicate(pair.a, pair.b)
    pair.a.execute(
        "create database shop",
        "create table shop.a (id int primary key, v int)",
        f"insert into shop.a values {values}",
        "flush binary logs",
    )
    catch_up(pair.a, pair.b)
    source = MySqlServer(settings(pair.a), read_from=settings(pair.b))
    follower = Follower(source, ["shop.*"], start="snapshot", snapshot=TWENTY)
    yield Shop(pair.a, "shop", follower)
    promote(pair.b)
    pair.b.execute(
        "set global replica_parallel_workers = 1", "set global replica_preserve_commit_order = ON"
    )


@pytest.mark.parametrize("seed", MIXED)
def test_while_four_write(shop: Shop, pair: Pair, seed: int) -> None:
    """While the replica stands still for moments, the first of them when reading begins; no chunk
    is read from the source."""
    random, stop = Random(seed), threading.Event()
    pair.b.execute("stop replica sql_thread")
    shop.do("update a set v = 1000 where id % 3 = 0", "flush binary logs")
    before = _rows_read(pair.a), _rows_read(pair.b)
    looked = shop.follower.server.survey().read_replica
    assert looked is not None and looked.reason_unusable is None, "late is not wrong"
    keys = range(ROWS // 2, ROWS * 2)
    pauses = threading.Thread(target=_pause, args=(pair.b, Random(seed), stop))
    with four_write(shop, random, lambda own: of_one_row(own, keys)):
        pauses.start()
        try:
            read_all(shop)
        finally:
            stop.set()
            pauses.join()
    assert _rows_read(pair.a) == before[0]
    assert _rows_read(pair.b) >= before[1] + ROWS // 40
    read_all(shop)
    shop.require_whole("a", rereads=1)


def read_all(shop: Shop) -> None:
    """As many runs as it takes, at least one."""
    for _ in range(500):
        shop.run()
        states = shop.follower.ledger.table_states(SOURCE).values()
        if states and all(one.is_complete for one in states):
            return
    raise AssertionError("it takes too many runs")


def _rows_read(stand: MySqlStand) -> int:
    """Statements that read rows: no other is prepared."""
    [(_, count)] = stand.rows("show global status like 'com_stmt_execute'")
    return int(count)


def _pause(replica: MySqlStand, random: Random, stop: threading.Event) -> None:
    while not stop.wait(random.random()):
        replica.execute("stop replica sql_thread")
        stop.wait(random.random() / 2)
        replica.execute("start replica sql_thread")


def test_a_replica_that_stands_still_is_waited_for(
    shop: Shop, pair: Pair, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For a while; the other tables go on, and the next run reads. One without a key is read from
    the source."""
    monkeypatch.setattr(replica_module, "REPLICA", replace(REPLICA, seconds=0.0))
    pair.b.execute("stop replica sql_thread")
    shop.do(
        "create table keyless (id int)",
        "insert into keyless values (1), (1)",
        "update a set v = 7 where id < 100",
        "flush binary logs",
    )
    shop.run()
    state = shop.state("a")
    assert state.has_stopped
    assert "has not executed what the source had" in (state.reason or "")
    shop.require_whole("keyless", rereads=1)
    pair.b.execute("start replica sql_thread")
    catch_up(pair.a, pair.b)
    read_all(shop)
    shop.require_whole("a", rereads=1)


def test_replicas_that_are_not_read(shop: Shop, pair: Pair) -> None:
    """One that leaves something out, and what is on the replica alone."""
    pair.b.execute("stop replica", "change replication filter replicate_ignore_table = (shop.x)")
    try:
        _require_refused(shop.follower, "Replicate_Ignore_Table")
    finally:
        pair.b.execute("change replication filter replicate_ignore_table = ()", "start replica")
    pair.b.execute("insert into shop.a values (-1, -1)")
    _require_refused(shop.follower, "transactions that the source lacks")


def test_without_gtids_no_replica_is_read(bare_pair: Pair) -> None:
    bare_pair.a.execute("create database shop", "create table shop.a (id int primary key)")
    source = MySqlServer(settings(bare_pair.a), read_from=settings(bare_pair.b))
    _require_refused(Follower(source, ["shop.*"], start="snapshot"), "GTIDs")


def test_no_replica_of_mariadb_is_read(mariadb: MySqlStand, mariadb_database: str) -> None:
    mariadb.execute("create table a (id int primary key)", database=mariadb_database)
    source = MySqlServer(settings(mariadb), read_from=settings(mariadb))
    follower = Follower(source, [f"{mariadb_database}.*"], start="snapshot")
    _require_refused(follower, "is a MariaDB")


def _require_refused(follower: Follower, why: str) -> None:
    """By a run, and by `check` before it."""
    looked = follower.server.survey().read_replica
    assert looked is not None
    assert why in (looked.reason_unusable or "")
    with pytest.raises(ServerSettings, match=why):
        follower.run()


# -- what a server that replicates says of its load --------------------------------------------


def _lag(stand: MySqlStand) -> float | None:
    return server(stand).source_load().replica_lag


def _falls_behind(source: MySqlStand, replica: MySqlStand) -> None:
    """A table that is locked on the replica keeps it from going on."""
    source.execute("create database d", "create table d.t (id int primary key)")
    there = "select 1 from information_schema.tables where table_schema = 'd'"
    until(lambda: bool(replica.rows(there)) and _lag(replica) == 0)
    with replica.connect("d") as session, session.cursor() as cursor:
        cursor.execute("lock tables t read")
        source.execute("insert into d.t values (1)")
        until(lambda: (_lag(replica) or 0) > 0)
        cursor.execute("unlock tables")
    until(lambda: _lag(replica) == 0)
    assert _lag(source) is None


def test_a_replica_says_how_far_it_is_behind(pair: Pair) -> None:
    """In seconds, while it is; the server it follows is behind nobody."""
    replicate(pair.a, pair.b)
    _falls_behind(pair.a, pair.b)


def test_a_replica_of_mariadb_says_how_far_it_is_behind(mariadb_pair: Pair) -> None:
    """To an account that may only look at the log, it does not."""
    replicate(mariadb_pair.a, mariadb_pair.b)
    assert _lag(mariadb_pair.b) is None
    mariadb_pair.b.execute(f"grant slave monitor on *.* to {mariadb_pair.b.account}")
    _falls_behind(mariadb_pair.a, mariadb_pair.b)


def test_a_replica_of_several_mariadb_servers_says_so_of_each(mariadb: MySqlStand) -> None:
    """Sources that have names are not in SHOW REPLICA STATUS, which MariaDB knows, too."""
    mariadb.execute("change master 'named' to master_host = 'nowhere', master_user = 'x'")
    try:
        with mariadb.connect() as connection, connection.cursor() as cursor:
            assert [row["Connection_name"] for row in _replication_status(cursor)] == ["named"]
    finally:
        mariadb.execute("reset slave 'named' all")
