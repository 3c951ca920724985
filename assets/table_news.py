"""Reports of a run to Dagster about tables: writes, changed structures, and states of
tables.

A table's state is reported only if it changed since the last report. The catalogue has
a digest of the state that was reported last; if it is lost, states are reported again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

import dagster as dg

from lockstep.assets.catalogue import entries_of, read_catalogue, update_catalogue
from lockstep.assets.names import SourceNames
from lockstep.assets.pages import (
    check_result,
    evaluation_of,
    keys_result,
    materialization,
    structure_observation,
)
from lockstep.pipeline.model.batch import TableContent
from lockstep.pipeline.model.table_state import TableEvent
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.reports import TableMerge
from lockstep.pipeline.run.status.repeated_keys import count_keys
from lockstep.pipeline.run.status.span_report import structure_changes
from lockstep.pipeline.status.tables import TableStanding, table_standings
from lockstep.pipeline.values.errors import LockstepError
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.table import TableName
from lockstep.resources.config import Settings
from lockstep.resources.lake.store.paths import LakePath


class Log(Protocol):
    """The log of a Dagster run or of a sensor's tick."""

    def info(self, msg: object) -> None: ...

    def warning(self, msg: object) -> None: ...


class Events(Protocol):
    """A receiver of Dagster events: the context of a run's step, or a sensor's
    collector."""

    @property
    def log(self) -> Log: ...

    def log_event(self, event: Any) -> None: ...


_SMALL = 100_000
"""Largest number of rows of a mirror whose keys a run counts, which takes hundredths of
a second."""

_FEW = 100
"""Largest number of events of one kind in a run: Dagster takes milliseconds for each."""


def standings_of(work: Workplace) -> dict[TableName, TableStanding]:
    """Return the state of each captured table as people see it, from the ledger."""
    ledger, source = work.ledger, work.source.name
    return table_standings(
        ledger.table_states(source),
        extents=ledger.partial(source),
        loads=[load.progress for load in ledger.open_loads(source)],
        gaps=ledger.gaps(source),
        proofs=ledger.proofs(source),
        uncleared_values=ledger.uncleared_values(source),
    )


def note_tables(
    dagster_events: Events,
    settings: Settings,
    names: SourceNames,
    work: Workplace,
    changed: Collection[TableName] = (),
) -> None:
    """Log a check's evaluation for each table whose state is new to Dagster
    (`news_of`), and update the catalogue from the ledger. `changed`: tables that were
    just materialized."""
    source = work.source.name
    standings = standings_of(work)
    last_reported = {
        entry.table: entry.reported for entry in read_catalogue(settings.state_folder, source)
    }
    digests = {table: _digest(standing) for table, standing in standings.items()}
    news = news_of(standings, digests, last_reported, changed)
    reported = {
        table: (digests if table in news else last_reported).get(table, "") for table in standings
    }
    states = work.ledger.table_states(source)
    for table in states:
        if table in news:
            dagster_events.log_event(evaluation_of(check_result(names, standings[table])))
    new_tables = update_catalogue(
        settings.state_folder, source, entries_of(states, reported), complete=False
    )
    if new_tables and settings.webserver() is None:
        dagster_events.log.info(
            "Tables were created or dropped: reload definitions to see them on the page."
        )


def check_keys(
    dagster_events: Events, names: SourceNames, work: Workplace, merged: Iterable[TableMerge]
) -> None:
    """Count the keys of the small mirrors that were written, and log the results. If a
    mirror's keys cannot be counted now, the next write or a click on its page counts
    them."""
    sizes = {merge.table: merge.size for merge in merged}
    small = [
        table
        for table, size in sorted(sizes.items())
        if size is not None and size.rows is not None and size.rows <= _SMALL
    ]
    states = work.ledger.table_states(work.source.name) if small else {}
    for table in small[:_FEW]:
        try:
            count = count_keys(work, states[table])
        except LockstepError as error:
            dagster_events.log.info(f"The keys of {table} were not counted: {error.message}")
            continue
        if count.repeated is not None:
            dagster_events.log_event(evaluation_of(keys_result(names, count)))


def news_of(
    standings: Mapping[TableName, TableStanding],
    digests: Mapping[TableName, str],
    last_reported: Mapping[TableName, str],
    changed: Collection[TableName],
) -> frozenset[TableName]:
    """Return the tables to report.

    A table is reported if its state is not the one that Dagster shows, or if it was
    just materialized (`changed`), because Dagster then shows its last evaluation as
    outdated. If more than `_FEW` tables were materialized, only those that do not
    follow are reported again. At most `_FEW` new tables that follow are reported now,
    the others by later runs.
    """
    different = {
        table for table, digest in digests.items() if last_reported.get(table, "") != digest
    }
    is_few = len(changed) <= _FEW
    evaluated_again = {
        table
        for table in changed
        if table in standings and (is_few or not standings[table].follows)
    }
    new = [
        table
        for table in different - evaluated_again
        if standings[table].follows and not last_reported.get(table)
    ]
    return frozenset((different | evaluated_again) - set(sorted(new)[_FEW:]))


def _digest(standing: TableStanding) -> str:
    """Return a short text that changes whenever the table's state changes."""
    text = f"{standing.sentence}\n{standing.hint}"
    return f"{standing.health} {hashlib.sha256(text.encode()).hexdigest()[:8]}"


def ends_of(work: Workplace, numbers: Iterable[int]) -> dict[int, Position | None]:
    """Return the ends of these batches, without abandoned ones."""
    ledger, source = work.ledger, work.source.name
    return {
        batch.id: batch.end
        for number in set(numbers)
        for batch in ledger.live_batches(source, number, number)
    }


def written_event(
    names: SourceNames,
    lake: LakePath,
    work: Workplace,
    merge: TableMerge,
    contents: Iterable[TableContent],
    end: Position | None,
    comments: Mapping[str, str],
) -> dg.AssetMaterialization:
    """Return the materialization for a write of a mirror. `contents`: the merged
    content of each batch; `end`: the end of the last batch; `comments`: MySQL's
    comments of the columns."""
    parts = [part for content in contents for part in (*content.segments, content.snapshot)]
    size = sum(file.size for part in parts if part for file in part.files)
    version = work.ledger.schema_version(work.source.name, merge.table, merge.shown_version)
    return materialization(names, merge, lake, work.clock(), end, size, version, comments)


def structure_news(
    names: SourceNames, work: Workplace, events: Iterable[TableEvent]
) -> Iterator[dg.AssetObservation]:
    for change in structure_changes(work.ledger, work.source.name, events):
        yield structure_observation(names, change)
