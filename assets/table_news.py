"""What a run tells Dagster of tables: what was written, what became of structures, and those that
stand otherwise; gathered from the ledger.

Only news is told: a table that stands as it did when Dagster was last told costs nothing. What
was told last is in the catalogue; where that is lost, it is told again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any, Protocol

import dagster as dg

from assets.catalogue import entries_of, read_catalogue, update_catalogue
from assets.names import SourceNames
from assets.pages import (
    check_result,
    evaluation_of,
    keys_result,
    materialization,
    structure_observation,
)
from pipeline.batch import TableContent
from pipeline.errors import LockstepError
from pipeline.position import Position
from pipeline.runs.context import Workplace
from pipeline.runs.inspecting.repeated_keys import count_keys
from pipeline.runs.reports import TableMerge
from pipeline.standing.tables import TableStanding, table_standings
from pipeline.table import TableName
from pipeline.table_state import TableEvent, TableEventKind
from resources.config import Settings
from resources.lake.paths import LakePath


class Log(Protocol):
    def info(self, msg: object) -> None: ...


class Events(Protocol):
    """Where events go: a step of a run, or what a sensor tells."""

    @property
    def log(self) -> Log: ...

    def log_event(self, event: Any) -> None: ...


_BY_STATEMENT = (
    TableEventKind.CREATED,
    TableEventKind.CHANGED,
    TableEventKind.COPIED,
    TableEventKind.DROPPED,
)

_SMALL = 100_000
"""Rows of a mirror whose keys a run counts: some hundredths of a second."""

_FEW = 100
"""Dagster takes milliseconds for each event."""


def standings_of(work: Workplace) -> dict[TableName, TableStanding]:
    ledger, source = work.ledger, work.source.name
    return table_standings(
        ledger.table_states(source),
        partial=ledger.partial(source),
        loading=[load.progress for load in ledger.open_loads(source)],
        gaps=ledger.gaps(source),
        proofs=ledger.proofs(source),
        in_clear=ledger.in_clear(source),
    )


def note_tables(
    into: Events,
    settings: Settings,
    names: SourceNames,
    work: Workplace,
    changed: Collection[TableName] = (),
) -> None:
    """Log a check's evaluation for each table that there is news of, and bring the catalogue up to
    the ledger. `changed`: tables that were just materialized."""
    source = work.source.name
    standings = standings_of(work)
    known = {entry.table: entry.told for entry in read_catalogue(settings.state_folder, source)}
    prints = {table: _print(standing) for table, standing in standings.items()}
    news = news_of(standings, prints, known, changed)
    told = {table: prints[table] if table in news else known.get(table, "") for table in standings}
    states = work.ledger.table_states(source)
    for table in states:
        if table in news:
            into.log_event(evaluation_of(check_result(names, standings[table])))
    others = update_catalogue(
        settings.state_folder, source, entries_of(states, told), complete=False
    )
    if others and settings.webserver() is None:
        into.log.info("Tables came or went: reload definitions to see them on the page.")


def check_keys(
    into: Events, names: SourceNames, work: Workplace, merged: Iterable[TableMerge]
) -> None:
    """Count the keys of the small mirrors that were written, and log what came of it; a mirror
    whose keys cannot be counted now is left to the next write, or to a click."""
    sizes = {done.table: done.size for done in merged}
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
            into.log.info(f"The keys of {table} were not counted: {error.message}")
            continue
        if count.repeated is not None:
            into.log_event(evaluation_of(keys_result(names, count)))


def news_of(
    standings: Mapping[TableName, TableStanding],
    prints: Mapping[TableName, str],
    known: Mapping[TableName, str],
    changed: Collection[TableName],
) -> frozenset[TableName]:
    """The tables to tell of: those that stand otherwise than Dagster knows, and the changed ones,
    whose evaluations of before it takes for outdated; of more than `_FEW`, those that stand well
    are left at that. Of tables that it knows nothing of and that stand well, `_FEW` are told of,
    and the others the next times."""
    other = {table for table, one in prints.items() if known.get(table, "") != one}
    few = len(changed) <= _FEW
    again = {
        table for table in changed if table in standings and (few or not standings[table].follows)
    }
    new = [table for table in other - again if standings[table].follows and not known.get(table)]
    return frozenset((other | again) - set(sorted(new)[_FEW:]))


def _print(standing: TableStanding) -> str:
    """The standing in a few letters, without what changes while it stays the same."""
    words = f"{standing.sentence}\n{standing.hint}"
    return f"{standing.health} {hashlib.sha256(words.encode()).hexdigest()[:8]}"


def ends_of(work: Workplace, numbers: Iterable[int]) -> dict[int, Position | None]:
    """Where these batches end; abandoned ones are left out."""
    ledger, source = work.ledger, work.source.name
    batches = (ledger.live_batches(source, number, number) for number in set(numbers))
    return {batch.id: batch.end for found in batches for batch in found}


def written_event(
    names: SourceNames,
    lake: LakePath,
    work: Workplace,
    done: TableMerge,
    contents: Iterable[TableContent],
    end: Position | None,
    comments: Mapping[str, str],
) -> dg.AssetMaterialization:
    """A write of a mirror with what the ledger has of it. `contents`: what was merged; `end`: of
    the last batch."""
    parts = [part for one in contents for part in (*one.segments, one.snapshot)]
    size = sum(file.size for part in parts if part for file in part.files)
    version = work.ledger.schema_version(work.source.name, done.table, done.shows)
    return materialization(names, done, lake, work.clock(), end, size, version, comments)


def structure_news(
    names: SourceNames, work: Workplace, events: Iterable[TableEvent]
) -> Iterator[dg.AssetObservation]:
    source, ledger = work.source.name, work.ledger
    for event in events:
        version = ledger.schema_version(source, event.table, event.version)
        made_by = version.statement if event.kind in _BY_STATEMENT else None
        statement = None if made_by is None else ledger.statements(source, [made_by])[made_by]
        yield structure_observation(names, event, statement)
