"""Runs killed as they find at the merge that a mirror cannot follow; those that are not killed:
`test_following`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand


@pytest.mark.soak
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_as_a_table_is_quarantined(
    mysql: MySqlStand, database: str, tmp_path: Path, warm: WarmProcess, when: str
) -> None:
    """The other table's write is not settled then, so their batch waits; the one that was
    refused comes back all the same, and both end equal."""
    start = head(mysql)
    mysql.execute(
        f"use {database}",
        "create table plain (id int primary key, n int)",
        "create table named (id int primary key)",
        "insert into plain values (1, 1), (2, 2)",
        "insert into named values (1), (2)",
    )
    tables = [f"{database}.*"]
    project = Project.made(
        tmp_path / "project", port=mysql.port, tables=tables, start=start, warm=warm
    )
    project.run("run")
    mysql.execute(
        f"use {database}",
        "update plain set n = 3",
        "alter table named add column `order items` int",
        "insert into named values (3, 3)",
    )
    project.killed("resources.postgres.ledger:PostgresLedger.quarantine", when)
    mysql.execute(
        f"use {database}",
        "alter table named rename column `order items` to items",
        "insert into named values (4, 4)",
        "insert into plain values (4, 4)",
    )
    if when == "before":
        project.run("run", expect=6)
    project.run("release", f"{database}.named", "--reason", "the column has another name")
    assert project.json("run")["sources"]["shop"]["quarantined"] == []
    names = (f"{database}.plain", f"{database}.named")
    assert project.proven() == set(names)
    project.require_once(*names)
