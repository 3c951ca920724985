"""The job of a source, and what its runs work through: all that one run needs of Dagster.

Belongs here: the job, and its resource, which opens the sessions. Does not: what else Dagster shows
of a source (`definitions`), the steps (`runs`), a run without Dagster (`pipeline.runs.run`).
"""

from __future__ import annotations

import os
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import dagster as dg

from assets.dead_runs import let_go, own_runs, take_over
from assets.declared import Declaration
from assets.failures import failure
from assets.hints import evaluated
from assets.names import SOURCE_TAG, UNTIL_TAG, WAITS_TAG, is_own_job, job_name
from assets.progress import LoggedProgress
from assets.run_events import RunEvents, died_elsewhere, tell_of_dead
from assets.runs import RunSessions
from assets.sensors.schedules import OpenSite
from pipeline.decisions import Lease, LeaseView
from pipeline.errors import ConfigurationError, LockstepError
from pipeline.places import Place, parse_end
from pipeline.runs.run import RunRecord, RunSession
from resources.config import Settings
from resources.full_disk import disk_full


def run_job(settings: Settings, source: str) -> dg.UnresolvedAssetJobDefinition:
    """In one process: its steps share a lease and a JVM."""
    names = Declaration.of(settings, source).names
    return dg.define_asset_job(
        job_name(source),
        selection=dg.AssetSelection.assets(*names.steps),
        description=f"One bounded run of {source}: capture, publish, merge, acknowledge.",
        tags={SOURCE_TAG: source},
        executor_def=dg.in_process_executor,
    )


def sessions_resource(
    settings: Settings,
    open_site: OpenSite,
    record: Callable[[str], RunRecord],
) -> dg.ResourceDefinition:
    """One site per Dagster run, which opens what the steps ask for, and one session per
    source; both end with the run, however it ends."""

    @dg.resource(description="The source's lock and everything a step works through.")
    @evaluated
    def sessions(context: dg.InitResourceContext) -> Iterator[RunSessions]:
        instance, run = context.instance, context.run
        if instance is None or run is None or context.log is None:
            raise dg.DagsterInvariantViolationError("sessions are for Dagster runs only")
        progress = LoggedProgress(context.log, time.monotonic)

        def on_lease(lease: Lease, before: LeaseView | None) -> None:
            found = take_over(instance, lease, before, datetime.now(UTC))
            for dead in found:
                progress.note(f"Run {dead} had died; it is reported as failed.")
            gone = [*own_runs(instance, lease.source, found), *died_elsewhere(before)]
            if lease.source in told:
                told[lease.source].dead(gone)
            else:
                of_others.setdefault(lease.source, []).extend(gone)

        def on_wait() -> None:
            instance.add_run_tags(run.run_id, {WAITS_TAG: datetime.now(UTC).isoformat()})

        def on_release(lease: Lease) -> None:
            if not is_own_job(run.job_name):  # which ends with its lease
                let_go(instance, lease)

        def events_of(kept: RunRecord) -> Callable[[], None]:
            if settings.lineage is None or run.job_name != job_name(kept.source):
                return lambda: None
            try:
                events = RunEvents(settings, kept, run.run_id, progress.note)
            except LockstepError as error:
                kept.error = error
                raise failure(error) from error
            told[kept.source] = events
            return events.captured

        def make(source: str) -> RunSession:
            kept = record(source)
            return RunSession(
                adapters=adapters,
                source=source,
                holder=f"{socket.gethostname()}, process {os.getpid()}",
                run_id=run.run_id,
                progress=progress,
                pause=time.sleep,
                on_lease=on_lease,
                record=kept,
                until=_until(run.tags),
                in_dagster=True,
                refusal=lambda error: disk_full(error, [Path(tempfile.gettempdir())]),
                on_wait=on_wait,
                on_release=on_release,
                on_captured=events_of(kept),
            )

        told: dict[str, RunEvents] = {}
        of_others: dict[str, list[str]] = {}
        with open_site() as adapters:
            opened = RunSessions(make)
            try:
                yield opened
            finally:
                opened.close()
                shown = instance.get_run_by_id(run.run_id)
                reported = shown is not None and shown.is_finished
                for source, events in told.items():
                    work = partial(adapters.workplace, source, progress)
                    events.end(work, found_dead=reported)
                for source, gone in of_others.items():
                    tell_of_dead(settings, source, gone, progress.note)

    return sessions


def _until(tags: Mapping[str, str]) -> Place | None:
    """Where a run ends by its tag, which a person may have typed on Dagster's page."""
    text = tags.get(UNTIL_TAG)
    if not text:
        return None
    try:
        return parse_end(text)
    except ValueError as error:
        mistake = ConfigurationError(
            f"the run's tag {UNTIL_TAG}: {error}", hint="launch it again with a place of that form"
        )
        raise failure(mistake) from error
