"""Reports to Dagster about runs that a timer, a container or a person started, and not
Dagster. The events are made from what the ledger recorded of these runs.

Each table and each step gets one materialization for everything that these runs did
since the last report, so that the number of events does not grow with the number of
runs. Each tick of the sensor reports some tables, in the order of their names; the
steps are reported after the last table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from time import monotonic
from typing import Any

import dagster as dg
import pyarrow as pa
from pydantic import TypeAdapter

from lockstep.assets.checks import source_check_results
from lockstep.assets.coverage import read_coverage, report_coverage, write_coverage
from lockstep.assets.dagster_metadata import (
    DATA_VERSION,
    Metadata,
    distance_metadata,
    evaluation_of,
    log_observation,
    position_metadata,
    rows_metadata,
)
from lockstep.assets.names import SourceNames
from lockstep.assets.run_page import page_path
from lockstep.assets.state_files import note_write_errors
from lockstep.assets.table_list import forget_reported_states
from lockstep.assets.table_news import (
    Log,
    batch_ends,
    event_of_write,
    report_repeated_keys,
    report_table_states,
    structure_events,
)
from lockstep.pipeline.model.batch import (
    Batch,
    BatchContent,
    RunsOutsideDagster,
    TableContent,
    WritesOutsideDagster,
)
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.ports.ledger import Consumers, attempts_of, table_contents
from lockstep.pipeline.ports.mirrors import MirrorSize
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.reports import TableMerge
from lockstep.pipeline.run.status.run_news import comments_of
from lockstep.pipeline.run.status.status import log_state
from lockstep.pipeline.values.decisions import AttemptOutcome, LeaseView
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.intent import SettledWrite
from lockstep.pipeline.values.segment import RowCounts
from lockstep.pipeline.values.table import TableName
from lockstep.resources.config import Settings

_MAX_STRUCTURE_EVENTS = 200
"""Largest number of structure changes that get an observation each; the newest do. A
first run may find ten thousand tables. The capture step reports the number of all
changes."""

TICK_SECONDS = 15.0
"""Time after which a tick reports no further table: Dagster ends a tick that takes a
minute, and the checks have to be reported, too."""

MAX_SUMMED_BATCHES = 500
"""Largest number of batches whose rows a report adds up: the newest ones. They are read
from the ledger within one tick."""

_SEARCHED_EVENTS = 20
"""Number of a mirror's newest materializations that are searched for a version."""


@dataclass(frozen=True, slots=True)
class ReportCursor:
    """The point up to which a source is reported. `ledger`: the identity of the ledger
    that has the leases. `token`: the last lease that is reported completely. If a
    report is unfinished, `through` is the last lease that it covers, and `table` the
    last reported table."""

    ledger: str = ""
    token: int = 0
    through: int | None = None
    table: TableName | None = None

    @classmethod
    def of(cls, stored: object) -> ReportCursor:
        return TypeAdapter(cls).validate_python(stored)

    def last_token(self, newest: LeaseView) -> int:
        """Return the token of the last lease to report now. A lease that is still held
        is left out, because its run may write more."""
        return self.through or (newest.token - 1 if newest.live else newest.token)


@dataclass(frozen=True, slots=True)
class _ShownVersion:
    """A version of a mirror that Dagster shows. `position`: the position up to which it
    has the changes."""

    version: int
    position: str | None
    reported_at: datetime


