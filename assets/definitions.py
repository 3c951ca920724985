"""The composition root: configuration → resources → assets, checks, jobs, schedules.

The only place that reads the environment: Dagster loads `defs` from here with nothing in
hand but LOCKSTEP_CONFIG, or lockstep.toml in its working directory. Loading opens
nothing: MySQL, Postgres and the lake may all be down.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import dagster as dg

from assets.catalogue import CatalogueEntry, fingerprint, note_keys, read_catalogue
from assets.checks import CHECKS, source_results
from assets.coverage import Coverage, read_coverage
from assets.declared import Declaration, LockstepTranslator
from assets.forms import evaluated, failing
from assets.names import (
    JOBS,
    SOURCE_TAG,
    SourceNames,
    job_name,
    output_name,
)
from assets.pages import (
    CHECK,
    KEYS,
    Metadata,
    check_result,
    declared_metadata,
    keys_result,
    seconds,
)
from assets.runs import (
    SESSIONS,
    LoggedProgress,
    OpenSite,
    merge_and_log,
    run_assets,
    session_of,
    sessions_resource,
)
from assets.sensors import (
    Notify,
    attention_sensor,
    dead_run_sensor,
    new_table_sensor,
    other_runs_sensor,
    source_schedule,
    traffic_sensor,
)
from assets.table_news import standings_of
from pipeline.changes.layout import lies_at
from pipeline.decisions import Lease
from pipeline.errors import LockstepError
from pipeline.places import AtMoment
from pipeline.policies import LakePolicies
from pipeline.replay.partitions import Partitions
from pipeline.replay.spans import Span, at_or_after
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.repeated_keys import count_keys
from pipeline.runs.replaying.replay import ReplayReport, replay
from pipeline.runs.run import RunRecord
from pipeline.runs.upkeeping.upkeep import UpkeepReport, upkeep
from pipeline.shown import in_markdown
from pipeline.source_plan import SourcePlan
from pipeline.standing.tables import unseen
from pipeline.table import TableName
from resources.adapters import Adapters
from resources.config import Settings, load_settings
from resources.holders import holder
from resources.lake.paths import LakePath

Catalogue = Mapping[str, Sequence[CatalogueEntry]]

OpenUpkeep = Callable[[], AbstractContextManager[Adapters]]

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
    names = [source.name for source in settings.sources]
    catalogue = {name: read_catalogue(settings.state_folder, name) for name in names}
    covered = {name: read_coverage(settings.state_folder, name) for name in names}
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
        coverages={name: found for name, found in covered.items() if found is not None},
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
    declared = {
        source.name: Declaration.of(settings, source.name, translator)
        for source in settings.sources
    }
    placed = {name: _placed(its.names, catalogue.get(name, ())) for name, its in declared.items()}
    _refuse_shared_keys(declared, placed)
    assets: list[dg.AssetsDefinition | dg.AssetSpec] = []
    jobs: list[Any] = []
    schedules: list[dg.ScheduleDefinition] = []
    for source in settings.sources:
        name, its = source.name, declared[source.name]
        assets += [*run_assets(settings, its), *mirrors(settings, its, placed[name])]
        steps = its.names.steps
        jobs.append(_asset_job(name, "", f"One bounded run of {name}: {_STEPS}.", *steps))
        if source.schedule is not None:
            schedules.append(source_schedule(name, source.schedule, open_site))
        if name in coverages:
            assets.append(replayed(settings, its, coverages[name]))
            past = f"A span of the past of {name} once more."
            jobs.append(_asset_job(name, "replay", past, its.names.replayed))
            if source.part.replay is not None:
                schedules.append(heal_schedule(settings, name, coverages[name]))
        if open_upkeep is not None:
            jobs.append(upkeep_job(settings, name, open_upkeep))
            if settings.file.upkeep.schedule is not None:
                schedules.append(_upkeep_schedule(name, settings.file.upkeep.schedule))
    shown = fingerprint({name: catalogue.get(name, ()) for name in declared})
    triggers = [source for source in settings.sources if source.part.trigger is not None]
    return dg.Definitions(
        assets=assets,
        asset_checks=[source_checks(settings, its) for its in declared.values()],
        jobs=jobs,
        schedules=schedules,
        sensors=[
            dead_run_sensor(settings, open_site),
            new_table_sensor(settings, shown),
            attention_sensor(settings, open_site, notify),
            other_runs_sensor(settings, declared, open_site),
            *(traffic_sensor(source, open_site) for source in triggers),
        ],
        resources={SESSIONS: sessions_resource(settings, open_site, record)},
    )


def _placed(names: SourceNames, entries: Sequence[CatalogueEntry]) -> Sequence[CatalogueEntry]:
    """The entries; a table whose mirror would be called as that of another one has none."""
    mirrors = names.mirrors
    if mirrors is None or not mirrors.rules:
        return entries
    away = {
        entry.table: not lies_at(entry.mirror, names.source, mirrors.of(entry.table))
        for entry in entries
        if not entry.ended
    }
    met = mirrors.meetings(sorted(away, key=lambda table: (away[table], table)))
    return [replace(entry, ended=True) if entry.table in met else entry for entry in entries]


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
                    f"{key.to_user_string()}.\nhint: have the translator give "
                    "each its own, or give one another `into`"
                )
            seen[key] = table


# -- a run: its job, and the sessions that its steps work through --------------------------------

_STEPS = "capture, publish, merge, acknowledge"


def _asset_job(
    source: str, what: str, described: str, *keys: dg.AssetKey
) -> dg.UnresolvedAssetJobDefinition:
    """In one process: steps share a lease and a JVM."""
    return dg.define_asset_job(
        job_name(source, what),
        selection=dg.AssetSelection.assets(*keys),
        description=described,
        tags={SOURCE_TAG: source},
        executor_def=dg.in_process_executor,
    )


def source_checks(settings: Settings, declared: Declaration) -> dg.AssetChecksDefinition:
    """The checks of a source, or those of them that somebody clicked, on the step that
    acknowledges. One op performs them all: a run spends a step on them, not one each."""
    names = declared.names

    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        asked = {key.name for key in context.selected_asset_check_keys}
        with failing():
            session = session_of(context, names.source)
            work, consumers = session.workplace(), session.adapters.consumers()
            results = [*source_results(settings, work, consumers, names.acknowledged)]
        yield from (result for result in results if result.check_name in asked)

    return dg.multi_asset_check(
        name=names.op("checks"),
        specs=[
            dg.AssetCheckSpec(name, asset=names.acknowledged, description=described)
            for name, described, _ in CHECKS
        ],
        can_subset=True,
        required_resource_keys={SESSIONS},
        description="What a person should know of the source; blocks nothing.",
    )(evaluated(checks))


# -- every mirror as a declared asset with its checks, clickable alone or as a subset -----------
#
# A click merges what is captured for the chosen tables and says how they stand, and nothing
# else; it captures and acknowledges nothing. One op stands behind all mirrors of a source: that
# keeps 5,000 tables loading in seconds. It yields no outputs for mirrors, which would cost a
# multiple at that number; what changed is logged as it is in a run. The checks are the same op's:
# behind one of their own, a mirror that yielded nothing would leave its check planned for ever.

DROPPED_TAG = "lockstep/dropped"

_LOG = "log"

_TABLE_CHECKS = (
    ("c", CHECK, "Whether the mirror follows its table and has all of it."),
    ("k", KEYS, "Whether the mirror has each key once; runs count small ones."),
)


def mirrors(
    settings: Settings, declared: Declaration, entries: Sequence[CatalogueEntry]
) -> list[dg.AssetsDefinition]:
    """The mirrors of the catalogue's entries; none where it has none."""
    shown = {number: entry for number, entry in enumerate(entries, 1) if not entry.ended}
    if not shown:
        return []
    names, lake = declared.names, settings.lake_path()
    plan: SourcePlan | None = None
    # The catalogue is shown also where an environment variable of the source is not set.
    with suppress(LockstepError):
        plan = settings.source(names.source).plan()
    specs = {
        number: _mirror_spec(
            declared, entry, lake, None if plan is None else plan.policies_of(entry.table)
        )
        for number, entry in shown.items()
    }
    keys = {number: spec.key for number, spec in specs.items()}
    tables = {keys[number]: entry.table for number, entry in shown.items()}
    nothing = dg.Out(dg.Nothing, is_required=False)
    letters = ("t", *(letter for letter, _, _ in _TABLE_CHECKS))

    @dg.op(
        name=names.op("mirrors"),
        ins={_LOG: dg.In(dg.Nothing)},
        out={output_name(letter, n): nothing for n in shown for letter in letters},
        required_resource_keys={SESSIONS},
        description="Merges what is captured for the chosen tables.",
    )
    @evaluated
    def merged(context: dg.AssetExecutionContext) -> Iterator[dg.AssetCheckResult]:
        session = session_of(context, names.source)
        chosen = frozenset(tables[key] for key in context.selected_asset_keys)
        if chosen:
            report = merge_and_log(context, settings, names, session, only=chosen)
            done = len(report.merged)
            context.log.info(
                f"{done} of {len(chosen)} chosen tables had captured changes to merge."
            )
        with failing():
            yield from _checked(session.workplace(), names, tables, context)

    return [
        dg.AssetsDefinition(
            keys_by_input_name={_LOG: names.log},
            keys_by_output_name={output_name("t", number): key for number, key in keys.items()},
            node_def=merged,
            specs=list(specs.values()),
            check_specs_by_output_name={
                output_name(letter, n): dg.AssetCheckSpec(name, asset=key, description=told)
                for n, key in keys.items()
                for letter, name, told in _TABLE_CHECKS
            },
            can_subset=True,
        )
    ]


