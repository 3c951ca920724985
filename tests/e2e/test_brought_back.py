"""Runs killed as they find at the merge that somebody deleted a mirror."""

from __future__ import annotations

import shutil

import pytest

from tests.e2e.conftest import Follow
from tests.e2e.points import Point
from tests.fix_mysql import MySqlStand


@pytest.mark.soak
@pytest.mark.parametrize("when", ["before", "after"])
def test_killed_as_a_table_is_quarantined(
    mysql: MySqlStand, database: str, follow: Follow, when: str
) -> None:
    """The other table's write is not settled then, so their batch waits; the one that was
    refused comes back all the same, and both end equal."""
    project = follow(
        "create table plain (id int primary key, n int)",
        "create table named (id int primary key)",
        "insert into plain values (1, 1), (2, 2)",
        "insert into named values (1), (2)",
    )
    project.run("run")
    mysql.execute("update plain set n = 3", "insert into named values (3)", database=database)
    shutil.rmtree(project.lake / "shop" / database / "named")
    project.killed(Point.TABLE_QUARANTINED, when)
    mysql.execute(
        "insert into named values (4)", "insert into plain values (4, 4)", database=database
    )
    if when == "before":
        project.run("run", expect=6)
    project.run("reload", f"{database}.named", "--reason", "somebody deleted it")
    assert project.json("run")["sources"]["shop"]["stopped"] == []
    names = (f"{database}.plain", f"{database}.named")
    assert project.proven() == set(names)
    project.require_once(*names)
