"""Runs that meet: two at once, and one that died before the next tick."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import dagster as dg
import pytest

from assets.definitions import build
from assets.names import job_name
from resources.adapters import Adapters
from resources.config import load_settings
from tests.e2e.points import Point
from tests.e2e.project import Project, head
from tests.e2e.warm import WarmProcess
from tests.fix_mysql import MySqlStand
from tests.hostile.takeovers import asleep


@pytest.fixture
def project(mysql: MySqlStand, database: str, tmp_path: Path, warm: WarmProcess) -> Project:
    """A project with one table, a schedule, and no run yet."""
    start = head(mysql)
    mysql.execute(
        f"create table {database}.orders (id int primary key, v int)",
        f"insert into {database}.orders values (1, 1), (2, 2)",
    )
    return Project.made(
        tmp_path / "project",
        port=mysql.port,
        tables=[f"{database}.*"],
        start=start,
        warm=warm,
        extra='schedule = "*/10 * * * *"\n',
    )


def test_two_runs_at_once(
    project: Project, mysql: MySqlStand, database: str, rival: WarmProcess
) -> None:
    """One works; the other ends at once with 3 and says who holds the source."""
    other = replace(project, warm=rival)
    with asleep(project, Point.CAPTURE_RECORDED) as working:
        refused = other.run("run", expect=3).stderr
        working.wake()
        code, said = working.end()
    assert code == 0, said
    assert "busy" in refused or "held" in refused, refused
    assert project.unequal(mysql, f"{database}.orders") == {}


def test_the_next_tick_works_after_a_kill(
    project: Project, mysql: MySqlStand, database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody touches anything: the tick asks for a run, and the run repairs."""
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")
    project.killed(Point.WRITE_SETTLED, "after")
    settings = load_settings(project.folder / "lockstep.toml")
    definitions = build(settings, {}, lambda: Adapters(settings, on_warning=print))
    schedule = definitions.resolve_schedule_def(f"{job_name('shop')}_schedule")
    tick = schedule.evaluate_tick(dg.build_schedule_context())
    assert tick.run_requests is not None
    assert len(tick.run_requests) == 1
    project.run("run")
    assert project.unequal(mysql, f"{database}.orders") == {}
