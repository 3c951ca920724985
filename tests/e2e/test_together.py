"""Runs that meet: two at once, and one that died before the next tick."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import dagster as dg
import pytest

from lockstep.assets.definitions import definitions_of
from lockstep.assets.home import dagster_home
from lockstep.assets.names import SourceNames
from lockstep.pipeline.values.table import TableName
from tests.e2e.conftest import Follow
from tests.e2e.dagster_run import DAGSTER
from tests.e2e.points import Point
from tests.e2e.project import Project
from tests.e2e.warm import TIMEOUT, WarmProcess
from tests.fix_mysql import MySqlStand
from tests.hostile.takeovers import asleep, taking_over

TRANSPORT = '{ type = "file", log_file_path = "events.jsonl", append = true }'


@pytest.fixture
def project(follow: Follow) -> Project:
    """A project with one table, a schedule, and no run yet."""
    return follow(
        "create table orders (id int primary key, v int)",
        "insert into orders values (1, 1), (2, 2)",
        extra='schedule = "*/10 * * * *"\n',
        top=f"[lineage]\ntransport = {TRANSPORT}\n",
    )


@pytest.fixture
def instance(project: Project, monkeypatch: pytest.MonkeyPatch) -> Iterator[dg.DagsterInstance]:
    """The Dagster of the project, which its Dagster runs tell of themselves."""
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")
    monkeypatch.setenv("DAGSTER_HOME", str(dagster_home(project.folder / ".lockstep")))
    with dg.DagsterInstance.get() as opened:
        yield opened


class Sensor:
    """`lockstep_other_runs` and its cursor; `told`: every event that its ticks yielded."""

    def __init__(self, project: Project, instance: dg.DagsterInstance) -> None:
        definitions = definitions_of(project.config)
        self._sensor = definitions.resolve_sensor_def("lockstep_other_runs")
        self._instance = instance
        self._cursor: str | None = None
        self.told: list[Any] = []

    def tick(self) -> None:
        context = dg.build_sensor_context(instance=self._instance, cursor=self._cursor)
        data = self._sensor.evaluate_tick(context)
        self._cursor = data.cursor
        self.told += data.asset_events

    def materializations(self, key: dg.AssetKey) -> int:
        return sum(
            isinstance(event, dg.AssetMaterialization) and event.asset_key == key
            for event in self.told
        )


def test_two_runs_at_once(
    project: Project, mysql: MySqlStand, database: str, rival: WarmProcess
) -> None:
    """One works on; the other ends at once with 3 and says who holds the source."""
    with asleep(project, Point.CAPTURE_RECORDED) as working:
        refused = replace(project, warm=rival).run("run", expect=3).stderr
        working.wake()
        code, said = working.end()
    assert code == 0, said
    assert re.search(r"The source 'shop' is busy: .*, process \d+", refused), refused
    assert project.unequal(mysql, f"{database}.orders") == {}


@pytest.mark.parametrize(
    ("killed", "when", "settling"),
    [
        pytest.param("run", "before", "run", marks=pytest.mark.soak),
        ("run", "before", DAGSTER),
        (DAGSTER, "before", "run"),
        pytest.param(DAGSTER, "before", DAGSTER, marks=pytest.mark.soak),
        (DAGSTER, "after", "run"),
    ],
)
def test_a_write_that_a_killed_run_left_is_told_once(
    project: Project,
    database: str,
    instance: dg.DagsterInstance,
    killed: str,
    when: str,
    settling: str,
) -> None:
    """By the run that settles it where that is Dagster's, else by the sensor; whether a tick came
    between the two runs makes no difference. One that Dagster's run settled, and had no time to
    report, is told by the sensor."""
    project.killed(Point.WRITE_SETTLED, when, 1, killed)
    between, later = Sensor(project, instance), Sensor(project, instance)
    between.tick()
    if settling == DAGSTER:
        with project.start("tests.e2e.dagster_run") as run:
            said = run.communicate(TIMEOUT)
        assert run.returncode == 0, said
    else:
        project.run("run")
    for sensor in (between, later):
        sensor.tick()
        sensor.tick()
    table = SourceNames("shop").table_key(TableName(database, "orders"))
    by_run = len(instance.fetch_materializations(table, limit=9).records)
    told = [by_run + sensor.materializations(table) for sensor in (between, later)]
    assert (told, by_run) == ([1, 1], int(settling == DAGSTER))


@pytest.mark.thin
@pytest.mark.parametrize("taking", ["run", DAGSTER])
@pytest.mark.parametrize("hanging", ["run", DAGSTER])
def test_the_end_of_a_run_that_hangs_is_told_once_when_it_is_taken_over(
    project: Project,
    instance: dg.DagsterInstance,
    rival: WarmProcess,
    hanging: str,
    taking: str,
) -> None:
    """In the ledger and to OpenLineage, not when it wakes up; of a Dagster run that a run of the
    command line took over, by the sensor. How it ended counts as a failed attempt until a run goes
    through to its end."""

    def ends() -> list[str]:
        lines = (project.folder / "events.jsonl").read_text().splitlines()
        events = [json.loads(line) for line in lines]
        begun = events[0]["run"]["runId"]
        return [one["eventType"] for one in events if one["run"]["runId"] == begun]

    def dead() -> str | None:
        sensor = definitions_of(project.config).resolve_sensor_def("lockstep_dead_runs")
        return sensor.evaluate_tick(dg.build_sensor_context(instance=instance)).skip_message

    with asleep(project, Point.WRITE_INTENDED, command=hanging) as hung:
        assert ends() == ["START"]
        taking_over(replace(project, warm=rival), taking)
        dead()
        assert ends() == ["START", "ABORT"]
        hung.wake()
        hung.end()
    assert ends() == ["START", "ABORT"]
    decided = [one["rule"] for one in project.status()["decisions"]]
    assert decided.count("run-died") == 1
    shown = [run.status for run in instance.get_runs()]
    assert shown.count(dg.DagsterRunStatus.FAILURE) == (hanging == DAGSTER)
    assert shown.count(dg.DagsterRunStatus.SUCCESS) == (taking == DAGSTER)
