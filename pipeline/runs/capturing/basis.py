"""What a reading of the log stands on: where it begins and ends, and what is known there.

Belongs here: gathering it for a capture and for the plan of one. Does not: reading (`log_reader`),
what becomes of rows and statements (`batch_capture`, `log_tally`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeline.batch import Prepared, Xid
from pipeline.bounds import RunBounds
from pipeline.runs.begin import Begun
from pipeline.runs.capturing.captured_tables import CapturedTables
from pipeline.runs.capturing.initial_schemas import structures_at
from pipeline.runs.capturing.known_tables import tables_of
from pipeline.runs.context import Workplace
from pipeline.runs.find_place import find_run_end
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class Basis:
    """`batch`: the one that is read, or would be. `prepared`: XA transactions that are open
    where it begins."""

    work: Workplace
    begun: Begun
    bounds: RunBounds
    batch: int
    tables: CapturedTables
    structures: SchemaTracker
    prepared: Mapping[Xid, Prepared]


def basis_of(
    work: Workplace,
    begun: Begun,
    bounds: RunBounds,
    batch: int,
    active: Collection[TableName],
) -> Basis:
    """That of an ordinary batch; `active`: tables that it takes up again."""
    return Basis(
        work,
        begun,
        bounds,
        batch,
        tables=tables_of(work, begun.start, batch, active),
        structures=structures_at(work, begun),
        prepared={one.xid: one for one in work.ledger.open_prepared(work.source.name)},
    )


def bounds_of(work: Workplace, begun: Begun) -> RunBounds:
    """Where a run that begins there ends."""
    until = work.source.until
    if until is None:
        return RunBounds.fixed(begun.facts, work.source.budget)
    end = find_run_end(work, until, begun.facts, begun.start)
    if begun.known_until is not None and end < begun.known_until:
        work.progress.note(
            f"transactions that were read before surround {end}: the run ends after them, at "
            f"{begun.known_until}"
        )
        end = begun.known_until
    return RunBounds.fixed(begun.facts, work.source.budget, end)
