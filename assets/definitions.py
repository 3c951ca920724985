"""The composition root: configuration → resources → assets, checks, jobs, schedules.

The only place that reads the environment: Dagster loads `defs` from here with nothing in
hand but LOCKSTEP_CONFIG, or lockstep.toml in its working directory. Loading opens
nothing: MySQL, Postgres and the lake may all be down.
"""

from __future__ import annotations

import logging
import os
import socket
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from types import MappingProxyType

import dagster as dg

from assets.catalogue import CatalogueEntry, fingerprint, read_catalogue
from assets.checks.source import source_checks
from assets.coverage import Coverage, read_coverage
from assets.dead_runs import let_go, take_over
from assets.declared import Declaration
from assets.failures import failure
from assets.hints import evaluated
from assets.names import SOURCE_TAG, UNTIL_TAG, WAITS_TAG, is_own_job, job_name
from assets.progress import LoggedProgress
from assets.replays import heal_schedule, replay_asset, replay_job
from assets.run_events import RunEvents
from assets.runs import SESSIONS, run_assets
from assets.sensors.attention import Notify, attention_sensor
from assets.sensors.dead_runs import dead_run_sensor
from assets.sensors.new_tables import new_table_sensor
from assets.sensors.schedules import OpenSite, source_schedule
from assets.sensors.traffic import traffic_sensor
from assets.sessions import RunRecord, RunSession, Sessions
from assets.tables import mirror_assets
from assets.upkeep import OpenUpkeep, upkeep_job, upkeep_schedule
from pipeline.decisions import Lease, LeaseView
from pipeline.errors import ConfigurationError, LockstepError
from pipeline.places import Place, parse_end
from pipeline.runs.context import Progress
from resources.adapters import Adapters
from resources.config import Settings, load_settings

Catalogue = Mapping[str, Sequence[CatalogueEntry]]

_log = logging.getLogger("lockstep")


def config_path() -> Path:
    """LOCKSTEP_CONFIG, else lockstep.toml in the working directory."""
    return Path(os.environ.get("LOCKSTEP_CONFIG") or "lockstep.toml").absolute()


@dg.definitions
def defs() -> dg.Definitions:
    """What Dagster loads. A broken lockstep.toml is one clear error on its page."""
    own = dg.Definitions(executor=dg.in_process_executor)
    return dg.Definitions.merge(own, definitions_of(config_path()))


def definitions_of(config: Path, *, notify: Notify | None = None) -> dg.Definitions:
    """Everything of one lockstep.toml, to be merged into other definitions. `notify` is told
    what needs a person, once each: a sentence and what to do.

    Nothing here is at the level of a location but a resource whose name is Lockstep's own.
    """
    try:
        settings = load_settings(config)
    except LockstepError as error:
        raise dg.DagsterInvalidDefinitionError(f"{error.message}\nhint: {error.hint}") from None
    catalogue = {
        source.name: read_catalogue(settings.state_folder, source.name)
        for source in settings.sources
    }
    coverages = {
        source.name: coverage
        for source in settings.sources
        if (coverage := read_coverage(settings.state_folder, source.name)) is not None
    }

    def open_site() -> Adapters:
        return Adapters(settings, on_warning=_log.warning)

    return build(
        settings,
        catalogue,
        open_site,
        coverages=coverages,
        notify=notify,
        open_upkeep=open_site,
    )


