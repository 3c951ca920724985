"""Runs that Dagster did not start, reported to Dagster: a timer's, a container's, a person's.

Belongs here: the events that describe them, made from the ledger, and how far a source is reported.
Does not: when that happens (`sensors.other_runs`), what an event shows (`pages`).

Each table gets one materialization for everything that these runs did since the last report, and so
does each step: the number of events grows with the number of tables, not with the number of runs.
Tables come first, by name and some at a time. The steps follow after the last table.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from time import monotonic
from typing import Any

import dagster as dg
import pyarrow as pa

from assets.checks.rules import CHECKS
from assets.coverage import note_coverage
from assets.declared import Declaration
from assets.pages.steps import (
    Metadata,
    distance_metadata,
    log_observation,
    position_metadata,
    rows_metadata,
)
from assets.pages.tables import DATA_VERSION, MergedTable, evaluation_of, materialization
from assets.report.kept import page_path
from assets.source_facts import gather
from assets.table_news import Log, check_keys, note_tables, structure_news
from pipeline.batch import Batch
from pipeline.decisions import AttemptOutcome, LeaseView
from pipeline.errors import LockstepError
from pipeline.ports.consumers import Consumers
from pipeline.ports.leases import RunsElsewhere, WriteElsewhere
from pipeline.ports.mirrors import MirrorSize
from pipeline.preflight import pause_from_now
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.status import log_seen
from pipeline.runs.reports import TableMerge
from pipeline.segment import RowCounts
from pipeline.table import TableName
from pipeline.table_state import TableEvent, TableState
from resources.config import Settings

_STRUCTURES = 200
"""Of more structure changes since the last time, the newest have an observation each: a first run
may have met ten thousand tables. The step says how many there were."""

SECONDS = 15.0
"""A tick takes no further table after this long: Dagster ends one that takes a minute, and there
are checks to report besides."""

_SHOWN = 20
"""Number of a mirror's materializations among which a version is looked for."""


@dataclass(frozen=True, slots=True)
class Reported:
    """How far a source is reported. `ledger`: the identity of the ledger that has these leases.
    `token`: the last lease that is reported completely. `through`: the last lease of the report
    that is under way; None if none is. `table`: the last table of that report."""

    ledger: str = ""
    token: int = 0
    through: int | None = None
    table: TableName | None = None

    @classmethod
    def of(cls, kept: Mapping[str, Any]) -> Reported:
        """From the sensor's cursor."""
        table = kept.get("table")
        return cls(
            kept.get("ledger", ""),
            kept.get("token", 0),
            kept.get("through"),
            TableName(*table) if table else None,
        )

    def kept(self) -> dict[str, Any]:
        table = [] if self.table is None else [self.table.database, self.table.name]
        return {
            "ledger": self.ledger,
            "token": self.token,
            "through": self.through,
            "table": table,
        }

    def up_to(self, newest: LeaseView) -> int:
        """The last lease to report now: whoever holds one may still change something."""
        return self.through or (newest.token - 1 if newest.live else newest.token)


@dataclass(frozen=True, slots=True)
class ShownVersion:
    """A version of a mirror that Dagster shows, and the `position` in the log up to which it has
    changes: a mirror that was made again begins at version 0 once more."""

    version: int
    position: str | None
    told_at: datetime


@dataclass(slots=True)
class Gathered:
    """Events of a sensor, which takes them as a step of a run does, and sentences about them."""

    log: Log
    instance: dg.DagsterInstance
    events: list[Any] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)

    def log_event(self, event: Any) -> None:
        self.events.append(event)

    def shown(self, key: dg.AssetKey, mirror: str) -> list[ShownVersion]:
        """The newest versions of this mirror that Dagster shows, newest first."""
        found = []
        for record in self.instance.fetch_materializations(key, limit=_SHOWN).records:
            event = record.asset_materialization
            metadata = event.metadata if event is not None else {}
            if event is not None and "mirror" in metadata and metadata["mirror"].value == mirror:
                version, position = metadata["Delta version"].value, event.tags or {}
                if isinstance(version, int):
                    told_at = datetime.fromtimestamp(record.timestamp, UTC)
                    found.append(ShownVersion(version, position.get(DATA_VERSION), told_at))
        return found


