"""MySQL servers for the tests: one of each version per session, one database per test.

`mysql` has GTIDs, row format with full images and metadata, an account that may do
everything and the account `lockstep` with just the privileges a source needs. It is
somebody else's server where LOCKSTEP_TEST_MYSQL names one. `mysql80` is MySQL 8.0.15 and
`mysql57` is MySQL 5.7.22, which has no full metadata.

A test or module that is marked `servers("newest", "8.0", "5.7")` runs once on each of these: its
`mysql`, and whatever is made on it, is that server.
"""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Final

import pymysql
import pytest
from pymysql.cursors import Cursor

from demo.mysql_search import GivenServer, MySql, Program, cache_folder, find_mysql
from demo.mysqld import GivenMySql, ProgramMySql, RunningMySql, mysql_server
from lockstep.pipeline.values.errors import JavaMissing, SetupIncomplete
from lockstep.resources.lake.spark.java import require_java
from tests.maven import ServerJar
from tests.old_mysql import MYSQL_5_7, MYSQL_8_0, old_mysql

ACCOUNT = "lockstep"
PASSWORD = "a-password-of-the-tests"
_ACCOUNT = (
    f"create user if not exists {ACCOUNT} identified by '{PASSWORD}'",
    f"grant replication slave, replication client, select on *.* to {ACCOUNT}",
)
UNHURRIED = (
    "--sync-binlog=0",
    "--innodb-flush-log-at-trx-commit=2",
    "--innodb-flush-method=nosync",
    "--innodb-doublewrite=OFF",
    # The kernel has few contexts for asynchronous I/O, and a server takes thousands of them.
    "--innodb-use-native-aio=OFF",
)
"""A server that leaves writing to disk to the system: no power is cut in the tests."""


LARGE = 1 << 20
"""Bytes of a log file."""

SERVERS: Final = {"newest": "mysql_newest", "8.0": "mysql80", "5.7": "mysql57"}
"""What the marker `servers` takes, and the fixture that each names."""

_OLD: Final = {"mysql80": (8, 0, 15), "mysql57": (5, 7, 22)}
"""Fixtures of servers that do not know all that the tests do."""


_UNKNOWN_XID: Final = 1397


def end_prepared(execute: Callable[[str], object], statement: str) -> None:
    """Run a statement, which may end an XA transaction. What a session prepared is anybody's once
    the server noticed that the session ended: XAER_NOTA until then."""
    for _ in range(1_000):
        try:
            execute(statement)
        except pymysql.err.OperationalError as error:
            if error.args[0] != _UNKNOWN_XID:
                raise
            time.sleep(0.01)
        else:
            return
    raise AssertionError(f"{statement} finds nothing")


@dataclass(slots=True)
class MySqlStand:
    """The session's server. `account` and `password` are those of the `lockstep` account.
    `crashes`: it is started again if it ended by itself, as MySQL 5.7.22 does now and then when a
    connection is killed (it aborts in `binlog_close_connection`)."""

    server: RunningMySql
    account: str = ACCOUNT
    password: str = PASSWORD
    crashes: bool = False
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))

    @property
    def host(self) -> str:
        return self.server.host

    @property
    def port(self) -> int:
        return self.server.port

    def connect(self, database: str | None = None, **options: Any) -> pymysql.Connection[Cursor]:
        """A connection of the account that may do everything; autocommit unless told, and not
        encrypted: the handshake takes longer than most of what tests ask."""
        if self.crashes and isinstance(self.server, ProgramMySql) and self.server.has_crashed:
            self.server.kill()
            self.server.start()
        chosen: dict[str, Any] = {
            "host": self.host,
            "port": self.port,
            "user": self.server.user,
            "password": self.server.password,
            "autocommit": True,
            "charset": "utf8mb4",
            "ssl_disabled": True,
        }
        return pymysql.connect(**{**chosen, **options}, database=database)

    def execute(self, *statements: str, database: str | None = None) -> None:
        """Run the statements one after the other, each committed by itself."""
        with self.connect(database) as connection, connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def rows(self, query: str, database: str | None = None) -> list[tuple[Any, ...]]:
        with self.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    @property
    def version(self) -> tuple[int, ...]:
        """The server's version, such as (8, 0, 15)."""
        number, *_ = str(self.rows("select version()")[0][0]).split("-")
        return tuple(map(int, number.split(".")))

    @property
    def has_metadata(self) -> bool:
        """Whether its log can describe columns (`binlog_row_metadata`), as from MySQL 8.0 and
        MariaDB 10.5 on."""
        return bool(self.rows("show global variables like 'binlog_row_metadata'"))

    def head(self) -> tuple[str, int]:
        """The end of the log: its newest file, and how many bytes that has."""
        file, size, *_ = self.rows("show binary logs")[-1]
        return str(file), int(size)

    @contextmanager
    def metadata(self, value: str) -> Iterator[None]:
        """New sessions log tables with this `binlog_row_metadata`; then as before. Nothing
        changes on a server before 8.0, which has no such setting and no such metadata."""
        found = self.rows("show global variables like 'binlog_row_metadata'")
        if not found:
            yield
            return
        [(_, before)] = found
        self.execute(f"set global binlog_row_metadata = {value}")
        try:
            yield
        finally:
            self.execute(f"set global binlog_row_metadata = {before}")

    @contextmanager
    def durable(self) -> Iterator[None]:
        """Commits wait for the disk, as they should where power may be cut; then as before."""
        names = ("sync_binlog", "innodb_flush_log_at_trx_commit")
        before = self.rows(f"select {', '.join(f'@@global.{name}' for name in names)}")[0]
        self.execute(*(f"set global {name} = 1" for name in names))
        try:
            yield
        finally:
            self.execute(*(f"set global {n} = {v}" for n, v in zip(names, before, strict=True)))

    def begin_file(self) -> None:
        """Another file of the log, if the present one is large: runs that begin at its end look
        for it from the file's beginning on."""
        if self.head()[1] > LARGE:
            self.execute("flush binary logs")

    def purge_to(self, file: str) -> None:
        """Have every log file before this one gone. What a dump of Lockstep's account reads is
        kept until the server has noticed that its reader has left, so the dump is ended."""
        for session, user, _, _, command, *_ in self.rows("show processlist"):
            if user == self.account and str(command).startswith("Binlog Dump"):
                with suppress(pymysql.OperationalError):  # it has left meanwhile
                    self.execute(f"kill {session}")
        for _ in range(100):
            self.execute(f"purge binary logs to '{file}'")
            if self.rows("show binary logs")[0][0] == file:
                return
            time.sleep(0.05)
        reading = self.rows("show processlist")
        raise AssertionError(f"something still reads the log before {file}: {reading}")

    def fresh_name(self) -> str:
        """A database name that nobody used in this session."""
        return f"test_{os.getpid()}_{next(self._numbers)}"

    @contextmanager
    def own_database(self) -> Iterator[str]:
        """A database that nobody used in this session; then it is gone."""
        name = self.fresh_name()
        self.execute(f"create database `{name}` character set utf8mb4")
        try:
            yield name
        finally:
            # A prepared transaction that a failed test left would hold this up for ever.
            self.execute("set lock_wait_timeout = 60", f"drop database if exists `{name}`")


