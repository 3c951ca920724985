"""The three steps of a source's run as Dagster assets: captured → merged → acknowledged.

`acknowledged` depends on `merged` only: a table asset that yields nothing would skip it,
and an idle run must still move the position. `merged` logs a materialization for each
table that changed, and only for those; the ledger names them, no list of tables is gone
through. In front of all stands the source's log, which nobody here makes: mirrors depend on
it, not on a step, or each run would leave those that it did not change out of date.

Mirrors that were written are told to Dagster as they are committed, so that a run that fails, or is
cancelled, has told of what it committed until then. How that is shown is in `pages.tables`.

Dagster reads the annotation of `context` as an object, so this module has no deferred
annotations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from time import monotonic
from typing import Any, Final

import dagster as dg

from assets.coverage import note_coverage
from assets.declared import Declaration
from assets.failures import failure
from assets.hints import evaluated
from assets.names import SourceNames
from assets.pages.steps import (
    acknowledged_metadata,
    captured_metadata,
    distance_metadata,
    held_sentence,
    log_observation,
    merged_metadata,
    registered_metadata,
    requests_metadata,
)
from assets.pages.tables import MergedTable, materialization
from assets.report.kept import keep_page_of_run
from assets.table_news import check_keys, note_tables, structure_news
from pipeline.errors import LockstepError
from pipeline.position import Position
from pipeline.preflight import pause_from_now
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.status import log_seen
from pipeline.runs.reports import MergeReport, TableMerge
from pipeline.runs.run import (
    RunSession,
    acknowledge_step,
    capture_step,
    merge_step,
    require_no_stop,
)
from pipeline.table import TableName
from resources.config import Settings

SESSIONS = "lockstep_sessions"
"""The resource that hands out the run's sessions."""

_LATE, _FAILED = 2, 3
"""Intervals of the schedule after which a source that did not acknowledge is late, has failed."""

Step = Callable[[dg.AssetExecutionContext], dg.MaterializeResult[Any]]


@dataclass(slots=True)
class RunSessions:
    """The sessions of one Dagster run, one for each source that it touches."""

    make: Callable[[str], RunSession]
    _open: dict[str, RunSession] = field(default_factory=dict)

    def of(self, source: str) -> RunSession:
        if source not in self._open:
            self._open[source] = self.make(source)
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
    settings: Settings, declared: Declaration
) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    """The assets of one source's run, in order, behind its log."""
    names = declared.names
    part = settings.source(names.source)
    log = declared.spec(
        names.log,
        kinds={"mysql"},
        description=f"The binlog of {names.source}, which its server writes.",
        metadata={"tables": ", ".join(part.part.tables)},
    )
    return [
        log,
        _captured(settings, declared),
        _merged(settings, declared),
        _acknowledged(settings, declared),
    ]


