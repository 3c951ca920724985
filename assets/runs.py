"""The three steps of a source's run as Dagster assets: captured → merged →
acknowledged.

A mirror is the Delta table with a table's current rows. `merged` logs a materialization
for each mirror that changed, and for no other. `acknowledged` depends on `merged`, not
on mirrors: Dagster would skip it if a mirror yields nothing, but an idle run must still
move the position. Mirrors depend on the source's log, an asset that Lockstep does not
materialize. If they depended on a step, each run would mark all unchanged mirrors as
stale.

Each write of a mirror is reported soon after its commit, so that no commit is missing
on Dagster's pages if the run fails or is cancelled later.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

import dagster as dg

from lockstep.assets.coverage import report_coverage
from lockstep.assets.dagster_interop import dagster_failures, evaluate_annotations
from lockstep.assets.dagster_metadata import (
    acknowledge_metadata,
    capture_metadata,
    distance_metadata,
    log_observation,
    merge_metadata,
    requests_metadata,
    waiting_sentence,
)
from lockstep.assets.dead_runs import ids_of_own_runs, tag_release, tag_run_and_report_dead
from lockstep.assets.declaration import Declaration
from lockstep.assets.names import UNTIL_TAG, WAITS_TAG, SourceNames, is_own_job, job_name
from lockstep.assets.run_events import (
    RunEventSender,
    dead_run_outside_dagster,
    send_ends_of_dead_runs,
)
from lockstep.assets.run_page import store_page_of_run
from lockstep.assets.table_news import (
    Log,
    batch_ends,
    event_of_write,
    report_repeated_keys,
    report_table_states,
    structure_events,
)
from lockstep.pipeline.check import longest_pause_from_now
from lockstep.pipeline.ports.ledger import batch_content, table_contents
from lockstep.pipeline.run.context import StepProgress
from lockstep.pipeline.run.reports import MergeReport, TableMerge
from lockstep.pipeline.run.run import (
    RunAdapters,
    RunRecord,
    RunSession,
    acknowledge_step,
    capture_step,
    merge_step,
    require_no_stop,
)
from lockstep.pipeline.run.status.run_news import comments_of
from lockstep.pipeline.run.status.status import log_state
from lockstep.pipeline.values.decisions import Lease, LeaseView
from lockstep.pipeline.values.errors import ConfigurationError, LockstepError
from lockstep.pipeline.values.places import Place, parse_end
from lockstep.pipeline.values.table import TableName
from lockstep.resources.config import Settings
from lockstep.resources.full_disk import disk_full_error
from lockstep.resources.holders import holder_name

SESSIONS = "lockstep_sessions"
"""The name of the resource that provides the run's sessions."""

_WARN_INTERVALS, _FAIL_INTERVALS = 2, 3
"""Numbers of scheduled intervals without an acknowledgement, after which Dagster's
freshness policy warns or fails."""

OpenAdapters = Callable[[], AbstractContextManager[RunAdapters]]

PerformStep = Callable[
    [dg.AssetExecutionContext, Settings, SourceNames, RunSession], dg.MaterializeResult[Any]
]


@dataclass(slots=True)
class RunSessions:
    """The sessions of one Dagster run. A session holds the lease and the open adapters
    of one source for all steps of the run."""

    make_session: Callable[[str], RunSession]
    _open: dict[str, RunSession] = field(default_factory=dict)

    def of(self, source: str) -> RunSession:
        if source not in self._open:
            self._open[source] = self.make_session(source)
        return self._open[source]

    def close(self) -> None:
        with ExitStack() as stack:
            for session in self._open.values():
                stack.callback(session.close)
            self._open.clear()


def session_of(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, source: str
) -> RunSession:
    sessions: RunSessions = getattr(context.resources, SESSIONS)
    return sessions.of(source)