@contextmanager
def killed_at_last(running: RunningMySql) -> Iterator[RunningMySql]:
    """Started, and ended without a shutdown, which takes seconds: nobody wants its data any more,
    which is removed; its log stays where a test failed. Somebody else's server is left as it is."""
    with running:
        try:
            yield running
        finally:
            if not isinstance(running, GivenMySql):
                running.kill()
            if isinstance(running, ProgramMySql):
                shutil.rmtree(running.data, ignore_errors=True)


@pytest.fixture(scope="session")
def found_mysql() -> MySql:
    """The MySQL of this machine, found or fetched."""
    return find_mysql(os.environ)


@pytest.fixture(scope="session")
def mysql_program(found_mysql: MySql) -> MySql:
    """A MySQL that may be started and stopped; skips where only a given server is."""
    if isinstance(found_mysql, GivenServer):
        pytest.skip("the server is somebody else's")
    return found_mysql


@pytest.fixture(scope="session")
def mysql_newest(
    found_mysql: MySql, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MySqlStand]:
    """The newest MySQL that this machine has, or the one that it was given."""
    yield from _stand(found_mysql, tmp_path_factory, "mysql")


@pytest.fixture(scope="session")
def mysql80_program() -> Program:
    """MySQL 8.0.15, fetched once into the user's cache folder."""
    return _old(MYSQL_8_0)


@pytest.fixture(scope="session")
def mysql57_program() -> Program:
    """MySQL 5.7.22, fetched once into the user's cache folder."""
    return _old(MYSQL_5_7)


@pytest.fixture(scope="session")
def mysql80(
    mysql80_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MySqlStand]:
    """The session's MySQL 8.0.15."""
    yield from _stand(mysql80_program, tmp_path_factory, "mysql80")


@pytest.fixture(scope="session")
def mysql57(
    mysql57_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MySqlStand]:
    """The session's MySQL 5.7.22."""
    for stand in _stand(mysql57_program, tmp_path_factory, "mysql57"):
        stand.crashes = True
        yield stand


@pytest.fixture(scope="session")
def mysql(request: pytest.FixtureRequest) -> MySqlStand:
    """The session's server, or the one of those that the marker `servers` names whose turn it
    is."""
    usual = SERVERS[request.config.getoption("--server")]
    stand: MySqlStand = request.getfixturevalue(getattr(request, "param", usual))
    return stand


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--server",
        choices=tuple(SERVERS),
        default="newest",
        help="the MySQL of tests that name none (default: newest)",
    )


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    marker = metafunc.definition.get_closest_marker("servers")
    if marker is not None and "mysql" in metafunc.fixturenames:
        servers = [s for s in marker.args if not _is_too_old(SERVERS[s], metafunc.definition)]
        fixtures = [SERVERS[server] for server in servers]
        metafunc.parametrize("mysql", fixtures, ids=servers, indirect=True, scope="session")


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test that its MySQL is too old for (the marker `since`)."""
    usual = SERVERS[item.config.getoption("--server")]
    chosen = item.callspec.params.get("mysql", usual) if hasattr(item, "callspec") else usual
    if _is_too_old(chosen, item):
        pytest.skip(f"{chosen} is older than this test needs")


def _is_too_old(fixture: str, item: pytest.Item | pytest.Function) -> bool:
    marker = item.get_closest_marker("since")
    return marker is not None and _OLD.get(fixture, marker.args) < marker.args


@pytest.fixture
def database(mysql: MySqlStand) -> Iterator[str]:
    """A database of the test's own, dropped afterwards."""
    mysql.begin_file()
    with mysql.own_database() as name:
        yield name


def _old(server: ServerJar) -> Program:
    try:
        java = require_java(os.environ)
        return old_mysql(server, cache_folder(os.environ), java.program)
    except (JavaMissing, SetupIncomplete) as missing:
        pytest.skip(f"{missing}: {missing.hint}")


def _stand(program: MySql, folders: pytest.TempPathFactory, name: str) -> Iterator[MySqlStand]:
    made = mysql_server(program, folders.mktemp(name), os.environ, options=UNHURRIED)
    with killed_at_last(made) as server:
        stand = MySqlStand(server)
        stand.execute(*_ACCOUNT)
        yield stand