def _checked(
    work: Workplace,
    names: SourceNames,
    tables: Mapping[dg.AssetKey, TableName],
    context: dg.AssetExecutionContext,
) -> Iterator[dg.AssetCheckResult]:
    asked = context.selected_asset_check_keys
    if not asked:
        return
    states, standings = work.ledger.table_states(work.source.name), standings_of(work)
    for check in asked:
        table = tables[check.asset_key]
        if check.name == CHECK:
            yield check_result(names, standings.get(table) or unseen(table))
        elif table in states:
            yield keys_result(names, count_keys(work, states[table]))


def _mirror_spec(
    declared: Declaration, entry: CatalogueEntry, lake: LakePath, policies: LakePolicies | None
) -> dg.AssetSpec:
    gone = ", dropped at the source" if entry.dropped else ""
    spec = declared.spec(
        declared.names.default(entry.table),
        tags={DROPPED_TAG: "true"} if entry.dropped else {},
        deps=[declared.names.log],
        kinds={"delta"},
        description=f"The mirror of {in_markdown(str(entry.table))}{gone}.",
        metadata=declared_metadata(entry, lake, policies),
    )
    return declared.translated(entry.table, spec)


# -- a source's past as partitions, which may be replayed from the page or by a schedule --------
#
# The three steps of a run stay without partitions: they move the position. A partition is an hour
# (or a day) of commit time, UTC; the one that is still open is not among them (`lockstep replay`
# takes any span). A range of them is one run. Each is told of as its work is committed, so that a
# replay that was cancelled or failed leaves the rest, and only the rest, to be asked for again.

