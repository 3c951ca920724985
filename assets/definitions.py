"""The Dagster definitions of one lockstep.toml: assets, checks, jobs, schedules and
sensors.

Dagster loads `defs`, which finds the configuration by LOCKSTEP_CONFIG or in the working
directory. Loading connects to nothing: MySQL, Postgres and the lake may all be down.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

import dagster as dg

from lockstep.assets.checks import CHECKS, source_check_results
from lockstep.assets.coverage import Coverage, fingerprint, read_coverage
from lockstep.assets.dagster_interop import dagster_failures, evaluate_annotations
from lockstep.assets.dagster_metadata import (
    FOLLOWS_CHECK,
    KEYS_CHECK,
    Metadata,
    declaration_metadata,
    follows_check_result,
    keys_check_result,
    rounded_seconds,
)
from lockstep.assets.declaration import Declaration, LockstepTranslator
from lockstep.assets.names import JOB_SUFFIXES, SOURCE_TAG, SourceNames, job_name, output_name
from lockstep.assets.runs import merge_and_log, run_assets
from lockstep.assets.sensors import (
    Notify,
    attention_sensor,
    dead_run_sensor,
    new_table_sensor,
    other_runs_sensor,
    source_schedule,
    traffic_sensor,
)
from lockstep.assets.sessions import (
    SESSIONS,
    LoggedProgress,
    OpenAdapters,
    session_of,
    sessions_resource,
)
from lockstep.assets.table_list import TableEntry, TableLists, read_table_list, record_keys
from lockstep.pipeline.mirror.layout import is_folder_of
from lockstep.pipeline.replay.partitions import Partitions
from lockstep.pipeline.replay.spans import Span, ids_at_or_after
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.replay.replay import ReplayReport, replay
from lockstep.pipeline.run.run import RunRecord
from lockstep.pipeline.run.status.repeated_keys import count_keys
from lockstep.pipeline.run.status.status import standings_of
from lockstep.pipeline.run.unpruned_batches import history_begin
from lockstep.pipeline.run.upkeep import UpkeepReport, carry_out_upkeep
from lockstep.pipeline.source_plan import SourcePlan
from lockstep.pipeline.status.tables import unseen_standing
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.places import AtMoment, Earliest
from lockstep.pipeline.values.policies import LakePolicies
from lockstep.pipeline.values.shown import in_markdown
from lockstep.pipeline.values.table import TableName
from lockstep.resources.adapters import Adapters
from lockstep.resources.config import Settings, load_settings
from lockstep.resources.holders import holder_name
from lockstep.resources.lake.store.paths import LakePath

_log = logging.getLogger("lockstep")


def config_path() -> Path:
    """Return LOCKSTEP_CONFIG, else lockstep.toml in the working directory."""
    return Path(os.environ.get("LOCKSTEP_CONFIG") or "lockstep.toml").absolute()


@dg.definitions
def defs() -> dg.Definitions:
    """The entry point of Dagster's code location."""
    executor = dg.Definitions(executor=dg.in_process_executor)
    return dg.Definitions.merge(executor, definitions_of(config_path()))


def definitions_of(
    config: Path,
    *,
    notify: Notify | None = None,
    translator: LockstepTranslator | None = None,
) -> dg.Definitions:
    """Return the definitions of one lockstep.toml. They can be merged with other
    definitions, because they have no executor and only one resource,
    `lockstep_sessions`. `notify` receives each trouble that needs a person, once.
    `translator` changes the assets of mirrors (the Delta tables with the current rows
    of MySQL tables)."""
    try:
        settings = load_settings(config)
    except LockstepError as error:
        raise dg.DagsterInvalidDefinitionError(f"{error.message}\nhint: {error.hint}") from None
    source_names = [source.name for source in settings.sources]
    table_lists = {name: read_table_list(settings.state_folder, name) for name in source_names}
    # The command line cannot call a translator, so the keys that it chose are recorded.
    for name, entries in table_lists.items():
        asset_names = Declaration.of(settings, name, translator).names
        keys = {entry.table: asset_names.table_key(entry.table) for entry in entries}
        translated_keys = {
            table: tuple(key.path)
            for table, key in keys.items()
            if key != asset_names.default_table_key(table)
        }
        try:
            record_keys(settings.state_folder, name, translated_keys)
        except OSError as error:  # Dagster's page may run without permission to write
            _log.warning("The keys of mirrors were not written for the command line: %s", error)

    return build_definitions(
        settings,
        table_lists,
        lambda: Adapters(settings, on_warning=_log.warning),
        coverages={name: read_coverage(settings.state_folder, name) for name in source_names},
        notify=notify,
        translator=translator,
    )


