"""What a reading of the log stands on: where it begins and ends, and what is known there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeline.batch import Prepared, Xid
from pipeline.bounds import RunBounds
from pipeline.position import Position
from pipeline.runs.agreement.lake_logs import foreign_mirrors
from pipeline.runs.begin import RunStart
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.initial_schemas import structures_at
from pipeline.runs.context import Workplace
from pipeline.runs.find_place import find_run_end
from pipeline.runs.mirror_places import left_behind, precedence
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName
from pipeline.tables import past_ranges


@dataclass(frozen=True, slots=True)
class Basis:
    """`batch`: the one that is read, or would be. `prepared`: XA transactions that are open
    where it begins."""

    work: Workplace
    run_start: RunStart
    bounds: RunBounds
    batch: int
    tables: CapturedTables
    structures: SchemaTracker
    prepared: Mapping[Xid, Prepared]


def basis_of(
    work: Workplace,
    run_start: RunStart,
    bounds: RunBounds,
    batch: int,
    taken_up: Collection[TableName],
    base: int = 0,
) -> Basis:
    """That of an ordinary batch; `taken_up`: tables that it takes up again; `base`: changes are
    numbered above it."""
    return Basis(
        work,
        run_start,
        bounds,
        batch,
        tables=tables_of(work, run_start.start, batch, taken_up, base=base),
        structures=structures_at(work, run_start),
        prepared={
            transaction.xid: transaction
            for transaction in work.ledger.open_prepared(work.source.name)
        },
    )


def bounds_of(work: Workplace, run_start: RunStart) -> RunBounds:
    """Where a run that begins there ends."""
    until = work.source.until
    if until is None:
        return RunBounds.fixed(run_start.facts, work.source.budget)
    end = find_run_end(work, until, run_start.facts, run_start.start)
    if run_start.known_until is not None and end < run_start.known_until:
        work.progress.note(
            f"transactions that were read before surround {end}: the run ends after them, at "
            f"{run_start.known_until}"
        )
        end = run_start.known_until
    return RunBounds.fixed(run_start.facts, work.source.budget, end)


def tables_of(
    work: Workplace,
    start: Position,
    batch: int,
    taken_up: Collection[TableName] = (),
    *,
    base: int = 0,
    before: int | None = None,
) -> CapturedTables:
    """The tables that the capture of `batch` from `start` on finds. `taken_up`: those that it
    takes up again, or begins to load. `before`: what patterns left out counts up to that batch
    only, because the log behind it is read now."""
    source = work.source.name
    states = work.ledger.table_states(source)
    loads = {load.table: load.followed is not None for load in work.ledger.open_loads(source)}
    for table in taken_up:
        loads.pop(table, None)
        if table in states:
            states[table] = states[table].started()
    there = [*filter(work.source.patterns.matches, work.server.engines())]
    for table, why in foreign_mirrors(work, there).items():
        loads[table] = False
        if before is None:
            work.progress.note(why)
    past = [
        one
        for one in past_ranges(work.ledger.capture_scopes(source), batch, str(start))
        if before is None or one.last < before
    ]
    return CapturedTables(
        work.segments,
        source=source,
        batch=batch,
        base=base,
        states=states,
        past=past,
        recorded=lambda table: work.ledger.schema_versions(source, table),
        updated=lambda table: work.source.policies_of(table).updated_columns,
        loading=loads,
        names=work.source.mirrors,
        first=precedence(work, states, there),
        old=left_behind(work),
    )
