"""Private servers for failovers: two that replicate, one whose data folder is copied.

Belongs here: what an administrator does to servers — replicate, wait until that has caught
up, promote, purge, reset, switch GTIDs, copy a data folder. Does not: what Lockstep makes
of it (the tests), how a server is started (`demo.mysqld`).
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pymysql
from pymysql.cursors import Cursor

from demo.mysql_search import Program, cache_folder
from demo.mysqld import ProgramMySql, mysql_server
from lockstep.pipeline.values.gtid import GtidSet
from tests.fix_mysql import (
    ACCOUNT,
    PASSWORD,
    UNHURRIED,
    MySqlStand,
    end_prepared,
    killed_at_last,
)
from tests.mariadb.server import mariadb_server

SMALL = (
    "--innodb-buffer-pool-size=32M",
    *UNHURRIED,
    "--sync-relay-log=0",
    "--loose-replica-parallel-workers=1",
    "--log-error-verbosity=1",
)
_ACCOUNT = (
    "set sql_log_bin = 0",
    f"create user if not exists {ACCOUNT} identified by '{PASSWORD}'",
    f"grant replication slave, replication client, select on *.* to {ACCOUNT}",
    # Executable from MySQL 8.0 on; before, everybody may ask.
    f"/*!80001 grant xa_recover_admin on *.* to {ACCOUNT} */",
)
_MODES = ("OFF", "OFF_PERMISSIVE", "ON_PERMISSIVE", "ON")
_SYSTEM = ("mysql", "information_schema", "performance_schema", "sys")
_WAIT_SECONDS = 30
_TRIES = 1000
_ELSEWHERE = 1_700_000_000_000_000
"""Microseconds since the epoch."""


class Pair:
    """Two servers with logs of their own; which is the other's replica changes."""

    def __init__(self, a: MySqlStand, b: MySqlStand) -> None:
        self._stands = {"a": a, "b": b}
        self._empty = dict[str, str]()

    @property
    def a(self) -> MySqlStand:
        return self._asked("a")

    @property
    def b(self) -> MySqlStand:
        return self._asked("b")

    def _asked(self, name: str) -> MySqlStand:
        self._empty.pop(name, None)
        return self._stands[name]

    def emptied(self, empty: Callable[[MySqlStand], None], mode: str) -> Self:
        """Both, but one that no test has asked for since it was emptied in this mode."""
        for name, stand in self._stands.items():
            if self._empty.get(name) != mode:
                empty(stand)
                self._empty[name] = mode
        return self


def make_account(stand: MySqlStand) -> None:
    """The account `lockstep`, on a server that has none."""
    stand.execute(*_ACCOUNT)


@contextmanager
def private_mysql(
    program: Program, folder: Path, server_id: int, *, port: int = 0
) -> Iterator[MySqlStand]:
    """A started server with a UUID of its own, and the account `lockstep`."""
    options = (*SMALL, f"--server-id={server_id}")
    made = mysql_server(program, folder, os.environ, port=port, options=options)
    with killed_at_last(made) as server:
        stand = MySqlStand(server)
        make_account(stand)
        yield stand


@contextmanager
def copied_mysql(
    program: Program, data: Path, folder: Path, *, same_uuid: bool, port: int = 0
) -> Iterator[MySqlStand]:
    """A started server on a copy of a stopped one's data folder, with its UUID or another."""
    folder.mkdir()
    copy_data(data, folder / "data")
    if not same_uuid:
        (folder / "data" / "auto.cnf").unlink()
    with private_mysql(program, folder, 23 if same_uuid else 24, port=port) as stand:
        yield stand


def running(stand: MySqlStand) -> ProgramMySql:
    """The stand's server as one that may be stopped and started."""
    assert isinstance(stand.server, ProgramMySql)
    return stand.server


def copy_data(data: Path, to: Path) -> None:
    """A stopped server's data folder as it is, in place of what was there."""
    if to.exists():
        shutil.rmtree(to)
    shutil.copytree(data, to, ignore=shutil.ignore_patterns("*.pid", "*.sock", "*.lock"))


# -- one server ------------------------------------------------------------------


def is_mariadb(stand: MySqlStand) -> bool:
    return "MariaDB" in str(stand.rows("select version()"))


def fresh(stand: MySqlStand, mode: str = "ON") -> None:
    """As if it had been made just now: no databases, an empty log, that `gtid_mode`."""
    mariadb = is_mariadb(stand)
    with stand.connect() as connection, connection.cursor() as cursor:
        if mariadb:
            cursor.execute("stop slave")
            cursor.execute("reset slave all")
        elif cursor.execute("show replica status"):
            cursor.execute("stop replica")
            cursor.execute("reset replica all")
        cursor.execute("set sql_log_bin = 0")
        if not mariadb:
            _roll_back_prepared(cursor)
        cursor.execute("show databases")
        for (name,) in cursor.fetchall():
            if name not in _SYSTEM:
                cursor.execute(f"drop database `{name}`")
        if mariadb:
            cursor.execute("reset master")
            cursor.execute("set global gtid_slave_pos = ''")
        else:
            _switch(cursor, mode)
            cursor.execute("reset binary logs and gtids")


def _roll_back_prepared(cursor: Cursor) -> None:
    cursor.execute("xa recover convert xid")
    for format_id, first, _, data in cursor.fetchall():
        text = str(data).removeprefix("0x")
        gtrid, bqual = text[: 2 * first], text[2 * first :]
        cursor.execute(f"xa rollback X'{gtrid}', X'{bqual}', {format_id}")


