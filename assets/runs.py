"""The three steps of a source's run as Dagster assets: captured → merged →
acknowledged.

A mirror is the Delta table with a table's current rows. The step `merged` logs a
materialization for each mirror that changed, and for no other. `acknowledged` depends
on `merged`, not on mirrors: Dagster would skip it if a mirror yielded nothing, but an
idle run must still move the position. Mirrors depend on the source's log, an asset that
Lockstep does not materialize: if they depended on a step, Dagster would show all
unchanged mirrors as stale after each run.

Each write of a mirror is reported soon after its commit, so that no commit is missing
on Dagster's pages if the run fails or is cancelled later.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
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
from lockstep.assets.declaration import Declaration
from lockstep.assets.names import SourceNames
from lockstep.assets.run_page import store_page_of_run
from lockstep.assets.sessions import SESSIONS, session_of
from lockstep.assets.table_news import (
    batch_ends,
    event_of_write,
    report_repeated_keys,
    report_table_states,
    structure_events,
)
from lockstep.pipeline.check import longest_pause_from_now
from lockstep.pipeline.ports.ledger import batch_content, table_contents
from lockstep.pipeline.run.reports import MergeReport, TableMerge
from lockstep.pipeline.run.run import (
    RunSession,
    acknowledge_step,
    capture_step,
    merge_step,
    require_no_stop,
)
from lockstep.pipeline.run.status.run_news import comments_of
from lockstep.pipeline.run.status.status import log_state
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.table import TableName
from lockstep.resources.config import Settings

_WARN_INTERVALS, _FAIL_INTERVALS = 2, 3
"""Numbers of scheduled intervals without an acknowledgement after which Dagster's
freshness policy warns, and fails."""

PerformStep = Callable[
    [dg.AssetExecutionContext, Settings, SourceNames, RunSession], dg.MaterializeResult[Any]
]


def run_assets(
    settings: Settings, declaration: Declaration
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """Return the assets of a source's run: its log, and the three steps that depend on
    it."""
    names = declaration.names
    source = settings.source(names.source)
    log_spec = declaration.make_spec(
        names.log_key,
        kinds={"mysql"},
        description=f"The binlog of {names.source}, which its server writes.",
        metadata={"tables": ", ".join(source.section.tables)},
    )

    interval = longest_pause_from_now(source.schedule)
    freshness: dg.FreshnessPolicy | None = None
    if interval is not None:
        freshness = dg.FreshnessPolicy.time_window(
            fail_window=_FAIL_INTERVALS * interval, warn_window=_WARN_INTERVALS * interval
        )
    step_asset = partial(_step_asset, settings, declaration)
    return [
        log_spec,
        step_asset(
            _capture,
            names.captured_key,
            names.log_key,
            "Reads the binlog to its present end into Parquet segments, and records them in the "
            "ledger in one transaction.",
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
            "Moves the acknowledged position past every batch that is merged, and records which "
            "Delta versions belong together.",
            freshness_policy=freshness,
        ),
    ]


def _step_asset(
    settings: Settings,
    declaration: Declaration,
    perform: PerformStep,
    key: dg.AssetKey,
    upstream_key: dg.AssetKey,
    description: str,
    **attributes: Any,
) -> dg.AssetsDefinition:
    """Return the asset of a step, which depends on the asset `upstream_key` and is
    materialized by `perform`."""
    names = declaration.names

    def perform_step(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        session = session_of(context, names.source)
        with dagster_failures():
            return perform(context, settings, names, session)

    spec = declaration.make_spec(key, deps=[upstream_key], description=description, **attributes)
    op = names.op_name(key.path[-1])
    return dg.multi_asset(name=op, specs=[spec], required_resource_keys={SESSIONS})(
        evaluate_annotations(perform_step)
    )


def _capture(
    context: dg.AssetExecutionContext, settings: Settings, names: SourceNames, session: RunSession
) -> dg.MaterializeResult[Any]:
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
    report = acknowledge_step(session)
    ports = session.ports()
    if report.waiting_batches:
        context.log.warning(f"not acknowledged: {waiting_sentence(report.waiting_batches)}")
    else:
        report_coverage(context, settings, ports, session.record.covered_until)
    now = ports.clock()
    facts, lag, headroom = log_state(ports, now)
    if facts is not None:
        context.log_event(log_observation(names.log_key, facts, lag, headroom))
    metadata = acknowledge_metadata(report, now, session.record.merge_report)
    if report.acknowledged_batches:
        report_table_states(context, settings, names, ports)
        page = store_page_of_run(settings, ports, session.run_id)
        if page is not None:
            metadata["report"] = dg.MetadataValue.path(page)
    catalog_report = session.record.catalog_report
    if catalog_report is not None:
        metadata["catalog"] = "; ".join(catalog_report.lines()) or "nothing to do"
    metadata |= distance_metadata(lag, headroom) | requests_metadata(session.count_new_requests())
    require_no_stop(session)
    # The data version changes only with the acknowledged batch, so that an idle run
    # does not make assets stale that depend on this step.
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
    """Merge captured changes of all tables, or of `only_tables`. Log each write soon
    after its commit, even if a later write fails."""
    merge_log = _MergeLog(context, settings, names, session)

    try:
        report = merge_step(session, merge_log.add, only_tables)
    except BaseException:
        with suppress(LockstepError):  # the error of the merge is the one to show
            merge_log.flush()
        raise
    session.run(lambda *_: merge_log.flush())
    return report


_LOGGED_AT_ONCE: Final = 10
"""Number of a run's first merges that are logged one by one."""

_GROUP_SECONDS: Final = 5.0
"""Shortest time in seconds between two groups of later merges that are logged, because
the ledger is read for each group."""


@dataclass(slots=True)
class _MergeLog:
    """A collector of a run's merges, which logs them as materializations: the first
    merges at once, later ones in groups."""

    context: dg.AssetExecutionContext
    settings: Settings
    names: SourceNames
    session: RunSession
    _unlogged: list[TableMerge] = field(default_factory=list)
    _logged_count: int = 0
    _last_logged_at: float = 0.0

    def add(self, merge: TableMerge) -> None:
        self._unlogged.append(merge)
        seconds = monotonic() - self._last_logged_at
        if self._logged_count < _LOGGED_AT_ONCE or seconds >= _GROUP_SECONDS:
            self.flush()

    def flush(self) -> None:
        if not self._unlogged:
            return
        lake, ports = self.settings.lake_path(), self.session.ports()
        comments = comments_of(ports, {merge.table for merge in self._unlogged})
        ends = batch_ends(ports, [merge.last_batch for merge in self._unlogged])
        for merge in sorted(self._unlogged, key=lambda merge: (merge.table, merge.first_batch)):
            contents = table_contents(
                ports.ledger, ports.source.name, merge.table, merge.first_batch, merge.last_batch
            )
            event = event_of_write(
                self.names,
                lake,
                ports,
                merge,
                contents=contents,
                end=ends.get(merge.last_batch),
                comments=comments.get(merge.table, {}),
            )
            self.context.log_event(event)
            # A merge is removed only after its event: if the ledger fails before that,
            # the next flush tries again.
            self._unlogged.remove(merge)
            self._logged_count += 1
        self._last_logged_at = monotonic()