def report(
    into: Gathered,
    settings: Settings,
    declared: Declaration,
    work: Workplace,
    consumers: Consumers,
    before: Reported,
    most: int,
) -> Reported:
    """Add the events of at most `most` tables that are not reported yet, and of fewer where that
    takes longer than `SECONDS`; return how far the source is reported with them."""
    ledger, source = work.ledger, work.source.name
    newest, identity = ledger.lease(source), ledger.identity()
    if before.ledger != identity:
        if before.ledger:
            into.sentences.append(
                f"{source}: this is another ledger than before; what it has is reported from its "
                "first run on."
            )
        before = Reported(identity)
    if newest is None or (through := before.up_to(newest)) == before.token:
        return before
    writes = ledger.written_elsewhere(source, before.token, through, before.table, most)
    begun, taken, merges = monotonic(), 0, list[TableMerge]()
    for merge in _report_tables(into, settings, declared, work, writes):
        taken += 1
        merges += [] if merge is None else [merge]
        if monotonic() - begun > SECONDS:
            break
    runs = ledger.runs_elsewhere(source, before.token, through)
    if runs.forgotten:
        into.sentences.append(
            f"{source}: upkeep deleted {runs.forgotten} of {through - before.token} leases from "
            "the ledger before they were reported; of each table the last write is there."
        )
    if runs.runs or writes:
        note_tables(into, settings, declared.names, work, {merge.table for merge in merges})
        check_keys(into, declared.names, work, merges)
    if taken == most or taken < len(writes):
        return replace(before, through=through, table=writes[taken - 1].last.intent.table)
    if runs.runs:
        _report_steps(into, settings, declared, work, consumers, runs)
    return Reported(identity, through)


def _report_tables(
    into: Gathered,
    settings: Settings,
    declared: Declaration,
    work: Workplace,
    writes: Sequence[WriteElsewhere],
) -> Iterator[TableMerge | None]:
    """Add an event for each write; yield what was written, None where there is nothing to report:
    the table is gone, or Dagster shows that version. A run of its own that was killed may have
    reported it, or a tick that ended before its cursor was kept."""
    source, states = work.source.name, work.ledger.table_states(work.source.name)
    comments: Mapping[TableName, Mapping[str, str]] = {}
    with suppress(LockstepError):
        comments = work.server.comments([one.last.intent.table for one in writes])
    ends: dict[int, Batch] = {}
    for write in writes:
        table, last = write.last.intent.table, write.last.intent.last_batch
        if table not in states:
            yield None
            continue
        for batch in () if last in ends else work.ledger.live_batches(source, last, last):
            ends[last] = batch
        end = ends[last].end if last in ends else None
        version, position = write.last.delta_version, str(end) if end else None
        shown = into.shown(declared.names.table(table), states[table].mirror)
        if any((one.version, one.position) == (version, position) for one in shown):
            yield None
            continue
        done, size = _merge(work, write, states[table])
        merged = MergedTable(
            done,
            position=end,
            change_bytes=size,
            schema=work.ledger.schema_version(source, table, done.shows).schema,
            comments=comments.get(table, {}),
        )
        event = materialization(declared.names, merged, settings.lake_path(), work.clock())
        settled = write.last.settled_at
        if any(one.version > version and one.told_at > settled for one in shown):
            # A run of Dagster's was first. What Dagster shows of the mirror now stays.
            into.log_event(dg.AssetObservation(event.asset_key, metadata=event.metadata))
        else:
            into.log_event(event)
        yield done


def _merge(work: Workplace, write: WriteElsewhere, state: TableState) -> tuple[TableMerge, int]:
    """All writes of a table as one, and the bytes of its changes."""
    last, table = write.last, write.last.intent.table
    between = work.ledger.contents(
        work.source.name, table, write.first_batch, last.intent.last_batch
    )
    contents = [content for content in between if write.covers(content.batch)]
    segments = [segment for one in contents for segment in one.segments]
    files = [file for segment in segments for file in segment.files]
    read = [file for one in contents if one.snapshot for file in one.snapshot.files]
    columns: tuple[tuple[str, pa.DataType], ...] = ()
    size: MirrorSize | None = None
    with suppress(LockstepError):  # somebody may have deleted that version since
        schema = work.mirrors.schema(state.mirror, last.delta_version)
        columns = tuple((one.name, one.type) for one in schema)
        size = work.mirrors.size(state.mirror, last.delta_version)
    merge = TableMerge(
        table=table,
        counts=sum((segment.counts for segment in segments), RowCounts()),
        delta_version=last.delta_version,
        mirror=state.mirror,
        changelog=state.changelog,
        seconds=(last.settled_at - last.intended_at).total_seconds(),
        first_batch=write.first_batch,
        last_batch=last.intent.last_batch,
        columns=columns,
        shows=state.mirror_version or 1,
        reason=last.reason or "",
        read=sum(file.images for file in read),
        size=size,
    )
    return merge, sum(file.size for file in (*files, *read))


