"""Servers that the tests of positions share: each started once, emptied before each test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from demo.mysql_search import MySql, Program
from tests.fix_mysql import MySqlStand
from tests.positions.servers import Pair, fresh, private_mariadb, private_mysql

SHORT = 1 << 16
"""Bytes of a log file."""


@pytest.fixture
def database(mysql: MySqlStand) -> Iterator[str]:
    """A database of the test's own, on a server whose log is short: a first run reads the file
    that it begins in, and every run asks for the list of all."""
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("show binary logs")
        files = cursor.fetchall()
        if len(files) > 1 or int(files[-1][1]) > SHORT:
            cursor.execute("flush binary logs")
            cursor.execute("show binary logs")
            (*_, (newest, *_)) = cursor.fetchall()
            cursor.execute(f"purge binary logs to '{newest}'")
    with mysql.own_database() as name:
        yield name


@pytest.fixture(scope="session")
def program(mysql_program: MySql) -> Program:
    """A mysqld of this machine, whose data folders may be copied."""
    if not isinstance(mysql_program, Program):
        pytest.skip("the server runs in a container: its data folder is not ours")
    return mysql_program


@pytest.fixture(scope="session")
def started_pair(program: Program, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("pair")
    with (
        private_mysql(program, folder / "a", 11) as a,
        private_mysql(program, folder / "b", 12) as b,
    ):
        yield Pair(a, b)


@pytest.fixture
def pair(started_pair: Pair) -> Pair:
    """Two empty servers with GTIDs, of which none follows the other."""
    return started_pair.emptied(fresh, "ON")


@pytest.fixture
def bare_pair(started_pair: Pair) -> Pair:
    """Two empty servers without GTIDs, of which none follows the other."""
    return started_pair.emptied(lambda stand: fresh(stand, "OFF"), "OFF")


@pytest.fixture(scope="session")
def started_mariadb_pair(
    mariadb_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Pair]:
    folder = tmp_path_factory.mktemp("mariadb-pair")
    with (
        private_mariadb(mariadb_program, folder / "a", 11) as a,
        private_mariadb(mariadb_program, folder / "b", 12) as b,
    ):
        yield Pair(a, b)


@pytest.fixture
def mariadb_pair(started_mariadb_pair: Pair) -> Pair:
    """Two empty MariaDB 10.11, of which none follows the other."""
    return started_mariadb_pair.emptied(fresh, "")


@pytest.fixture(params=["pair", "mariadb_pair"])
def either_pair(request: pytest.FixtureRequest) -> Pair:
    """Two empty servers with GTIDs, of MySQL and of MariaDB."""
    pair: Pair = request.getfixturevalue(request.param)
    return pair


@pytest.fixture(scope="module", autouse=True)
def minimal_metadata(mysql: MySqlStand) -> Iterator[None]:
    """The log has no names of columns, as a server's has by default."""
    with mysql.metadata("MINIMAL"):
        yield


@pytest.fixture
def nameless(request: pytest.FixtureRequest) -> Iterator[MySqlStand]:
    """The server that a test names, whose log does not name columns, as each has by default."""
    stand: MySqlStand = request.getfixturevalue(request.param)
    with stand.metadata("NO_LOG" if request.param.startswith("mariadb") else "MINIMAL"):
        yield stand