def build_definitions(
    settings: Settings,
    table_lists: TableLists,
    open_adapters: OpenAdapters,
    *,
    coverages: Mapping[str, Coverage | None] = MappingProxyType({}),
    make_record: Callable[[str], RunRecord] = RunRecord,
    notify: Notify | None = None,
    translator: LockstepTranslator | None = None,
) -> dg.Definitions:
    """Return everything that Dagster shows of these settings.

    `table_lists`: the mirrors to declare, by source. `coverages`: by source, which
    part of its past was reported. `open_adapters` opens the adapters of a run, an
    upkeep, a schedule or a sensor. `make_record` creates the record that a run fills.
    """
    declarations = {
        source.name: Declaration.of(settings, source.name, translator)
        for source in settings.sources
    }
    entries_by_source = {
        name: _entries_without_collisions(declaration.names, table_lists.get(name, ()))
        for name, declaration in declarations.items()
    }
    _refuse_shared_keys(declarations, entries_by_source)
    assets: list[dg.AssetsDefinition | dg.AssetSpec] = []
    jobs: list[Any] = []
    schedules: list[dg.ScheduleDefinition] = []
    for source in settings.sources:
        name, declaration = source.name, declarations[source.name]
        assets += [
            *run_assets(settings, declaration),
            *mirror_assets(settings, declaration, entries_by_source[name]),
        ]
        names = declaration.names
        description = f"One bounded run of {name}: capture, publish, merge, acknowledge."
        jobs.append(_asset_job(name, "", description, *names.step_keys))
        if source.schedule is not None:
            schedules.append(source_schedule(name, source.schedule, open_adapters))
        if (coverage := coverages.get(name)) is not None:
            assets.append(replay_asset(settings, declaration, coverage))
            description = f"Reads a span of the past of {name} again."
            jobs.append(_asset_job(name, "replay", description, names.replayed_key))
            if source.section.replay is not None:
                schedules.append(replay_schedule(settings, name, coverage))
        jobs.append(upkeep_job(settings, name, open_adapters))
        if settings.file.upkeep.schedule is not None:
            schedules.append(_upkeep_schedule(name, settings.file.upkeep.schedule))
    loaded_fingerprint = fingerprint(
        {name: table_lists.get(name, ()) for name in declarations}, coverages
    )
    sources_with_trigger = [
        source for source in settings.sources if source.section.trigger is not None
    ]
    return dg.Definitions(
        assets=assets,
        asset_checks=[
            source_checks(settings, declaration) for declaration in declarations.values()
        ],
        jobs=jobs,
        schedules=schedules,
        sensors=[
            dead_run_sensor(settings, open_adapters),
            new_table_sensor(settings, loaded_fingerprint),
            attention_sensor(settings, open_adapters, notify),
            other_runs_sensor(settings, declarations, open_adapters),
            *(traffic_sensor(source, open_adapters) for source in sources_with_trigger),
        ],
        resources={SESSIONS: sessions_resource(settings, open_adapters, make_record)},
    )


def _entries_without_collisions(
    names: SourceNames, entries: Sequence[TableEntry]
) -> Sequence[TableEntry]:
    """Return the entries. If the mirrors of two tables would have the same name, one of
    the entries is marked as ended, so that it is not shown. A table whose mirror has
    the name already keeps it."""
    mirror_names = names.mirror_names
    if mirror_names is None or not mirror_names.rules:
        return entries
    would_move = {
        entry.table: not is_folder_of(entry.mirror, names.source, mirror_names.of(entry.table))
        for entry in entries
        if not entry.ended
    }
    colliding_tables = mirror_names.collisions(
        sorted(would_move, key=lambda table: (would_move[table], table))
    )
    return [
        replace(entry, ended=True) if entry.table in colliding_tables else entry
        for entry in entries
    ]


