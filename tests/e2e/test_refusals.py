"""Bad input and wrong settings: one clear error with a cure, the exit code as designed,
and nothing written."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from demo.mysql_search import MySql, cache_folder
from demo.mysqld import mysql_server
from lockstep.pipeline.values.errors import SetupIncomplete
from lockstep.resources.postgres.embedded import account_of, executable_programs, programs_folder
from tests.e2e.conftest import Follow
from tests.e2e.project import Project, head, place_of, without_java
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import UNHURRIED, MySqlStand, killed_at_last
from tests.ledger.poolers import pgbouncer
from tests.ledger.servers import debian_server, run


@pytest.fixture
def orders(mysql: MySqlStand, database: str) -> str:
    """A database with one table that could be captured."""
    mysql.execute(
        f"create table {database}.orders (id int primary key)",
        f"insert into {database}.orders values (1)",
    )
    return database


@pytest.fixture
def setting(mysql: MySqlStand) -> Iterator[MySqlStand]:
    """Global settings of the server are put back afterwards, and its log goes on in a file
    without what was written under them."""
    names = ("binlog_format", "binlog_row_value_options")
    before = {name: mysql.rows(f"select @@global.{name}")[0][0] for name in names}
    yield mysql
    mysql.execute(
        *(f"set global {name} = '{value}'" for name, value in before.items()), "flush binary logs"
    )


def refused(project: Project, code: int, *words: str, **environment: str) -> str:
    """Run; the error names `words`, has a hint, and left no lake behind."""
    done = project.run("run", expect=code, **environment)
    assert "hint: " in done.stderr
    for word in words:
        assert word in done.stderr, done.stderr
    assert done.stdout == ""
    assert "Traceback" not in done.stderr
    assert not project.lake.exists()
    return done.stderr


Make = Callable[..., Project]


def maker(mysql: MySqlStand, folder: Path, warm: WarmProcess, **always: Any) -> Make:
    """Makes a project of one database."""

    def made(database: str, **changes: Any) -> Project:
        given = {"port": mysql.port, "tables": [f"{database}.*"], "start": "earliest", **always}
        return Project.made(folder, warm=warm, **{**given, **changes})

    return made


@pytest.fixture
def project(mysql: MySqlStand, tmp_path: Path, warm: WarmProcess) -> Make:
    """Makes the test's project."""
    return maker(mysql, tmp_path / "project", warm)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of the module's project, in which no run captures anything."""
    return Project.made(tmp_path_factory.mktemp("refusals"), port=1, tables=["a.*"]).folder


@pytest.fixture
def remade(mysql: MySqlStand, folder: Path, warm: WarmProcess) -> Make:
    """Makes the module's project anew, with the ledger that it has."""
    return maker(mysql, folder, warm, first=True)


def test_wrong_password(mysql: MySqlStand, orders: str, remade: Make) -> None:
    """2: the account is named, the password is not."""
    made = remade(orders, user=mysql.account)
    said = refused(made, 2, mysql.account, LOCKSTEP_TEST_PASSWORD="not-the-one")
    assert "not-the-one" not in said


def test_missing_privilege(mysql: MySqlStand, orders: str, remade: Make) -> None:
    """5: the GRANT to run is in the hint."""
    mysql.execute(
        f"create user if not exists half identified by '{mysql.password}'",
        f"grant select on {orders}.* to half",
    )
    made = remade(orders, user="half")
    refused(made, 5, "REPLICATION CLIENT ON", LOCKSTEP_TEST_PASSWORD=mysql.password)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("binlog_format", "STATEMENT"),
        ("binlog_row_value_options", "PARTIAL_JSON"),
    ],
)
def test_wrong_settings(
    setting: MySqlStand, orders: str, remade: Make, name: str, value: str
) -> None:
    """5: what it is, what it must be, and the statement that sets it."""
    setting.execute(f"set global {name} = '{value}'")
    refused(remade(orders), 5, name, value, f"set global {name}")


@pytest.mark.soak
def test_binlog_off(mysql_program: MySql, tmp_path: Path, remade: Make) -> None:
    """5: there is nothing to read, and where to switch it on."""
    options = ["--skip-log-bin", *UNHURRIED]
    made = mysql_server(mysql_program, tmp_path / "mysql", os.environ, options=options)
    with killed_at_last(made) as off:
        refused(remade("a", port=off.port), 5, "no binary log", "log_bin")


def test_a_literal_password(orders: str, remade: Make) -> None:
    """2: refused, and not repeated."""
    made = remade(orders)
    file = made.config
    file.write_text(file.read_text().replace("env:LOCKSTEP_TEST_PASSWORD", "hunter2"))
    assert "hunter2" not in refused(made, 2, "a literal secret", "env:")