def switch_gtids(stand: MySqlStand, mode: str) -> None:
    """`gtid_mode`, a step at a time as the server wants it."""
    with stand.connect() as connection, connection.cursor() as cursor:
        _switch(cursor, mode)


def _switch(cursor: Cursor, mode: str) -> None:
    cursor.execute("select @@global.gtid_mode")
    [(now,)] = cursor.fetchall()
    at, wanted = _MODES.index(now), _MODES.index(mode)
    step = 1 if wanted > at else -1
    for one in range(at, wanted, step):
        cursor.execute(f"set global gtid_mode = {_MODES[one + step]}")


def uuid_of(stand: MySqlStand) -> str:
    """What tells it from other servers; a MariaDB has a number."""
    if is_mariadb(stand):
        return f"server-id:{stand.rows('select @@server_id')[0][0]}"
    return str(stand.rows("select @@server_uuid")[0][0])


def executed(stand: MySqlStand) -> GtidSet:
    return GtidSet.parse(str(stand.rows("select @@global.gtid_executed")[0][0]))


def purge(stand: MySqlStand) -> None:
    """All log files but a new one. A file of a MariaDB stays until the server notes, some time
    after the engine's log was written, that no crash needs it any more."""
    stand.execute("flush binary logs")
    name, _ = stand.head()
    if not is_mariadb(stand):
        return stand.purge_to(name)
    for _ in range(_TRIES):
        stand.execute("flush local engine logs", f"purge binary logs to '{name}'")
        if stand.rows("show binary logs")[0][0] == name:
            return None
    raise AssertionError(f"{name} is not the oldest file after {_TRIES} tries")


def as_gtid(stand: MySqlStand, gtid: str, *statements: str) -> None:
    """The statements as one transaction of that GTID, as if it came from elsewhere, and had
    been committed there at a moment that its number gives."""
    with stand.connect() as connection, connection.cursor() as cursor:
        cursor.execute(f"set gtid_next = '{gtid}'")
        if not gtid.startswith("AUTOMATIC"):
            moment = _ELSEWHERE + int(gtid.rpartition(":")[2])
            cursor.execute(f"set original_commit_timestamp = {moment}")
        cursor.execute("begin")
        for statement in statements:
            cursor.execute(statement)
        cursor.execute("commit")
        cursor.execute("set gtid_next = 'AUTOMATIC'")


# -- two servers -----------------------------------------------------------------


def replicate(source: MySqlStand, replica: MySqlStand, *, by_gtid: bool = True) -> None:
    """`replica` follows `source` from now on: by GTID, or from the log's beginning."""
    if is_mariadb(source):
        replica.execute(
            f"change master to master_host = '{source.host}', master_port = {source.port}, "
            "master_user = 'root', master_password = '', master_use_gtid = slave_pos, "
            "master_connect_retry = 1",
            "set global gtid_slave_pos = @@global.gtid_binlog_pos",
            "start slave",
        )
        return
    place = (
        "source_auto_position = 1"
        if by_gtid
        else "source_auto_position = 0, source_log_file = 'binlog.000001', source_log_pos = 4"
    )
    replica.execute(
        f"change replication source to source_host = '{source.host}', "
        f"source_port = {source.port}, source_user = 'root', source_password = '', "
        f"get_source_public_key = 1, source_connect_retry = 1, {place}",
        "start replica",
    )


def catch_up(source: MySqlStand, replica: MySqlStand) -> None:
    """Wait until everything of `source` is on `replica`."""
    if is_mariadb(source):
        [(position,)] = source.rows("select @@global.gtid_binlog_pos")
        assert replica.rows(f"select master_gtid_wait('{position}', {_WAIT_SECONDS})") == [(0,)]
    elif replica.rows("select @@global.gtid_mode")[0][0] == "ON":
        waited = f"wait_for_executed_gtid_set('{executed(source)}', {_WAIT_SECONDS})"
        assert replica.rows(f"select {waited}") == [(0,)]
    else:
        name, offset = source.head()
        waited = f"source_pos_wait('{name}', {offset}, {_WAIT_SECONDS})"
        [(events,)] = replica.rows(f"select {waited}")
        assert events is not None
        assert events >= 0


def promote(replica: MySqlStand) -> None:
    """It follows nobody any more."""
    if is_mariadb(replica):
        replica.execute("stop slave", "reset slave all")
    else:
        replica.execute("stop replica", "reset replica all")


def prepare_xa(stand: MySqlStand, xid: str, *statements: str) -> None:
    """An XA transaction, prepared, whose session has gone."""
    connection: pymysql.Connection[Cursor] = stand.connect()
    with connection, connection.cursor() as cursor:
        for statement in (f"xa start '{xid}'", *statements, f"xa end '{xid}'"):
            cursor.execute(statement)
        cursor.execute(f"xa prepare '{xid}'")


def end_xa(stand: MySqlStand, xid: str, word: str = "commit") -> None:
    """In another session than the one that prepared."""
    end_prepared(stand.execute, f"xa {word} '{xid}'")


# -- MariaDB ---------------------------------------------------------------------


@contextmanager
def private_mariadb(program: Program, folder: Path, server_id: int) -> Iterator[MySqlStand]:
    """A started MariaDB that writes what it replicates to its own log."""
    options = ("--log-slave-updates=ON", "--sync-binlog=0", f"--server-id={server_id}")
    made = mariadb_server(program, folder, cache_folder(os.environ), options=options)
    with killed_at_last(made) as server:
        stand = MySqlStand(server)
        stand.execute(
            "set sql_log_bin = 0",
            f"create user if not exists {ACCOUNT} identified by '{PASSWORD}'",
            f"grant replication slave, binlog monitor, select on *.* to {ACCOUNT}",
        )
        yield stand