def _refuse_shared_keys(declarations: Mapping[str, Declaration], table_lists: TableLists) -> None:
    """Raise an error that names both tables if two mirrors have the same key, because
    Dagster's own error names neither."""
    tables: dict[dg.AssetKey, str] = {}
    for source, declaration in declarations.items():
        for entry in table_lists.get(source, ()):
            if entry.ended:
                continue
            key = declaration.names.table_key(entry.table)
            table = f"{entry.table} of {source}"
            if key in tables:
                raise dg.DagsterInvalidDefinitionError(
                    f"The mirrors of {tables[key]} and {table} have the same key, "
                    f"{key.to_user_string()}.\nhint: have the translator give each its own, or "
                    "give one of them another `into`"
                )
            tables[key] = table


# -- the jobs and checks of a source ---------------------------------------------------


def _asset_job(
    source: str, job: str, description: str, *keys: dg.AssetKey
) -> dg.UnresolvedAssetJobDefinition:
    """Return a job that runs in one process, because its steps share a lease and a JVM."""
    return dg.define_asset_job(
        job_name(source, job),
        selection=dg.AssetSelection.assets(*keys),
        description=description,
        tags={SOURCE_TAG: source},
        executor_def=dg.in_process_executor,
    )


def source_checks(settings: Settings, declaration: Declaration) -> dg.AssetChecksDefinition:
    """Return the checks of a source, which belong to the asset of the step that
    acknowledges. One op performs all of them, so that a run has one step for all
    checks. They can also be selected one by one."""
    names = declaration.names

    def checks(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        selected = {key.name for key in context.selected_asset_check_keys}
        with dagster_failures():
            session = session_of(context, names.source)
            ports, consumers = session.ports(), session.adapters.consumers()
            results = [*source_check_results(settings, ports, consumers, names.acknowledged_key)]
        yield from (result for result in results if result.check_name in selected)

    return dg.multi_asset_check(
        name=names.op_name("checks"),
        specs=[
            dg.AssetCheckSpec(name, asset=names.acknowledged_key, description=description)
            for name, description, _ in CHECKS
        ],
        can_subset=True,
        required_resource_keys={SESSIONS},
        description="Checks the source as a whole; blocks nothing.",
    )(evaluate_annotations(checks))


# -- every mirror as an asset that can be materialized alone, with its checks ----------
#
# Materializing mirrors merges the captured changes of these tables and performs their
# checks; it captures and acknowledges nothing. All mirrors of a source share one op, so
# that 5,000 tables load in seconds. The op logs the materializations of changed mirrors,
# as a run does: to yield an output for each takes several times as long. The same op
# performs the checks: in another op, the check of a mirror without an output would stay
# planned for ever.

DROPPED_TAG = "lockstep/dropped"

_LOG_INPUT = "log"

_MIRROR_CHECKS = (
    ("c", FOLLOWS_CHECK, "The mirror follows its table and has all of its rows."),
    ("k", KEYS_CHECK, "The mirror has each key once; runs count the keys of small mirrors."),
)
"""Each check's letter for `output_name`, its name and its description."""


def mirror_assets(
    settings: Settings, declaration: Declaration, entries: Sequence[TableEntry]
) -> list[dg.AssetsDefinition]:
    """Return one definition with the mirrors of all entries; an empty list if no entry
    has a mirror."""
    shown_entries = {number: entry for number, entry in enumerate(entries, 1) if not entry.ended}
    if not shown_entries:
        return []
    names, lake = declaration.names, settings.lake_path()
    plan: SourcePlan | None = None
    # Mirrors are shown even if an environment variable of the source is not set.
    with suppress(LockstepError):
        plan = settings.source(names.source).plan()
    specs = {
        number: _mirror_spec(
            declaration, entry, lake, None if plan is None else plan.policies_of(entry.table)
        )
        for number, entry in shown_entries.items()
    }
    keys = {number: spec.key for number, spec in specs.items()}
    tables = {keys[number]: entry.table for number, entry in shown_entries.items()}
    optional_output = dg.Out(dg.Nothing, is_required=False)
    letters = ("t", *(letter for letter, _, _ in _MIRROR_CHECKS))

    @dg.op(
        name=names.op_name("mirrors"),
        ins={_LOG_INPUT: dg.In(dg.Nothing)},
        out={
            output_name(letter, number): optional_output
            for number in shown_entries
            for letter in letters
        },
        required_resource_keys={SESSIONS},
        description="Merges the captured changes of the selected tables.",
    )
    @evaluate_annotations
    def merge_selected(context: dg.AssetExecutionContext) -> Iterator[dg.AssetCheckResult]:
        session = session_of(context, names.source)
        selected = frozenset(tables[key] for key in context.selected_asset_keys)
        with dagster_failures():
            if selected:
                report = merge_and_log(context, settings, names, session, only_tables=selected)
                count = len(report.merges)
                context.log.info(
                    f"{count} of {len(selected)} selected tables had captured changes to merge."
                )
            yield from _table_check_results(session.ports(), names, tables, context)

    return [
        dg.AssetsDefinition(
            keys_by_input_name={_LOG_INPUT: names.log_key},
            keys_by_output_name={output_name("t", number): key for number, key in keys.items()},
            node_def=merge_selected,
            specs=list(specs.values()),
            check_specs_by_output_name={
                output_name(letter, number): dg.AssetCheckSpec(
                    name, asset=key, description=description
                )
                for number, key in keys.items()
                for letter, name, description in _MIRROR_CHECKS
            },
            can_subset=True,
        )
    ]


def _table_check_results(
    ports: RunPorts,
    names: SourceNames,
    tables: Mapping[dg.AssetKey, TableName],
    context: dg.AssetExecutionContext,
) -> Iterator[dg.AssetCheckResult]:
    selected = context.selected_asset_check_keys
    if not selected:
        return
    ledger, source = ports.ledger, ports.source
    states = ledger.table_states(source.name)
    standings = standings_of(ledger, source.name, source.patterns)
    for check in selected:
        table = tables[check.asset_key]
        if check.name == FOLLOWS_CHECK:
            yield follows_check_result(names, standings.get(table) or unseen_standing(table))
        elif table in states:
            yield keys_check_result(names, count_keys(ports, states[table]))


def _mirror_spec(
    declaration: Declaration, entry: TableEntry, lake: LakePath, policies: LakePolicies | None
) -> dg.AssetSpec:
    dropped = ", dropped at the source" if entry.dropped else ""
    spec = declaration.make_spec(
        declaration.names.default_table_key(entry.table),
        tags={DROPPED_TAG: "true"} if entry.dropped else {},
        deps=[declaration.names.log_key],
        kinds={"delta"},
        description=f"The mirror of {in_markdown(str(entry.table))}{dropped}.",
        metadata=declaration_metadata(entry, lake, policies),
    )
    return declaration.translate(entry.table, spec)


# -- a source's past as partitions, which the page or a schedule can replay ------------
#
# The three steps of a run have no partitions, because they move the position. A
# partition is a past hour (or day) of commit time in UTC; `lockstep replay` takes any
# span. One run replays a range of partitions. It reports each partition as soon as its
# work is committed, so that after a replay that was cancelled or failed, only the other
# partitions have to be requested again.

_RANGE_TAGS: Final = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


def partitions_of(settings: Settings, coverage: Coverage) -> dg.TimeWindowPartitionsDefinition:
    partitions = settings.file.dagster.partitions
    begins = partitions.begin_of(coverage.begins)
    if partitions is Partitions.HOURLY:
        return dg.HourlyPartitionsDefinition(begins, timezone="UTC")
    return dg.DailyPartitionsDefinition(begins, timezone="UTC")


def replay_asset(
    settings: Settings, declaration: Declaration, coverage: Coverage
) -> dg.AssetsDefinition:
    """Return the asset of the source's past. Materializing partitions reads them again
    and corrects the lake."""
    names, partitions = declaration.names, partitions_of(settings, coverage)

    def read_again(context: dg.AssetExecutionContext) -> Iterator[Any]:
        session = session_of(context, names.source)
        for key in context.partition_keys:
            window = partitions.time_window_for_partition_key(key)
            with dagster_failures():
                step = partial(_replay_partition, begin=window.start, end=window.end)
                report = session.run(step, patient=True)
            metadata = replay_metadata(report)
            event = dg.AssetMaterialization(names.replayed_key, partition=key, metadata=metadata)
            context.log_event(event)
        yield from ()  # Dagster expects a generator, but the results were logged above.

    spec = declaration.make_spec(
        names.replayed_key,
        skippable=True,
        description=f"The past of {names.source}, by commit time. Materialize partitions to read "
        "their transactions again and to correct changelogs and mirrors that differ from them. A "
        "partition is materialized when a run has read all of it.",
    )
    return dg.multi_asset(
        name=names.op_name("replayed"),
        specs=[spec],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={SESSIONS},
    )(evaluate_annotations(read_again))


def _replay_partition(
    ports: RunPorts, lease: Lease, *, begin: datetime, end: datetime
) -> ReplayReport:
    """Replay one partition. Do nothing if it lies before the history or after the last
    commit. The partition in which the history begins is replayed from that
    beginning."""
    source = ports.source.name
    history_begins = history_begin(ports.ledger, ports.ledger.live_batches(source, limit=1))
    times = [time for time in ports.ledger.batch_times(source) if time.is_acknowledged]
    is_after = bool(times) and not ids_at_or_after(times, begin)
    is_before = history_begins is not None and end <= history_begins
    begins_inside = history_begins is not None and begin < history_begins
    span = Span(Earliest() if begins_inside else AtMoment(begin), AtMoment(end))
    if is_after or is_before:
        return ReplayReport(span, (), ())
    return replay(ports, lease, span)


def replay_schedule(settings: Settings, source: str, coverage: Coverage) -> dg.ScheduleDefinition:
    """Return the schedule that replays the last partitions as one run."""
    section = settings.source(source).section.replay
    assert section is not None, "the source has a section `replay`"
    partitions = partitions_of(settings, coverage)

    @dg.schedule(
        name=f"{job_name(source)}_replay_schedule",
        job_name=job_name(source, "replay"),
        cron_schedule=section.schedule,
        description=f"Replays the newest partitions of {source} that are over.",
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
    @evaluate_annotations
    def tick(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        now = context.scheduled_execution_time
        earliest = now - timedelta(seconds=section.span)
        keys = [
            key
            for key in partitions.get_partition_keys(current_time=now)
            if partitions.time_window_for_partition_key(key).end > earliest
        ]
        if not keys:
            return dg.SkipReason(f"No partition of {source} is over yet.")
        partition_range = dict(zip(_RANGE_TAGS, (keys[0], keys[-1]), strict=True))
        return dg.RunRequest(tags={SOURCE_TAG: source, **partition_range})

    return tick


def replay_metadata(report: ReplayReport) -> Metadata:
    metadata: Metadata = {
        "batches": len(report.batches),
        "tables": len(report.tables),
        "files replaced": sum(1 for segment in report.segments if segment.has_replacement),
        "rows put right": sum(mirror.wrong for mirror in report.mirrors),
        "seconds": rounded_seconds(report.seconds),
    }
    sentences = {
        batch.reason_not_recaptured for batch in report.batches if batch.reason_not_recaptured
    }
    if sentences:
        metadata["from the changelog alone"] = "\n".join(sorted(sentences))
    if report.unreplaced_segments:
        metadata["damaged, nothing to replace it with"] = len(report.unreplaced_segments)
    return metadata


# -- upkeep ----------------------------------------------------------------------------
#
# Upkeep is not an asset: it changes no row, so assets that depend on mirrors stay up to
# date. It also deletes records of old runs, which Dagster itself keeps for ever: a
# source that runs every minute has forty thousand a month.

_ENDED_STATUSES = [
    dg.DagsterRunStatus.SUCCESS,
    dg.DagsterRunStatus.FAILURE,
    dg.DagsterRunStatus.CANCELED,
]


def upkeep_job(settings: Settings, source: str, open_adapters: OpenAdapters) -> dg.JobDefinition:
    """Return the job of upkeep, which takes the source's lock only to record what it
    wrote."""
    run_retention = settings.file.upkeep.dagster_runs

    def perform(context: dg.OpExecutionContext) -> None:
        progress = LoggedProgress(context.log)
        with dagster_failures(), open_adapters() as adapters:
            ports = adapters.ports(source, progress)
            policy = settings.upkeep_policy()
            report = carry_out_upkeep(ports, adapters.upkeep(), policy, holder_name("upkeep"))
        for line in _upkeep_lines(report):
            context.log.info(line)
        context.add_output_metadata(_upkeep_metadata(report))
        if run_retention is not None:
            deleted_count = delete_runs(
                context.instance, source, datetime.now(UTC) - timedelta(seconds=run_retention)
            )
            context.log.info(f"Dagster's records of {deleted_count} older runs were deleted.")

    name = job_name(source, "upkeep")
    op = dg.op(name=f"{name}_op", description=f"Upkeep of the mirrors of {source}.")(
        evaluate_annotations(perform)
    )

    @dg.job(
        name=name,
        description=f"Compacts small files of the mirrors of {source}, and deletes files that no "
        "promised version needs.",
        tags={SOURCE_TAG: source},
        executor_def=dg.in_process_executor,
    )
    def job() -> None:
        op()

    return job


def _upkeep_schedule(source: str, cron: str) -> dg.ScheduleDefinition:
    """Return the schedule by cron in UTC. It runs by default."""
    job = job_name(source, "upkeep")
    return dg.ScheduleDefinition(
        name=f"{job}_schedule",
        job_name=job,
        cron_schedule=cron,
        description=f"Carries out the upkeep of the mirrors and changes of {source}.",
        execution_timezone="UTC",
        tags={SOURCE_TAG: source},
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )


def delete_runs(instance: dg.DagsterInstance, source: str, before: datetime) -> int:
    """Delete Dagster's records and events of ended runs of the source's jobs that were
    created before that moment, and return their number. The newest run of each job is
    kept, because Dagster's pages show the last materializations of assets from it."""
    count = 0
    for suffix in JOB_SUFFIXES:
        job = job_name(source, suffix)
        newest_ids = instance.get_run_ids(dg.RunsFilter(job_name=job), limit=1)
        ended = dg.RunsFilter(job_name=job, statuses=_ENDED_STATUSES, created_before=before)
        old_ids = set(instance.get_run_ids(ended)).difference(newest_ids)
        for run_id in old_ids:
            instance.delete_run(run_id)
        count += len(old_ids)
    return count


def _upkeep_lines(report: UpkeepReport) -> Iterator[str]:
    for table in report.tables:
        if table.reason_left_alone is not None:
            yield f"{table.table}: left alone: {table.reason_left_alone}"
        yield from (f"{table.table}: {obstacle}" for obstacle in table.obstacles)
    changes = report.changes
    if changes.obstacle is not None or changes.holder_sentence is not None:
        yield f"changes: {changes.obstacle or changes.holder_sentence}"


def _upkeep_metadata(report: UpkeepReport) -> Metadata:
    steps = [step for table in report.tables for step in table.completed_steps]
    return {
        "tables": len(report.tables),
        "commits": sum(step.delta_version is not None for step in steps),
        "deleted_files": sum(step.deleted.count for step in steps),
        "deleted_bytes": sum(step.deleted.bytes for step in steps),
        "unlisted_change_files": report.changes.unlisted.count,
        "deleted_change_files": report.changes.deleted.count,
        "deleted_checkpoints": report.checkpoints.count,
        "ledger_rows": report.changes.ledger_rows,
        "left": sum(len(table.obstacles) for table in report.tables),
        "seconds": rounded_seconds(report.seconds),
    }
