"""Whose rows are read from the source, and which reading of earlier runs still counts.

Belongs here: what is due, giving up a load. Does not: reading (`loads`, `read_chunks`), the rules
that void a load (`pipeline.load`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pipeline.changes.layout import snapshot_path
from pipeline.decisions import Lease
from pipeline.load import Load, why_void
from pipeline.runs.agreement.foreign_mirrors import foreign_mirrors
from pipeline.runs.begin import Begun
from pipeline.runs.context import Workplace
from pipeline.start.question import Rule
from pipeline.table import TableName
from pipeline.table_state import GOING, STOPPED, TableCondition, TableState

LOCKSTEP = "lockstep"
OLDER = "it is older than what is read of the log"


@dataclass(frozen=True, slots=True)
class Wanted:
    """Why a table is read from the source, and who says so."""

    why: str
    author: str = LOCKSTEP


def is_due(work: Workplace) -> bool:
    """Whether a table waits to be read from the source: a run that would have nothing else to do
    is not idle then."""
    source = work.source.name
    states = work.ledger.table_states(source).values()
    return bool(
        any(one.condition is TableCondition.LOADING for one in states)
        or any(work.source.patterns.matches(one.table) for one in work.ledger.open_loads(source))
    )


def new_tables(work: Workplace, begun: Begun) -> dict[TableName, Wanted]:
    """Tables that have rows which are older than what is read of the log, where those are wanted
    (`start = "snapshot"`), or that have none yet. One that is made in the log which is still
    to be read is not among them."""
    if not work.source.loads_new_tables:
        return {}
    source = work.source.name
    known = work.ledger.table_states(source).keys()
    loads = {one.table for one in work.ledger.open_loads(source)}
    there = [one.name for one in work.server.tables() if work.source.patterns.matches(one.name)]
    new = [one for one in there if one not in known and one not in loads]
    cursor = work.ledger.captured_cursor(source)
    if cursor is not None:
        batch, place = cursor.batch, cursor.position.at
        found = {one: work.ledger.schema_at(source, one, batch=batch, place=place) for one in new}
        new = [one for one in new if found[one] is not None]
    kept_out = foreign_mirrors(work, new)
    return dict.fromkeys((one for one in new if one not in kept_out), Wanted(OLDER))


def order_new(work: Workplace, lease: Lease, begun: Begun) -> None:
    """Have new tables read by a later run; nothing is captured of them until then."""
    for table, one in new_tables(work, begun).items():
        work.ledger.order_load(lease, table, author=one.author, reason=one.why)


def give_up(work: Workplace, lease: Lease, load: Load, why: str) -> None:
    """What was read of it counts no more."""
    work.ledger.void_load(lease, load.id, why)
    work.segments.discard_load(snapshot_path(work.source.name, load.table), load.id)


def kept_loads(
    work: Workplace, lease: Lease, begun: Begun, states: Mapping[TableName, TableState]
) -> tuple[dict[TableName, Load], dict[TableName, Wanted]]:
    """Open loads that go on; the others are given up, and begin again unless their tables
    stopped."""
    found, again = dict[TableName, Load](), dict[TableName, Wanted]()
    for load in work.ledger.open_loads(work.source.name):
        gap = load.followed is not None and _gap_since(work, begun, load.followed.batch)
        uuid = begun.facts.server_uuid
        why = why_void(load, states.get(load.table), uuid, begun.start.at, gap=gap)
        if why is None and load.complete:
            folder = snapshot_path(work.source.name, load.table)
            why = next(iter(work.segments.damaged(folder, load.files)), None)
        if why is None:
            found[load.table] = load
            continue
        give_up(work, lease, load, why)
        state = states.get(load.table)
        if state is None or state.condition not in STOPPED:
            again[load.table] = Wanted(load.reason, load.author)
            if load.rows:
                work.progress.note(f"{load.table} is read from the beginning again: {why}")
    return found, again


def _gap_since(work: Workplace, begun: Begun, batch: int) -> bool:
    """Whether some of the log behind a batch was passed over, or read twice."""
    if begun.decision.predecessor is None:
        return True
    chain = work.ledger.live_batches(work.source.name, batch + 1, begun.decision.predecessor)
    return any(one.predecessor is None and not one.catches_up for one in chain)


def lost_tables(begun: Begun, states: Mapping[TableName, TableState]) -> set[TableName]:
    """Tables that cannot go on by the log, since part of it was purged unread."""
    if begun.decision.rule is not Rule.TABLES_READ_AGAIN:
        return set()
    return {table for table, one in states.items() if one.condition in GOING}