def build(
    settings: Settings,
    catalogue: Catalogue,
    open_site: OpenSite,
    *,
    coverages: Mapping[str, Coverage] = MappingProxyType({}),
    record: Callable[[str], RunRecord] = RunRecord,
    watcher: Progress | None = None,
    notify: Notify | None = None,
    open_upkeep: OpenUpkeep | None = None,
) -> dg.Definitions:
    """Everything Dagster shows of these settings; upkeep where `open_upkeep` makes its adapters.

    `catalogue`: the mirrors to declare, per source; `coverages`: the past of those that have
    one. `open_site` makes the adapters that a run, a tick or a sensor works through, and closes
    them. `record` gives the place a source's reports go to; `watcher` sees the progress as well
    as the log does.
    """
    names = [source.name for source in settings.sources]
    steps = [asset for name in names for asset in run_assets(settings, name)]
    mirrors = [
        asset for name in names for asset in mirror_assets(settings, name, catalogue.get(name, ()))
    ]
    replays = [replay_asset(settings, name, covered) for name, covered in coverages.items()]
    triggers = [source for source in settings.sources if source.trigger is not None]
    return dg.Definitions(
        assets=[*steps, *mirrors, *replays],
        asset_checks=[source_checks(settings, name) for name in names],
        jobs=[
            *(_job(settings, name) for name in names),
            *(replay_job(settings, name) for name in coverages),
            *(upkeep_job(settings, name, open_upkeep) for name in names if open_upkeep),
        ],
        schedules=[
            source_schedule(source.name, source.schedule, open_site)
            for source in settings.sources
            if source.schedule is not None
        ]
        + [
            heal_schedule(settings, source.name, coverages[source.name])
            for source in settings.sources
            if source.part.replay is not None and source.name in coverages
        ]
        + [
            upkeep_schedule(name, settings.file.upkeep.schedule)
            for name in names
            if open_upkeep and settings.file.upkeep.schedule is not None
        ],
        sensors=[
            dead_run_sensor(settings, open_site),
            new_table_sensor(settings, fingerprint({n: catalogue.get(n, ()) for n in names})),
            attention_sensor(settings, open_site, notify),
            *(traffic_sensor(source, open_site) for source in triggers),
        ],
        resources={SESSIONS: _sessions(settings, open_site, record, watcher)},
    )


def _job(settings: Settings, source: str) -> dg.UnresolvedAssetJobDefinition:
    """In one process: its steps share a lease and a JVM."""
    names = Declaration.of(settings, source).names
    return dg.define_asset_job(
        job_name(source),
        selection=dg.AssetSelection.assets(*names.steps),
        description=f"One bounded run of {source}: capture, publish, merge, acknowledge.",
        tags={SOURCE_TAG: source},
        executor_def=dg.in_process_executor,
    )


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


def _sessions(
    settings: Settings,
    open_site: OpenSite,
    record: Callable[[str], RunRecord],
    watcher: Progress | None,
) -> dg.ResourceDefinition:
    """One site per Dagster run, which opens what the steps ask for, and one session per
    source; both end with the run, however it ends."""

    @dg.resource(description="The source's lock and everything a step works through.")
    @evaluated
    def sessions(context: dg.InitResourceContext) -> Iterator[Sessions]:
        instance, run = context.instance, context.run
        if instance is None or run is None or context.log is None:
            raise dg.DagsterInvariantViolationError("sessions are for Dagster runs only")
        progress = LoggedProgress(context.log, time.monotonic, watcher)

        def on_lease(lease: Lease, before: LeaseView | None) -> None:
            found = take_over(instance, lease, before, datetime.now(UTC))
            for dead in found:
                progress.note(f"Run {dead} had died; it is reported as failed.")
            if lease.source in told:
                told[lease.source].dead(instance, found)

        def on_wait() -> None:
            instance.add_run_tags(run.run_id, {WAITS_TAG: datetime.now(UTC).isoformat()})

        def on_release(lease: Lease) -> None:
            if not is_own_job(run.job_name):  # which ends with its lease
                let_go(instance, lease)

        def events_of(kept: RunRecord) -> Callable[[], None]:
            if settings.lineage is None or run.job_name != job_name(kept.source):
                return lambda: None
            try:
                events = RunEvents(settings, kept, run.run_id, run.tags, progress.note)
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
                on_wait=on_wait,
                on_release=on_release,
                on_captured=events_of(kept),
            )

        told: dict[str, RunEvents] = {}
        with open_site() as adapters:
            opened = Sessions(make)
            try:
                yield opened
            finally:
                opened.close()
                for source, events in told.items():
                    events.end(partial(adapters.workplace, source, progress))

    return sessions
