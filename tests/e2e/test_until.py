"""`lockstep run --until` as a person types it. No rows are read, so no Spark is started."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.conftest import Follow
from tests.e2e.project import Project, head
from tests.fix_mysql import MySqlStand


@pytest.fixture
def project(mysql: MySqlStand, database: str, follow: Follow) -> Project:
    """A source that begins at the log's end, with nothing but foreign traffic behind it."""
    mysql.execute(f"create table {database}.orders (id int primary key)")
    made = follow(tables=[f"{database}.orders"])
    mysql.execute(f"create table {database}.notes (id int primary key)")
    return made


def end_of(told: Any) -> str:
    """Where a run ended, as a place."""
    return f"{told['end']['file']}:{told['end']['offset']}"


def test_until_a_place(project: Project, mysql: MySqlStand, database: str) -> None:
    """The run ends there; the same place again is an idle run that says so, one that is not
    there is refused, and without it the rest is read."""
    mysql.execute(f"insert into {database}.notes values (1)")
    place = head(mysql)
    mysql.execute(f"insert into {database}.notes values (2)")
    told = project.json("run", "--until", place)["sources"]["shop"]
    assert (end_of(told), told["transactions"]) == (place, 2)
    again = project.json("run", f"--until={place}")["sources"]["shop"]
    assert (end_of(again), again["transactions"]) == (place, 0)
    status = project.status()
    assert f"the end {place}" in status["decisions"][0]["reason"]
    run = f"run:{status['batches'][0]['dagster_run']}"
    assert end_of(project.json("run", "--until", run)["sources"]["shop"]) == place
    file, offset = head(mysql).split(":")
    beyond = f"{file}:{int(offset) + 1}"
    error = project.json("run", "--until", beyond, expect=5)["sources"]["shop"]["error"]
    assert beyond in error["message"]
    assert error["hint"]
    assert end_of(project.json("run")["sources"]["shop"]) == head(mysql)
