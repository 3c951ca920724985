"""An ALTER that no log has, between two runs, as a person sees it; its many forms:
`tests/positions/test_structures_proven.py`."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.points import Point
from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand


def test_a_moved_column_sets_its_table_aside_before_rows_are_recorded(
    mysql: MySqlStand, database: str, tmp_path: Path, warm: WarmProcess
) -> None:
    """The run that reads the first rows by the old order ends with exit code 6: its changelog has
    none of them, nor has the mirror; the other table went on. A run that is killed before it knew
    changes nothing about that. What the hint says brings the table back."""
    start, moved, other = head(mysql), f"{database}.moved", f"{database}.other"
    mysql.execute(
        f"create table {moved} (id int primary key, net int, gross int)",
        f"create table {other} (id int primary key)",
        f"insert into {moved} values (1, 10, 12)",
        f"insert into {other} values (1)",
    )
    project = Project.made(
        tmp_path / "project", port=mysql.port, tables=[f"{database}.*"], start=start, warm=warm
    )
    project.run("run")
    with mysql.metadata("MINIMAL"):
        mysql.execute(
            "set sql_log_bin = 0",
            f"alter table {moved} modify gross int after id",
            "set sql_log_bin = 1",
            f"insert into {moved} (id, net, gross) values (2, 20, 24)",
            f"insert into {other} values (2)",
        )
    project.killed(Point.BATCH_ABANDONED, "before")
    done = project.run("run", expect=6)
    assert "columns: (id, net, gross), (id, gross, net)" in done.stdout
    assert project.unequal(mysql, moved, other) == {moved: [(1, 10, 12)]}
    (told,) = project.status()["quarantined"]
    assert f"`lockstep release {moved} --reason …`" in told["hint"]
    project.run("release", moved, "--reason", "its columns were moved without the log")
    assert project.json("run")["sources"]["shop"]["quarantined"] == []
    assert project.proven() == {moved, other}
    project.require_once(moved, other)
