"""What a run reads of the log: XA over runs, budgets, compressed transactions, up to a place."""

from __future__ import annotations

import pytest

from tests.e2e.conftest import Follow
from tests.e2e.points import Point
from tests.e2e.project import Project, head, place_of
from tests.fix_mysql import MySqlStand


@pytest.fixture
def project(follow: Follow) -> Project:
    return follow("create table orders (id int primary key, v int)")


def prepare(mysql: MySqlStand, database: str, xid: str, number: int) -> None:
    """A prepared transaction that inserts one row; its session ends."""
    mysql.execute(
        f"xa start {xid}",
        f"insert into orders values ({number}, 0)",
        f"xa end {xid}",
        f"xa prepare {xid}",
        database=database,
    )


@pytest.mark.parametrize(
    ("target", "left"),
    [
        (Point.ROWS_FORGOTTEN, 1),
        pytest.param(Point.BATCH_ACKNOWLEDGED, 2, marks=pytest.mark.soak),
    ],
)
def test_a_prepared_transaction_waits_for_a_later_run(
    project: Project, mysql: MySqlStand, database: str, target: str, left: int
) -> None:
    """Its rows come at its commit, although the log is in another file by then, and although the
    run that read the commit was killed before it was recorded. What was kept of it goes with the
    run that needs it no more, or with the next one where that was killed."""
    prepare(mysql, database, f"'{database}','b',3", 1)
    prepare(mysql, database, f"'{database}'", 2)
    assert project.json("run")["sources"]["shop"]["rows"] == 0
    folder = project.lake / "shop" / "_prepared"
    assert len(list(folder.glob("batch-*.events"))) == 2
    mysql.execute("flush binary logs", f"insert into {database}.orders values (3, 0)")
    assert project.json("run")["sources"]["shop"]["rows"] == 1
    assert project.unequal(mysql, f"{database}.orders") == {}
    mysql.execute(f"xa commit '{database}','b',3", f"xa rollback '{database}'")
    project.killed(Point.CAPTURE_RECORDED, "before")
    assert len(list(folder.iterdir())) == 2
    project.killed(target, "after")
    assert len(list(folder.iterdir())) == left
    project.run("run")
    assert list(folder.iterdir()) == []
    assert project.unequal(mysql, f"{database}.orders") == {}
    assert mysql.rows(f"select id from {database}.orders order by id") == [(1,), (3,)]


def test_a_budget_ends_a_run_between_transactions(
    mysql: MySqlStand, database: str, follow: Follow
) -> None:
    """Each run takes its share, says so, and the next one goes on from there. A compressed
    transaction is one like any other: any session may switch compression on."""
    project = follow(
        "create table orders (id int primary key, v int)",
        extra="[sources.bounds]\nmax_transactions = 2\nmax_bytes = '4GiB'\nmax_seconds = 100\n",
    )
    for number in range(3):
        mysql.execute(
            f"set session binlog_transaction_compression = {'on' if number % 2 else 'off'}",
            "begin",
            f"insert into {database}.orders values ({number}, 0)",
            f"insert into {database}.orders values ({number + 10}, 0)",
            "commit",
        )
    first = project.run("run")
    assert "max_transactions = 2" in first.stderr + first.stdout
    assert project.json("run")["sources"]["shop"]["rows"] == 4
    assert project.unequal(mysql, f"{database}.orders") == {}


def test_until_a_place(mysql: MySqlStand, database: str, follow: Follow) -> None:
    """The run ends there; the same place again is an idle run that says so, one that is not
    there is refused, and without it the rest is read. No rows of the source's table are in it, so
    no Spark is started."""
    mysql.execute(f"create table {database}.orders (id int primary key)")
    project = follow(tables=[f"{database}.orders"])
    mysql.execute(
        f"create table {database}.notes (id int primary key)",
        f"insert into {database}.notes values (1)",
    )
    place = head(mysql)
    mysql.execute(f"insert into {database}.notes values (2)")
    told = project.json("run", "--until", place)["sources"]["shop"]
    assert (place_of(told["end"]), told["transactions"]) == (place, 2)
    again = project.json("run", f"--until={place}")["sources"]["shop"]
    assert (place_of(again["end"]), again["transactions"]) == (place, 0)
    status = project.status()
    assert f"the end {place}" in status["decisions"][0]["reason"]
    run = f"run:{status['batches'][0]['dagster_run']}"
    assert place_of(project.json("run", "--until", run)["sources"]["shop"]["end"]) == place
    file, offset = head(mysql).split(":")
    beyond = f"{file}:{int(offset) + 1}"
    error = project.json("run", "--until", beyond, expect=5)["sources"]["shop"]["error"]
    assert beyond in error["message"]
    assert error["hint"]
    assert place_of(project.json("run")["sources"]["shop"]["end"]) == head(mysql)
