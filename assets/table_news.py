"""Reports of a run to Dagster about its tables: their writes, changed structures and
states.

A table's state is reported only if it changed since the last report. The list of tables
has a digest of the state that was reported last; if the list is lost, all states are
reported again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

import dagster as dg

from lockstep.assets.dagster_metadata import (
    evaluation_of,
    follows_check_result,
    keys_check_result,
    materialization_of,
    structure_observation,
)
from lockstep.assets.names import SourceNames
from lockstep.assets.state_files import note_write_errors
from lockstep.assets.table_list import read_table_list, table_entries, update_table_list
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import TableEvent
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.reports import TableMerge
from lockstep.pipeline.run.status.repeated_keys import count_keys
from lockstep.pipeline.run.status.span_report import structure_changes
from lockstep.pipeline.run.status.status import standings_of
from lockstep.pipeline.status.tables import TableStanding
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.shown import name_list
from lockstep.pipeline.values.table import TableName
from lockstep.resources.config import Settings
from lockstep.resources.lake.store.paths import LakePath


class Log(Protocol):
    """The log of a Dagster run or of a sensor's tick."""

    def info(self, msg: object) -> None: ...

    def warning(self, msg: object) -> None: ...


class EventReceiver(Protocol):
    """A receiver of Dagster events: the context of a run's step, or a sensor's
    collector of events."""

    @property
    def log(self) -> Log: ...

    def log_event(self, event: Any) -> None: ...


_SMALL_MIRROR_ROWS = 100_000
"""Largest number of rows of a mirror whose keys a run counts. Counting them takes
hundredths of a second."""

_MAX_EVENTS = 100
"""Largest number of events of one kind in a run: Dagster takes milliseconds for each."""


def report_table_states(
    receiver: EventReceiver,
    settings: Settings,
    names: SourceNames,
    ports: RunPorts,
    materialized: Collection[TableName] = (),
) -> None:
    """Log a check's evaluation for each of `tables_to_report`, and update the list of
    tables from the ledger. `materialized`: tables that were just materialized."""
    source = ports.source.name
    standings = standings_of(ports.ledger, source, ports.source.patterns)
    last_reported = {
        entry.table: entry.reported for entry in read_table_list(settings.state_folder, source)
    }
    digests = {table: _digest(standing) for table, standing in standings.items()}
    tables = tables_to_report(standings, digests, last_reported, materialized)
    reported = {
        table: digest if table in tables else last_reported.get(table, "")
        for table, digest in digests.items()
    }
    states = ports.ledger.table_states(source)
    for table in states:
        if table in tables:
            receiver.log_event(evaluation_of(follows_check_result(names, standings[table])))
    entries = table_entries(states, reported)
    changed_tables: tuple[TableName, ...] = ()
    with note_write_errors("The list of tables for Dagster", receiver.log.warning):
        changed_tables = update_table_list(settings.state_folder, source, entries, complete=False)
    if changed_tables and settings.webserver() is None:
        receiver.log.info(
            f"The assets of these tables are new or changed: {name_list(changed_tables)}; reload "
            "the definitions to see them on Dagster's page."
        )


def report_repeated_keys(
    receiver: EventReceiver, names: SourceNames, ports: RunPorts, merges: Iterable[TableMerge]
) -> None:
    """Count the keys of the small mirrors that were written, and log the results. If a
    mirror's keys cannot be counted now, the next write or a click on its page counts
    them."""
    sizes = {merge.table: merge.size for merge in merges}
    small_mirrors = [
        table
        for table, size in sorted(sizes.items())
        if size is not None and size.row_count is not None and size.row_count <= _SMALL_MIRROR_ROWS
    ]
    states = ports.ledger.table_states(ports.source.name) if small_mirrors else {}
    for table in small_mirrors[:_MAX_EVENTS]:
        try:
            count = count_keys(ports, states[table])
        except LockstepError as error:
            receiver.log.info(f"The keys of {table} were not counted: {error.message}")
            continue
        if count.repeated_count is not None:
            receiver.log_event(evaluation_of(keys_check_result(names, count)))


def tables_to_report(
    standings: Mapping[TableName, TableStanding],
    digests: Mapping[TableName, str],
    last_reported: Mapping[TableName, str],
    materialized: Collection[TableName],
) -> frozenset[TableName]:
    """Return the tables to report.

    A table is reported if its state is not the one that Dagster shows, or if it was
    just `materialized`, because Dagster then shows its last evaluation as outdated. If
    more than `_MAX_EVENTS` tables were materialized, only those that do not follow the
    source are reported again. Of the new tables that follow, at most `_MAX_EVENTS` are
    reported now, and the rest by later runs.
    """
    changed = {table for table, digest in digests.items() if last_reported.get(table, "") != digest}
    reports_all_materialized = len(materialized) <= _MAX_EVENTS
    outdated = {
        table
        for table in materialized
        if table in standings and (reports_all_materialized or not standings[table].follows)
    }
    new_tables = [
        table
        for table in changed - outdated
        if standings[table].follows and not last_reported.get(table)
    ]
    return frozenset((changed | outdated) - set(sorted(new_tables)[_MAX_EVENTS:]))


def _digest(standing: TableStanding) -> str:
    """Return a short text that changes whenever the table's state changes."""
    text = f"{standing.sentence}\n{standing.hint}"
    return f"{standing.health} {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def batch_ends(ports: RunPorts, batch_ids: Iterable[int]) -> dict[int, Position | None]:
    """Return the positions where these batches end, by batch. Abandoned batches are
    left out."""
    ledger, source = ports.ledger, ports.source.name
    return {
        batch.id: batch.end
        for batch_id in set(batch_ids)
        for batch in ledger.live_batches(source, batch_id, batch_id)
    }


def event_of_write(
    names: SourceNames,
    lake: LakePath,
    ports: RunPorts,
    merge: TableMerge,
    *,
    contents: Iterable[TableContent],
    end: Position | None,
    comments: Mapping[str, str],
) -> dg.AssetMaterialization:
    """Return the materialization for a write of a mirror. `contents`: the merged
    content of each batch; `end`: the end of the last batch; `comments`: MySQL's
    comments of the columns."""
    parts = [part for content in contents for part in (*content.segments, content.snapshot)]
    change_bytes = sum(file.size for part in parts if part for file in part.files)
    version = ports.ledger.schema_version(ports.source.name, merge.table, merge.shown_version)
    return materialization_of(
        names,
        merge,
        lake,
        ports.clock(),
        position=end,
        change_bytes=change_bytes,
        version=version,
        comments=comments,
    )


def structure_events(
    names: SourceNames, ports: RunPorts, events: Iterable[TableEvent]
) -> Iterator[dg.AssetObservation]:
    for change in structure_changes(ports.ledger, ports.source.name, events):
        yield structure_observation(names, change)