_RANGE: Final = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


def partitions_of(settings: Settings, coverage: Coverage) -> dg.TimeWindowPartitionsDefinition:
    chosen = settings.file.dagster.partitions
    begins = chosen.begin_of(coverage.begins)
    if chosen is Partitions.HOURLY:
        return dg.HourlyPartitionsDefinition(begins, timezone="UTC")
    return dg.DailyPartitionsDefinition(begins, timezone="UTC")


def replayed(settings: Settings, declared: Declaration, coverage: Coverage) -> dg.AssetsDefinition:
    """The source's past; what was captured of each partition is read again, and put right."""
    names, partitions = declared.names, partitions_of(settings, coverage)

    def read_again(context: dg.AssetExecutionContext) -> Iterator[Any]:
        session = session_of(context, names.source)
        for key in context.partition_keys:
            window = partitions.time_window_for_partition_key(key)
            with failing():
                step = partial(_replayed, begin=window.start, end=window.end)
                report = session.run(step, patient=True)
            metadata = replay_metadata(report)
            done = dg.AssetMaterialization(names.replayed, partition=key, metadata=metadata)
            context.log_event(done)
        yield from ()

    spec = declared.spec(
        names.replayed,
        skippable=True,
        description=f"The past of {names.source}, by commit time. Materialize partitions to read "
        "their transactions again: changelogs and mirrors that hold something else are put right. "
        "A partition is filled when a run has read all of it.",
    )
    return dg.multi_asset(
        name=names.op("replayed"),
        specs=[spec],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={SESSIONS},
    )(evaluated(read_again))


def _replayed(work: Workplace, lease: Lease, *, begin: datetime, end: datetime) -> ReplayReport:
    """One partition's. What was read behind the last commit has no batch: nothing to replay."""
    span = Span(AtMoment(begin), AtMoment(end))
    times = [one for one in work.ledger.batch_times(work.source.name) if one.acknowledged]
    empty = bool(times) and not at_or_after(times, begin)
    return ReplayReport(span, (), ()) if empty else replay(work, lease, span)


