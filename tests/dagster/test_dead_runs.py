"""Which runs are dead is decided by the ledger's leases, and told to Dagster."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from lockstep.assets.dead_runs import (
    GRACE,
    RunUnderWay,
    reason_dead,
    report_dead_before,
    report_dead_runs,
    runs_under_way,
    tag_lease,
    tag_release,
)
from lockstep.assets.names import SOURCE_TAG, job_name
from lockstep.assets.sensors import reason_not_to_start
from lockstep.pipeline.values.decisions import Lease, LeaseView
from lockstep.resources.config.model import LineageSection
from lockstep.resources.openlineage.events import openlineage_run_id
from tests.dagster.place import Stand, settings_for, stand_for

NOW = datetime(2026, 11, 1, 6, tzinfo=UTC)
LIVE = LeaseView(7, "host, process 1", "run-7", NOW, live=True)
FREE = LeaseView(7, "host, process 1", "run-7", NOW, live=False)

NOT_YET, LONG_AGO = NOW - GRACE / 2, NOW - 2 * GRACE

CASES = {
    "the holder of a live lease lives": (RunUnderWay("run-7", 7, LONG_AGO), LIVE, False),
    "its tag may be missing still": (RunUnderWay("run-7", None, LONG_AGO), LIVE, False),
    "the newest lease is not held": (RunUnderWay("run-7", 7, NOW), FREE, True),
    "killed before it was tagged": (RunUnderWay("run-7", None, NOW), FREE, True),
    "an older lease was taken over": (RunUnderWay("run-3", 3, NOW), LIVE, True),
    "not at its first step yet": (RunUnderWay("run-8", None, NOT_YET), LIVE, False),
    "never came to its first step": (RunUnderWay("run-8", None, LONG_AGO), None, True),
    "between two steps that are processes": (RunUnderWay("run-7", 7, LONG_AGO, True), FREE, False),
    "at another's steps, while a run goes on": (
        RunUnderWay("run-3", 3, LONG_AGO, True),
        LIVE,
        False,
    ),
    "killed at its next step, before it was tagged": (
        RunUnderWay("run-7", 6, LONG_AGO, True),
        FREE,
        True,
    ),
}


@pytest.mark.parametrize(("run", "lease", "dead"), CASES.values(), ids=CASES.keys())
def test_who_is_dead(run: RunUnderWay, lease: LeaseView | None, dead: bool) -> None:
    """One row per rule; nobody who released a lease is, however long ago that was."""
    assert (reason_dead(run, lease, NOW) is not None) == dead


def test_a_schedule_skips_with_a_sentence() -> None:
    """Who holds the source, since when; nothing when nobody does."""
    with dg.DagsterInstance.ephemeral() as instance:
        assert reason_not_to_start(instance, "shop", LIVE) == (
            "shop is being worked on by host, process 1, run run-7, since "
            "2026-11-01 06:00:00 UTC; the next tick tries again."
        )
        assert reason_not_to_start(instance, "shop", None) is None


def started(stand: Stand, token: int | None) -> str:
    """A run that Dagster takes for started; its process is nowhere."""
    job = stand.definitions().resolve_job_def(job_name("shop"))
    tags = {SOURCE_TAG: "shop"}
    run = stand.instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTED, tags=tags)
    if token is not None:
        tag_lease(stand.instance, Lease("shop", token, "host", run.run_id))
    return run.run_id


def status(stand: Stand, openlineage_run_id: str) -> dg.DagsterRunStatus:
    run = stand.instance.get_run_by_id(openlineage_run_id)
    assert run is not None
    return run.status


def test_the_sensor_reports_the_dead_and_spares_the_living(tmp_path: Path) -> None:
    """A run without its lease is shown as failed, and told to OpenLineage as aborted; the lease's
    holder stays started."""
    settings, events = settings_for(tmp_path, "shop"), tmp_path / "events"
    told = {"type": "file", "log_file_path": str(events), "append": True}
    lineage = LineageSection(transport=told)
    settings = replace(settings, file=settings.file.model_copy(update={"lineage": lineage}))
    with stand_for(settings, None) as stand:
        sensor = stand.definitions().resolve_sensor_def("lockstep_dead_runs")

        def look() -> str | None:
            context = dg.build_sensor_context(instance=stand.instance)
            return sensor.evaluate_tick(context).skip_message

        assert look() == "No run is under way."
        alive = started(stand, None)
        with stand.adapters.books.lock("shop", "somebody", alive) as lease:
            dead = started(stand, lease.token - 1)
            assert look() == f"Reported as failed: {dead}."
            assert look() == "Every run under way is alive."
        assert (status(stand, dead), status(stand, alive)) == (
            dg.DagsterRunStatus.FAILURE,
            dg.DagsterRunStatus.STARTED,
        )
        assert look() == f"Reported as failed: {alive}."
    sent = [json.loads(line) for line in events.read_text().splitlines()]
    assert [(one["eventType"], one["run"]["runId"]) for one in sent] == [
        ("ABORT", openlineage_run_id("shop", run)) for run in (dead, alive)
    ]


@pytest.mark.parametrize("tag", [tag_lease, tag_release])
def test_a_run_that_is_executed_again_has_no_lease_yet(
    tmp_path: Path, tag: Callable[[dg.DagsterInstance, Lease], None]
) -> None:
    """It begins with the tags of the run before it. Its process may be starting still, and is gone
    if it takes no lease of its own."""
    with stand_for(settings_for(tmp_path, "shop"), None) as stand:
        ended = started(stand, None)
        tag(stand.instance, Lease("shop", 7, "host", ended))
        ended_run = stand.instance.get_run_by_id(ended)
        assert ended_run is not None
        stand.instance.report_run_canceled(ended_run)
        job = stand.definitions().resolve_job_def(job_name("shop"))
        again = stand.instance.create_run_for_job(
            job,
            status=dg.DagsterRunStatus.STARTED,
            tags=ended_run.tags,
            parent_run_id=ended,
            root_run_id=ended,
        )
        runs, now = runs_under_way(stand.instance, "shop"), datetime.now(UTC)
        assert report_dead_runs(stand.instance, runs, FREE, now) == []
        assert report_dead_runs(stand.instance, runs, FREE, now + 2 * GRACE) == [again.run_id]


def test_whoever_takes_the_lock_reports_the_run_that_had_it(tmp_path: Path) -> None:
    """Also one that hung, and looked alive a moment before its connection was ended; the run of
    whoever took it stays."""
    with stand_for(settings_for(tmp_path, "shop"), None) as stand:
        hung, taker = started(stand, 7), started(stand, None)
        seen = replace(LIVE, run_id=hung)
        lease = Lease("shop", 8, "host, process 2", taker)
        assert report_dead_before(stand.instance, lease, seen, NOW) == [hung]
        assert (status(stand, hung), status(stand, taker)) == (
            dg.DagsterRunStatus.FAILURE,
            dg.DagsterRunStatus.STARTED,
        )


def test_an_upkeep_of_any_length_is_not_dead(tmp_path: Path) -> None:
    """It does not hold the lock while it works."""
    with stand_for(settings_for(tmp_path, "shop"), None) as stand:
        job = stand.definitions().resolve_job_def(job_name("shop", "upkeep"))
        assert job.run_tags[SOURCE_TAG] == "shop"
        run = stand.instance.create_run_for_job(
            job, status=dg.DagsterRunStatus.STARTED, tags=job.run_tags
        )
        lease, hours_later = Lease("shop", 8, "host", None), datetime.now(UTC) + timedelta(hours=9)
        assert report_dead_before(stand.instance, lease, None, hours_later) == []
        assert status(stand, run.run_id) is dg.DagsterRunStatus.STARTED


def test_the_schedule_asks_the_ledger(tmp_path: Path) -> None:
    """A tick while the lease is held skips; afterwards it requests a tagged run, once."""
    settings = settings_for(tmp_path, "shop", extra='schedule = "*/5 * * * *"')
    with (
        stand_for(settings, None) as stand,
        dg.DagsterInstance.local_temp(str(tmp_path)) as instance,
    ):
        schedule = stand.definitions().get_repository_def().schedule_defs[0]

        def tick() -> dg.ScheduleExecutionData:
            context = dg.build_schedule_context(instance=instance)
            return schedule.evaluate_tick(context)

        with stand.adapters.books.lock("shop", "somebody", "some-run"):
            skipped = tick()
        assert skipped.run_requests == []
        assert "being worked on by somebody" in (skipped.skip_message or "")
        (request,) = tick().run_requests or []
        assert request.tags[SOURCE_TAG] == "shop"
        job = stand.definitions().resolve_job_def(job_name("shop"))
        run = instance.create_run_for_job(job, status=dg.DagsterRunStatus.STARTING)
        assert tick().skip_message == f"Run {run.run_id} of shop waits to begin."
