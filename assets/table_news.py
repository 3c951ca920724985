"""What a run tells Dagster of tables: those that changed, and those that stand otherwise.

Belongs here: gathering it from the ledger, and keeping the catalogue. Does not: what is shown of
it (`pages.tables`), when (`runs`).

Only news is told: a table that stands as it did when Dagster was last told costs nothing. What
was told last is in the catalogue; where that is lost, it is told again.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterator

import dagster as dg

from assets.catalogue import CatalogueEntry, read_catalogue, update_catalogue
from assets.declared import Declaration
from assets.names import SourceNames
from assets.pages.tables import (
    MergedTable,
    check_evaluation,
    materialization,
    structure_observation,
)
from pipeline.position import Position
from pipeline.runs.context import MergeReport, Workplace
from pipeline.standing.tables import KnownOfTables, TableStanding, table_standings
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableEventKind
from resources.config import Settings

_BY_STATEMENT = (TableEventKind.CREATED, TableEventKind.CHANGED, TableEventKind.DROPPED)

_FEW = 100
"""Dagster takes milliseconds for each event."""


def standings_of(work: Workplace) -> dict[TableName, TableStanding]:
    """How each table of the source stands now."""
    ledger, source = work.ledger, work.source.name
    return table_standings(
        KnownOfTables(
            states=ledger.table_states(source),
            partial=ledger.partial(source),
            loading=[load.progress for load in ledger.open_loads(source)],
            gaps=ledger.gaps(source),
            proofs=ledger.proofs(source),
        )
    )


def note_tables(
    context: dg.AssetExecutionContext,
    settings: Settings,
    work: Workplace,
    changed: Collection[TableName] = (),
) -> None:
    """Log a check's evaluation for each table that stands otherwise than Dagster knows, and
    bring the catalogue up to the ledger. `changed`: tables that were just materialized, whose
    evaluations of before Dagster takes for outdated; of more than `_FEW`, those that stand well
    are left at that."""
    source = work.source.name
    names = Declaration.of(settings, source).names
    standings = standings_of(work)
    known = {entry.table: entry.told for entry in read_catalogue(settings.state_folder, source)}
    entries, few = [], len(changed) <= _FEW
    for table, state in work.ledger.table_states(source).items():
        entry = CatalogueEntry(
            table.database,
            table.name,
            state.mirror,
            state.changelog,
            dropped=state.condition is TableCondition.DROPPED,
            ended=state.mirror_ended,
            told=_print(standings[table]),
        )
        entries.append(entry)
        due = table in changed and (few or not standings[table].follows)
        if due or known.get(table) != entry.told:
            context.log_event(check_evaluation(names, standings[table]))
    others = update_catalogue(settings.state_folder, source, entries, complete=False)
    if others and settings.webserver() is None:
        context.log.info("Tables came or went: reload definitions to see them on the page.")


def _print(standing: TableStanding) -> str:
    """The standing in a few letters, without what changes while it stays the same."""
    words = f"{standing.sentence}\n{standing.hint}"
    return f"{standing.health} {hashlib.sha256(words.encode()).hexdigest()[:8]}"


def structure_news(
    names: SourceNames, work: Workplace, batch: int
) -> Iterator[dg.AssetObservation]:
    """What the statements of a batch did to tables."""
    source, ledger = work.source.name, work.ledger
    for event in ledger.table_events(source, batch):
        version = ledger.schema_version(source, event.table, event.version)
        made_by = version.statement if event.kind in _BY_STATEMENT else None
        statement = None if made_by is None else ledger.statement(source, made_by)
        yield structure_observation(names, event, statement)


def materializations(
    names: SourceNames, settings: Settings, work: Workplace, report: MergeReport
) -> Iterator[dg.AssetMaterialization]:
    """One for each write of a mirror."""
    if not report.merged:
        return
    source, lake, now = work.source.name, settings.lake_path(), work.clock()
    ends = _ends(work, min(done.first_batch for done in report.merged))
    sizes: Counter[tuple[TableName, int]] = Counter()
    for batch in ends:
        for segment in work.ledger.segments(batch):
            sizes[segment.table, batch] += sum(file.size for file in segment.files)
        for part in work.ledger.snapshots(source, batch):
            sizes[part.table, batch] += sum(file.size for file in part.files)
    for done in report.merged:
        covered = [batch for batch in ends if done.first_batch <= batch <= done.last_batch]
        merged = MergedTable(
            done,
            position=ends.get(done.last_batch),
            change_bytes=sum(sizes[done.table, batch] for batch in covered),
            schema=work.ledger.schema_version(source, done.table, done.shows).schema,
        )
        yield materialization(names, merged, lake, now)


def _ends(work: Workplace, first: int) -> dict[int, Position | None]:
    """The source's batches from `first` on, and where each ends."""
    newest = work.ledger.captured_cursor(work.source.name)
    if newest is None:
        return {}
    found = work.ledger.live_batches(work.source.name, first, newest.batch)
    return {batch.id: batch.end for batch in found}
