"""Upkeep in Dagster: a job of each source, and older records of Dagster's own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from lockstep.assets.definitions import definitions_of, delete_runs
from lockstep.assets.names import job_name
from tests.e2e.project import Project

KEYS = '[upkeep]\nschedule = "30 3 * * *"\ndagster_runs = "1d"\n'
SOURCE = "shop"


def runs(instance: dg.DagsterInstance, name: str) -> int:
    return instance.get_runs_count(dg.RunsFilter(job_name=name))


def test_upkeep_runs_as_a_job_and_leaves_the_newest_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job works on the project's ledger and lake, and needs no server; its schedule is on. Of
    runs that ended before the moment, each job's newest stays."""
    monkeypatch.setenv("LOCKSTEP_TEST_PASSWORD", "")
    project = Project.made(tmp_path / "project", port=1, tables=["shop.*"], top=KEYS)
    definitions = definitions_of(project.folder / "lockstep.toml")
    name = job_name(SOURCE, "upkeep")
    schedule = definitions.resolve_schedule_def(f"{name}_schedule")
    assert (schedule.cron_schedule, schedule.default_status.value) == ("30 3 * * *", "RUNNING")

    @dg.op
    def nothing() -> None:
        pass

    ordinary = dg.GraphDefinition(name=job_name(SOURCE), node_defs=[nothing]).to_job()
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        assert definitions.resolve_job_def(name).execute_in_process(instance=instance).success
        for _ in range(3):
            instance.create_run_for_job(ordinary, status=dg.DagsterRunStatus.SUCCESS)
        counts = [runs(instance, one) for one in (name, job_name(SOURCE))]
        now = datetime.now(UTC)
        assert (counts, delete_runs(instance, SOURCE, now - timedelta(days=1))) == ([1, 3], 0)
        newest = instance.get_runs(dg.RunsFilter(job_name=job_name(SOURCE)), limit=1)[0].run_id
        assert delete_runs(instance, SOURCE, now + timedelta(days=1)) == 2
        left = instance.get_runs(dg.RunsFilter(job_name=job_name(SOURCE)))
        assert [one.run_id for one in left] == [newest]
        assert runs(instance, name) == 1