def heal_schedule(settings: Settings, source: str, coverage: Coverage) -> dg.ScheduleDefinition:
    """The last partitions that are closed, once more, as one run over their range."""
    wanted = settings.source(source).part.replay
    assert wanted is not None, "it was asked for"
    partitions = partitions_of(settings, coverage)

    @dg.schedule(
        name=f"{job_name(source)}_replay_schedule",
        job_name=job_name(source, "replay"),
        cron_schedule=wanted.schedule,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    @evaluated
    def tick(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        now = context.scheduled_execution_time
        earliest = now - timedelta(seconds=wanted.span)
        keys = [
            key
            for key in partitions.get_partition_keys(current_time=now)
            if partitions.time_window_for_partition_key(key).end > earliest
        ]
        if not keys:
            return dg.SkipReason(f"no partition of {source} is closed yet")
        between = dict(zip(_RANGE, (keys[0], keys[-1]), strict=True))
        return dg.RunRequest(tags={SOURCE_TAG: source, **between})

    return tick


def replay_metadata(report: ReplayReport) -> Metadata:
    found: Metadata = {
        "batches": len(report.batches),
        "tables": len(report.tables),
        "files replaced": sum(1 for segment in report.segments if segment.replaced),
        "rows put right": sum(mirror.wrong for mirror in report.mirrors),
        "seconds": seconds(report.seconds),
    }
    recorded = {batch.as_recorded for batch in report.batches if batch.as_recorded}
    if recorded:
        found["from the changelog alone"] = "\n".join(sorted(recorded))
    if report.left:
        found["damaged, nothing to replace it with"] = len(report.left)
    return found


# -- upkeep ------------------------------------------------------------------------------------
#
# It is no asset: it changes no row, and nothing behind the mirrors is to be made anew for it.
# Dagster keeps the records of each run for good; a source that runs every minute has forty
# thousand a month.

_AT_ONCE = 100
_ENDED = [dg.DagsterRunStatus.SUCCESS, dg.DagsterRunStatus.FAILURE, dg.DagsterRunStatus.CANCELED]


def upkeep_job(settings: Settings, source: str, open_site: OpenUpkeep) -> dg.JobDefinition:
    """In one process; it takes the source's lock only to note what it made."""
    keep = settings.file.upkeep.dagster_runs

    def kept(context: dg.OpExecutionContext) -> None:
        progress = LoggedProgress(context.log)
        with failing(), open_site() as adapters:
            work = adapters.workplace(source, progress)
            lake, policy = adapters.upkeep(), settings.upkeep()
            report = upkeep(work, lake, policy, holder("upkeep"))
        for line in _upkeep_lines(report):
            context.log.info(line)
        context.add_output_metadata(_upkeep_metadata(report))
        if keep is not None:
            gone = delete_runs(
                context.instance, source, datetime.now(UTC) - timedelta(seconds=keep)
            )
            context.log.info(f"records of {gone} older runs of Dagster's were deleted")

    name = job_name(source, "upkeep")
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


def _upkeep_schedule(source: str, cron: str) -> dg.ScheduleDefinition:
    """By cron, UTC; on from the start, for it was asked for in the file."""
    job = job_name(source, "upkeep")
    return dg.ScheduleDefinition(
        name=f"{job}_schedule",
        job_name=job,
        cron_schedule=cron,
        execution_timezone="UTC",
        tags={SOURCE_TAG: source},
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )


def delete_runs(instance: dg.DagsterInstance, source: str, before: datetime) -> int:
    """Delete Dagster's records, events among them, of runs of the source's jobs that ended and
    began before that moment; how many. Of each job the newest stays, whatever its age: Dagster's
    pages show the assets' last materializations from it."""
    return sum(1 for what in JOBS for _ in _deleted(instance, job_name(source, what), before))


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


def _upkeep_lines(report: UpkeepReport) -> Iterator[str]:
    for one in report.tables:
        if one.why is not None:
            yield f"{one.table}: left alone: {one.why}"
        yield from (f"{one.table}: {left}" for left in one.left)
    changes = report.changes
    if changes.left is not None or changes.held is not None:
        yield f"changes: {changes.left or changes.held}"


def _upkeep_metadata(report: UpkeepReport) -> Metadata:
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
        "seconds": seconds(report.seconds),
    }
