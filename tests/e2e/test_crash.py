"""kill -9 between any two steps: the next run ends with MySQL and the lake equal.

One project after a first run. For each case two tables are written to so that both need a MERGE, a
run is killed at one call, and the next one is not. Then moments of chance.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path
from random import Random

import dagster as dg
import pytest
from deltalake import DeltaTable

import lockstep
from demo import shop
from demo.revenue import revenue, revenue_asset
from tests.chance import seed_of
from tests.e2e.points import Point
from tests.e2e.project import Project, environment, followed, head
from tests.e2e.warm import TIMEOUT, StartedProcess, WarmProcess
from tests.fix_mysql import MySqlStand

READING = [
    ("during capture", Point.ROWS_TAKEN, "before", 1),
    ("after segments, before the ledger", Point.CAPTURE_RECORDED, "before", 1),
    ("after the ledger, before publish", Point.CAPTURE_RECORDED, "after", 1),
]
PUBLISHING = [
    ("after the first of two publishes", Point.CHANGES_PUBLISHED, "after", 1),
    ("after the changelogs, before the transactions", Point.CHANGES_PUBLISHED, "after", 2),
    ("after publish, before merge", Point.WRITE_INTENDED, "before", 1),
]
MERGING = [
    ("after the intents, before any commit", Point.MIRROR_WRITTEN, "before", 1),
    ("while folded changes are staged", Point.CHANGES_STAGED, "after", 2),
    ("after a table's commit, before it is noted", Point.WRITE_SETTLED, "before", 1),
    ("after the first of two tables merged", Point.WRITE_SETTLED, "after", 1),
]
ENDING = [
    ("after merge, before acknowledge", Point.BATCH_ACKNOWLEDGED, "before", 1),
    ("after acknowledge", Point.BATCH_ACKNOWLEDGED, "after", 1),
]
EVERY = [*READING, *PUBLISHING, *MERGING, *ENDING]

TABLES = ("crash.a", "crash.b")
TOTAL = """
select coalesce(sum(quantity * price), 0)
  from shop.order_lines join shop.orders on id = order_id
"""


@pytest.fixture
def project(mysql: MySqlStand, tmp_path: Path, warm: WarmProcess) -> Iterator[Project]:
    """After its first run over two tables with rows."""
    made = followed(
        mysql,
        "crash",
        tmp_path / "project",
        warm,
        "create table crash.a (id int primary key, v varchar(20))",
        "create table crash.b (id int primary key, v decimal(10, 2))",
        "insert into crash.a values (1, 'one'), (2, 'two'), (3, 'three')",
        "insert into crash.b values (1, 1.5), (2, 2.5), (3, 3.5)",
    )
    made.run("run")
    yield made
    # A prepared transaction that a failed test left would hold this up for ever.
    mysql.execute("set lock_wait_timeout = 60", "drop database crash")


@pytest.mark.parametrize(
    "drawn", [True, pytest.param(False, marks=pytest.mark.soak)], ids=["some", "all"]
)
def test_the_next_run_repairs(project: Project, mysql: MySqlStand, drawn: bool) -> None:
    """Nothing lost, nothing doubled, one commit per application version. Killed at one moment of a
    merge, and at one of two of the other three parts of a run, by chance; `make soak` has all. Rows
    of a transaction that was prepared come with its commit, and what is kept of it goes then."""
    chance = Random(seed_of("CRASH_SEED"))
    kinds = chance.sample([READING, PUBLISHING, ENDING], 2)
    cases = [chance.choice(kind) for kind in (*kinds, MERGING)] if drawn else EVERY
    for batches, point in enumerate(cases, start=2):
        case, target, when, nth = point
        print(case)
        mysql.execute(
            *([f"xa commit 'crash {batches - 1}'"] if batches > 2 else []),
            "start transaction",
            "update crash.a set v = concat(v, '!') where id = 1",
            "update crash.b set v = v + 1 where id = 1",
            "commit",
            "delete from crash.a where id = 2",
            "insert into crash.a values (2, 'again')",
            "update crash.b set id = id + 1000000 where id = 3",
            "update crash.b set id = 3 where id > 1000000",
            "delete from crash.b where id = 2",
            "insert into crash.b values (2, 9.5)",
            f"xa start 'crash {batches}'",
            f"insert into crash.a values ({100 + batches}, 'prepared')",
            f"xa end 'crash {batches}'",
            f"xa prepare 'crash {batches}'",
        )
        project.killed(target, when, nth)
        told = "what earlier runs captured, from batch" in project.run("run").stdout
        assert told == (point in (READING[-1], *PUBLISHING, *MERGING)), case
        assert project.unequal(mysql, *TABLES) == {}
        for table in (*TABLES, *(f"_changes.{table}" for table in TABLES), "_transactions"):
            transactions = project.transactions(table)
            assert len(transactions) == len(set(transactions)) == batches, table
        read = DeltaTable(project.lake / "shop" / "_transactions").to_pyarrow_table()["_gtid"]
        assert len(read) == len(set(read.to_pylist()))
        assert len([*(project.lake / "shop" / "_prepared").iterdir()]) == 1
    mysql.execute(f"xa rollback 'crash {batches}'")
    project.run("run")
    assert [*(project.lake / "shop" / "_prepared").iterdir()] == []
    assert project.status()["open_batches"] == []


def test_kills_at_random_moments(
    mysql: MySqlStand, tmp_path: Path, warm: WarmProcess, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While people shop, all over a run's length: each version set has an order for each line.
    Behind them the sum that the demo's asset computes of one is MySQL's, and the asset says which
    set that was of. `make soak` kills a hundred runs, which begin cold and whose Java dies with
    them."""
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")
    config, sums = tmp_path / "project/lockstep.toml", set[Decimal]()

    def add_up(_: Project) -> None:
        sums.add(sum(revenue(lockstep.read_at("shop", config=config)).values(), Decimal()))

    mysql.execute("drop database if exists shop")
    seed = seed_of("CRASH_SEED")
    folder = config.parent
    kill_runs(mysql, folder, "shop", kills=2, seed=seed, warm=warm, after_each=add_up)
    ((total,),) = mysql.rows(TOTAL)
    made = dg.materialize([revenue_asset(config)])
    (event,) = made.get_asset_materialization_events()
    told = event.step_materialization_data.materialization.metadata
    last = lockstep.read_at("shop", config=config)
    assert sum(revenue(last).values()) == total
    assert told["revenue"].value == float(Decimal(total))
    assert told["version set"].value == str(last.position)
    assert sums - {total}, "nobody shopped meanwhile"
    mysql.execute("drop database shop")


