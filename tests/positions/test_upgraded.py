"""A source on MySQL 5.7 that is upgraded to 8.0, and then fails over to a newer replica; and
servers that restart."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.mysql_search import Program, cache_folder
from demo.mysqld import mysql_server
from lockstep.pipeline.start.question import StartRule
from tests.fix_mysql import ACCOUNT, PASSWORD, MySqlStand, killed_at_last
from tests.mariadb.server import mariadb_server
from tests.mysql.reading import rows_read, server
from tests.positions.follower import Follower
from tests.positions.servers import (
    SMALL,
    catch_up,
    copy_data,
    private_mysql,
    promote,
    replicate,
    running,
)
from tests.positions.shop import require_rule

OLD = (
    "create database shop character set utf8mb4",
    "create table shop.t (id int primary key, made timestamp, y year, b bigint unsigned, "
    "f float(7,2), name varchar(20), e enum('x', 'é'), p point, j json, "
    "n int as (id + 1) virtual, key (name desc))",
    "insert into shop.t (id, y, b, f, name, e, p, j) values "
    "(1, 1999, 18446744073709551615, 1.5, 'ł', 'é', point(1, 2), '{\"a\": 1}')",
)
UNREAD_OLD = (
    "create table shop.made_by_the_old (id int primary key, name varchar(20)) charset utf8mb4",
    "alter table shop.t add late varchar(5) default 'x' after id, add mark timestamp null",
    "insert into shop.t (id, b) values (2, 4000000000)",
    "insert into shop.made_by_the_old values (1, 'a')",
)
NEW = (
    "create table shop.made_by_the_new (id int primary key, name varchar(20)) charset utf8mb4",
    "insert into shop.made_by_the_new values (1, 'b')",
    "alter table shop.t add y2 year after id, add b2 bigint unsigned default 18446744073709551615",
    "update shop.t set b = b - 1, y2 = 2155",
    "insert into shop.made_by_the_old values (2, 'c')",
)
NEWEST = (
    "alter table shop.t modify b2 bigint unsigned first, rename column name to named",
    "insert into shop.t (id, b, b2, y2) values (3, 3000000000, 4, 2001)",
    "insert into shop.made_by_the_new values (2, 'd')",
)
TABLES = ("t", "made_by_the_old", "made_by_the_new")


def _require_same(follower: Follower, stand: MySqlStand) -> None:
    source = server(stand)
    for structure in source.structures():
        if structure.name.database == "shop":
            with rows_read(source, structure) as batches:
                rows = [row for batch in batches for row in batch.to_pylist()]
            names = set(rows[0]) if rows else set()
            mirror = follower.mirror(str(structure.name))
            mirrored = [{name: row[name] for name in names} for row in mirror]
            assert sorted(mirrored, key=lambda row: int(row["id"])) == sorted(
                rows, key=lambda row: int(row["id"])
            )


def test_an_upgrade_and_a_failover_are_followed(
    mysql57_program: Program, mysql80_program: Program, program: Program, tmp_path: Path
) -> None:
    """5.7.22, 8.0.15 on its data, and a replica of the newest version that is promoted: one run
    reads logs of two versions, each by its own rules, and no row is asked for twice."""
    with private_mysql(mysql57_program, tmp_path / "source", 11) as old:
        old.execute(*OLD)
        follower = Follower(server(old), ["shop.*"], start="snapshot")
        follower.run()
        _require_same(follower, old)
        old.execute(*UNREAD_OLD, "set global innodb_fast_shutdown = 0")
        # What the program mysql_upgrade makes, as far as 8.0 refuses to work without it.
        old.execute(
            "set sql_log_bin = 0",
            "create user `mysql.infoschema`@localhost identified by 'nobody'",
            "grant select on *.* to `mysql.infoschema`@localhost",
        )
        port, upgraded = old.port, tmp_path / "upgraded"
        old.server.stop()
        upgraded.mkdir()
        copy_data(running(old).data, upgraded / "data")
    with (
        killed_at_last(
            mysql_server(mysql80_program, upgraded, os.environ, port=port, options=SMALL)
        ) as started,
        private_mysql(program, tmp_path / "replica", 12) as newest,
    ):
        new = MySqlStand(started)
        new.execute(*NEW)
        follower.server = server(new)
        follower.run()
        require_rule(follower, StartRule.RESUME_SAME_SERVER)
        _require_same(follower, new)
        # A replica of today does not log in by the password's hash of 5.7.
        new.execute(
            "set sql_log_bin = 0",
            "update mysql.user set plugin = 'caching_sha2_password' where user = 'root'",
            "flush privileges",
        )
        replicate(new, newest)
        catch_up(new, newest)
        promote(newest)
        newest.execute(*NEWEST)
        follower.server = server(newest)
        follower.run()
        require_rule(follower, StartRule.RESUME_OTHER_SERVER)
        _require_same(follower, newest)
        states = follower.ledger.table_states("shop").values()
        assert [state.reason for state in states] == [None] * len(TABLES)


# -- MEMORY tables, which a server that restarts has emptied, as it says at the first access ---


_MARIADB = (
    f"create user {ACCOUNT} identified by '{PASSWORD}'",
    f"grant replication slave, binlog monitor, select on *.* to {ACCOUNT}",
)


@contextmanager
def started(name: str, program: Program, folder: Path) -> Iterator[MySqlStand]:
    if not name.startswith("mariadb"):
        with private_mysql(program, folder, 31) as stand:
            yield stand
        return
    with killed_at_last(mariadb_server(program, folder, cache_folder(os.environ))) as one:
        stand = MySqlStand(one)
        stand.execute("set sql_log_bin = 0", *_MARIADB)
        yield stand


@pytest.mark.parametrize(
    "program",
    [
        *("mysql_program", "mysql57_program", "mariadb_program"),
        pytest.param("mysql80_program", marks=pytest.mark.soak),
    ],
)
def test_memory_tables_are_emptied(
    request: pytest.FixtureRequest, program: str, tmp_path: Path
) -> None:
    """Some versions log a DELETE inside a transaction, others TRUNCATE: neither stops the source,
    whether its patterns name the table or not, and other tables go on."""
    with started(program, request.getfixturevalue(program), tmp_path) as stand:
        stand.execute(
            f"grant trigger on *.* to {stand.account}",
            "create database app",
            "create table app.kept (id int primary key)",
            *(
                f"create table app.{name} (id int primary key) engine memory"
                for name in ("cache", "hot")
            ),
            "insert into app.cache values (1)",
            "insert into app.hot values (1)",
        )
        follower = Follower(server(stand), ["app.kept", "app.hot"], "latest")
        assert {one.table.name for one in follower.run().quarantined} == {"hot"}
        running(stand).kill()
        running(stand).start()
        before = stand.head()
        assert stand.rows("select * from app.cache union all select * from app.hot") == []
        assert stand.head() > before
        stand.execute("insert into app.kept values (1)")
        report = follower.run()
        assert (report.stop_error, report.quarantined) == (None, ())
        assert [row["id"] for row in follower.mirror("app.kept")] == [1]
