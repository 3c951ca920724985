"""A database that is older than its log: two commands, and the lake equals it; killed on the way,
no chunk is read twice."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.project import Project
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

DATABASE = "older"
TABLES = {f"{DATABASE}.{name}" for name in ("customers", "orders", "notes", "nothing")}
LEDGER = "resources.postgres.ledger:PostgresLedger"


@pytest.fixture
def project(mysql: MySqlStand, tmp_path: Path, warm: WarmProcess) -> Iterator[Project]:
    """Rows that no log has."""
    numbers = ", ".join(f"({number}, {number % 7})" for number in range(1, 3001))
    mysql.execute(
        f"create database {DATABASE}",
        f"create table {DATABASE}.customers (id int primary key, v int)",
        f"create table {DATABASE}.orders (a int, b int, v varchar(20), primary key (a, b))",
        f"create table {DATABASE}.notes (v text)",
        f"create table {DATABASE}.nothing (id int primary key)",
        f"insert into {DATABASE}.customers values {numbers}",
        f"insert into {DATABASE}.orders select v, id, concat('o', id) from {DATABASE}.customers",
        f"insert into {DATABASE}.notes values ('one'), ('one'), (null)",
        "flush binary logs",
    )
    extra = "[sources.snapshot]\nchunk_seconds = 0.000001\n"
    yield Project.made(
        tmp_path / "project",
        port=mysql.port,
        tables=[f"{DATABASE}.*"],
        start="snapshot",
        warm=warm,
        extra=extra,
    )
    mysql.execute(f"drop database {DATABASE}")


def require_equal(project: Project) -> None:
    told = project.json("verify")["sources"]["shop"]["tables"]
    assert {name: one["equal"] for name, one in told.items()} == dict.fromkeys(TABLES, True)


def test_one_run_and_the_lake_equals_it(project: Project, mysql: MySqlStand) -> None:
    told = _told(project.run("run", "--json"))
    assert told["loaded"] == {
        f"{DATABASE}.customers": 3000,
        f"{DATABASE}.orders": 3000,
        f"{DATABASE}.notes": 3,
        f"{DATABASE}.nothing": 0,
    }
    assert (told["loading"], told["partial"], told["quarantined"]) == ({}, [], [])
    require_equal(project)
    mysql.execute(f"update {DATABASE}.customers set v = -1 where id < 5")
    project.run("run")
    require_equal(project)


@pytest.mark.parametrize("place", ["plan_chunk", "record_chunk", "begin_load", "record_capture"])
def test_killed_while_it_reads(project: Project, mysql: MySqlStand, place: str) -> None:
    project.killed(f"{LEDGER}.{place}", "after", 2 if place != "record_capture" else 1)
    mysql.execute(
        f"delete from {DATABASE}.customers where id % 100 = 1",
        f"update {DATABASE}.orders set v = 'later' where b < 50",
        f"insert into {DATABASE}.notes values ('two')",
    )
    project.run("run")
    require_equal(project)


def test_snapshot_reads_tables_again(project: Project, mysql: MySqlStand) -> None:
    """Also one that is followed already; others go on."""
    plan = project.json("plan")["sources"]["shop"]
    assert set(plan["loads"]) == TABLES
    assert "the server keeps its log for" in plan["loads_take"][0]
    project.run("run")
    foreseen = json.loads(
        project.run("snapshot", f"{DATABASE}.orders", "--dry-run", "--json").stdout
    )
    assert list(foreseen["tables"]) == [f"{DATABASE}.orders"]
    mysql.execute(f"update {DATABASE}.orders set v = 'x' where a = 1")
    told = json.loads(project.run("snapshot", f"{DATABASE}.orders", "--json").stdout)
    assert told["loaded"] == {f"{DATABASE}.orders": 3000}
    require_equal(project)


def test_some_rows_are_read_again(project: Project, mysql: MySqlStand) -> None:
    """Of one table; what is only foreseen is read by nobody."""
    project.run("run")
    mysql.execute(
        "set sql_log_bin = 0",
        f"update {DATABASE}.orders set v = 'x' where b = 17",
        f"delete from {DATABASE}.orders where b = 18",
    )
    asked = ("snapshot", f"{DATABASE}.orders", "--where", "b between 10 and 20", "--json")
    foreseen = json.loads(project.run(*asked, "--dry-run").stdout)
    assert foreseen["tables"][f"{DATABASE}.orders"]["where"] == "b between 10 and 20"
    told = json.loads(project.run(*asked).stdout)
    assert told["refreshed"] == {f"{DATABASE}.orders": {"read": 10, "gone": 1, "left": 0}}
    require_equal(project)
    project.run("snapshot", f"{DATABASE}.notes", "--where", "v = 'one'", expect=2)
    project.run("snapshot", f"{DATABASE}.orders", "--where", "b = 1; drop table x", expect=2)


def _told(done: Any) -> Any:
    return json.loads(done.stdout)["sources"]["shop"]