@pytest.mark.parametrize(
    ("settings", "code", "word"),
    [
        pytest.param({"port": 1}, 3, "127.0.0.1:1", id="a server that is away"),
        pytest.param({"tables": ["shoop.*"]}, 2, "shoop.*", id="a pattern that matches nothing"),
    ],
)
def test_settings_that_no_run_begins_with(
    orders: str, remade: Make, settings: dict[str, Any], code: int, word: str
) -> None:
    """3: the next tick may succeed."""
    refused(remade(orders, **settings), code, word)


def test_java_is_missing(orders: str, remade: Make) -> None:
    """2, before anything is captured: the command that installs it."""
    refused(remade(orders), 2, "Java", "openjdk", **without_java())


FOR_EVENTS_ALONE = {"grpc", "llvmlite", "numba", "pandas", "pyspark"}
FOR_RARE_ROADS = {
    "lockstep.assets.run_events",
    "openlineage",
    "lockstep.pipeline.binlog.arrays.intrinsics",
    "lockstep.pipeline.recovery",
    "lockstep.pipeline.run.rebuild",
    "lockstep.pipeline.run.replay.revise",
    "lockstep.pipeline.run.upkeep",
    "lockstep.resources.hive",
    "lockstep.resources.unity",
}


def test_an_idle_run_needs_no_java(mysql: MySqlStand, orders: str, project: Make) -> None:
    """No JVM is started where nothing is to be merged, so none is missed; and behind the log's end
    nothing is imported that only Dagster or events need, or a run of another kind."""
    made = project(orders, start=head(mysql))
    made.run("run")
    mysql.execute("create database if not exists elsewhere")
    told = made.run("run", "--json", expect=0, **without_java())
    source = json.loads(told.stdout)["sources"]["shop"]
    assert (source["rows"], source["tables"]) == (0, {})
    assert source["acknowledged"] == source["end"]
    quiet = made.cold.run("run", PYTHONPROFILEIMPORTTIME="1")
    imported = {line.rpartition("|")[2].strip() for line in quiet.stderr.splitlines()}
    assert {
        "lockstep.pipeline.run.run",
        "lockstep.pipeline.run.capture",
        "lockstep.resources.mysql.server",
    } <= imported
    assert imported & ({"dagster"} | FOR_EVENTS_ALONE | FOR_RARE_ROADS) == set()


def test_a_statement_that_may_change_any_table_ends_the_run(
    mysql: MySqlStand, orders: str, project: Make
) -> None:
    """5, once all before it is merged and acknowledged: any session may log statements instead of
    rows, and nobody can tell what a stored function changes. The hint goes on behind it, as it is
    typed; a run in between ends at once."""
    made = project(orders, start=head(mysql))
    mysql.execute(
        f"insert into {orders}.orders values (2)",
        f"create function {orders}.own() returns int no sql return 3",
    )
    place = head(mysql)
    with mysql.connect() as connection, connection.cursor() as cursor:
        cursor.execute("set session binlog_format = statement")
        cursor.execute(f"insert into {orders}.orders values ({orders}.own())")
    behind = head(mysql)
    mysql.execute(f"insert into {orders}.orders values (4)")
    said = made.run("run", expect=5).stderr
    assert "instead of rows" in said
    assert f"`lockstep start-at {behind} --source shop --reason …`" in said
    assert place_of(made.status()["acknowledged"]) == place
    assert len(made.transactions(f"{orders}.orders")) == 1
    assert made.json("plan", expect=5)["sources"]["shop"]["error"]["hint"] in said
    assert made.json("run", expect=5)["sources"]["shop"]["error"]["hint"] in said
    made.run("start-at", behind, "--reason", "the rows are read later")
    assert made.json("plan")["sources"]["shop"]["transactions"] == 1


def test_every_command_refuses_it_before_anything_is_locked(follow: Follow) -> None:
    """`check` and a run name the pooler and the cure, and leave nothing behind. (Each mode of it:
    `tests/ledger/test_connection.py`.)"""
    project = follow(start="earliest", first=True)
    found = programs_folder()
    with debian_server(executable_programs(account_of(found / "none"), found)) as server:
        try:
            with pgbouncer(cache_folder(os.environ), server, "transaction") as dsn:
                refuse(project, dsn)
        except SetupIncomplete as missing:
            pytest.skip(f"{missing.message}; {missing.hint}")
        assert run(server, "select to_regnamespace('lockstep')") == [(None,)]


def refuse(project: Project, dsn: str) -> None:
    settings = project.config
    settings.write_text(settings.read_text().replace('"embedded"', '"env:LEDGER_DSN"'))
    for command in ("check", "run"):
        done = project.run(command, expect=2, LEDGER_DSN=dsn)
        said = done.stdout + done.stderr
        assert "A connection pooler (pgbouncer, or one like it) lies before the ledger" in said
        assert "pool_mode = session" in said
        assert "canary" not in said
