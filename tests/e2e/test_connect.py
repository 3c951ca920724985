"""Runs whose Spark is a server of Spark Connect."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from uuid import UUID

import pytest

from lockstep.forkserver import channel
from pipeline.retries import SPARK
from resources.postgres.ledger import open_ledger
from tests.e2e.project import Project, environment
from tests.e2e.warm import WarmProcess
from tests.fix_connect import ConnectServer
from tests.fix_mysql import MySqlStand

WRITING = "pyspark.sql.connect.client.core:SparkConnectClient.execute_command"
"""The second statement of a run is its first write; the one before it tries whether the server sees
the lake."""

BESIDE = """
import sys
from pathlib import Path
from lockstep.cli import forked
from lockstep.forkserver.server import start_beside
start_beside(Path(".lockstep/spark"), forked)
sys.stdin.read()
"""
"""What `lockstep spark serve` starts beside Spark."""


def test_a_run_that_is_a_fork(
    mysql: MySqlStand, database: str, tmp_path: Path, connect_server: ConnectServer
) -> None:
    """It does what a process of its own does, with the variables of the command that asks for it,
    which imports next to nothing."""
    mysql.execute(
        f"use {database}",
        "create table a (id int primary key, s varchar(40))",
        "insert into a values (1, 'one'), (2, 'two')",
    )
    project = Project.made(
        tmp_path / "project",
        port=mysql.port,
        tables=[f"{database}.*"],
        start="snapshot",
        top=connect_server.toml(),
    )
    forks = project.folder / ".lockstep" / "spark"
    forks.mkdir()
    with subprocess.Popen(
        [sys.executable, "-c", BESIDE],
        cwd=project.folder,
        env={**environment(), "GRPC_VERBOSITY": "ERROR"},
        stdin=subprocess.PIPE,
    ):
        assert any((forks / channel.SOCKET).exists() for _ in SPARK.tries())
        for change in ("insert into a values (3, 'three')", "update a set s = 'new' where id < 3"):
            mysql.execute(f"use {database}", change)
            done = project.run("run", SPARK_TOKEN="of-tests", PYTHONPROFILEIMPORTTIME="1")
            imported = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}
            assert "lockstep.forkserver.client" in imported
            assert not imported & {"dagster", "numba", "pyarrow", "resources"}
            assert project.unequal(mysql, f"{database}.a") == {}


def test_a_server_of_spark_connect(
    mysql: MySqlStand,
    database: str,
    tmp_path: Path,
    connect_server: ConnectServer,
    warm: WarmProcess,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Equal though a run was killed while the server carried out its write; without a Java here.
    What was asked of the server is known to the next run, which ends it."""
    monkeypatch.setenv("SPARK_TOKEN", "of-tests")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    mysql.execute(
        f"use {database}",
        "create table a (id int primary key, s varchar(40))",
        "insert into a values (1, 'one'), (2, 'two'), (3, 'three')",
        "create table b (s varchar(40))",
        "insert into b values ('twice'), ('twice')",
    )
    project = Project.made(
        tmp_path / "project",
        port=mysql.port,
        tables=[f"{database}.*"],
        start="snapshot",
        top=connect_server.toml(),
        warm=warm,
    )
    project.run("run")
    mysql.execute(
        f"use {database}",
        "update a set s = 'changed' where id = 1",
        "insert into a values (10, 'new')",
        "insert into b values ('twice')",
    )
    project.killed(WRITING, "soon", 2)
    assert len(left_at_the_server(project)) == 1
    project.run("run")
    assert left_at_the_server(project) == []
    told = project.json("verify")["sources"]["shop"]["tables"]
    assert [one["equal"] for one in told.values()] == [True, True]
    assert f"Spark 4.2.0 at {connect_server.server}" in project.run("check", expect=None).stdout


def left_at_the_server(project: Project) -> list[UUID]:
    """The clients that may have statements there."""
    with open_ledger("embedded", project.folder / ".lockstep") as ledger:
        return ledger.spark_clients("shop")
