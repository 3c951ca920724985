"""A lake in an object store, by the command line: kill -9 on the way, a lost ledger, a span
repeated, and readers that know nothing of Lockstep."""

from __future__ import annotations

from urllib.parse import unquote

import pytest

from lockstep.resources.lake.store.paths import DELTA_USER_AGENT, USER_AGENT
from tests.chance import by_chance
from tests.e2e.conftest import Follow
from tests.e2e.points import Point
from tests.e2e.project import Project
from tests.e2e.test_recovery import forget
from tests.fix_mysql import MySqlStand
from tests.fix_objects import ObjectStore
from tests.lake.faults import Faults
from tests.typed_pages import pasted

pytestmark = pytest.mark.acceptance

KILLS = [
    (Point.CAPTURE_RECORDED, "before"),
    (Point.CHANGES_PUBLISHED, "after"),
    (Point.MIRROR_WRITTEN, "after"),
]
"""Each where a run has something in the store that the ledger does not know of."""
ALL = ("--from", "earliest", "--to", "latest")


DRAWN = 1
"""So many kills, by chance, in `make acceptance`; in `make soak` all, one behind the other."""
AGENTS = {"lockstep": USER_AGENT, "delta-rs": DELTA_USER_AGENT, "spark": "Hadoop"}
WATCHED = 2
"""Requests about a table that did not change: nobody else wrote to its mirror."""


@pytest.fixture
def project(follow: Follow, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch) -> Project:
    """Two tables that the first run reads, in a lake below a prefix."""
    monkeypatch.setenv("LAKE_KEY", "tests")
    project = follow(
        *(f"create table {t} (id int primary key, s varchar(40))" for t in "ab"),
        *(f"insert into {t} values (1, 'one'), (2, 'two'), (3, 'three')" for t in "ab"),
        start="snapshot",
    )
    file = project.config
    lake = f'path = "{object_store.faulty_prefix()}"\n{object_store.toml()}'
    file.write_text(file.read_text().replace('path = "lake"\n', lake))
    return project


@pytest.mark.parametrize("kills", [DRAWN, pytest.param(len(KILLS), marks=pytest.mark.soak)])
def test_a_lake_of_objects(
    mysql: MySqlStand, database: str, project: Project, object_store: ObjectStore, kills: int
) -> None:
    """What its runs ask of the store is counted (`require_counted`). Equal though the ledger was
    lost, and run after run of the new one was killed, each where it had repaired the one before."""
    assert "takes conditional writes" in project.run("check", expect=None).stdout
    project.run("run")
    require_counted(mysql, database, project, Faults(object_store.faulty_port))
    told = project.json("replay", *ALL, "--compare")
    assert all(one["mirror"]["wrong"] == 0 for one in told["tables"].values())
    forget(project)
    project.run("recover", "--yes")
    for number, (target, when) in enumerate(by_chance().sample(KILLS, kills), start=1):
        print("killed", when, target)
        mysql.execute(
            f"use {database}",
            f"update a set s = 'changed {number}' where id = 1",
            f"insert into b values ({number + 10}, 'new')",
            f"delete from a where id = {number + 10}",
            f"insert into a values ({number + 11}, 'later')",
        )
        project.killed(target, when)
    mysql.execute(f"delete from {database}.b where id >= 3")
    project.run("run")
    assert project.proven() == {f"{database}.{table}" for table in "ab"}
    told = project.read_at()
    for table in "ab":
        rows = told[f"{database}.{table}"].arrow().sort_by("id").to_pylist()
        there = mysql.rows(f"select id, s from {database}.{table} order by id")
        assert [tuple(row.values()) for row in rows] == there
    snippets = project.json("read", f"{database}.b")["snippets"]
    assert "LAKE_KEY" in snippets["Spark"]
    assert sorted(pasted(snippets["delta-rs"], {})["id"].to_pylist()) == [1, 2]


def require_counted(mysql: MySqlStand, database: str, project: Project, faults: Faults) -> None:
    """A run tells, and the ledger keeps, what the store saw of Lockstep and of Spark, which are
    not told what delta-rs asks. Of a table that did not change, no more is asked than whether its
    mirror is what it was."""
    before = {who: len(faults.requests(agent)) for who, agent in AGENTS.items()}
    mysql.execute(f"update {database}.a set s = concat(s, '.') where id = 1")
    told = project.json("run")["sources"]["shop"]["requests"]
    seen = {who: faults.requests(agent)[before[who] :] for who, agent in AGENTS.items()}
    assert told == {who: len(seen[who]) for who in ("lockstep", "spark")}
    watched = {who: len(about(f"{database}/b", asked)) for who, asked in seen.items()}
    assert watched == {"lockstep": WATCHED, "delta-rs": 0, "spark": 0}
    kept = project.json("report")["sources"]["shop"]["batches"][-1]
    assert kept["requests"] == told
    text = project.run("metrics").stdout
    assert f'requests{{client="spark",source="shop"}} {told["spark"]}.0' in text


def about(folder: str, requests: list[str]) -> list[str]:
    """Those of a folder of the lake and what is below it."""
    return [asked for asked in requests if f"/{folder}/" in f"{unquote(asked)}/"]


@pytest.mark.soak
def test_requests_do_not_grow(
    mysql: MySqlStand, database: str, project: Project, object_store: ObjectStore
) -> None:
    """Checkpoints take back what commits add; a table without changes is asked for once."""
    faults = Faults(object_store.faulty_port)
    counts = []
    file = project.config
    checkpoints = '"spark.databricks.delta.properties.defaults.checkpointInterval" = "10"'
    file.write_text(f"{file.read_text()}\n[spark]\n{checkpoints}\n")
    project.run("run")
    for number in range(14):
        mysql.execute(f"update {database}.a set s = 'once more {number}' where id = 1")
        before = len(faults.requests())
        project.run("run")
        asked = faults.requests()[before:]
        counts.append(len(asked))
        assert len([one for one in asked if f"/shop/{database}/b/" in one]) <= 2
    assert counts[-1] < max(counts) < 400
