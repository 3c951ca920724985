"""Tables that a run captures, and finds at the merge that their mirrors cannot follow."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand


def test_a_write_that_was_begun_in_vain_is_no_obstacle(
    mysql: MySqlStand, database: str, tmp_path: Path, warm: WarmProcess
) -> None:
    """A value that only the source rounds is read from there in the same run. A name that Delta
    refuses: the table waits until the column is renamed and it is released, and ends equal,
    though the batch of its first try was acknowledged without it."""
    start = head(mysql)
    mysql.execute(
        f"use {database}",
        "create table rounded (id int primary key)",
        "create table named (id int primary key)",
        "insert into rounded values (1), (2)",
        "insert into named values (1), (2)",
    )
    tables = [f"{database}.*"]
    project = Project.made(
        tmp_path / "project", port=mysql.port, tables=tables, start=start, warm=warm
    )
    project.run("run")
    mysql.execute(
        f"use {database}",
        "alter table rounded add column f float(5, 2) default 1.239",
        "insert into rounded values (3, 1)",
        "delete from rounded where id = 2",
        "alter table named add column `order items` int",
        "insert into named values (3, 3)",
    )
    told = project.json("run", expect=6)["sources"]["shop"]["quarantined"]
    assert {one["table"]: one["hint"] for one in told} == {
        f"{database}.named": "rename the column at the source, or exclude the table",
    }
    mysql.execute(
        f"use {database}",
        "alter table named rename column `order items` to items",
        "insert into named values (4, 4)",
    )
    project.run("release", f"{database}.named", "--reason", "the column has another name")
    assert project.json("run")["sources"]["shop"]["quarantined"] == []
    compared = project.json("verify")["sources"]["shop"]["tables"]
    assert {name: one["equal"] for name, one in compared.items()} == {
        f"{database}.rounded": True,
        f"{database}.named": True,
    }


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
    compared = project.json("verify")["sources"]["shop"]["tables"]
    assert {name: one["equal"] for name, one in compared.items()} == {
        f"{database}.plain": True,
        f"{database}.named": True,
    }
    for table in ("plain", "named"):
        written = project.transactions(f"{database}.{table}")
        assert len(set(written)) == len(written)