def _report_steps(
    into: Gathered,
    settings: Settings,
    declared: Declaration,
    work: Workplace,
    consumers: Consumers,
    runs: RunsElsewhere,
) -> None:
    ledger, source, names, now = work.ledger, work.source.name, declared.names, work.clock()
    numbers = runs.batches
    read, events = list[Batch](), list[TableEvent]()
    between = ledger.live_batches(source, numbers[0], numbers[-1]) if numbers else ()
    own = frozenset(numbers)
    for of_these_runs, group in groupby(between, lambda batch: batch.id in own):
        if of_these_runs:
            batches = list(group)
            read += batches
            events += ledger.table_events(source, batches[0].id, batches[-1].id)
    for event in structure_news(names, work, events[-_STRUCTURES:]):
        into.log_event(event)
    pause = pause_from_now(settings.source(source).schedule)
    facts, lag, room = log_seen(work, now)
    if facts is not None:
        into.log_event(log_observation(names.log, facts, lag, room))
    (newest, *_) = ledger.attempts(source, limit=1) or (None,)
    idle = newest is not None and newest.outcome is AttemptOutcome.IDLE
    if runs.batches or idle:
        captured, merged = _step_metadata(work, runs, read, len(events))
        into.log_event(dg.AssetMaterialization(names.captured, metadata=captured))
        into.log_event(dg.AssetMaterialization(names.merged, metadata=merged))
        more = distance_metadata(lag, room) | _page(settings, source, read)
        into.log_event(_acknowledged(declared, work, now, more))
        note_coverage(into, settings, work, newest.ended_at if newest and idle else None)
    for evaluation in _evaluations(declared, work, consumers, pause, settings.keep()):
        into.log_event(evaluation)


def _step_metadata(
    work: Workplace, runs: RunsElsewhere, batches: Sequence[Batch], structures: int
) -> tuple[Metadata, Metadata]:
    """What was captured, and what was merged of it."""
    first, last = (batches[0].id, batches[-1].id) if batches else (0, -1)
    own = {batch.id for batch in batches}
    rows = [
        row for row in work.ledger.rows_within(work.source.name, first, last) if row.batch in own
    ]
    counts = sum((row.counts for row in rows), RowCounts())
    merged: Metadata = {
        "runs": dg.MetadataValue.int(runs.runs),
        **({"runs that died": dg.MetadataValue.int(runs.died)} if runs.died else {}),
        "rows": dg.MetadataValue.int(counts.total),
        **rows_metadata(counts),
    }
    captured: Metadata = {
        **merged,
        "transactions": dg.MetadataValue.int(sum(batch.transactions for batch in batches)),
        "log bytes": dg.MetadataValue.int(sum(batch.log_bytes for batch in batches)),
        "tables": dg.MetadataValue.int(len({row.table for row in rows})),
        "structure changes": dg.MetadataValue.int(structures),
    }
    if batches:
        captured["start"] = dg.MetadataValue.text(str(batches[0].start))
        captured["end"] = dg.MetadataValue.text(str(batches[-1].end or batches[-1].start))
        captured["batch"] = dg.MetadataValue.int(batches[-1].id)
    merged["tables changed"] = dg.MetadataValue.int(len({row.table for row in rows}))
    return captured, merged


def _acknowledged(
    declared: Declaration, work: Workplace, now: datetime, more: Metadata
) -> dg.AssetMaterialization:
    """With the version set as its data version, as the step itself has it."""
    cursor = work.ledger.acknowledged_cursor(work.source.name)
    found = position_metadata(None if cursor is None else cursor.position, now) | more
    version = "none" if cursor is None else str(cursor.batch)
    return dg.AssetMaterialization(
        declared.names.acknowledged, metadata=found, tags={DATA_VERSION: version}
    )


def _page(settings: Settings, source: str, batches: Sequence[Batch]) -> Metadata:
    """The page of the last run, if it was left on this machine."""
    if not batches or batches[-1].dagster_run is None:
        return {}
    path = page_path(settings.state_folder, source, f"run {batches[-1].dagster_run}")
    return {"report": dg.MetadataValue.path(path)} if path.exists() else {}


def _evaluations(
    declared: Declaration,
    work: Workplace,
    consumers: Consumers,
    pause: timedelta | None,
    keep: timedelta,
) -> Iterator[dg.AssetCheckEvaluation]:
    """The checks of the source as a whole, as it stands now."""
    checked = gather(work, consumers, pause, keep)
    for check in CHECKS:
        yield evaluation_of(check.result(checked, declared.names.acknowledged))
