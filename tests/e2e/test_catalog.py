"""Mirrors in a real metastore, kept registered by runs: docs/deploy.md."""

from __future__ import annotations

from typing import Any

import pytest

from lockstep.pipeline.catalog import EntryName, normal_location
from lockstep.resources.hive import HiveCatalog
from tests.e2e.conftest import Follow
from tests.fix_mysql import MySqlStand

pytestmark = pytest.mark.acceptance

DOWN = "thrift://127.0.0.1:9"


def test_runs_keep_mirrors_registered(
    mysql: MySqlStand, database: str, follow: Follow, metastore: str
) -> None:
    """What is new, altered, commented on, renamed and dropped is so in the metastore behind the
    next run; one that is down costs no run anything, and is caught up with; what somebody did to
    an entry is told, and put right when a person says so."""
    project = follow(
        f"create table {database}.Orders (id int primary key comment 'the key', v int) "
        "comment 'What is ordered'",
        f"create table {database}.stock (id int primary key)",
        f"create table {database}.brief (id int primary key)",
        f"create table {database}.people (id int primary key comment 'the key', ssn int comment"
        " 'a secret comment', email varchar(60) default 'secret' comment 'a secret example') "
        "comment 'a secret comment of a table'",
        f"insert into {database}.people values (1, 1, 'secret')",
        f"insert into {database}.Orders values (1, 2)",
        f"insert into {database}.stock values (1)",
        f"insert into {database}.brief values (1)",
        top=f'[catalog]\nkind = "hive"\nuri = "{metastore}"\nschemas = "m_{{database}}"\n',
        extra='dropped_tables = "drop"\n'
        f'[[sources.table]]\nmatch = "{database}.people"\n'
        'exclude_columns = "ssn"\nmask_columns = { email = "null" }\n',
    )
    toml = project.config
    toml.write_text(toml.read_text().replace('path = "lake"', 'path = "the lake"'))
    catalog = HiveCatalog(metastore)
    schema = f"m_{database}".lower()

    def entry(table: str) -> Any:
        return catalog._table(EntryName(schema, table))

    def columns(table: str) -> list[tuple[str, str, str]]:
        return [(one.name, one.type, one.comment) for one in entry(table).sd.cols]

    assert deeds(project.json("run")) == ["registered"] * 4
    assert columns("people") == [("id", "int", "the key"), ("email", "string", "")]
    assert "secret" not in repr(entry("people"))
    assert entry("orders").parameters["comment"] == "What is ordered"
    assert columns("orders") == [("id", "int", "the key"), ("v", "int", "")]
    found = catalog.find(EntryName(schema, "orders"))
    mirror = project.folder / "the lake" / "shop" / database / "Orders"
    assert found is not None and found.location is not None
    assert normal_location(found.location) == normal_location(str(mirror))
    assert project.json("catalog")["sources"]["shop"]["correct_count"] == 4

    mysql.execute(
        f"alter table {database}.Orders comment = 'New'",
        f"alter table {database}.stock add n bigint comment 'pieces'",
        f"insert into {database}.stock values (2, 3)",
        f"rename table {database}.stock to {database}.pieces",
        f"insert into {database}.pieces values (4, 5)",
        f"drop table {database}.brief",
    )
    told = toml.read_text()
    project.at_rest()
    toml.write_text(told.replace(metastore, DOWN))
    while (run := project.json("run")["sources"]["shop"])["batch"] is not None:
        assert run["catalog"]["trouble"]["kind"] == "CatalogUnavailable"
        assert run["held"] == {} and run["exit_code"] == 0
    status = project.status()
    assert (status["exit_code"], status["catalog"]["registered"]) == (0, 0)
    (found,) = findings(project.json("check"))
    assert found["level"] == "warning" and found["sentence"].endswith("does not answer; runs go on")
    assert project.run("catalog", expect=3).stdout.count("does not answer") == 1

    project.at_rest()
    toml.write_text(told)
    assert sorted(deeds(project.json("run"))) == [
        *("changed", "dropped", "dropped", "registered"),
    ]
    assert entry("orders").parameters["comment"] == "New"
    assert columns("pieces") == [("id", "int", ""), ("n", "bigint", "pieces")]
    assert (entry("stock"), entry("brief")) == (None, None)
    assert project.status()["catalog"]["waiting"] == []

    (found,) = findings(project.json("check"))
    assert (found["level"], found["hint"]) == ("ok", None)
    catalog.drop(EntryName(schema, "orders"))
    shown = project.run("catalog", "--dry-run", expect=4).stdout
    assert f"{database}.Orders as {schema}.orders: not registered" in shown
    assert entry("orders") is None
    project.run("catalog", "--yes")
    assert entry("orders").parameters["comment"] == "New"
    project.run("catalog")

    project.at_rest()
    toml.write_text(told + f'into = "{database}.persons"\n')
    mysql.execute(f"insert into {database}.people values (2, 2, 'secret')")
    project.run("run")
    project.run("run")
    assert entry("people") is None
    moved = entry("persons")
    folder = mirror.parent / "persons"
    assert normal_location(moved.sd.location) == normal_location(str(folder))
    assert "secret" not in repr(moved)
    project.run("catalog")


def deeds(run: Any) -> list[str]:
    told = run["sources"]["shop"]["catalog"]
    assert (told["trouble"], told["missing_entries"]) == (None, [])
    return [one["kind"] for one in told["changes"]]


def findings(check: Any) -> list[Any]:
    return [one for one in check["machine"]["findings"] if one["subject"] == "catalog"]