def _captured(settings: Settings, declared: Declaration) -> dg.AssetsDefinition:
    names = declared.names

    def captured(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        session = session_of(context, names.source)
        try:
            report = capture_step(session)
        except LockstepError as error:
            raise failure(error) from error
        work, began = session.workplace(), session.record.began
        assert began is not None, "the step says when it began"
        if report.batch is not None:
            events = work.ledger.table_events(names.source, report.batch)
            for event in structure_news(names, work, events):
                context.log_event(event)
        note_tables(context, settings, names, work)
        told = captured_metadata(report, began) | requests_metadata(session.requests())
        return dg.MaterializeResult(metadata=told)

    spec = declared.spec(
        names.captured,
        deps=[names.log],
        description="Reads the binlog to its present end into Parquet segments, and records "
        "them in the ledger at once. Starts no JVM.",
    )
    return _step(captured, names.op("captured"), spec)


def _merged(settings: Settings, declared: Declaration) -> dg.AssetsDefinition:
    names = declared.names

    def merged(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        session = session_of(context, names.source)
        report = merge_and_log(context, settings, names, session, only=None)
        changed = {done.table for done in report.merged}
        note_tables(context, settings, names, session.workplace(), changed)
        check_keys(context, names, session.workplace(), report.merged)
        told = merged_metadata(report) | requests_metadata(session.requests())
        return dg.MaterializeResult(metadata=told)

    spec = declared.spec(
        names.merged,
        deps=[names.captured],
        kinds={"spark"},
        description="Publishes captured segments to the changelogs and merges them into the "
        "mirrors. Each table that changed gets a materialization of its own.",
    )
    return _step(merged, names.op("merged"), spec)


def _acknowledged(settings: Settings, declared: Declaration) -> dg.AssetsDefinition:
    names = declared.names

    def acknowledged(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        session = session_of(context, names.source)
        try:
            report = acknowledge_step(session)
        except LockstepError as error:
            raise failure(error) from error
        work = session.workplace()
        if report.held:
            context.log.warning(f"not acknowledged: {held_sentence(report.held)}")
        now = work.clock()
        facts, lag, room = log_seen(work, now)
        if facts is not None:
            context.log_event(log_observation(names.log, facts, lag, room))
        if report.acknowledged:
            note_tables(context, settings, names, work)
        if not report.held:
            note_coverage(context, settings, work, session.record.covered)
        told = acknowledged_metadata(report, now, session.record.merged)
        if session.record.registered is not None:
            told |= registered_metadata(session.record.registered)
        if report.acknowledged:
            page = keep_page_of_run(settings, work, session.run_id)
            told |= {} if page is None else {"report": dg.MetadataValue.path(page)}
        told |= distance_metadata(lag, room) | requests_metadata(session.requests())
        try:
            require_no_stop(session)
        except LockstepError as stopped:
            raise failure(stopped) from stopped
        return dg.MaterializeResult(metadata=told, data_version=_version_set(work))

    interval = pause_from_now(settings.source(names.source).schedule)
    spec = declared.spec(
        names.acknowledged,
        deps=[names.merged],
        freshness_policy=_freshness(interval),
        description="Moves the acknowledged position over every batch that the ledger shows "
        "merged, and records which Delta versions belong together.",
    )
    return _step(acknowledged, names.op("acknowledged"), spec)


def _version_set(work: Workplace) -> dg.DataVersion:
    """Another one when a batch was acknowledged, and only then: what is built on mirrors is made
    anew of tables that are read together."""
    cursor = work.ledger.acknowledged_cursor(work.source.name)
    return dg.DataVersion("none" if cursor is None else str(cursor.batch))


def _step(function: Step, op: str, spec: dg.AssetSpec) -> dg.AssetsDefinition:
    """One asset behind an op of that name."""
    return dg.multi_asset(name=op, specs=[spec], required_resource_keys={SESSIONS})(
        evaluated(function)
    )


def _freshness(interval: timedelta | None) -> dg.FreshnessPolicy | None:
    """Of a source with a schedule, by the longest pause between two of its runs."""
    if interval is None:
        return None
    return dg.FreshnessPolicy.time_window(
        fail_window=_FAILED * interval, warn_window=_LATE * interval
    )


def merge_and_log(
    context: dg.AssetExecutionContext,
    settings: Settings,
    names: SourceNames,
    session: RunSession,
    *,
    only: frozenset[TableName] | None,
) -> MergeReport:
    """Merge all tables or those of `only`, and log each as it is committed."""

    news = MergeNews(context, settings, names, session)
    try:
        return merge_step(session, news.take, only)
    except LockstepError as error:
        raise failure(error) from error
    finally:
        news.end()


_FIRST: Final = 10
"""So many tables are told of one by one."""

_SECONDS: Final = 5.0
"""After that the others are told of so often: Dagster takes milliseconds for each time."""


@dataclass(frozen=True, slots=True)
class _BatchNews:
    """Where a batch ends, and the bytes of its changes by table."""

    end: Position | None
    sizes: Counter[TableName]


@dataclass(slots=True)
class MergeNews:
    """What one step merges."""

    context: dg.AssetExecutionContext
    settings: Settings
    names: SourceNames
    session: RunSession
    _waiting: list[TableMerge] = field(default_factory=list)
    _told: int = 0
    _last: float = 0.0
    _batches: dict[int, _BatchNews] = field(default_factory=dict)
    _looked_at: set[int] = field(default_factory=set)

    def take(self, done: TableMerge) -> None:
        """A mirror was committed."""
        self._waiting.append(done)
        if self._told < _FIRST or monotonic() - self._last >= _SECONDS:
            self.tell()

    def tell(self) -> None:
        """Of all that were not told of."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        lake, work = self.settings.lake_path(), self.session.workplace()
        now = work.clock()
        comments = _comments(work, {done.table for done in waiting})
        for done in sorted(waiting, key=lambda one: (one.table, one.first_batch)):
            merged = self._merged(work, done, comments.get(done.table, {}))
            self.context.log_event(materialization(self.names, merged, lake, now))
        self._told += len(waiting)
        self._last = monotonic()

    def end(self) -> None:
        """Of the rest; where the ledger does not answer any more, nobody can tell."""
        with suppress(LockstepError):
            self.tell()

    def _merged(
        self, work: Workplace, done: TableMerge, comments: Mapping[str, str]
    ) -> MergedTable:
        batches = self._between(work, done.first_batch, done.last_batch)
        newest = self._batches.get(done.last_batch)
        return MergedTable(
            done,
            position=None if newest is None else newest.end,
            change_bytes=sum(batch.sizes[done.table] for batch in batches),
            schema=work.ledger.schema_version(work.source.name, done.table, done.shows).schema,
            comments=comments,
        )

    def _between(self, work: Workplace, first: int, last: int) -> list[_BatchNews]:
        ledger, source = work.ledger, work.source.name
        if not self._looked_at.issuperset(range(first, last + 1)):
            for batch in ledger.live_batches(source, first, last):
                if batch.id not in self._batches:
                    sizes = Counter[TableName]()
                    for segment in ledger.segments(batch.id):
                        sizes[segment.table] += sum(file.size for file in segment.files)
                    for part in ledger.snapshots(source, batch.id):
                        sizes[part.table] += sum(file.size for file in part.files)
                    self._batches[batch.id] = _BatchNews(batch.end, sizes)
            self._looked_at |= set(range(first, last + 1))
        return [one for number, one in self._batches.items() if first <= number <= last]


def _comments(
    work: Workplace, tables: Collection[TableName]
) -> Mapping[TableName, Mapping[str, str]]:
    """As the source has them now; none where it does not answer: a merge does without it."""
    try:
        return work.server.comments(tables)
    except LockstepError:
        return {}
