"""Tables read while a transaction is in the log and not committed yet, so that no other session
sees its rows: it is after the read's place in the log.

A semi-synchronous replication without a replica holds a transaction there until it is switched off.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Thread
from time import sleep

import pymysql
import pytest

from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.snapshot.chunks import Range
from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.errors import HistoryRewritten
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.retries import COMMITTED
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.positions.follower import SET_PAUSES, Follower
from tests.positions.servers import Pair
from tests.positions.shop import open_shop, put, refused, require_rule

_HELD_SECONDS = 2
"""How long a transaction is held if nobody lets it go; longer than a read waits for it."""
_LONG_SECONDS = 60
"""Longer than a few runs take."""
assert COMMITTED.seconds is not None
assert COMMITTED.seconds < _HELD_SECONDS


@pytest.fixture(params=["pair", "bare_pair", "mariadb_pair"])
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    """With GTIDs, without, and a MariaDB."""
    pair: Pair = request.getfixturevalue(request.param)
    return pair.a


@contextmanager
def held(stand: MySqlStand, statement: str, seconds: int = _HELD_SECONDS) -> Iterator[Coordinates]:
    """A statement is in the log and not committed; yields the place before it."""
    role = "master"
    if not stand.rows("show global variables like 'rpl_semi_sync_master_enabled'"):
        role = "source"
        if not stand.rows("show global variables like 'rpl_semi_sync_source_enabled'"):
            try:
                stand.execute("install plugin rpl_semi_sync_source soname 'semisync_source.so'")
            except pymysql.MySQLError as error:
                pytest.skip(f"the server has no semi-synchronous replication: {error}")
    wait_none = "slave" if role == "master" else "replica"
    prefix = f"set global rpl_semi_sync_{role}"
    stand.execute(
        f"{prefix}_wait_point = AFTER_SYNC",
        f"{prefix}_wait_no_{wait_none} = ON",
        f"{prefix}_timeout = {seconds * 1000}",
        f"{prefix}_enabled = ON",
    )
    before = stand.head()
    writer = Thread(target=stand.execute, args=(statement,))
    writer.start()
    try:
        while stand.head() == before:
            pass
        file, offset = before
        yield Coordinates(LogFile.parse(file), offset)
    finally:
        stand.execute(f"{prefix}_enabled = OFF")
        writer.join()


def test_a_transaction_that_is_not_committed_is_after_the_read(stand: MySqlStand) -> None:
    """Of a chunk, and of a table without a key, which is read where nothing comes between."""
    open_shop(stand)
    stand.execute("create table shop.k (v int)")
    source = server(stand)
    for name in ("t", "k"):
        [schema] = source.baseline([TableName("shop", name)]).tables
        with (
            held(
                stand,
                f"insert into shop.{name} (v) values (1)"
                if name == "k"
                else "insert into shop.t values (1, 1)",
            ) as before,
            source.chunk(schema, Range(), exact=name == "k") as snapshot,
        ):
            rows = [row for batch in snapshot.batches for row in batch.to_pylist()]
            assert snapshot.low <= before or rows
            assert not snapshot.exact or bool(rows) == (snapshot.low > before)


class Patient(Follower):
    """A follower whose pauses are real."""

    def ports(self, until: str | None = None) -> RunPorts:
        return replace(super().ports(until), pause=sleep)


@pytest.mark.thin
@pytest.mark.parametrize("table", ["t", "k", "empty"])
def test_a_first_run_beside_such_a_transaction_lacks_nothing(stand: MySqlStand, table: str) -> None:
    """Nor has anything twice: of a table with rows, one without a key, and an empty one."""
    open_shop(stand)
    stand.execute(
        "create table shop.k (v int)",
        "insert into shop.k values (1), (1)",
        "create table shop.empty (v int primary key)",
    )
    put(stand, 1)
    follower = Patient(server(stand), ["shop.*"], start="snapshot")
    row = "set id = 2, v = 2" if table == "t" else "set v = 2"
    with held(stand, f"insert into shop.{table} {row}"):
        follower.run()
    for _ in range(2):
        follower.run()
    for name in ("t", "k", "empty"):
        rows = stand.rows(f"select v from shop.{name} order by v")
        assert sorted(row["v"] for row in follower.mirror(f"shop.{name}")) == [v for (v,) in rows]


def test_a_transaction_that_was_read_and_hangs_is_no_rewritten_history(pair: Pair) -> None:
    """The next run is refused, by a sentence that says so; once the commit ends, it goes on."""
    open_shop(pair.a)
    put(pair.a, 1)
    follower = Follower(server(pair.a), ["shop.*"], start="earliest")
    follower.run()
    with held(pair.a, "insert into shop.t values (2, 2)", _LONG_SECONDS):
        follower.run()
        words = ["is the log that was read, but the server's GTID set lacks"]
        error = refused(follower, HistoryRewritten, StartRule.HISTORY_REWRITTEN, words)
        assert "semi-synchronous" in error.hint
        assert follower.pauses == SET_PAUSES
    put(pair.a, 3)
    follower.run()
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    assert sorted(row["id"] for row in follower.mirror("shop.t")) == [1, 2, 3]
