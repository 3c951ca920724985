"""A table that was paused catches up through the log, in a real ledger and a real lake. That a
pause leaves no hole where no run is killed: `tests/positions/test_coming_back.py`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.e2e.points import Point
from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand


def images(project: Project, table: str) -> list[dict[str, Any]]:
    """A changelog's rows in the order of their numbers, as another reader of Delta has them."""
    folder = project.lake / "shop" / "_changes" / table.replace(".", "/")
    rows: list[dict[str, Any]] = DeltaTable(folder).to_pyarrow_table().to_pylist()
    return sorted(rows, key=lambda row: row["_sequence"])


def kinds(project: Project, table: str) -> list[tuple[str, int]]:
    return [(row["_change_type"], row["id"]) for row in images(project, table)]


def made(mysql: MySqlStand, database: str, folder: Path, warm: WarmProcess) -> Project:
    start = head(mysql)
    mysql.execute(
        *(f"create table {table} (id int primary key, v int)" for table in ("a", "b")),
        *(f"insert into {table} values (1, 1), (2, 2)" for table in ("a", "b")),
        database=database,
    )
    project = Project.made(
        folder, port=mysql.port, tables=[f"{database}.*"], start=start, warm=warm
    )
    project.run("run")
    project.run("pause", f"{database}.a", "--reason", "a load")
    mysql.execute(
        "insert into a values (3, 3)",
        "update a set v = 20 where id = 2",
        "insert into b values (3, 3)",
        "alter table a add column w int not null default 7 after id",
        "delete from a where id = 1",
        "insert into a (id, v) values (4, 4)",
        database=database,
    )
    project.run("run", expect=6)
    return project


WHOLE = [
    *(("insert", 1), ("insert", 2), ("insert", 3)),
    *(("update_preimage", 2), ("update_postimage", 2), ("delete", 1), ("insert", 4)),
    ("insert", 5),
]


@pytest.mark.soak
@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(
    ("target", "nth"),
    [
        (Point.BATCH_BEGUN, 1),
        (Point.CAPTURE_RECORDED, 1),
        (Point.CAPTURE_RECORDED, 2),
        (Point.WRITE_SETTLED, 1),
    ],
)
def test_killed_on_its_way_it_comes_back(
    mysql: MySqlStand,
    database: str,
    tmp_path: Path,
    warm: WarmProcess,
    target: str,
    nth: int,
    when: str,
) -> None:
    """Every change of the table is there once and in order all the same, no row is read from the
    source, and the mirror is equal."""
    project = made(mysql, database, tmp_path / "project", warm)
    project.run("resume", f"{database}.a")
    mysql.execute("insert into a (id, v) values (5, 5)", database=database)
    project.killed(target, when, nth)
    project.run("run")
    assert kinds(project, f"{database}.a") == WHOLE
    assert project.proven() == {f"{database}.a", f"{database}.b"}