KILLS = int(os.environ.get("SOAK_KILLS", "100"))


@pytest.mark.soak
def test_a_hundred_kills_at_random_moments(mysql: MySqlStand, tmp_path: Path) -> None:
    """Under write load, run after run is killed; the last one is not, and all is there."""
    kill_runs(mysql, tmp_path / "project", "soak", kills=KILLS, seed=seed_of("SOAK_SEED"))


# -- runs under write load, killed all over their length ----------------------------------------

WORKERS = 3
_OF_THE_SOURCE = ("_ddl", "_transactions")
PAUSE = 0.05
"""Seconds that each worker rests between two transactions: some fifty of them a second."""

FIRST = 30
"""Transactions before the first run: with so many, somebody has bought something."""


def kill_runs(
    mysql: MySqlStand,
    folder: Path,
    database: str,
    *,
    kills: int,
    seed: int,
    warm: WarmProcess | None = None,
    after_each: Callable[[Project], None] = lambda project: None,
) -> Project:
    """Runs of a shop that is written to, killed all over their length; the last one is not, and
    MySQL and the lake are equal, with one commit for each write. Without a `warm` process their
    Java dies with them."""
    start = head(mysql)
    connection = mysql.connect()
    shop.create(connection, database)
    connection.close()
    project = Project.made(
        folder, port=mysql.port, tables=[f"{database}.*"], start=start, warm=warm
    )
    project.run("run")
    chance = Random(seed)
    with shop.Traffic(lambda: mysql.connect(database), WORKERS, seed, pause=PAUSE) as traffic:
        while traffic.counts.committed < FIRST:
            traffic.raise_error()
            time.sleep(PAUSE)
        began = time.monotonic()
        project.run("run")
        length = time.monotonic() - began
        cut = 0
        for moment in _moments(chance, kills, length):
            traffic.raise_error()
            cut += _killed_after(project, moment)
            after_each(project)
    print(f"{cut} of {kills} runs were killed, the others were done before")
    assert cut
    project.run("run")
    _require_whole(project, database)
    return project


def _moments(chance: Random, kills: int, length: float) -> Iterator[float]:
    """Seconds after the beginning: one in each part of a run, in any order."""
    parts = list(range(kills))
    chance.shuffle(parts)
    for part in parts:
        yield (part + chance.random()) / kills * length


def _killed_after(project: Project, seconds: float) -> bool:
    """Whether the run was still going on; one that ended by itself ended well."""
    with _begun(project) as process:
        try:
            said = process.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            code = process.wait(TIMEOUT)
            assert code in (-signal.SIGKILL, 0), f"neither killed nor well: {code}"
            return code != 0
    assert process.returncode == 0, f"after a kill: {process.returncode}\n{said}"
    return False


def _begun(project: Project) -> subprocess.Popen[str] | StartedProcess:
    if project.warm is not None:
        return project.start("lockstep.cli", "run")
    return subprocess.Popen(
        [sys.executable, "-m", "lockstep.cli", "run"],
        cwd=project.folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    )


def _require_whole(project: Project, database: str) -> None:
    """Equal, no write twice, nothing open, no file that belongs to nothing."""
    tables = [f"{database}.{table}" for table in shop.TABLES]
    assert project.proven() == set(tables)
    appended = [*(f"_changes.{name}" for name in tables), *_OF_THE_SOURCE]
    project.require_once(*tables, *appended)
    for folder in appended:
        path = project.lake / "shop" / folder.replace(".", "/")
        published = {Path(uri).name for uri in DeltaTable(path).file_uris()}
        assert {file.name for file in path.glob("*.parquet")} == published
    read = DeltaTable(project.lake / "shop" / "_transactions").to_pyarrow_table()["_gtid"]
    assert len(read) == len(set(read.to_pylist()))
    assert project.status()["open_batches"] == []
