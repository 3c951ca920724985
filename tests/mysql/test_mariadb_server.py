"""The MariaDB servers that other tests read from."""

from __future__ import annotations

from pathlib import Path

import pymysql
import pytest

from demo.mysql_packages import through_own_loader
from pipeline.errors import SetupIncomplete
from tests.fix_mysql import MySqlStand
from tests.mariadb.programs import MARIADB_10_11


@pytest.fixture(params=["mariadb", "mariadb11"])
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    """Each MariaDB in turn."""
    each: MySqlStand = request.getfixturevalue(request.param)
    return each


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


def test_what_is_not_whole_is_not_started(tmp_path: Path) -> None:
    """A folder of unpacked packages without the loader names itself in the cure."""
    with pytest.raises(SetupIncomplete, match="incomplete") as refused:
        through_own_loader(MARIADB_10_11, tmp_path, tmp_path / "usr/sbin/mariadbd")
    assert str(tmp_path) in refused.value.hint