@dataclass(slots=True)
class OtherRunsReporter:
    """A collector of one source's events, which the steps of a Dagster run would have
    logged, and of sentences for the tick's message."""

    log: Log
    instance: dg.DagsterInstance
    settings: Settings
    names: SourceNames
    ports: RunPorts
    consumers: Consumers
    events: list[Any] = field(default_factory=list)
    sentences: list[str] = field(default_factory=list)

    def log_event(self, event: Any) -> None:
        self.events.append(event)

    def report(self, last: ReportCursor, max_tables: int) -> ReportCursor:
        """Add the events of at most `max_tables` tables that are not reported yet, or
        of fewer if that takes longer than `TICK_SECONDS`. Return the point up to which
        the source is then reported."""
        ports, ledger, source = self.ports, self.ports.ledger, self.ports.source.name
        newest_lease, identity = ledger.newest_lease(source), ledger.identity()
        if last.ledger != identity:
            if last.ledger:
                self.sentences.append(
                    f"{source}: this is another ledger than before; its runs are reported from "
                    "the first one on."
                )
            elif self._is_new_to_dagster():
                self._forget_reports()
            last = ReportCursor(identity)
        if newest_lease is None:
            return last
        through = last.last_token(newest_lease)
        if through == last.token:
            return last
        # Dagster's storage may be new, and then lacks even the runs that Dagster
        # started. `_report_writes` leaves out the writes that Dagster shows already.
        is_first = last.token == 0
        writes = ledger.writes_outside_dagster(
            source, last.token, through, last.table, max_tables, all_runs=is_first
        )
        began_at = monotonic()
        results: list[TableMerge | None] = []
        for result in self._report_writes(writes):
            results.append(result)
            if monotonic() - began_at > TICK_SECONDS:
                break
        merges = [merge for merge in results if merge is not None]
        runs = ledger.runs_outside_dagster(
            source, last.token, through, all_runs=is_first and self._is_new_to_dagster()
        )
        if runs.deleted_lease_count:
            self.sentences.append(
                f"{source}: upkeep deleted {runs.deleted_lease_count} of "
                f"{through - last.token} leases from the ledger before their runs were reported; "
                "each table's last write is reported."
            )
        if runs.run_count or writes:
            report_table_states(
                self, self.settings, self.names, ports, {merge.table for merge in merges}
            )
            report_repeated_keys(self, self.names, ports, merges)
        if len(results) < len(writes) or len(writes) == max_tables:  # There may be more.
            last_table = writes[len(results) - 1].newest_write.intent.table
            return replace(last, through=through, table=last_table)
        if runs.run_count:
            self._report_steps(runs)
        if len(runs.batches) > MAX_SUMMED_BATCHES:
            self.sentences.append(
                f"{source}: {len(runs.batches)} batches are reported, but only the rows of the "
                f"newest {MAX_SUMMED_BATCHES} are counted."
            )
        return ReportCursor(identity, through)

    def _is_new_to_dagster(self) -> bool:
        """Return whether Dagster has no report of the source's runs, for instance
        because its storage was lost."""
        return self.instance.get_latest_materialization_event(self.names.acknowledged_key) is None

    def _forget_reports(self) -> None:
        """Have all states of tables, and all partitions, reported again."""
        folder, source = self.settings.state_folder, self.ports.source.name
        with note_write_errors("The record of what Dagster shows", self.log.warning):
            forget_reported_states(folder, source)
            if (coverage := read_coverage(folder, source)) is not None:
                write_coverage(folder, source, replace(coverage, until=coverage.begins))

    def _report_writes(self, writes: Sequence[WritesOutsideDagster]) -> Iterator[TableMerge | None]:
        """Add an event for each write and yield the write. Add no event and yield None
        if the table is gone, or if Dagster already shows that version: a Dagster run
        that was killed, or a tick that ended before its cursor was stored, may have
        reported it."""
        ports = self.ports
        states = ports.ledger.table_states(ports.source.name)
        comments = comments_of(ports, [write.newest_write.intent.table for write in writes])
        ends = batch_ends(ports, [write.newest_write.intent.last_batch for write in writes])
        for write in writes:
            newest_write, intent = write.newest_write, write.newest_write.intent
            table, end = intent.table, ends.get(intent.last_batch)
            if table not in states:
                yield None
                continue
            version = newest_write.delta_version
            position = None if end is None else str(end)
            shown_versions = self._shown_versions(self.names.table_key(table), states[table].mirror)
            if (version, position) in {(shown.version, shown.position) for shown in shown_versions}:
                yield None
                continue
            oldest_batch = min(intent.first_batch, intent.last_batch - MAX_SUMMED_BATCHES + 1)
            summed_batches = write.batches_since(oldest_batch)
            first_batch = min(summed_batches)
            all_contents = table_contents(
                ports.ledger, ports.source.name, table, first_batch, intent.last_batch
            )
            contents = [content for content in all_contents if content.batch in summed_batches]
            merge = _table_merge(ports, newest_write, first_batch, states[table], contents)
            event = event_of_write(
                self.names,
                self.settings.lake_path(),
                ports,
                merge,
                contents=contents,
                end=end,
                comments=comments.get(table, {}),
            )
            if any(
                shown.version > version and shown.reported_at > newest_write.settled_at
                for shown in shown_versions
            ):
                # A Dagster run reported a newer version, which must stay the latest.
                self.log_event(dg.AssetObservation(event.asset_key, metadata=event.metadata))
            else:
                self.log_event(event)
            yield merge

    def _shown_versions(self, key: dg.AssetKey, mirror: str) -> list[_ShownVersion]:
        """Return the versions of the mirror that Dagster shows, newest first. The
        folder is compared as well, because a mirror in another folder begins with
        version 0 again."""
        versions = []
        for record in self.instance.fetch_materializations(key, limit=_SEARCHED_EVENTS).records:
            event = record.asset_materialization
            metadata = event.metadata if event is not None else {}
            if event is not None and "mirror" in metadata and metadata["mirror"].value == mirror:
                version, tags = metadata["Delta version"].value, event.tags or {}
                if isinstance(version, int):
                    reported_at = datetime.fromtimestamp(record.timestamp, UTC)
                    versions.append(_ShownVersion(version, tags.get(DATA_VERSION), reported_at))
        return versions

    def _report_steps(self, runs: RunsOutsideDagster) -> None:
        ports, names, now = self.ports, self.names, self.ports.clock()
        ledger, source = ports.ledger, ports.source.name
        reported_batches: list[Batch] = []
        contents: list[BatchContent] = []
        if runs.batches:
            summed_batches = runs.batches[-MAX_SUMMED_BATCHES:]
            span = (source, summed_batches[0], summed_batches[-1])
            ids = frozenset(summed_batches)
            reported_batches = [batch for batch in ledger.live_batches(*span) if batch.id in ids]
            contents = [content for content in ledger.contents(*span) if content.batch in ids]
        events = [event for content in contents for event in content.events]
        for event in structure_events(names, ports, events[-_MAX_STRUCTURE_EVENTS:]):
            self.log_event(event)
        facts, lag, headroom = log_state(ports, now)
        if facts is not None:
            self.log_event(log_observation(names.log_key, facts, lag, headroom))
        last_attempt = next(iter(attempts_of(ledger, source, limit=1)), None)
        is_idle = last_attempt is not None and last_attempt.outcome is AttemptOutcome.IDLE
        if runs.batches or is_idle:
            capture_metadata, merge_metadata = _step_metadata(
                runs, reported_batches, contents, len(events)
            )
            self.log_event(dg.AssetMaterialization(names.captured_key, metadata=capture_metadata))
            self.log_event(dg.AssetMaterialization(names.merged_key, metadata=merge_metadata))
            cursor = ledger.cursors(source).acknowledged
            metadata = position_metadata(None if cursor is None else cursor.position, now)
            metadata |= distance_metadata(lag, headroom)
            run_id = reported_batches[-1].run_id if reported_batches else None
            page = page_path(self.settings.state_folder, source, f"run {run_id}")
            if run_id is not None and page.exists():  # A run on another host has no page here.
                metadata["report"] = dg.MetadataValue.path(page)
            # The data version is the same as that of the step `acknowledged` of a
            # Dagster run.
            tags = {DATA_VERSION: "none" if cursor is None else str(cursor.batch)}
            self.log_event(
                dg.AssetMaterialization(names.acknowledged_key, metadata=metadata, tags=tags)
            )
            log_end_asked_at = last_attempt.ended_at if last_attempt and is_idle else None
            report_coverage(self, self.settings, ports, log_end_asked_at)
        for result in source_check_results(
            self.settings, ports, self.consumers, names.acknowledged_key
        ):
            self.log_event(evaluation_of(result))


