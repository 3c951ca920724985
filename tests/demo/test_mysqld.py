"""The life of a MySQL server that the demo or the tests start."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from threading import Thread

import pymysql
import pytest

from demo.mysql_packages import debian_mirror
from demo.mysql_search import GivenServer, MySql, Program, is_suitable, parse_given_server
from demo.mysqld import GivenMySql, ProgramMySql, RunningMySql, mysql_server
from demo.tcp import is_mysql_greeting
from lockstep.pipeline.values.errors import ConfigurationError, SetupIncomplete

pytestmark = pytest.mark.acceptance


def asked(server: RunningMySql, query: str) -> tuple[object, ...]:
    with (
        pymysql.connect(host=server.host, port=server.port, user=server.user) as connection,
        connection.cursor() as cursor,
    ):
        cursor.execute(query)
        return tuple(cursor.fetchone() or ())


def test_two_servers_at_once_are_two(mysql_program: MySql, tmp_path: Path) -> None:
    """Servers made from one prepared folder have ports and UUIDs of their own, and each is the
    first process of a session. What a source needs is set without asking: row format, full images
    and metadata, GTIDs and a log; a test's own options come after ours. The same port and the same
    data are there after a stop and after a kill. Once their context is left, nothing of them is
    there."""
    needed = "select @@binlog_format, @@binlog_row_image, @@binlog_row_metadata, @@gtid_mode"
    kept = "select count(*) from information_schema.schemata where schema_name = 'kept'"
    options = ["--gtid-mode=OFF", "--enforce-gtid-consistency=OFF"]
    first = mysql_server(mysql_program, tmp_path / "a", os.environ)
    second = mysql_server(mysql_program, tmp_path / "b", os.environ, options=options)
    with first, second:
        uuids = {asked(server, "select @@server_uuid") for server in (first, second)}
        assert (len(uuids), first.port != second.port) == (2, True)
        processes = [one.pid for one in (first, second) if isinstance(one, ProgramMySql)]
        assert [os.getsid(pid or 0) for pid in processes] == processes
        assert asked(first, needed) == ("ROW", "FULL", "FULL", "ON")
        assert asked(second, needed) == ("ROW", "FULL", "FULL", "OFF")
        port = first.port
        asked(first, "create database kept")
        first.stop()
        first.start()
        after_stop = asked(first, kept)
        first.kill()
        down = is_mysql_greeting(first.host, port)
        first.start()
        assert (after_stop, down, asked(first, kept), first.port) == ((1,), False, (1,), port)
        processes += [first.pid] if isinstance(first, ProgramMySql) else []
    assert not any(Path(f"/proc/{pid}").exists() for pid in processes)
    assert not any(is_mysql_greeting(server.host, server.port) for server in (first, second))


def test_a_server_ends_with_its_starter(mysql_program: MySql, tmp_path: Path) -> None:
    """Also if that is killed; it does not keep the next one from its data folder."""
    if not isinstance(mysql_program, Program):
        pytest.skip("only a program of this machine has a process here")
    starter = (
        "import os, pathlib, signal, sys\n"
        "from demo.mysqld import mysql_server\n"
        "from demo.mysql_search import Program\n"
        "program = Program(tuple(sys.argv[3:]), sys.argv[2])\n"
        "server = mysql_server(program, pathlib.Path(sys.argv[1]), os.environ)\n"
        "server.start()\n"
        "print(server.pid, flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run(
        [sys.executable, "-c", starter, tmp_path, mysql_program.version, *mysql_program.command],
        capture_output=True,
        text=True,
        check=False,
    )
    for _ in range(600):
        if has_ended(int(killed.stdout)):
            break
        time.sleep(0.1)
    else:
        pytest.fail("it runs on")
    with mysql_server(mysql_program, tmp_path, os.environ) as server:
        assert (killed.returncode, asked(server, "select 1")) == (-signal.SIGKILL, (1,))


def has_ended(process: int) -> bool:
    state = Path(f"/proc/{process}/stat")
    return not state.exists() or state.read_text().rpartition(")")[2].split()[0] == "Z"


def test_a_server_survives_the_thread_that_started_it(mysql_program: MySql, tmp_path: Path) -> None:
    """Tests start servers in threads of their own."""
    server = mysql_server(mysql_program, tmp_path, os.environ)
    starting = Thread(target=server.start)
    starting.start()
    starting.join()
    with server:
        time.sleep(0.5)
        assert asked(server, "select 1") == (1,)


def test_a_data_folder_is_born_with_its_options(mysql_program: MySql, tmp_path: Path) -> None:
    """Those that a server cannot be given later."""
    options = ["--lower-case-table-names=1"]
    with mysql_server(mysql_program, tmp_path, os.environ, options=options) as server:
        assert asked(server, "select @@lower_case_table_names") == (1,)


def test_an_unknown_option_names_the_log(mysql_program: MySql, tmp_path: Path) -> None:
    """A server that ends at once is an error whose hint says where its log is."""
    if not isinstance(mysql_program, Program):
        pytest.skip("a container keeps its log")
    server = mysql_server(mysql_program, tmp_path, os.environ, options=["--no-such-option"])
    with pytest.raises(SetupIncomplete) as refused, server:
        pytest.fail("it started")
    log = tmp_path / "mysqld.log"
    assert str(log) in refused.value.hint
    assert "no-such-option" in log.read_text()


def test_a_given_server_is_left_alone() -> None:
    """A server that LOCKSTEP_TEST_MYSQL names is neither started, stopped nor killed."""
    server = GivenMySql(GivenServer("db.example.org", 3307, "root", "secret"))
    for refused in (server.start, server.stop, server.kill):
        with pytest.raises(ConfigurationError, match="somebody else's"):
            refused()
    with server as same:
        assert same is server


def test_a_dsn_is_read_and_its_password_not_shown() -> None:
    """The parts of a DSN arrive decoded; printing the value keeps the password back."""
    given = parse_given_server("mysql://ro%40ot:p%2Fw@db.example.org:3307")
    assert given == GivenServer("db.example.org", 3307, "ro@ot", "p/w")
    assert "p/w" not in repr(given)


@pytest.mark.parametrize("dsn", ["root@127.0.0.1", "postgres://root@127.0.0.1", "mysql://host"])
def test_what_is_no_dsn_is_refused(dsn: str) -> None:
    """Another scheme, or no account, is a configuration error."""
    with pytest.raises(ConfigurationError):
        parse_given_server(dsn)


@pytest.mark.parametrize(
    ("version", "expected"),
    [
        ("/usr/sbin/mysqld  Ver 9.7.4-2 for Linux on x86_64 ((Debian))", True),
        ("mysqld  Ver 8.0.36 for Linux on x86_64 (MySQL Community Server - GPL)", True),
        ("mysqld  Ver 5.7.44 for Linux on x86_64", False),
        ("mysqld  Ver 10.11.6-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64", False),
        ("", False),
    ],
)
def test_only_mysql_of_8_or_newer_suits(version: str, expected: bool) -> None:
    """MariaDB, which also calls itself mysqld, and MySQL 5 are passed over."""
    assert is_suitable(version) == expected


@pytest.mark.parametrize(
    ("file", "text", "expected"),
    [
        (
            "sources.list",
            "deb https://mirror.example.org/debian bookworm main\n",
            "https://mirror.example.org/debian",
        ),
        (
            "sources.list.d/debian.sources",
            "Types: deb\n# http://old.example.org/debian\nURIs: http://a.example.org/debian/\n",
            "http://a.example.org/debian/",
        ),
        ("mirrors/debian.list", "https://b.example.org/debian\n", "https://b.example.org/debian"),
        ("sources.list", "deb http://a.example.org/ubuntu noble main\n", None),
        ("sources.list", "deb http://a.example.org/debian-security trixie main\n", None),
    ],
)
def test_the_mirror_is_the_machines_own(
    tmp_path: Path, file: str, text: str, expected: str | None
) -> None:
    """The mirror comes from the machine's sources; another distribution's is not taken."""
    (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / file).write_text(text)
    assert debian_mirror(tmp_path) == expected
