"""What a server that replicates says of its load."""

from __future__ import annotations

from lockstep.resources.mysql.replica import _replication_status
from tests.fix_mysql import MySqlStand
from tests.mysql.chunked import until
from tests.mysql.reading import server
from tests.positions.servers import Pair, replicate


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
