"""A source's past as partitions, which may be replayed from Dagster's page or by a schedule.

Belongs here: the asset, its job and its schedule. Does not: what a replay is
(`pipeline.runs.replaying`), which partitions a run has closed (`coverage`).

The three steps of a run stay without partitions: they move the position. A partition is an hour
(or a day) of commit time, UTC; the one that is still open is not among them (`lockstep replay`
takes any span). A range of them is one run. Each is told of as its work is committed, so that a
replay that was cancelled or failed leaves the rest, and only the rest, to be asked for again.

Dagster reads the annotation of `context` as an object, so this module has no deferred
annotations.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Final

import dagster as dg

from assets.coverage import Coverage
from assets.declared import Declaration
from assets.failures import failure
from assets.hints import evaluated
from assets.names import SOURCE_TAG, job_name, replay_job_name
from assets.pages.steps import Metadata, seconds
from assets.runs import SESSIONS, session_of
from pipeline.decisions import Lease
from pipeline.errors import LockstepError
from pipeline.places import AtMoment
from pipeline.replay.partitions import Partitions
from pipeline.replay.spans import Span, at_or_after
from pipeline.runs.context import Workplace
from pipeline.runs.replaying.replay import ReplayReport, replay
from resources.config import Settings

_RANGE: Final = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")


def partitions_of(settings: Settings, coverage: Coverage) -> dg.TimeWindowPartitionsDefinition:
    """From the first captured transaction on."""
    chosen = settings.dagster.partitions
    begins = chosen.begin_of(coverage.begins)
    if chosen is Partitions.HOURLY:
        return dg.HourlyPartitionsDefinition(begins, timezone="UTC")
    return dg.DailyPartitionsDefinition(begins, timezone="UTC")


def replay_asset(settings: Settings, source: str, coverage: Coverage) -> dg.AssetsDefinition:
    """The source's past; what was captured of each partition is read again, and put right."""
    declared = Declaration.of(settings, source)
    names, partitions = declared.names, partitions_of(settings, coverage)

    def replayed(context: dg.AssetExecutionContext) -> Iterator[Any]:
        session = session_of(context, source)
        for key in context.partition_keys:
            window = partitions.time_window_for_partition_key(key)
            step = partial(_replayed, begin=window.start, end=window.end)

            try:
                report = session.run(step, patient=True)
            except LockstepError as error:
                raise failure(error) from error
            context.log_event(
                dg.AssetMaterialization(
                    names.replayed, partition=key, metadata=replay_metadata(report)
                )
            )
        yield from ()

    spec = declared.spec(
        names.replayed,
        skippable=True,
        description=f"The past of {source}, by commit time. Materialize partitions to read their "
        "transactions again: changelogs and mirrors that hold something else are put right. A "
        "partition is filled when a run has read all of it.",
    )
    return dg.multi_asset(
        name=names.op("replayed"),
        specs=[spec],
        partitions_def=partitions,
        backfill_policy=dg.BackfillPolicy.single_run(),
        required_resource_keys={SESSIONS},
    )(evaluated(replayed))


def _replayed(work: Workplace, lease: Lease, *, begin: datetime, end: datetime) -> ReplayReport:
    """One partition's."""
    span = Span(AtMoment(begin), AtMoment(end))
    return ReplayReport(span, (), ()) if _is_empty(work, begin) else replay(work, lease, span)


def _is_empty(work: Workplace, begin: datetime) -> bool:
    """Whether nothing was committed any more when a partition began: what was read behind the last
    commit has no batch."""
    times = [one for one in work.ledger.batch_times(work.source.name) if one.acknowledged]
    return bool(times) and not at_or_after(times, begin)


def replay_job(settings: Settings, source: str) -> dg.UnresolvedAssetJobDefinition:
    """In one process, as a run is."""
    return dg.define_asset_job(
        replay_job_name(source),
        selection=dg.AssetSelection.assets(Declaration.of(settings, source).names.replayed),
        description=f"A span of the past of {source} once more.",
        tags={SOURCE_TAG: source},
        executor_def=dg.in_process_executor,
    )


def heal_schedule(settings: Settings, source: str, coverage: Coverage) -> dg.ScheduleDefinition:
    """The last partitions that are closed, once more, as one run over their range."""
    wanted = settings.source(source).part.replay
    assert wanted is not None, "it was asked for"
    partitions = partitions_of(settings, coverage)

    @dg.schedule(
        name=f"{job_name(source)}_replay_schedule",
        job_name=replay_job_name(source),
        cron_schedule=wanted.schedule,
        default_status=dg.DefaultScheduleStatus.RUNNING,
    )
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
        return dg.RunRequest(
            tags={SOURCE_TAG: source, **dict(zip(_RANGE, (keys[0], keys[-1]), strict=True))}
        )

    return tick


def replay_metadata(report: ReplayReport) -> Metadata:
    """How much was read, and what was put right."""
    replaced = [segment for segment in report.segments if segment.replaced]
    found: Metadata = {
        "batches": dg.MetadataValue.int(len(report.batches)),
        "tables": dg.MetadataValue.int(len(report.tables)),
        "files replaced": dg.MetadataValue.int(len(replaced)),
        "rows put right": dg.MetadataValue.int(sum(mirror.wrong for mirror in report.mirrors)),
        "seconds": seconds(report.seconds),
    }
    recorded = {batch.as_recorded for batch in report.batches if batch.as_recorded}
    if recorded:
        found["from the changelog alone"] = dg.MetadataValue.text("\n".join(sorted(recorded)))
    if report.left:
        found["damaged, nothing to replace it with"] = dg.MetadataValue.int(len(report.left))
    return found
