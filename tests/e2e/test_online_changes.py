"""Tools that change a table's structure while others write to it: the mirror follows, and
the tools' own tables never reach the lake.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.online_changes import Between, gh_ost, pt_online_schema_change
from tests.e2e.project import Project, head
from tests.e2e.writing import Writer
from tests.fix_mysql import MySqlStand

ALTER = "add column note varchar(20) not null default 'none', modify v bigint"
TABLES = ("ghosted", "triggered")


@pytest.fixture
def project(minimal: MySqlStand, database: str, tmp_path: Path) -> Project:
    """Two tables with rows after a first run; names that begin with _ are left out."""
    start = head(minimal)
    for table in TABLES:
        minimal.execute(
            f"create table {database}.{table} (id int primary key, v int)",
            f"insert into {database}.{table} with recursive n as"
            " (select 100 as i union all select i + 1 from n where i < 200) select i, i from n",
        )
    made = Project.made(
        tmp_path / "project",
        port=minimal.port,
        tables=[f"{database}.*"],
        start=start,
        extra=f'exclude = ["{database}._*"]\n',
    )
    made.run("run")
    return made


def require_followed(project: Project, mysql: MySqlStand, database: str) -> None:
    """Equal, under the new structure, and no table of the tool's."""
    told: Any = project.json("verify")["sources"]["shop"]
    tables = [f"{database}.{table}" for table in TABLES]
    assert {name: one["equal"] for name, one in told["tables"].items()} == dict.fromkeys(
        tables, True
    )
    assert told["set_aside"] == []
    lake = project.lake / "shop"
    for folder in (lake / database, lake / "_changes" / database):
        assert {path.name.partition("@")[0] for path in folder.iterdir()} == set(TABLES)
    assert {row[0] for row in mysql.rows(f"show tables from {database}")} == set(TABLES)


def test_statements_of_both_tools(project: Project, minimal: MySqlStand, database: str) -> None:
    """Under a writer that never stops; a run while it goes on, and one when it is over."""
    with Writer(minimal, [f"{database}.{table}" for table in TABLES]) as writer:
        between: Between = writer.go_on
        gh_ost(minimal, database, "ghosted", ALTER, between)
        pt_online_schema_change(minimal, database, "triggered", ALTER, between)
        writer.go_on()
        project.run("run")
        writer.go_on()
    project.run("run")
    require_followed(project, minimal, database)


@pytest.mark.skipif(
    shutil.which("pt-online-schema-change") is None, reason="Percona Toolkit is not here"
)
def test_pt_online_schema_change_itself(
    project: Project, minimal: MySqlStand, database: str
) -> None:
    """The program, under the same writer."""
    with Writer(minimal, [f"{database}.{table}" for table in TABLES]) as writer:
        for table in TABLES:
            dsn = f"h=127.0.0.1,P={minimal.port},u={minimal.server.user},D={database},t={table}"
            command = ["pt-online-schema-change", "--execute", "--alter", ALTER, dsn]
            subprocess.run(command, check=True, timeout=120, stdin=subprocess.DEVNULL)
        writer.go_on()
        project.run("run")
    project.run("run")
    require_followed(project, minimal, database)
