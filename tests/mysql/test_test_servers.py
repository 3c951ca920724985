"""The servers that other tests read from."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pymysql
import pytest

from demo.mysql_packages import through_own_loader
from pipeline.errors import SetupIncomplete
from tests.fix_mysql import MySqlStand
from tests.mariadb.programs import MARIADB_10_11

VERSIONS: Final = {
    "mysql80": "8.0.15",
    "mysql57": "5.7.22",
    "mariadb": "10.11",
    "mariadb11": "11.4",
}


@pytest.fixture(params=VERSIONS)
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    """Each server of a fixed version in turn."""
    each: MySqlStand = request.getfixturevalue(request.param)
    return each


@pytest.mark.parametrize(("fixture", "version"), VERSIONS.items())
def test_the_version_is_the_named_one(
    request: pytest.FixtureRequest, fixture: str, version: str
) -> None:
    """Whatever the machine's own Debian has, these are the versions."""
    stand: MySqlStand = request.getfixturevalue(fixture)
    ((found,),) = stand.rows("select version()")
    assert found.startswith(version)
    assert ("MariaDB" in found) is fixture.startswith("mariadb")


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
