"""The three steps of a source's run as Dagster assets: captured → merged → acknowledged.

`acknowledged` depends on `merged` only: a table asset that yields nothing would skip it,
and an idle run must still move the position. `merged` logs a materialization for each
table that changed, and only for those; the ledger names them, no list of tables is gone
through.

Dagster reads the annotation of `context` as an object, so this module has no deferred
annotations.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from random import SystemRandom
from typing import Any

import dagster as dg

from assets.catalogue import CatalogueEntry, update_catalogue
from assets.hints import evaluated
from assets.metadata import (
    acknowledged_metadata,
    captured_metadata,
    failure,
    held_sentence,
    merged_metadata,
    table_metadata,
)
from assets.names import acknowledged_key, captured_key, merged_key, table_key
from assets.sessions import Session, Sessions
from pipeline.decisions import Lease
from pipeline.errors import LockstepError
from pipeline.position import Position
from pipeline.runs.acknowledge import acknowledge
from pipeline.runs.capture import capture
from pipeline.runs.context import MergeReport, Workplace
from pipeline.runs.inspecting.verify_outcome import prove_sample
from pipeline.runs.merge import merge
from pipeline.table import TableName
from resources.config import Settings

SESSIONS = "sessions"
"""The resource that hands out the run's sessions."""


def session_of(
    context: dg.AssetExecutionContext | dg.AssetCheckExecutionContext, source: str
) -> Session:
    sessions: Sessions = getattr(context.resources, SESSIONS)
    return sessions.of(source)


def run_assets(settings: Settings, source: str) -> list[dg.AssetsDefinition]:
    """The assets of one source's run, in order."""
    return [_captured(settings, source), _merged(settings, source), _acknowledged(source)]


def _captured(settings: Settings, source: str) -> dg.AssetsDefinition:
    @dg.asset(
        key=captured_key(source),
        group_name=source,
        required_resource_keys={SESSIONS},
        description="Reads the binlog to its present end into Parquet segments, and records "
        "them in the ledger at once. Starts no JVM.",
    )
    @evaluated
    def captured(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        session = session_of(context, source)
        try:
            report = session.run(capture)
        except LockstepError as error:
            raise failure(error) from error
        session.record.captured = report
        note_tables(settings, session)
        return dg.MaterializeResult(metadata=captured_metadata(report))

    return captured


def _merged(settings: Settings, source: str) -> dg.AssetsDefinition:
    @dg.asset(
        key=merged_key(source),
        group_name=source,
        deps=[dg.AssetKey(captured_key(source))],
        required_resource_keys={SESSIONS},
        description="Publishes captured segments to the changelogs and merges them into the "
        "mirrors. Each table that changed gets a materialization of its own.",
    )
    @evaluated
    def merged(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        session = session_of(context, source)
        report = merge_and_log(context, session, only=None)
        session.record.merged = report
        return dg.MaterializeResult(metadata=merged_metadata(report))

    return merged


def _acknowledged(source: str) -> dg.AssetsDefinition:
    @dg.asset(
        key=acknowledged_key(source),
        group_name=source,
        deps=[dg.AssetKey(merged_key(source))],
        required_resource_keys={SESSIONS},
        description="Moves the acknowledged position over every batch that the ledger shows "
        "merged, and records which Delta versions belong together.",
    )
    @evaluated
    def acknowledged(context: dg.AssetExecutionContext) -> dg.MaterializeResult[Any]:
        session = session_of(context, source)
        try:
            report = session.run(acknowledge)
        except LockstepError as error:
            raise failure(error) from error
        report = replace(report, sampled=prove_sample(session.workplace(), SystemRandom()))
        session.record.acknowledged = report
        if report.held:
            context.log.warning(f"not acknowledged: {held_sentence(report.held)}")
        now = session.workplace().clock()
        return dg.MaterializeResult(metadata=acknowledged_metadata(report, now))

    return acknowledged


def merge_and_log(
    context: dg.AssetExecutionContext, session: Session, *, only: frozenset[TableName] | None
) -> MergeReport:
    """Merge all tables or those of `only`, and log what changed."""

    def step(work: Workplace, lease: Lease) -> MergeReport:
        return merge(work, lease, only)

    try:
        report = session.run(step)
    except LockstepError as error:
        raise failure(error) from error
    for event in _materializations(session.workplace(), report):
        context.log_event(event)
    return report


def _materializations(work: Workplace, report: MergeReport) -> Iterable[dg.AssetMaterialization]:
    if not report.merged:
        return
    batches = _batches(work, min(done.first_batch for done in report.merged))
    segments = [(batch, segment) for batch in batches for segment in work.ledger.segments(batch)]
    sizes: Counter[tuple[TableName, int]] = Counter()
    for batch, segment in segments:
        sizes[segment.table, batch] += sum(file.size for file in segment.files)
    now = work.clock()
    for done in report.merged:
        covered = [batch for batch in batches if done.first_batch <= batch <= done.last_batch]
        yield dg.AssetMaterialization(
            asset_key=dg.AssetKey(table_key(work.source.name, done.table)),
            metadata=table_metadata(
                done,
                position=batches.get(done.last_batch),
                size=sum(sizes[done.table, batch] for batch in covered),
                now=now,
            ),
        )


def _batches(work: Workplace, first: int) -> dict[int, Position | None]:
    """The source's batches from `first` on, and where each ends."""
    source = work.source.name
    newest = work.ledger.batches(source, limit=1)
    span = newest[0].id - first + 1 if newest else 0
    return {
        batch.id: batch.end
        for batch in work.ledger.batches(source, limit=span)
        if batch.id >= first
    }


def note_tables(settings: Settings, session: Session) -> None:
    """Bring the catalogue up to what the ledger knows; clickable after the next reload."""
    states = session.workplace().ledger.table_states(session.source)
    entries = [
        CatalogueEntry(t.database, t.name, state.mirror, state.changelog)
        for t, state in states.items()
    ]
    update_catalogue(settings.state_folder, session.source, entries, complete=False)
