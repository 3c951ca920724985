"""A source's upkeep as a job of its own, which Dagster starts by a schedule.

Belongs here: the op, its job and its schedule, and older records of Dagster's own. Does not: what
upkeep is (`pipeline.runs.upkeeping`).

It is no asset: it changes no row, and nothing behind the mirrors is to be made anew for it. Dagster
keeps the records of each run for good; a source that runs every minute has forty thousand a month.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from typing import Protocol

import dagster as dg

from assets.failures import failure
from assets.hints import evaluated
from assets.names import SOURCE_TAG, job_name, replay_job_name, upkeep_job_name
from assets.progress import LoggedProgress
from pipeline.errors import LockstepError
from pipeline.ports.upkeep import MirrorUpkeep
from pipeline.runs.context import Progress, Workplace
from pipeline.runs.upkeeping.upkeep import UpkeepReport, upkeep
from resources.config import Settings


class UpkeepSite(Protocol):
    """What upkeep needs of the outside."""

    def workplace(self, source: str, progress: Progress) -> Workplace: ...

    def upkeep(self) -> MirrorUpkeep: ...


OpenUpkeep = Callable[[], AbstractContextManager[UpkeepSite]]

_AT_ONCE = 100
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def upkeep_job(settings: Settings, source: str, open_site: OpenUpkeep) -> dg.JobDefinition:
    """In one process; it takes the source's lock only to note what it made."""
    keep = settings.file.upkeep.dagster_runs

    def kept(context: dg.OpExecutionContext) -> None:
        progress = LoggedProgress(context.log, time.monotonic)
        holder = f"{socket.gethostname()}, process {os.getpid()} (upkeep)"
        try:
            with open_site() as adapters:
                work = adapters.workplace(source, progress)
                report = upkeep(work, adapters.upkeep(), settings.upkeep(), holder)
        except LockstepError as error:
            raise failure(error) from error
        for line in _lines(report):
            context.log.info(line)
        context.add_output_metadata(_metadata(report))
        if keep is not None:
            gone = delete_runs(
                context.instance, source, datetime.now(UTC) - timedelta(seconds=keep)
            )
            context.log.info(f"records of {gone} older runs of Dagster's were deleted")

    name = upkeep_job_name(source)
    op = dg.op(name=f"{name}_op", description=f"Upkeep of the mirrors of {source}.")(
        evaluated(kept)
    )

    @dg.job(
        name=name,
        description=f"Puts small files of the mirrors of {source} together, and deletes those that "
        "no promised version needs.",
        tags={SOURCE_TAG: source},
        executor_def=dg.in_process_executor,
    )
    def job() -> None:
        op()

    return job


def upkeep_schedule(source: str, cron: str) -> dg.ScheduleDefinition:
    """By cron, UTC; on from the start, for it was asked for in the file."""
    return dg.ScheduleDefinition(
        name=f"{upkeep_job_name(source)}_schedule",
        job_name=upkeep_job_name(source),
        cron_schedule=cron,
        execution_timezone="UTC",
        tags={SOURCE_TAG: source},
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )


def delete_runs(instance: dg.DagsterInstance, source: str, before: datetime) -> int:
    """Delete Dagster's records, events among them, of runs of the source's jobs that ended and
    began before that moment; how many. Of each job the newest stays, whatever its age: Dagster's
    pages show the assets' last materializations from it."""
    names = (job_name(source), replay_job_name(source), upkeep_job_name(source))
    return sum(1 for name in names for _ in _deleted(instance, name, before))


def _deleted(instance: dg.DagsterInstance, name: str, before: datetime) -> Iterator[str]:
    newest = instance.get_run_records(dg.RunsFilter(job_name=name), limit=1)
    kept = {record.dagster_run.run_id for record in newest}
    wanted = dg.RunsFilter(job_name=name, statuses=_ENDED, created_before=before)
    while True:
        runs = instance.get_run_records(wanted, limit=_AT_ONCE, ascending=True)
        old = [one.dagster_run.run_id for one in runs if one.dagster_run.run_id not in kept]
        if not old:
            return
        for run in old:
            instance.delete_run(run)
            yield run


def _lines(report: UpkeepReport) -> Iterator[str]:
    for one in report.tables:
        if one.why is not None:
            yield f"{one.table}: left alone: {one.why}"
        yield from (f"{one.table}: {left}" for left in one.left)
    changes = report.changes
    if changes.left is not None or changes.held is not None:
        yield f"changes: {changes.left or changes.held}"


def _metadata(report: UpkeepReport) -> dict[str, int | float]:
    steps = [step for table in report.tables for step in table.done]
    return {
        "tables": len(report.tables),
        "commits": sum(step.delta_version is not None for step in steps),
        "deleted_files": sum(step.gone.files for step in steps),
        "deleted_bytes": sum(step.gone.bytes for step in steps),
        "unlisted_change_files": report.changes.unlisted.files,
        "deleted_change_files": report.changes.deleted.files,
        "deleted_checkpoints": report.logs.files,
        "ledger_rows": report.changes.rows,
        "left": sum(len(table.left) for table in report.tables),
        "seconds": round(report.seconds, 3),
    }
