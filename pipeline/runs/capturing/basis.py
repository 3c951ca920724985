"""What a reading of the log stands on: where it begins and ends, and what is known there."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeline.batch import Prepared, Xid
from pipeline.bounds import RunBounds
from pipeline.runs.begin import RunStart
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.initial_schemas import structures_at
from pipeline.runs.capturing.known_tables import tables_of
from pipeline.runs.context import Workplace
from pipeline.runs.find_end import find_run_end
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName


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
    active: Collection[TableName],
    base: int = 0,
) -> Basis:
    """That of an ordinary batch; `active`: tables that it takes up again; `base`: changes are
    numbered above it."""
    return Basis(
        work,
        run_start,
        bounds,
        batch,
        tables=tables_of(work, run_start.start, batch, active, base=base),
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
