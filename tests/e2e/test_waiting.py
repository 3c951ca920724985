"""Runs that cannot merge: what waits is merged later, once.

One project for the module, and one first run; each test writes, is held up, and ends with
MySQL and the lake equal.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

DATABASE = "waiting"
TABLES = ("a", "b")


@pytest.fixture(scope="module")
def followed(
    mysql: MySqlStand, tmp_path_factory: pytest.TempPathFactory, warm: WarmProcess
) -> Project:
    start = head(mysql)
    mysql.execute(
        f"create database {DATABASE}",
        *(f"create table {DATABASE}.{table} (id int primary key, v int)" for table in TABLES),
        *(f"insert into {DATABASE}.{table} values (0, 0), (1, 0)" for table in TABLES),
    )
    folder = tmp_path_factory.mktemp("waiting") / "project"
    made = Project.made(folder, port=mysql.port, tables=[f"{DATABASE}.*"], start=start, warm=warm)
    made.run("run")
    return made


@pytest.fixture
def project(followed: Project) -> Iterator[Project]:
    """At the end of each test a run that nothing holds up was right."""
    yield followed
    assert followed.json("verify")["exit_code"] == 0
    assert open_batches(followed) == []


def write(mysql: MySqlStand) -> None:
    """An update of every row, and a new one, in both tables."""
    for table in TABLES:
        mysql.execute(
            f"update {DATABASE}.{table} set v = v + 1",
            f"insert into {DATABASE}.{table} select max(id) + 1, 0 from {DATABASE}.{table}",
        )


def open_batches(project: Project) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = project.json("status")["sources"]["shop"]["open_batches"]
    return found


def ranges(project: Project, table: str) -> list[int]:
    """How many batches each commit of a mirror holds."""
    told = [
        json.loads(commit["commitInfo"]["userMetadata"])["lockstep"]["batches"]
        for commit in project.commits(f"{DATABASE}.{table}")
    ]
    return [last - first + 1 for first, last in told]


def require_once(project: Project) -> None:
    for table in TABLES:
        transactions = project.transactions(f"{DATABASE}.{table}")
        assert len(transactions) == len(set(transactions))


@contextmanager
def unwritable(folder: Path) -> Iterator[None]:
    """Nothing can be made in a folder; for root that takes more than a mode."""
    if os.geteuid() == 0:
        done = subprocess.run(["chattr", "+i", str(folder)], check=False, capture_output=True)
        if done.returncode:
            pytest.skip("this file system keeps nothing from root")
    mode = folder.stat().st_mode
    if os.geteuid():
        folder.chmod(0o555)
    try:
        yield
    finally:
        if os.geteuid() == 0:
            subprocess.run(["chattr", "-i", str(folder)], check=True)
        else:
            folder.chmod(mode)


def test_batches_wait_until_they_can_be_merged(project: Project, mysql: MySqlStand) -> None:
    """A mirror that cannot be written (3; the other goes on), then no Java (2, everything is
    captured): nothing is acknowledged. Afterwards what was intended is written as it was, and
    all that came later is one commit for each mirror."""
    before = {table: len(ranges(project, table)) for table in TABLES}
    acknowledged = project.json("status")["sources"]["shop"]["acknowledged"]
    log = project.lake / "shop" / DATABASE / "b" / "_delta_log"
    write(mysql)
    with unwritable(log):
        assert str(log.parent) in project.run("run", expect=3).stderr
    path = os.pathsep.join(
        part for part in os.environ["PATH"].split(os.pathsep) if not Path(part, "java").exists()
    )
    for _ in range(2):
        write(mysql)
        assert "Java" in project.cold.run("run", expect=2, PATH=path, JAVA_HOME="").stderr
    assert [batch["state"] for batch in open_batches(project)] == ["captured"] * 3
    assert project.json("status")["sources"]["shop"]["acknowledged"] == acknowledged
    project.run("run")
    assert {table: ranges(project, table)[before[table] :] for table in TABLES} == {
        "a": [1, 2],
        "b": [1, 2],
    }
    require_once(project)
