"""The composition root: configuration → resources → assets, checks, jobs, schedules.

The only place that reads the environment: Dagster loads `defs` from here with nothing in
hand but LOCKSTEP_CONFIG, or lockstep.toml in its working directory. Loading opens
nothing: MySQL, Postgres and the lake may all be down.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

import dagster as dg

from assets.catalogue import CatalogueEntry, fingerprint, note_keys, read_catalogue
from assets.checks.source import source_checks
from assets.coverage import Coverage, read_coverage
from assets.declared import Declaration
from assets.replays import heal_schedule, replay_asset, replay_job
from assets.run_job import run_job, sessions_resource
from assets.runs import SESSIONS, run_assets
from assets.sensors.attention import Notify, attention_sensor
from assets.sensors.dead_runs import dead_run_sensor
from assets.sensors.new_tables import new_table_sensor
from assets.sensors.other_runs import other_runs_sensor
from assets.sensors.schedules import OpenSite, source_schedule
from assets.sensors.traffic import traffic_sensor
from assets.tables import mirror_assets
from assets.translator import LockstepTranslator
from assets.upkeep import OpenUpkeep, upkeep_job, upkeep_schedule
from pipeline.errors import LockstepError
from pipeline.runs.run import RunRecord
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


def definitions_of(
    config: Path,
    *,
    notify: Notify | None = None,
    translator: LockstepTranslator | None = None,
) -> dg.Definitions:
    """Everything of one lockstep.toml, to be merged into other definitions. `notify` is told
    what needs a person, once each: a sentence and what to do. `translator` says how mirrors
    appear.

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

    for name, entries in catalogue.items():
        declared = Declaration.of(settings, name, translator)
        keys = {entry.table: declared.names.table(entry.table) for entry in entries}
        chosen = {t: tuple(k.path) for t, k in keys.items() if k != declared.names.default(t)}
        try:
            note_keys(settings.state_folder, name, chosen)
        except OSError as error:  # a page that only shows may have no right to write
            _log.warning("The keys of mirrors were not noted for the command line: %s", error)

    def open_site() -> Adapters:
        return Adapters(settings, on_warning=_log.warning)

    return build(
        settings,
        catalogue,
        open_site,
        coverages=coverages,
        notify=notify,
        open_upkeep=open_site,
        translator=translator,
    )


def build(
    settings: Settings,
    catalogue: Catalogue,
    open_site: OpenSite,
    *,
    coverages: Mapping[str, Coverage] = MappingProxyType({}),
    record: Callable[[str], RunRecord] = RunRecord,
    notify: Notify | None = None,
    open_upkeep: OpenUpkeep | None = None,
    translator: LockstepTranslator | None = None,
) -> dg.Definitions:
    """Everything Dagster shows of these settings; upkeep where `open_upkeep` makes its adapters.

    `catalogue`: the mirrors to declare, per source; `coverages`: the past of those that have
    one. `open_site` makes the adapters that a run, a tick or a sensor works through, and closes
    them. `record` gives the place a source's reports go to.
    """
    names = [source.name for source in settings.sources]
    declared = {name: Declaration.of(settings, name, translator) for name in names}
    _refuse_shared_keys(declared, catalogue)
    steps = [asset for name in names for asset in run_assets(settings, declared[name])]
    mirrors = [
        asset
        for name in names
        for asset in mirror_assets(settings, declared[name], catalogue.get(name, ()))
    ]
    replays = [replay_asset(settings, name, covered) for name, covered in coverages.items()]
    triggers = [source for source in settings.sources if source.trigger is not None]
    return dg.Definitions(
        assets=[*steps, *mirrors, *replays],
        asset_checks=[source_checks(settings, name) for name in names],
        jobs=[
            *(run_job(settings, name) for name in names),
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
            other_runs_sensor(settings, declared, open_site),
            *(traffic_sensor(source, open_site) for source in triggers),
        ],
        resources={SESSIONS: sessions_resource(settings, open_site, record)},
    )


def _refuse_shared_keys(declared: Mapping[str, Declaration], catalogue: Catalogue) -> None:
    """One error that names both tables: Dagster's names neither."""
    seen: dict[dg.AssetKey, str] = {}
    for source, declaration in declared.items():
        for entry in catalogue.get(source, ()):
            key, table = declaration.names.table(entry.table), f"{entry.table} of {source}"
            if entry.ended:
                continue
            if key in seen:
                raise dg.DagsterInvalidDefinitionError(
                    f"The mirrors of {seen[key]} and {table} have one key, "
                    f"{key.to_user_string()}.\nhint: have the translator give each its own"
                )
            seen[key] = table
