"""The state from which the log is read: the start and the bounds of the reading, and
the tables, structures and prepared XA transactions at the start."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lockstep.pipeline.model.batch import PreparedTransaction, Xid
from lockstep.pipeline.run.agreement.lake_logs import foreign_mirrors
from lockstep.pipeline.run.begin import RunStart
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.run.dump.captured_tables import CapturedTables
from lockstep.pipeline.run.dump.initial_schemas import structures_at
from lockstep.pipeline.run.find_place import find_run_end
from lockstep.pipeline.run.mirror_places import blocked_folders, tables_by_precedence
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.start.bounds import RunBounds
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.table import TableName, ranges_before


@dataclass(frozen=True, slots=True)
class Basis:
    """The state with which a reading of the log begins. `bounds`: where it ends.
    `prepared`: the XA transactions that are prepared and not yet committed at the
    start."""

    work: Workplace
    run_start: RunStart
    bounds: RunBounds
    tables: CapturedTables
    structures: SchemaTracker
    prepared: Mapping[Xid, PreparedTransaction]


def basis_of(
    work: Workplace,
    run_start: RunStart,
    bounds: RunBounds,
    batch: int,
    taken_up: Collection[TableName],
    base: int = 0,
) -> Basis:
    """Return the basis of an ordinary batch. `taken_up`: stopped tables that it
    captures again. `base`: the sequence number before the batch's first change."""
    return Basis(
        work,
        run_start,
        bounds,
        tables=tables_of(work, run_start.start, batch, taken_up, base=base),
        structures=structures_at(work, run_start),
        prepared={
            transaction.xid: transaction
            for transaction in work.ledger.open_prepared(work.source.name)
        },
    )


def bounds_of(work: Workplace, run_start: RunStart) -> RunBounds:
    """Return the bounds of a run with this start. Their end is fixed before the first
    event is read: the place that the user chose (`until`), or the present end of the
    log."""
    until = work.source.until
    if until is None:
        return RunBounds.of(run_start.facts, work.source.budget)
    end = find_run_end(work, until, run_start.facts, run_start.start)
    if run_start.known_until is not None and end < run_start.known_until:
        work.progress.note(
            f"{end} lies among transactions that an earlier run read: the run ends after them, at "
            f"{run_start.known_until}"
        )
        end = run_start.known_until
    return RunBounds.of(run_start.facts, work.source.budget, end)


def tables_of(
    work: Workplace,
    start: Position,
    batch: int,
    taken_up: Collection[TableName] = (),
    *,
    base: int = 0,
    before: int | None = None,
) -> CapturedTables:
    """Return the tables at the beginning of a capture. `taken_up`: tables that it
    captures again, or begins to read from the source. `base`: the sequence number
    before its first change.

    `before`: a batch number, if the capture catches up the tables of `taken_up` and no
    others. It reads the part of the log that this and later batches read, so their
    patterns do not count as having left a table out."""
    source = work.source.name
    states = work.ledger.table_states(source)
    loads = {load.table: load.followed_from is not None for load in work.ledger.open_loads(source)}
    for table in taken_up:
        loads.pop(table, None)
        if table in states:
            states[table] = states[table].as_started()
    at_source = [*filter(work.source.patterns.matches, work.server.engines())]
    for table, why in foreign_mirrors(work, at_source).items():
        loads[table] = False
        if before is None:
            work.progress.note(why)
    past = [
        earlier
        for earlier in ranges_before(work.ledger.capture_scopes(source), batch, str(start))
        if before is None or earlier.last_batch < before
    ]
    alone = None if before is None else frozenset(taken_up)
    matches = work.source.patterns.matches
    return CapturedTables(
        work.segments,
        source=source,
        batch=batch,
        last_sequence_before=base,
        is_captured=lambda table: matches(table) and (alone is None or table in alone),
        states=states,
        past_ranges=past,
        recorded_versions=lambda table: work.ledger.schema_versions(source, table),
        policies_of=work.source.policies_of,
        open_loads=loads,
        names=work.source.mirrors,
        folder_precedence=tables_by_precedence(work, states, at_source),
        used_folders=blocked_folders(work),
    )
