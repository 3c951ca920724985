"""`plan`, `status` and `start-at` from the command line, over real books and no Spark."""

from __future__ import annotations

from pathlib import Path

import pytest

from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.progress import SilentProgress
from lockstep.pipeline.run.status.plan import make_plan
from lockstep.pipeline.run.status.status import standing_of
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import load_settings
from lockstep.resources.lake.spark.session import SparkProcess
from tests.e2e.conftest import Follow
from tests.e2e.project import Project
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand

ORDERS = (
    "create table orders (id int primary key, v varchar(9))",
    "insert into orders values (1, 'a'), (2, 'b')",
)


def test_a_refusal_is_a_plan_with_a_runs_exit_code(follow: Follow) -> None:
    """5 where a run would give 5, with the rule and the hint; `check` and the run refuse it in the
    same words."""
    project = follow(*ORDERS, start=None)
    plan = project.json("plan", expect=5)["sources"]["shop"]
    assert plan["start_decision"]["rule"] == "start-not-chosen"
    (start,) = (
        one
        for one in project.json("check", expect=5)["sources"]["shop"]["findings"]
        if one["subject"] == "the next start"
    )
    assert (start["level"], start["sentence"]) == ("refusal", plan["error"]["message"])
    ran = project.json("run", expect=5)["sources"]["shop"]
    assert (ran["error"], ran["exit_code"]) == (plan["error"], 5)
    assert "start = 'snapshot'" in plan["error"]["hint"]
    assert [one["kind"] for one in project.status()["decisions"]] == ["refusal"]


def test_everything_answers_while_the_server_is_away(tmp_path: Path, warm: WarmProcess) -> None:
    """`status` 3 with the trouble as its first line, `plan` 3, `start-at` recorded. A password
    that is not set is no server's fault."""
    project = Project.made(tmp_path / "project", port=1, tables=["shop.*"], warm=warm)
    said = project.run("status", expect=3).stdout.splitlines()
    assert said[0].startswith("shop: server unreachable: ")
    assert "127.0.0.1:1" in said[0]
    assert 'lockstep_server_up{source="shop"} 0.0' in project.run("metrics").stdout
    refused = project.run("metrics", "--output", "no/such/folder.prom", expect=2).stderr
    assert "cannot be written to no/such/folder.prom" in refused
    assert project.json("plan", expect=3)["sources"]["shop"]["error"]["kind"] == "SourceUnavailable"
    toml = project.config
    kept = toml.read_text()
    toml.write_text(kept.replace("LOCKSTEP_TEST_PASSWORD", "NOBODY_SET_THIS"))
    said = project.run("status", expect=2).stdout.splitlines()
    assert said[0].startswith("shop: your configuration: ")
    for command in (["plan"], ["run"], ["start-at", "earliest", "--reason", "why not"]):
        refused = project.json(*command, expect=2)["sources"]["shop"]
        assert (refused["error"]["kind"], refused["exit_code"]) == ("SecretMissing", 2)
    toml.write_text(kept)
    told = project.json("start-at", "earliest", "--reason", "why not")["sources"]["shop"]
    assert (told["start"], told["trouble"]["kind"]) == (None, "SourceUnavailable")


def files_of(project: Project) -> dict[str, tuple[int, int]]:
    """Every file of the lake and of the staging folder: its size and when it was written."""
    folders = (project.lake, project.folder / ".lockstep" / "staging")
    return {
        str(path): (path.stat().st_size, path.stat().st_mtime_ns)
        for folder in folders
        for path in folder.rglob("*")
    }


def test_looking_changes_no_row_and_no_file(
    mysql: MySqlStand, database: str, follow: Follow, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a captured batch that waits, one that never came to its end, a transaction larger
    than the ring, and rows to read: `plan` and `status` leave Postgres and the lake alone."""
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", mysql.password)
    monkeypatch.setattr(SparkProcess, "prepare", lambda *_: None)  # nobody waits for it here
    project = follow(*ORDERS, user=mysql.account)
    settings = load_settings(project.config)

    def ports(adapters: Adapters) -> RunPorts:
        return adapters.ports("shop", SilentProgress())

    with (
        Adapters(settings, on_warning=print) as adapters,
        adapters.ledger().lock("shop", "test", None) as lease,
    ):
        done = capture(ports(adapters), lease)
        adapters.ledger().begin_batch(
            lease, done.end, continued_batch=done.batch_id, start_decision=None
        )
    mysql.execute(f"create table {database}.wide (id int primary key, v longblob)")
    values = ", ".join(f"({n}, repeat('x', 8 * 1024 * 1024))" for n in range(9))
    mysql.execute(f"insert into {database}.wide values {values}")
    before = project.ledger_rows(), files_of(project)
    assert any(row.startswith("batches: ") for row in before[0])
    assert any("batch-" in name for name in before[1])
    with Adapters(settings, on_warning=print) as adapters:
        plan = make_plan(ports(adapters))
        standing_of(
            "shop",
            ports(adapters).source.patterns,
            adapters.ledger(),
            ports(adapters),
            ports(adapters).clock(),
        )
    assert (len(plan.abandoned_sentences), len(plan.waiting_batches)) == (1, 1)
    assert plan.reading is not None
    assert sum(table.counts.total for table in plan.reading.tallies.values()) == 9
    assert (project.ledger_rows(), files_of(project)) == before
