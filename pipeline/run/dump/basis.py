"""The state from which the log is read: the start and the bounds of the reading, and
the tables, structures and prepared XA transactions at the start."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache, partial

from lockstep.pipeline.model.batch import PreparedTransaction, Xid
from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.run.agreement.lake_logs import foreign_mirrors
from lockstep.pipeline.run.begin import RunStart
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.dump.captured_tables import CapturedTables
from lockstep.pipeline.run.dump.initial_schemas import structures_at
from lockstep.pipeline.run.find_place import find_run_end
from lockstep.pipeline.run.mirror_folders import blocked_folders, tables_by_precedence
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.start.bounds import RunBounds
from lockstep.pipeline.values.position import Position
from lockstep.pipeline.values.table import TableName, ranges_before


@dataclass(frozen=True, slots=True)
class Basis:
    """The state with which a reading of the log begins. `bounds`: where it ends.
    `prepared_transactions`: the XA transactions that are prepared and not yet committed
    at the start."""

    ports: RunPorts
    run_start: RunStart
    bounds: RunBounds
    tables: CapturedTables
    structures: SchemaTracker
    prepared_transactions: Mapping[Xid, PreparedTransaction]


def basis_of(
    ports: RunPorts,
    run_start: RunStart,
    bounds: RunBounds,
    batch_id: int,
    resumed_tables: Collection[TableName],
    last_sequence_before: int = 0,
) -> Basis:
    """Return the basis of an ordinary batch. `resumed_tables`: stopped tables that it
    captures again. `last_sequence_before`: the sequence number before the batch's first
    change."""
    return Basis(
        ports,
        run_start,
        bounds,
        tables=tables_of(
            ports,
            run_start.start,
            batch_id,
            resumed_tables,
            last_sequence_before=last_sequence_before,
        ),
        structures=structures_at(ports, run_start),
        prepared_transactions={
            transaction.xid: transaction
            for transaction in ports.ledger.open_prepared(ports.source.name)
        },
    )


def bounds_of(ports: RunPorts, run_start: RunStart) -> RunBounds:
    """Return the bounds of a run with this start. Their end is fixed before the first
    event is read: the place that the user chose (`until`), or the present end of the
    log."""
    until = ports.source.until
    if until is None:
        return RunBounds.of(run_start.facts, ports.source.budget)
    end = find_run_end(ports, until, run_start.facts, run_start.start)
    if run_start.known_until is not None and end < run_start.known_until:
        ports.progress.note(
            f"{end} lies among transactions that an earlier run read: the run ends after them, at "
            f"{run_start.known_until}"
        )
        end = run_start.known_until
    return RunBounds.of(run_start.facts, ports.source.budget, end)


def tables_of(
    ports: RunPorts,
    start: Position,
    batch_id: int,
    resumed_tables: Collection[TableName] = (),
    *,
    last_sequence_before: int = 0,
    first_caught_up_batch: int | None = None,
) -> CapturedTables:
    """Return the tables at the beginning of a capture. `resumed_tables`: tables that it
    captures again, or begins to read from the source. `last_sequence_before`: the
    sequence number before its first change.

    `first_caught_up_batch`: None, unless the capture only catches up the tables of
    `resumed_tables`. It then reads again what this batch and later ones read, so the
    patterns of those batches do not count as having left a table out."""
    source = ports.source.name
    states = ports.ledger.table_states(source)
    loading_tables = {
        load.table: load.followed_from is not None for load in ports.ledger.open_loads(source)
    }
    for table in resumed_tables:
        loading_tables.pop(table, None)
        # A dropped table is not started here: it starts when the capture finds it
        # again, with an event that the ledger records.
        if table in states and states[table].condition is not TableCondition.DROPPED:
            states[table] = states[table].without_stop()
    matches = ports.source.patterns.matches
    at_source = [*filter(matches, ports.server.engines())]
    for table, reason in foreign_mirrors(ports, at_source).items():
        # It counts as a table whose rows have yet to be read: no changes are taken.
        loading_tables[table] = False
        if first_caught_up_batch is None:
            ports.progress.note(reason)
    past_ranges = [
        past
        for past in ranges_before(ports.ledger.capture_scopes(source), batch_id, str(start))
        if first_caught_up_batch is None or past.last_batch < first_caught_up_batch
    ]
    # The ledger is queried at the first call, because most captures do not need it.
    complete_since = cache(partial(ports.ledger.complete_since, source))
    only_tables = None if first_caught_up_batch is None else frozenset(resumed_tables)
    return CapturedTables(
        ports.segments,
        source=source,
        batch_id=batch_id,
        last_sequence_before=last_sequence_before,
        is_captured=lambda table: matches(table) and (only_tables is None or table in only_tables),
        states=states,
        past_ranges=past_ranges,
        complete_since=lambda table: complete_since().get(table),
        policies_of=ports.source.policies_of,
        loading_tables=loading_tables,
        names=ports.source.mirror_names,
        folder_precedence=tables_by_precedence(ports, states, at_source),
        used_folders=blocked_folders(ports),
    )