def run_assets(
    settings: Settings, declaration: Declaration
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return the assets of a source's run: its log, and the three steps that depend on
    it."""
    names, source = declaration.names, settings.source(declaration.names.source)
    log_spec = declaration.make_spec(
        names.log_key,
        kinds={"mysql"},
        description=f"The binlog of {names.source}, which its server writes.",
        metadata={"tables": ", ".join(source.section.tables)},
    )

    pause = longest_pause_from_now(source.schedule)
    freshness: dg.FreshnessPolicy | None = None
    if pause is not None:
        windows = {"fail_window": _FAIL_INTERVALS * pause, "warn_window": _WARN_INTERVALS * pause}
        freshness = dg.FreshnessPolicy.time_window(**windows)

    def step_asset(
        perform: PerformStep,
        key: dg.AssetKey,
        upstream: dg.AssetKey,
        description: str,
        **attributes: Any,
    ) -> dg.AssetsDefinition:
        def perform_step(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
            return perform(context, settings, names, session_of(context, names.source))

        spec = declaration.make_spec(key, deps=[upstream], description=description, **attributes)
        op = names.op_name(key.path[-1])
        return dg.multi_asset(name=op, specs=[spec], required_resource_keys={SESSIONS})(
            evaluate_annotations(perform_step)
        )

    return [
        log_spec,
        step_asset(
            _capture,
            names.captured_key,
            names.log_key,
            "Reads the binlog to its present end into Parquet segments, and records them in the "
            "ledger in one transaction. Starts no JVM.",
        ),
        step_asset(
            _merge,
            names.merged_key,
            names.captured_key,
            "Publishes captured segments to the changelogs and merges them into the mirrors. Each "
            "table that changed gets a materialization of its own.",
            kinds={"spark"},
        ),
        step_asset(
            _acknowledge,
            names.acknowledged_key,
            names.merged_key,
            "Moves the acknowledged position over every batch that the ledger shows merged, and "
            "records which Delta versions belong together.",
            freshness_policy=freshness,
        ),
    ]


def _capture(
    context: dg.AssetExecutionContext, settings: Settings, names: SourceNames, session: RunSession
) -> dg.MaterializeResult[Any]:
    with dagster_failures():
        report = capture_step(session)
    ports, began_at = session.ports(), session.record.began_at
    assert began_at is not None, "the step records when it began"
    if report.batch_id is not None:
        events = batch_content(ports.ledger, names.source, report.batch_id).events
        for event in structure_events(names, ports, events):
            context.log_event(event)
    report_table_states(context, settings, names, ports)
    metadata = capture_metadata(report, began_at) | requests_metadata(session.count_new_requests())
    return dg.MaterializeResult(metadata=metadata)


def _merge(
    context: dg.AssetExecutionContext, settings: Settings, names: SourceNames, session: RunSession
) -> dg.MaterializeResult[Any]:
    report = merge_and_log(context, settings, names, session, only_tables=None)
    changed = {merge.table for merge in report.merges}
    report_table_states(context, settings, names, session.ports(), changed)
    report_repeated_keys(context, names, session.ports(), report.merges)
    metadata = merge_metadata(report) | requests_metadata(session.count_new_requests())
    return dg.MaterializeResult(metadata=metadata)


def _acknowledge(
    context: dg.AssetExecutionContext, settings: Settings, names: SourceNames, session: RunSession
) -> dg.MaterializeResult[Any]:
    with dagster_failures():
        report = acknowledge_step(session)
    ports = session.ports()
    if report.waiting_tables:
        context.log.warning(f"not acknowledged: {waiting_sentence(report.waiting_tables)}")
    now = ports.clock()
    facts, lag, room = log_state(ports, now)
    if facts is not None:
        context.log_event(log_observation(names.log_key, facts, lag, room))
    if report.acknowledged_batches:
        report_table_states(context, settings, names, ports)
    if not report.waiting_tables:
        report_coverage(context, settings, ports, session.record.covered_until)
    metadata = acknowledge_metadata(report, now, session.record.merge_report)
    if session.record.catalog_report is not None:
        metadata["catalog"] = "; ".join(session.record.catalog_report.lines()) or "nothing to do"
    if report.acknowledged_batches:
        page = store_page_of_run(settings, ports, session.run_id)
        metadata |= {} if page is None else {"report": dg.MetadataValue.path(page)}
    metadata |= distance_metadata(lag, room) | requests_metadata(session.count_new_requests())
    with dagster_failures():
        require_no_stop(session)
    # The data version changes only if a batch was acknowledged: assets that depend on
    # this step are built from versions of mirrors that belong together.
    cursor = ports.ledger.cursors(names.source).acknowledged
    version = dg.DataVersion("none" if cursor is None else str(cursor.batch))
    return dg.MaterializeResult(metadata=metadata, data_version=version)


def merge_and_log(
    context: dg.AssetExecutionContext,
    settings: Settings,
    names: SourceNames,
    session: RunSession,
    *,
    only_tables: frozenset[TableName] | None,
) -> MergeReport:
    """Merge captured changes of all tables, or of `only_tables`, and log each write
    after its commit."""
    merge_log = MergeLog(context, settings, names, session)
    try:
        with dagster_failures():
            return merge_step(session, merge_log.add, only_tables)
    finally:
        # The events need the ledger; if it does not answer, the other error is the one
        # to show.
        with suppress(LockstepError):
            merge_log.flush()


_LOGGED_AT_ONCE: Final = 10
"""Number of a run's first writes that are logged one by one."""

_PAUSE_SECONDS: Final = 5.0
"""Time between two logs of later writes: Dagster takes milliseconds for each."""


@dataclass(slots=True)
class MergeLog:
    """A collector of a run's merges, which logs them as materializations: the first
    merges at once, later ones in groups."""

    context: dg.AssetExecutionContext
    settings: Settings
    names: SourceNames
    session: RunSession
    _unlogged: list[TableMerge] = field(default_factory=list)
    _logged_count: int = 0
    _last_log_time: float = 0.0

    def add(self, merge: TableMerge) -> None:
        self._unlogged.append(merge)
        pause = monotonic() - self._last_log_time
        if self._logged_count < _LOGGED_AT_ONCE or pause >= _PAUSE_SECONDS:
            self.flush()

    def flush(self) -> None:
        merges, self._unlogged = self._unlogged, []
        if not merges:
            return
        lake, ports = self.settings.lake_path(), self.session.ports()
        comments = comments_of(ports, {merge.table for merge in merges})
        ends = batch_ends(ports, [merge.last_batch for merge in merges])
        for merge in sorted(merges, key=lambda merge: (merge.table, merge.first_batch)):
            contents = table_contents(
                ports.ledger, ports.source.name, merge.table, merge.first_batch, merge.last_batch
            )
            end, column_comments = ends.get(merge.last_batch), comments.get(merge.table, {})
            event = event_of_write(self.names, lake, ports, merge, contents, end, column_comments)
            self.context.log_event(event)
        self._logged_count += len(merges)
        self._last_log_time = monotonic()


# -- the sessions of a run's steps ---------------------------------------------------------------


class LoggedProgress:
    """A `pipeline.run.context.Progress` that writes to a Dagster run's log: every note,
    and figures once in ten seconds. Figures of the merge are left out, because its
    materializations show them.
    """

    def __init__(self, log: Log, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._log, self._monotonic, self._last_log_time = log, monotonic, float("-inf")

    def tell(self, step: StepProgress) -> None:
        now = self._monotonic()
        if step.step != "merge" and now - self._last_log_time >= 10:
            self._last_log_time = now
            self._log.info(f"{step.step}: {step.text}")

    def note(self, sentence: str) -> None:
        self._log.warning(sentence)


def sessions_resource(
    settings: Settings,
    open_site: OpenAdapters,
    make_record: Callable[[str], RunRecord],
) -> dg.ResourceDefinition:
    """Return the resource that opens the adapters of a Dagster run and a session for
    each of its sources. They are closed when the run ends, also if it fails."""

    @dg.resource(description="The source's lock and everything a step works through.")
    @evaluate_annotations
    def sessions(context: dg.InitResourceContext) -> Iterator[RunSessions]:
        instance, run = context.instance, context.run
        if instance is None or run is None or context.log is None:
            raise dg.DagsterInvariantViolationError("sessions are for Dagster runs only")
        progress = LoggedProgress(context.log)

        def on_lease(lease: Lease, previous: LeaseView | None) -> None:
            dead_ids = tag_run_and_report_dead(instance, lease, previous, datetime.now(UTC))
            for run_id in dead_ids:
                progress.note(f"Run {run_id} had died; it is reported as failed.")
            ended_ids = [
                *ids_of_own_runs(instance, lease.source, dead_ids),
                *dead_run_outside_dagster(previous),
            ]
            if lease.source in run_events:
                run_events[lease.source].send_ends(ended_ids)
            else:
                dead_run_ids.setdefault(lease.source, []).extend(ended_ids)

        def on_wait() -> None:
            instance.add_run_tags(run.run_id, {WAITS_TAG: datetime.now(UTC).isoformat()})

        def on_release(lease: Lease) -> None:
            if not is_own_job(run.job_name):  # a run of our own jobs ends with its lease
                tag_release(instance, lease)

        def make_on_captured(run_record: RunRecord) -> Callable[[], None]:
            source = run_record.source
            if settings.file.lineage is None or run.job_name != job_name(source):
                return lambda: None
            with dagster_failures():
                try:
                    events = RunEventSender(settings, run_record, run.run_id, progress.note)
                except LockstepError as error:
                    run_record.error = error
                    raise
            run_events[source] = events
            return events.send_start

        def make_session(source: str) -> RunSession:
            run_record = make_record(source)
            return RunSession(
                adapters=adapters,
                source=source,
                holder=holder_name(),
                run_id=run.run_id,
                progress=progress,
                pause=time.sleep,
                on_lease=on_lease,
                record=run_record,
                until=_end_of_run(run.tags),
                in_dagster=True,
                translate_error=lambda error: disk_full_error(error, [Path(tempfile.gettempdir())]),
                on_wait=on_wait,
                on_release=on_release,
                on_captured=make_on_captured(run_record),
            )

        run_events: dict[str, RunEventSender] = {}
        dead_run_ids: dict[str, list[str]] = {}
        with open_site() as adapters:
            sessions_of_run = RunSessions(make_session)
            try:
                yield sessions_of_run
            finally:
                sessions_of_run.close()
                # If Dagster has this run as finished while it still works, it was
                # reported as dead.
                dagster_run = instance.get_run_by_id(run.run_id)
                found_dead = dagster_run is not None and dagster_run.is_finished
                for source, events in run_events.items():
                    ports = partial(adapters.ports, source, progress)
                    events.send_end(ports, found_dead=found_dead)
                for source, run_ids in dead_run_ids.items():
                    send_ends_of_dead_runs(settings, source, run_ids, progress.note)

    return sessions


def _end_of_run(tags: Mapping[str, str]) -> Place | None:
    """Return the end of the run from its tag, which a person may set on Dagster's page;
    None without the tag."""
    text = tags.get(UNTIL_TAG)
    if not text:
        return None
    with dagster_failures():
        try:
            return parse_end(text)
        except ValueError as error:
            raise ConfigurationError(
                f"The run's tag {UNTIL_TAG} is no end of a run: {error}.",
                hint="launch the run again with a place of that form",
            ) from error
