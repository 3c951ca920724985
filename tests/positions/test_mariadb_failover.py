"""Another MariaDB answers: GTIDs of domains and servers instead of UUIDs."""

from __future__ import annotations

from lockstep.pipeline.start.question import StartRule
from lockstep.pipeline.values.errors import HistoryUnproven, PositionPurged, SourceDiverged
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import (
    Pair,
    catch_up_mariadb,
    promote_mariadb,
    replicate_mariadb,
)
from tests.positions.shop import (
    follow,
    open_shop,
    put,
    refused,
    require_each_once,
    require_rule,
    require_same,
    take,
    turn_to,
)


def _half_read(pair: Pair) -> Follower:
    """The first half is read from A; B has the second too and is promoted."""
    open_shop(pair.a)
    put(pair.a, 1, 2)
    replicate_mariadb(pair.a, pair.b)
    follower = follow(pair.a)
    follower.run()
    put(pair.a, 3)
    take(pair.a, 1)
    catch_up_mariadb(pair.a, pair.b)
    promote_mariadb(pair.b)
    return follower


_TRIES = 1000


def _purge(stand: MySqlStand) -> None:
    """All log files but a new one, which begins behind them. A file stays until the server
    notes, some time after the engine's log was written, that no crash needs it any more."""
    with stand.connect() as connection, connection.cursor() as cursor:
        cursor.execute("flush binary logs")
        cursor.execute("show master status")
        [(name, *_)] = cursor.fetchall()
        for _ in range(_TRIES):
            cursor.execute("flush local engine logs")
            cursor.execute(f"purge binary logs to '{name}'")
            cursor.execute("show binary logs")
            if cursor.fetchall()[0][0] == name:
                return
    raise AssertionError(f"{name} is not the oldest file after {_TRIES} tries")


def test_a_promoted_mariadb_is_read_on_behind_the_set(mariadb_pair: Pair) -> None:
    """Domain, server and number tell what was read, there and back again."""
    a, b = mariadb_pair.a, mariadb_pair.b
    b.execute("flush binary logs")
    follower = _half_read(mariadb_pair)
    put(b, 4)
    turn_to(follower, b)
    report = follower.run()
    require_rule(follower, StartRule.RESUME_OTHER_SERVER)
    assert report.end.gtid_set.sources == ("0-11", "0-12")
    require_same(follower, b)
    require_each_once(follower)
    put(b, 5)
    follower.run()
    require_rule(follower, StartRule.RESUME_SAME_SERVER)
    replicate_mariadb(b, a)
    a.execute("stop slave")
    a.execute("set global gtid_slave_pos = @@global.gtid_binlog_pos", "start slave")
    catch_up_mariadb(b, a)
    promote_mariadb(a)
    put(a, 6)
    turn_to(follower, a)
    follower.run()
    require_same(follower, a)
    require_each_once(follower)
    servers = [reign.server_uuid for reign in follower.ledger.server_periods(SOURCE)]
    assert servers == ["server-id:11", "server-id:12", "server-id:11"]


def test_what_mariadb_lacks_is_named(mariadb_pair: Pair) -> None:
    """Read from the old server, never seen by the new one."""
    follower = _half_read(mariadb_pair)
    put(mariadb_pair.a, 50)
    follower.run()
    turn_to(follower, mariadb_pair.b)
    refused(follower, SourceDiverged, StartRule.SOURCE_DIVERGED, ["0-11-"])


def test_errant_transactions_of_a_mariadb_come_out(mariadb_pair: Pair) -> None:
    """Another server id's transactions in the same domain, before and after what was read."""
    a, b = mariadb_pair.a, mariadb_pair.b
    open_shop(a)
    replicate_mariadb(a, b)
    catch_up_mariadb(a, b)
    put(b, 100)
    put(a, 1)
    follower = follow(a)
    follower.run()
    put(a, 2)
    catch_up_mariadb(a, b)
    put(b, 101)
    promote_mariadb(b)
    turn_to(follower, b)
    follower.run()
    assert [row["id"] for row in follower.mirror("shop.t")] == [1, 2, 100, 101]
    require_each_once(follower)


def test_a_purged_mariadb(mariadb_pair: Pair) -> None:
    """What was thrown away unread is named; what was read a person vouches for."""
    follower = _half_read(mariadb_pair)
    _purge(mariadb_pair.b)
    turn_to(follower, mariadb_pair.b)
    refused(follower, PositionPurged, StartRule.PURGED_ON_OTHER_SERVER, ["0-11-"])
    turn_to(follower, mariadb_pair.a)
    follower.run()
    put(mariadb_pair.b, 9)
    turn_to(follower, mariadb_pair.b)
    error = refused(follower, HistoryUnproven, StartRule.SET_UNPROVEN)
    follower.choose(error.hint.partition("`lockstep start-at ")[2].partition(" --source")[0])
    assert follower.run().transactions == 1
    require_same(follower, mariadb_pair.b)
