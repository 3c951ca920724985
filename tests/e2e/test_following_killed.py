"""kill -9 while a mirror follows a structure, and while a table is read anew: the next run
ends with MySQL and the lake equal. `test_following` goes through the two hardest, `make soak`
through all.

Each case starts from a copy of the same project after its first run, changes structures on
top of what the cases before it did, kills a run at one call, and runs again.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.points import Point
from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

CASES = [
    ("between two steps of a mirror's columns", Point.MIRROR_STEP, "after", 3),
    ("after a mirror's columns, before its rows", Point.MIRROR_EVOLVED, "after", 1),
    ("after the commit of both", Point.MIRROR_WRITTEN, "after", 1),
    ("after a table was read anew, before the ledger", Point.CAPTURE_RECORDED, "before", 3),
    ("after the ledger, before its mirror", Point.CAPTURE_RECORDED, "after", 3),
    ("before a table's columns are read", Point.CAPTURE_RECORDED, "after", 2),
]

TABLES = ("killed.columns", "killed.filled", "killed.this", "killed.that")


@pytest.fixture(scope="module")
def baseline(
    mysql: MySqlStand, tmp_path_factory: pytest.TempPathFactory, warm: WarmProcess
) -> Project:
    """A project after its first run over tables with rows."""
    start = head(mysql)
    mysql.execute(
        "create database killed",
        "create table killed.columns (id int primary key, a int, b int, c varchar(10))",
        "insert into killed.columns values (1, 1, 10, 'x'), (2, 2, 20, 'y'), (3, 3, 30, 'z')",
        "create table killed.filled (id int primary key, a int, b int, c int, d int, e int, f int)",
        "insert into killed.filled (id, a) values (1, 1), (2, 2), (3, 3)",
        "create table killed.this (id int primary key, v varchar(20))",
        "create table killed.that (id int primary key, n int)",
        "insert into killed.this values (1, 'one'), (2, 'two')",
        "insert into killed.that values (2, 2), (3, 3)",
    )
    folder = tmp_path_factory.mktemp("killed") / "baseline"
    project = Project.made(folder, port=mysql.port, tables=["killed.*"], start=start, warm=warm)
    project.run("run")
    return project


@pytest.mark.soak
@pytest.mark.parametrize(
    ("number", "target", "when", "nth"),
    [(number, *case[1:]) for number, case in enumerate(CASES)],
    ids=[case[0] for case in CASES],
)
def test_the_next_run_repairs(
    baseline: Project,
    mysql: MySqlStand,
    tmp_path: Path,
    number: int,
    target: str,
    when: str,
    nth: int,
) -> None:
    """Names that changed hands have their own values, no change is there twice, and nothing
    stays open."""
    project = baseline.copied(tmp_path / "project")
    mysql.execute(
        f"update killed.columns set a = a + 1 where id = {number % 3 + 1}",
        "alter table killed.columns rename column a to b, rename column b to a",
        f"alter table killed.columns add column n{number} int not null default {number + 1}",
        f"insert into killed.columns (id, a, b) values ({number + 10}, 5, 6)",
        "update killed.columns set b = b * 2 where id = 2",
        "update killed.filled set a = a * 3 where id = 1",
        f"alter table killed.filled add column g{number} int as (a * {number + 2})",
        f"insert into killed.filled (id, a) values ({number + 10}, 5)",
        "update killed.filled set a = a + 1 where id = 2",
        "rename table killed.this to killed.other, killed.that to killed.this,"
        " killed.other to killed.that",
        f"insert into killed.this (id) values ({number + 10})",
        "update killed.that set id = id + 100 where id = 2",
    )
    project.killed(target, when, nth)
    project.run("run")
    assert project.proven() == set(TABLES)
    project.require_once(*TABLES, *(f"_changes.{table}" for table in TABLES))
    assert project.status()["open_batches"] == []
