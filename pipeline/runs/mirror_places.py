"""Where mirrors lie: which are to lie elsewhere by now, and how one gets another place.

A place is decided by the settings when a table is first seen, and is kept in the ledger. Where the
settings say another one later, the mirror is reloaded, and the write of all its rows goes there.
The former place stays as it is: earlier versions of the mirror are read from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pipeline.changes.layout import free_place
from pipeline.decisions import Lease
from pipeline.life.events import MirrorReplaced
from pipeline.runs.context import Workplace
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableEventKind, TableState

WRITTEN_ANEW = frozenset({TableEventKind.REBUILT, TableEventKind.REREAD})
"""Behind which the next write is of all rows."""


def meetings(
    work: Workplace, states: Mapping[TableName, TableState], tables: Iterable[TableName] = ()
) -> dict[TableName, TableName]:
    """Tables that may not be captured, since their mirrors would lie where that of another one
    lies, each with that one. `tables`: as for `precedence`."""
    return work.source.mirrors.meetings(precedence(work, states, tables))


def precedence(
    work: Workplace, states: Mapping[TableName, TableState], tables: Iterable[TableName] = ()
) -> list[TableName]:
    """The order in which tables keep their places: those whose mirrors are where the settings say,
    those whose mirrors are elsewhere, and of `tables` those that no run has seen yet."""
    plan = work.source
    if not plan.mirrors.rules:
        return []
    away = {table for table, state in states.items() if plan.other_place(state) is not None}
    new = sorted(table for table in tables if table not in states)
    return [*sorted(states.keys() - away), *sorted(away), *new]


def elsewhere(work: Workplace) -> dict[TableName, TableName]:
    """Tables whose mirrors have rows, and are to lie under another name than they do; without
    those whose next write will bring them there."""
    states = work.ledger.table_states(work.source.name)
    names = _moving(work, states)
    names = {table: name for table, name in names.items() if states[table].mirror_version}
    return {table: name for table, name in names.items() if not _comes_anew(work, table)}


def why_elsewhere(name: TableName) -> str:
    return f"its mirror is called {name} now"


def move_empty(work: Workplace, lease: Lease) -> None:
    """Mirrors of which nothing is written yet get their places by name at once."""
    states = work.ledger.table_states(work.source.name)
    for table, name in _moving(work, states, TableCondition.LOADING).items():
        if states[table].mirror_version is None:
            renew(work, lease, table, why_elsewhere(name))


def _moving(
    work: Workplace, states: Mapping[TableName, TableState], *also: TableCondition
) -> dict[TableName, TableName]:
    """Tables that are followed, and whose mirrors are to lie under another name than they do."""
    going = (TableCondition.ACTIVE, *also)
    found = {}
    for table, state in states.items():
        name = work.source.other_place(state)
        if name is not None and state.condition in going and work.source.patterns.matches(table):
            found[table] = name
    met = meetings(work, states) if found else {}
    return {table: name for table, name in found.items() if table not in met}


def _comes_anew(work: Workplace, table: TableName) -> bool:
    source = work.source.name
    waiting = work.ledger.pending(source).get(table)
    if not waiting:
        return False
    contents = work.ledger.contents(source, min(waiting), max(waiting), [table])
    return any(
        event.table == table and event.kind in WRITTEN_ANEW
        for content in contents
        for event in content.events
    )


def renew(work: Workplace, lease: Lease, table: TableName, why: str) -> None:
    """From now on the table's mirror is another; the one before stays as it is."""
    ledger, plan = work.ledger, work.source
    states = ledger.table_states(plan.name)
    state, taken = states[table], {one.mirror for one in states.values()}
    taken |= ledger.looked(plan.name).keys()
    named = plan.other_place(state)
    number = 1 if named is not None else state.mirror_generation + 1
    name = plan.mirror_name(table)
    mirror = free_place(plan.name, name, state.generation, taken, number)
    while work.mirrors.version(mirror) is not None:
        taken.add(mirror)
        mirror = free_place(plan.name, name, state.generation, taken, number)
    ledger.give_up(lease, table)
    ledger.record_event(lease, table, MirrorReplaced(mirror))
    work.progress.note(f"the mirror of {table} is {mirror} from now on: {why}")