def _table_merge(
    ports: RunPorts,
    newest: SettledWrite,
    first_batch: int,
    state: TableState,
    contents: Sequence[TableContent],
) -> TableMerge:
    columns: tuple[tuple[str, pa.DataType], ...] = ()
    size: MirrorSize | None = None
    with suppress(LockstepError):  # somebody may have deleted that version meanwhile
        schema = ports.mirrors.schema(state.mirror, newest.delta_version)
        columns = tuple((column.name, column.type) for column in schema)
        size = ports.mirrors.size(state.mirror, newest.delta_version)
    snapshots = [content.snapshot for content in contents if content.snapshot]
    segments = [segment for content in contents for segment in content.segments]
    return TableMerge(
        table=newest.intent.table,
        counts=sum((segment.counts for segment in segments), RowCounts()),
        delta_version=newest.delta_version,
        mirror=state.mirror,
        changelog=state.changelog,
        seconds=(newest.settled_at - newest.intended_at).total_seconds(),
        first_batch=first_batch,
        last_batch=newest.intent.last_batch,
        columns=columns,
        shown_version=state.mirror_schema_version or 1,  # 1: somebody removed the mirror meanwhile
        reason=newest.reason or "",
        rows_read=sum(file.images for snapshot in snapshots for file in snapshot.files),
        size=size,
    )


def _step_metadata(
    runs: RunsOutsideDagster,
    batches: Sequence[Batch],
    contents: Sequence[BatchContent],
    structure_change_count: int,
) -> tuple[Metadata, Metadata]:
    """Return the metadata of the capture and of the merge."""
    captured = [rows for content in contents for rows in content.captured_rows()]
    counts = sum((rows.counts for rows in captured), RowCounts())
    table_count = len({rows.table for rows in captured})
    merge_metadata: Metadata = {
        "runs": runs.run_count,
        **({"runs that died": runs.died_count} if runs.died_count else {}),
        "rows": counts.total,
        **rows_metadata(counts),
    }
    capture_metadata: Metadata = {
        **merge_metadata,
        "transactions": sum(batch.transactions for batch in batches),
        "log bytes": sum(batch.log_bytes for batch in batches),
        "tables": table_count,
        "structure changes": structure_change_count,
    }
    if batches:
        capture_metadata["start"] = str(batches[0].start)
        capture_metadata["end"] = str(batches[-1].end or batches[-1].start)
        capture_metadata["batch"] = batches[-1].id
    merge_metadata["tables changed"] = table_count
    return capture_metadata, merge_metadata
