"""kill -9 between any two steps: the next run ends with MySQL and the lake equal.

Each case starts from a copy of the same project after a first run, writes to two tables
so that both need a MERGE, kills a run at one call, and runs again. Then moments of chance.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from deltalake import DeltaTable

from tests.e2e.power_cuts import kill_runs, seed_of
from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess

LEDGER = "resources.postgres.ledger:PostgresLedger"
CHANGELOG = "resources.lake.changelog:DeltaChangelog"
MIRRORS = "resources.lake.mirror:SparkMirrors"

CASES = [
    ("during capture", "pipeline.runs.capturing.segment_builder:Segmenter.put", "before", 1),
    ("after segments, before the ledger", f"{LEDGER}.record_capture", "before", 1),
    ("after the ledger, before publish", f"{LEDGER}.record_capture", "after", 1),
    ("after the first of two publishes", f"{CHANGELOG}.publish", "after", 1),
    ("after the changelogs, before the transactions", f"{CHANGELOG}.publish", "after", 2),
    ("after publish, before merge", f"{LEDGER}.open_intent", "before", 1),
    ("after the intents, before any commit", f"{MIRRORS}.write", "before", 1),
    ("while folded changes are staged", f"{MIRRORS}.stage", "after", 2),
    ("after a table's commit, before it is noted", f"{LEDGER}.settle", "before", 1),
    ("after the first of two tables merged", f"{LEDGER}.settle", "after", 1),
    ("after merge, before acknowledge", f"{LEDGER}.acknowledge", "before", 1),
    ("after acknowledge", f"{LEDGER}.acknowledge", "after", 1),
]
COLD = "after the first of two tables merged"
"""The one whose Java dies with it, while it may be in the middle of the other's commit."""

IN_THE_SOAK = (0, 3, 4, 5, 10)
"""Those that are much like another; `make soak` has them too."""


@pytest.fixture(scope="module")
def baseline(mysql: Any, tmp_path_factory: pytest.TempPathFactory, warm: WarmProcess) -> Project:
    """A project after its first run over two tables with rows."""
    start = head(mysql)
    mysql.execute(
        "create database crash",
        "create table crash.a (id int primary key, v varchar(20))",
        "create table crash.b (id int primary key, v decimal(10, 2))",
        "insert into crash.a values (1, 'one'), (2, 'two'), (3, 'three')",
        "insert into crash.b values (1, 1.5), (2, 2.5), (3, 3.5)",
    )
    folder = tmp_path_factory.mktemp("crash") / "baseline"
    project = Project.made(folder, port=mysql.port, tables=["crash.*"], start=start, warm=warm)
    project.run("run")
    return project


@pytest.mark.parametrize(
    ("case", "target", "when", "nth"),
    [
        pytest.param(*case, marks=[pytest.mark.soak] if number in IN_THE_SOAK else [])
        for number, case in enumerate(CASES)
    ],
    ids=[case[0] for case in CASES],
)
def test_the_next_run_repairs(
    baseline: Project,
    mysql: Any,
    tmp_path: Path,
    case: str,
    target: str,
    when: str,
    nth: int,
) -> None:
    """Nothing lost, nothing doubled, one commit per application version."""
    project = baseline.copied(tmp_path / "project")
    mysql.execute(
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
    )
    (project.cold if case == COLD else project).killed(target, when, nth)
    project.run("run")
    assert project.unequal(mysql, "crash.a", "crash.b") == {}
    for table in ("crash.a", "crash.b"):
        transactions = project.transactions(table)
        assert len(transactions) == len(set(transactions)) == 2
        assert len(project.transactions(f"_changes.{table}")) == 2
    assert len(project.transactions("_transactions")) == 2
    read = DeltaTable(project.lake / "shop" / "_transactions").to_pyarrow_table()["_gtid"]
    assert len(read) == len(set(read.to_pylist()))
    assert project.status()["open_batches"] == []


def test_kills_at_random_moments(mysql: Any, tmp_path: Path, warm: WarmProcess) -> None:
    """Under write load, all over a run's length; `make soak` does a hundred, of runs that begin
    cold and whose Java dies with them."""
    kill_runs(
        mysql,
        tmp_path / "project",
        "crash_shop",
        kills=4,
        seed=seed_of("CRASH_SEED"),
        warm=warm,
    )
