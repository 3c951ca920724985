"""Predicts what the next run does with each table after a recovery, before the recovery
is carried out.

A recovery decides what there is: the mirror version (of the Delta table with the
current rows) with which each table continues, or what the ledger has. What a table
lacks then is an ordinary need, and the rules of `pipeline.supply` decide what
supplies it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace

from lockstep.pipeline.mirror.merging import reload_origin
from lockstep.pipeline.model.life import LakeRestarted, next_state
from lockstep.pipeline.model.table_state import TableState
from lockstep.pipeline.run.begin import foresee_start
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.mirror_places import collisions, move_reason, pending_moves
from lockstep.pipeline.run.status.plan import plan_tables
from lockstep.pipeline.run.stop_errors import reread_error
from lockstep.pipeline.run.table_plans import (
    KnownReach,
    KnownTables,
    TablePlans,
    with_prices,
)
from lockstep.pipeline.supply import OLDER_REASON, Have, SupplyStanding, Want, plan
from lockstep.pipeline.values.errors import LockstepError, Need
from lockstep.pipeline.values.table import TableName

MissingRows = Iterable[tuple[TableName, str]]
"""Tables whose rows the lake does not have, each with the reason."""


def after_new_ledger(
    ports: RunPorts, adopted_states: Iterable[TableState], missing_rows: MissingRows
) -> TablePlans:
    """Return the plans of tables after a ledger is made from the lake.
    `adopted_states`: the states of the tables that continue with their mirrors."""
    haves_and_wants = [
        (Have(table, SupplyStanding.NEW, reason=reason), Want())
        for table, reason in missing_rows
        if ports.source.patterns.matches(table)
    ]
    states = {state.table: state for state in adopted_states}
    for table, name in pending_moves(ports, states).to_reload.items():
        have = Have(table, SupplyStanding.STOPPED, reason=move_reason(name))
        haves_and_wants.append((have, Want(rewrite=True)))
    # The mirror has rows that this ledger has not seen, so its changelog is not
    # complete.
    reason_incomplete = reload_origin(
        (), is_adopted=True, batches_after_gaps=(), overlapping_batches=()
    )
    return _priced_plans(ports, haves_and_wants, KnownReach(changelog=str(reason_incomplete)))


def after_kept_ledger(ports: RunPorts, missing_rows: MissingRows) -> TablePlans:
    """Return the plans of tables after the lake goes back to what the ledger has. If
    the server does not answer, only the plans of `missing_rows` are returned, without
    prices."""
    cursor = ports.ledger.cursors(ports.source.name).captured
    assert cursor is not None, "this ledger holds the source"
    errors = {table: reread_error(reason) for table, reason in missing_rows}
    known = KnownTables.of(ports).with_stopped(cursor, errors)
    states = {table: next_state(table, known.states[table], LakeRestarted()) for table in errors}
    known = replace(known, states={**known.states, **states})
    with suppress(LockstepError):
        return tables_of_next_run(ports, known)
    haves_and_wants = [
        (Have(table, SupplyStanding.STOPPED, frozenset({Need.ROWS}), error.reason), Want())
        for table, error in errors.items()
        if states[table].reason == error.reason
    ]
    return TablePlans(
        {have.table: plan(have, want, KnownReach()) for have, want in haves_and_wants}
    )


def tables_of_next_run(ports: RunPorts, known: KnownTables | None = None) -> TablePlans:
    """Return the plans of the next run, which continues where the ledger ends. `known`:
    the tables' states; None for the states in the ledger."""
    source = ports.source.name
    cursor, override = ports.ledger.cursors(source).captured, ports.ledger.open_override(source)
    return plan_tables(ports, foresee_start(ports, cursor, override).run_start, known)


def after_start_over(ports: RunPorts) -> TablePlans:
    """Return the plans of the first run after the source starts over. If it starts with a
    snapshot, that run reads all tables that have rows."""
    if not ports.source.loads_new_tables:
        return TablePlans()
    tables = [table.name for table in ports.server.tables()]
    tables = [table for table in tables if ports.source.patterns.matches(table)]
    colliding_tables = collisions(ports, {}, tables)
    haves_and_wants = [
        (Have(table, SupplyStanding.NEW, reason=OLDER_REASON), Want())
        for table in tables
        if table not in colliding_tables
    ]
    return _priced_plans(ports, haves_and_wants, KnownReach())


def _priced_plans(
    ports: RunPorts, haves_and_wants: Sequence[tuple[Have, Want]], reach: KnownReach
) -> TablePlans:
    plans = {have.table: plan(have, want, reach) for have, want in haves_and_wants}
    wants = {have.table: want for have, want in haves_and_wants}
    return with_prices(ports, TablePlans(plans, wants))
