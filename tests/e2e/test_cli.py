"""The command line over real parts: JSON, exit codes, what `check` finds, no secret anywhere."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.conftest import Follow
from tests.e2e.project import Project
from tests.fix_mysql import MySqlStand

pytestmark = pytest.mark.acceptance


@pytest.fixture
def project(mysql: MySqlStand, follow: Follow) -> Project:
    """A project of the account with the least privileges; one table, and one that a session
    with binlog_row_value_options=PARTIAL_JSON writes to."""
    return follow(
        "create table orders (id int primary key, v varchar(9))",
        "create table notes (id int primary key, j json)",
        "insert into orders values (1, 'a'), (2, 'b')",
        "insert into notes values (1, json_object('a', 1, 'b', repeat('x', 50)))",
        "update orders set v = 'c' where id = 2",
        "set session binlog_row_value_options = PARTIAL_JSON",
        "update notes set j = json_set(j, '$.a', 2)",
        user=mysql.account,
        first=True,
    )


def test_a_run_from_the_command_line(project: Project, mysql: MySqlStand, database: str) -> None:
    """6 with a table quarantined, exactly one JSON object, and the password nowhere. The log has
    what a person would have read, a line for each."""
    secret = {"LOCKSTEP_TEST_PASSWORD": mysql.password}
    log = str(project.folder / "lockstep.log")
    logged = ("--log-format", "json", "--log-file", log)
    told = project.cold.run("run", "--json", *logged, expect=6, **secret)
    lines = [json.loads(line) for line in told.stderr.splitlines()]
    assert [json.loads(line) for line in Path(log).read_text().splitlines()] == lines
    assert {line["table"] for line in lines if line["message"] == "merged"} == {
        f"{database}.orders"
    }
    assert any("quarantined" in line["message"] for line in lines if line["level"] == "warning")
    assert (lines[-1]["message"], lines[-1]["exit_code"]) == ("run ended", 6)
    refused = project.run("run", *logged, expect=None, LOCKSTEP_TEST_PASSWORD="wrong").stderr
    assert json.loads(refused.splitlines()[-1])["exit_code"] == 2
    said = project.run("status", expect=3, **secret).stdout.splitlines()
    assert said[0].startswith("shop: failed: 1 attempt failed")
    assert "MySQL refuses" in said[0]
    assert "but the next one would begin" in said[0]
    assert "lockstep run --source shop" in said[1]
    source = json.loads(told.stdout)["sources"]["shop"]
    assert source["acknowledged"] == source["end"]
    table = source["tables"][f"{database}.orders"]
    assert (table["inserted"], table["updated"], table["deleted"]) == (2, 1, 0)
    assert [quarantined["table"] for quarantined in source["stopped"]] == [f"{database}.notes"]
    verified = project.run("verify", "--json", expect=6, **secret)
    shown = json.loads(verified.stdout)["sources"]["shop"]["tables"]
    assert shown[f"{database}.orders"]["equal"]
    said = project.run("status", expect=2, LOCKSTEP_TEST_PASSWORD="wrong").stdout.splitlines()
    assert said[0].startswith("shop: your configuration: MySQL refuses")
    assert "not asked" not in "".join(said)
    assert leaks(project.folder, mysql.password) == []
    assert mysql.password not in told.stdout + told.stderr


def leaks(folder: Path, canary: str) -> list[str]:
    """Files that hold the canary: ledger, Dagster's home, lake, reports and all."""
    files = [path for path in folder.rglob("*") if path.is_file() and not path.is_symlink()]
    assert len(files) > 100
    return [str(path) for path in files if canary.encode() in path.read_bytes()]


def test_a_good_source(mysql: MySqlStand, database: str, follow: Follow) -> None:
    """0, and more than thirty lines that are fine; the schedule is weighed as well."""
    project = follow(
        "create table orders (id int primary key)",
        "create table notes (id int primary key) engine = MyISAM",
        start="earliest",
        extra='schedule = "0 6 * * 1"\n',
        first=True,
    )
    password = mysql.server.password
    with mysql.durable():
        told = json.loads(project.run("check", "--json", LOCKSTEP_TEST_PASSWORD=password).stdout)
    levels = [finding["level"] for finding in told["sources"]["shop"]["findings"]]
    assert levels.count("ok") > 30
    assert {finding["level"] for finding in told["machine"]["findings"]} == {"ok"}
    shown = project.run("check", LOCKSTEP_TEST_PASSWORD=password).stdout
    assert f"  warning  {database}.notes: MyISAM" in shown
    assert "  ok       retention: logs are kept for 30 days" in shown
    assert len(shown.splitlines()) < 50


def test_an_account_that_may_not_read_the_log(
    mysql: MySqlStand, database: str, follow: Follow
) -> None:
    """5, with the GRANT to run for this very account, and nothing is made."""
    project = follow(
        "create table orders (id int primary key)",
        f"create user if not exists peeks@'127.0.0.1' identified by '{mysql.password}'",
        f"create user if not exists peeks@localhost identified by '{mysql.password}'",
        f"grant select on {database}.* to peeks@'127.0.0.1', peeks@localhost",
        start="earliest",
        user="peeks",
        first=True,
    )
    done = project.run("check", expect=5, LOCKSTEP_TEST_PASSWORD=mysql.password)
    assert "hint: GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'peeks'@'" in done.stdout
    assert "refusal  replication privileges" in done.stdout
    assert sorted(path.name for path in project.folder.iterdir()) == ["lockstep.toml"]
    mysql.execute("drop user peeks@'127.0.0.1', peeks@localhost")
