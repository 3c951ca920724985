"""The MariaDB servers that other tests read from."""

from __future__ import annotations

import os
from pathlib import Path

import pymysql
import pytest

from demo.mysql_packages import through_own_loader
from demo.mysql_search import Program, cache_folder
from pipeline.errors import SetupIncomplete
from tests.fix_mysql import MySqlStand
from tests.mariadb.programs import MARIADB_10_11
from tests.mariadb.server import mariadb_server


@pytest.fixture(params=["mariadb", "mariadb11"])
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    """Each MariaDB in turn."""
    each: MySqlStand = request.getfixturevalue(request.param)
    return each


def test_what_a_source_needs_is_set(stand: MySqlStand) -> None:
    """Row format, full images and metadata, checksums and a log are there without asking."""
    query = (
        "select @@log_bin, @@binlog_format, @@binlog_row_image, @@binlog_row_metadata, "
        "@@binlog_checksum"
    )
    assert stand.rows(query) == [(1, "ROW", "FULL", "FULL", "CRC32")]


@pytest.mark.parametrize(("fixture", "series"), [("mariadb", "10.11"), ("mariadb11", "11.4")])
def test_the_version_is_the_named_one(
    request: pytest.FixtureRequest, fixture: str, series: str
) -> None:
    """Whatever the machine's own Debian has, the series is 10.11 and 11.4."""
    stand: MySqlStand = request.getfixturevalue(fixture)
    ((version,),) = stand.rows("select version()")
    number, _, rest = version.partition("-")
    assert (number.rpartition(".")[0], rest.partition("-")[0]) == (series, "MariaDB")


def test_the_account_of_a_source_reads_the_log(stand: MySqlStand) -> None:
    """`lockstep` sees the logs and the tables, and may not write."""
    name = stand.fresh_name()
    stand.execute(f"create database {name}", f"create table {name}.t (id int primary key)")
    with (
        stand.connect(name, user=stand.account, password=stand.password) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute("show master status")
        assert str(cursor.fetchall()[0][0]).startswith("binlog.")
        assert cursor.execute("select * from t") == 0
        with pytest.raises(pymysql.err.OperationalError, match="INSERT command denied"):
            cursor.execute("insert into t values (1)")
    stand.execute(f"drop database {name}")


def test_data_outlives_stop_and_kill(mariadb_program: Program, tmp_path: Path) -> None:
    """The same port and the same data are there after a stop and after a kill."""
    query = "select count(*) from information_schema.schemata where schema_name = 'kept'"
    with mariadb_server(mariadb_program, tmp_path, cache_folder(os.environ)) as server:
        stand, port = MySqlStand(server), server.port
        stand.execute("create database kept")
        server.stop()
        server.start()
        after_stop = stand.rows(query)
        server.kill()
        server.start()
        assert (after_stop, stand.rows(query), server.port) == ([(1,)], [(1,)], port)


def test_options_win(mariadb_program: Program, tmp_path: Path) -> None:
    """A test's own options come after ours."""
    options = ["--binlog-row-metadata=MINIMAL", "--log-bin-compress=ON"]
    cache = cache_folder(os.environ)
    with mariadb_server(mariadb_program, tmp_path, cache, options=options) as server:
        answer = MySqlStand(server).rows("select @@binlog_row_metadata, @@log_bin_compress")
        assert answer == [("MINIMAL", 1)]


def test_what_is_not_whole_is_not_started(tmp_path: Path) -> None:
    """A folder of unpacked packages without the loader names itself in the cure."""
    with pytest.raises(SetupIncomplete, match="incomplete") as refused:
        through_own_loader(MARIADB_10_11, tmp_path, tmp_path / "usr/sbin/mariadbd")
    assert str(tmp_path) in refused.value.hint
