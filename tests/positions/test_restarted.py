"""A server that restarts has emptied its MEMORY tables, and says so at the first access."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from demo.mysql_search import Program, cache_folder
from tests.fix_mysql import ACCOUNT, PASSWORD, MySqlStand, killed_at_last
from tests.mariadb.server import mariadb_server
from tests.mysql.reading import server
from tests.positions.follower import Follower
from tests.positions.servers import private_mysql, running

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
