"""Runs whose Spark is a server of Spark Connect."""

from __future__ import annotations

from pathlib import Path
from uuid import UUID

import pyarrow as pa
import pytest
from deltalake import DeltaTable, QueryBuilder

from lockstep.commands.check import machine_findings
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import load_settings
from lockstep.resources.lake import lake as opened_lake
from lockstep.resources.lake.store.paths import LakePath
from lockstep.resources.postgres.ledger import open_ledger
from tests.e2e.conftest import Follow
from tests.e2e.points import Point
from tests.e2e.project import Project
from tests.fix_connect import ConnectServer
from tests.fix_mysql import MySqlStand

pytestmark = pytest.mark.acceptance

"""The second statement of a run is its first write; the one before it tries whether the server sees
the lake."""


def test_a_server_of_spark_connect(
    mysql: MySqlStand,
    database: str,
    tmp_path: Path,
    connect_server: ConnectServer,
    follow: Follow,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equal though a run was killed while the server carried out its write, without a Java here.
    What was asked of the server is known to the next run, which ends it. What a table's settings
    hide is hidden there as well, also from what was shown before."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    monkeypatch.setenv("SPARK_TOKEN", "of-tests")
    project = follow(
        "create table a (id int primary key, s varchar(40))",
        "insert into a values (1, 'one'), (2, 'two'), (3, 'three')",
        "create table b (s varchar(40))",
        "insert into b values ('twice'), ('twice')",
        start="snapshot",
        top=connect_server.toml(),
    )
    project.killed(Point.STATEMENT_SENT, "soon", 2)
    assert len(left_at_the_server(project)) == 1
    mysql.execute(f"use {database}", "insert into a values (10, 'new')")
    project.run("run")
    assert left_at_the_server(project) == []
    assert project.proven() == {f"{database}.a", f"{database}.b"}

    project.at_rest()
    with (project.config).open("a") as settings:
        settings.write(
            f'\n[[sources.table]]\nmatch = "{database}.a"\nmask_columns = {{ s = "first:1" }}\n'
            'rows = "id < 10"\ncluster_by = ["s"]\n'
        )
    mysql.execute(f"use {database}", "update a set s = 'another' where id = 2")
    project.run("run")
    mirror = QueryBuilder().register("a", DeltaTable(project.lake / "shop" / database / "a"))
    shown = pa.table(mirror.execute("select s from a order by s").read_all())
    assert shown["s"].to_pylist() == ["a***", "o***", "t***"]
    assert project.proven() == {f"{database}.a", f"{database}.b"}
    assert project.status()["in_clear"] == []


def test_check_tries_the_server(
    tmp_path: Path,
    connect_server: ConnectServer,
    connect_mode: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With the lake and the staging folder of the project, and says which Spark that was."""
    monkeypatch.setenv("SPARK_TOKEN", "of-tests")
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")
    tried = list[tuple[LakePath, Path]]()
    monkeypatch.setattr(
        opened_lake, "require_correct_writes", lambda _, *where: tried.append(where)
    )
    project = Project.made(tmp_path, port=1, tables=["a.*"], top=connect_server.toml())
    settings = load_settings(project.config)
    with Adapters(settings, on_warning=print) as adapters:
        told = {one.subject: one for one in machine_findings(adapters, settings)}
    assert told["spark"].sentence.startswith(f"Spark 4.2.0 at {connect_server.server};")
    assert tried == [(project.lake, project.folder / ".lockstep" / "staging")]


def left_at_the_server(project: Project) -> list[UUID]:
    """The clients that may have statements there."""
    with open_ledger("embedded", project.folder / ".lockstep") as ledger:
        return ledger.spark_clients("shop")
