"""A lake in an object store, by the command line: kill -9 on the way, a lost ledger, a span
repeated, and readers that know nothing of Lockstep."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import lockstep
from resources.lake.paths import AGENT, DELTA_AGENT
from tests.e2e.project import Project
from tests.e2e.test_recovery import forget
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.fix_objects import ObjectStore
from tests.lake.faults import Faults

LEDGER = "resources.postgres.ledger:PostgresLedger"
KILLS = [
    (f"{LEDGER}.record_capture", "before"),
    ("resources.lake.changelog:DeltaChangelog.publish", "after"),
    ("resources.lake.mirror:SparkMirrors.write", "after"),
]
"""Each where a run has something in the store that the ledger does not know of."""
ALL = ("--from", "earliest", "--to", "latest")


@pytest.fixture
def project(
    mysql: MySqlStand,
    database: str,
    tmp_path: Path,
    object_store: ObjectStore,
    warm: WarmProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> Project:
    """Two tables that the first run reads, in a lake below a prefix."""
    monkeypatch.setenv("LAKE_KEY", "tests")
    mysql.execute(
        f"use {database}",
        *(f"create table {t} (id int primary key, s varchar(40))" for t in "abcd"),
        *(f"insert into {t} values (1, 'one'), (2, 'two'), (3, 'three')" for t in "abcd"),
    )
    tables = [f"{database}.a", f"{database}.b"]
    return made(tmp_path / "project", mysql, tables, object_store, warm)


def made(
    folder: Path, mysql: MySqlStand, tables: list[str], store: ObjectStore, warm: WarmProcess | None
) -> Project:
    project = Project.made(folder, port=mysql.port, tables=tables, start="snapshot", warm=warm)
    file = project.folder / "lockstep.toml"
    lake = f'path = "{store.faulty_prefix()}"\n{store.toml()}'
    file.write_text(file.read_text().replace('path = "lake"\n', lake))
    return project


AGENTS = {"lockstep": AGENT, "delta-rs": DELTA_AGENT, "spark": "Hadoop"}
WATCHED = 2
"""Requests about a table that did not change: nobody else wrote to its mirror."""


def test_a_lake_of_objects(
    mysql: MySqlStand, database: str, project: Project, object_store: ObjectStore
) -> None:
    """What its runs ask of the store is counted (`require_counted`). Equal though run after run
    was killed, each where it had repaired the one before; from a new ledger too."""
    assert "takes conditional writes" in project.run("check", expect=None).stdout
    tables = [f"{database}.*"]
    wide = made(project.folder / "wide", mysql, tables, object_store, project.warm)
    require_counted(mysql, database, project, wide, Faults(object_store.faulty_port))
    for number, (target, when) in enumerate(KILLS, start=1):
        mysql.execute(
            f"use {database}",
            f"update a set s = 'changed {number}' where id = 1",
            f"insert into b values ({number + 10}, 'new')",
            f"delete from a where id = {number + 10}",
            f"insert into a values ({number + 11}, 'later')",
        )
        project.killed(target, when)
    project.run("run")
    told = lockstep.read_at("shop", config=project.folder / "lockstep.toml")
    for table in "ab":
        rows = told[f"{database}.{table}"].arrow().sort_by("id").to_pylist()
        there = mysql.rows(f"select id, s from {database}.{table} order by id")
        assert [tuple(row.values()) for row in rows] == there
    told = project.json("replay", *ALL, "--compare")
    assert all(one["mirror"]["wrong"] == 0 for one in told["tables"].values())
    forget(project)
    project.run("recover", "--yes")
    mysql.execute(f"delete from {database}.b where id >= 3")
    project.run("run")
    assert project.proven() == {f"{database}.{table}" for table in "ab"}
    snippets = project.json("read", f"{database}.b")["snippets"]
    assert "LAKE_KEY" in snippets["Spark"]
    assert pasted(snippets["delta-rs"]) == ["1", "2"]


def require_counted(
    mysql: MySqlStand, database: str, narrow: Project, wide: Project, faults: Faults
) -> None:
    """A run tells, and the ledger keeps, what the store saw of Lockstep and of Spark. With four
    tables of which one changed it is what it was with two, but that each is watched; so it is
    with delta-rs, which tells nothing."""

    def counted(project: Project) -> dict[str, int]:
        for _ in range(3):  # the first reads the tables, the second deletes what that staged
            before = {who: len(faults.requests(agent)) for who, agent in AGENTS.items()}
            told = project.json("run")["sources"]["shop"]["requests"]
            mysql.execute(f"update {database}.a set s = concat(s, '.') where id = 1")
        seen = {who: len(faults.requests(agent)) - before[who] for who, agent in AGENTS.items()}
        assert told == {who: seen[who] for who in ("lockstep", "spark")}
        return seen

    few, many = counted(narrow), counted(wide)
    assert many == {**few, "lockstep": few["lockstep"] + WATCHED * len("cd")}
    [kept] = wide.json("report")["sources"]["shop"]["batches"]
    assert kept["requests"] == {who: many[who] for who in ("lockstep", "spark")}
    text = wide.run("metrics").stdout
    assert f'requests{{client="spark",source="shop"}} {many["spark"]}.0' in text


@pytest.mark.soak
def test_requests_do_not_grow(
    mysql: MySqlStand, database: str, project: Project, object_store: ObjectStore
) -> None:
    """Checkpoints take back what commits add; a table without changes is asked for once."""
    faults = Faults(object_store.faulty_port)
    counts = []
    project.run("run")
    for number in range(14):
        mysql.execute(f"update {database}.a set s = 'once more {number}' where id = 1")
        before = len(faults.requests())
        project.run("run")
        asked = faults.requests()[before:]
        counts.append(len(asked))
        assert len([one for one in asked if f"/shop/{database}/b/" in one]) <= 2
    assert counts[-1] < max(counts) < 400


def pasted(snippet: str) -> list[str]:
    """The column `id` of what a snippet gives, in a process that knows the credentials."""
    *lines, last = snippet.splitlines()
    code = "\n".join([*lines, f"print(*sorted(({last})['id'].to_pylist()))"])
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONPATH": ""},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()
