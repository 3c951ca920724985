"""What the tests of the log itself begin with."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress

import pymysql
import pytest

from demo.mysql_search import MySql
from demo.mysqld import mysql_server
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.receiving import Receiver, StreamKind
from tests.fix_mysql import MySqlStand, killed_at_last
from tests.mysql.chunked import LARGE_ROWS, Sliced


@pytest.fixture(scope="module", autouse=True)
def full_metadata(mysql: MySqlStand) -> Iterator[None]:
    """Decoders are told structures by the log here, and not by a history: it has names."""
    with mysql.metadata("FULL"):
        yield


@pytest.fixture(params=["mysql", "mariadb"])
def place(request: pytest.FixtureRequest) -> Iterator[Sliced]:
    """A table to be, `t`, in a database of its own on either server."""
    stand: MySqlStand = request.getfixturevalue(request.param)
    with stand.own_database() as name:
        yield Sliced(stand, TableName(name, "t"))
    stand.execute(f"drop user if exists u_{name}")


@pytest.fixture(scope="session")
def large_tables() -> Iterator[Callable[[MySqlStand], Sliced]]:
    """A table `t (id, v, w)` of `LARGE_ROWS`, 23 MB: one on each server."""
    made: dict[int, Sliced] = {}

    def on(stand: MySqlStand) -> Sliced:
        if stand.port not in made:
            name = stand.fresh_name()
            stand.execute(f"create database {name} character set utf8mb4")
            found = made[stand.port] = Sliced(stand, TableName(name, "t"))
            found.do(
                "set sql_log_bin = 0",
                "create table t (id int primary key, v int not null, w varchar(1400) not null)",
                "insert into t values (1, 1, repeat('x', 1400))",
                *(
                    f"insert into t select id + {1 << n}, v, w from t"
                    for n in range(LARGE_ROWS.bit_length() - 1)
                ),
            )
        return made[stand.port]

    yield on
    for one in made.values():
        with suppress(pymysql.OperationalError):  # a server of the tests' own has ended already
            one.stand.execute(f"drop database {one.table.database}")


@pytest.fixture
def large_on(
    large_tables: Callable[[MySqlStand], Sliced], monkeypatch: pytest.MonkeyPatch
) -> Callable[[MySqlStand], Sliced]:
    """The large table of a server, which has more rows than buffers hold: the system's, which may
    grow to tens of megabytes, is kept as small as it begins."""
    begin = Receiver.__init__

    def begin_small(receiver: Receiver, sock: socket.socket, *stream: StreamKind) -> None:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 17)
        begin(receiver, sock, *stream)

    monkeypatch.setattr(Receiver, "__init__", begin_small)
    return large_tables


@pytest.fixture
def large(place: Sliced, large_on: Callable[[MySqlStand], Sliced]) -> Iterator[Sliced]:
    """The large table beside `place`; a column x that a test adds to it is dropped."""
    found = large_on(place.stand)
    yield found
    if place.stand.rows(f"show columns from {found.table} like 'x'"):
        found.do("alter table t drop x")


ODD = (
    "--performance-schema=ON",
    "--loose-innodb-native-foreign-keys=ON",
    "--binlog-ignore-db=left_out",
    "--gtid-mode=OFF",
    "--binlog-checksum=NONE",
    "--log-replica-updates=OFF",
    "--replica-preserve-commit-order=OFF",
)


@pytest.fixture(scope="session")
def odd(mysql_program: MySql, tmp_path_factory: pytest.TempPathFactory) -> Iterator[MySqlStand]:
    """A server with much that a source should not have, and the table of locks."""
    folder = tmp_path_factory.mktemp("odd")
    with killed_at_last(mysql_server(mysql_program, folder, os.environ, options=ODD)) as running:
        yield MySqlStand(running)
