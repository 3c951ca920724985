"""Whose rows are read from the source, and which reading of earlier runs still counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.changes.layout import snapshot_path
from pipeline.decisions import Lease
from pipeline.load import Load, why_void
from pipeline.runs.agreement.foreign_mirrors import foreign_mirrors
from pipeline.runs.begin import RunStart
from pipeline.runs.context import Workplace
from pipeline.start.question import StartRule
from pipeline.table import TableName
from pipeline.table_state import GOING, STOPPED, TableCondition, TableState

LOCKSTEP = "lockstep"
OLDER = "it is older than what is read of the log"


@dataclass(frozen=True, slots=True)
class LoadReason:
    """Why a table is read from the source, and who says so."""

    why: str
    author: str = LOCKSTEP


def is_due(work: Workplace) -> bool:
    """Whether a table waits to be read from the source: a run that would have nothing else to do
    is not idle then."""
    source = work.source.name
    states = work.ledger.table_states(source).values()
    return bool(
        any(state.condition is TableCondition.LOADING for state in states)
        or any(work.source.patterns.matches(load.table) for load in work.ledger.open_loads(source))
    )


def new_tables(work: Workplace, run_start: RunStart) -> dict[TableName, LoadReason]:
    """Tables that have rows which are older than what is read of the log, where those are wanted
    (`start = "snapshot"`), or that have none yet. One that is made in the log which is still
    to be read is not among them."""
    if not work.source.loads_new_tables:
        return {}
    source = work.source.name
    known = work.ledger.table_states(source).keys()
    loads = {load.table for load in work.ledger.open_loads(source)}
    there = [
        table.name for table in work.server.tables() if work.source.patterns.matches(table.name)
    ]
    new = [table for table in there if table not in known and table not in loads]
    cursor = work.ledger.captured_cursor(source)
    if cursor is not None:
        batch, place = cursor.batch, cursor.position.at
        versions = {
            table: work.ledger.schema_at(source, table, batch=batch, place=place) for table in new
        }
        new = [table for table in new if versions[table] is not None]
    kept_out = foreign_mirrors(work, new)
    return dict.fromkeys((table for table in new if table not in kept_out), LoadReason(OLDER))


def order_new(work: Workplace, lease: Lease, run_start: RunStart) -> None:
    """Have new tables read by a later run; nothing is captured of them until then."""
    for table, reason in new_tables(work, run_start).items():
        work.ledger.order_load(lease, table, author=reason.author, reason=reason.why)


def give_up(work: Workplace, lease: Lease, load: Load, why: str) -> None:
    """What was read of it counts no more."""
    work.ledger.void_load(lease, load.id, why)
    work.segments.discard_load(snapshot_path(work.source.name, load.table), load.id)


def kept_loads(
    work: Workplace, lease: Lease, run_start: RunStart, states: Mapping[TableName, TableState]
) -> tuple[dict[TableName, Load], dict[TableName, LoadReason]]:
    """Open loads that go on; the others are given up, and begin again unless their tables
    stopped."""
    loads, again = dict[TableName, Load](), dict[TableName, LoadReason]()
    for load in work.ledger.open_loads(work.source.name):
        gap = load.followed is not None and _gap_since(work, run_start, load.followed.batch)
        uuid = run_start.facts.server_uuid
        why = why_void(load, states.get(load.table), uuid, run_start.start.at, gap=gap)
        if why is None and load.complete:
            folder = snapshot_path(work.source.name, load.table)
            why = next(iter(work.segments.damaged(folder, load.files)), None)
        if why is None:
            loads[load.table] = load
            continue
        give_up(work, lease, load, why)
        state = states.get(load.table)
        if state is None or state.condition not in STOPPED:
            again[load.table] = LoadReason(load.reason, load.author)
            if load.rows:
                work.progress.note(f"{load.table} is read from the beginning again: {why}")
    return loads, again


def _gap_since(work: Workplace, run_start: RunStart, batch: int) -> bool:
    """Whether some of the log behind a batch was passed over, or read twice."""
    if run_start.decision.predecessor is None:
        return True
    chain = work.ledger.live_batches(work.source.name, batch + 1, run_start.decision.predecessor)
    return any(one.predecessor is None and not one.catches_up for one in chain)


def lost_tables(run_start: RunStart, states: Mapping[TableName, TableState]) -> set[TableName]:
    """Tables that cannot go on by the log, since part of it was purged unread."""
    if run_start.decision.rule is not StartRule.TABLES_READ_AGAIN:
        return set()
    return {table for table, state in states.items() if state.condition in GOING}
