"""`lockstep check` as a person types it."""

from __future__ import annotations

import json

import pytest

from tests.e2e.conftest import Follow
from tests.fix_mysql import MySqlStand

pytestmark = pytest.mark.acceptance


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
