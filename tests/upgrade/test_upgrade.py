"""This version goes on from the ledger and the lake of every released one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

import lockstep
from demo.mysql_search import MySql, Program
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.positions.servers import private_mysql
from tests.upgrade.__main__ import shown
from tests.upgrade.fixture import DATABASE, Fixture

FIXTURES = [pytest.param(one, id=one.version) for one in Fixture.all()]
NO_SERVER = 9
"""A port at which no MySQL answers."""


@pytest.fixture
def restored_mysql(mysql_program: MySql, tmp_path: Path) -> Iterator[MySqlStand]:
    """Another server than the one that was followed, without any rows."""
    if not isinstance(mysql_program, Program):
        pytest.skip("the server runs in a container: its log is not ours to reset")
    with private_mysql(mysql_program, tmp_path / "mysql", 31) as stand:
        yield stand


@pytest.mark.parametrize("fixture", FIXTURES)
def test_what_a_released_version_showed_is_shown(
    fixture: Fixture, tmp_path: Path, warm: WarmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Places, versions, structures, stopped tables, loads and consumers are as they were, without
    a server to ask. Tables of the past are made from its versions and changes, and its consumer
    gets what it had not acknowledged."""
    project = fixture.restored(tmp_path / "project", NO_SERVER, warm)
    assert shown(project) == fixture.shown
    place = fixture.shown["places"]["2"]
    for table, rows in (("orders", 301), ("baskets", 3)):
        past = f"{place['file']}:{place['offset']}", "--into", str(tmp_path / table)
        project.run("rebuild", f"shop.{table}", "--as-of", *past)
        assert DeltaTable(tmp_path / table).to_pyarrow_dataset().count_rows() == rows
    project.at_rest()
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")
    config = project.folder / "lockstep.toml"
    with lockstep.consume("shop", "billing", config=config) as consumer:
        delivery = consumer.get()
        assert delivery is not None
        changes = sum(delivery.arrow(table, incomplete=True).num_rows for table in delivery.tables)
        assert changes == fixture.shown["consumers"]["billing"]
        delivery.ack()


@pytest.mark.parametrize("fixture", FIXTURES)
def test_runs_go_on_from_a_released_version(
    fixture: Fixture, restored_mysql: MySqlStand, tmp_path: Path, warm: WarmProcess
) -> None:
    """The server was restored from a backup, so nothing in its log proves its history: a person
    says that it is the same. Then runs follow it, read what was being read, bring back what was
    stopped, and every row is equal."""
    mysql = restored_mysql
    fixture.restore_rows(mysql)
    project = fixture.restored(tmp_path / "project", mysql.port, warm)
    mysql.execute(
        f"use {DATABASE}",
        "update orders set state = 'paid' where id between 1 and 20",
        "alter table customers add column since date",
        "insert into visits (page) values ('/late')",
        "update readings set value = -1 where id in (5, 11999)",
    )
    refused = project.run("run", expect=5)
    place = f"gtid:{fixture.executed}"
    assert f"`lockstep start-at {place} --source shop --reason …`" in refused.stderr
    project.run("start-at", place, "--reason", "restored from last night's backup")
    project.run("run", expect=6)
    stopped = {table["table"] for table in project.status()["stopped"]}
    assert stopped == set(fixture.shown["stopped"])
    for table in sorted(stopped):
        project.run("resume", table, "--reason", "after the upgrade")
    project.run("run")
    assert project.proven() == {
        f"{DATABASE}.{name}" for (name,) in mysql.rows("show tables", DATABASE)
    }
    assert project.status()["state"] == "fine"
    project.run("reload", "shop.orders", "--from", "changelog", "--reason", "it can still be read")
    project.run("run")
    assert "shop.orders" in project.proven()
