"""The places (folders) of mirrors, the Delta tables with the current rows, and the
moves of mirrors to other places.

When a table is first seen, the settings decide the place of its mirror, and the ledger
records it. If the settings later name another place, the table is reloaded, and all of
its rows are written there. The former folder stays until upkeep deletes it, because
earlier versions of the mirror are read from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Final

from lockstep.pipeline.mirror.layout import free_place, mirror_path
from lockstep.pipeline.model.life import MirrorReplaced
from lockstep.pipeline.model.table_state import TableCondition, TableEventKind, TableState
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName

REWRITES_ALL = frozenset({TableEventKind.REBUILT, TableEventKind.COPIED, TableEventKind.REREAD})
"""Events of a table after which the next write to its mirror has all of its rows."""


def collisions(
    work: Workplace, states: Mapping[TableName, TableState], tables: Iterable[TableName] = ()
) -> dict[TableName, TableName]:
    """Return the tables that must not be captured because another table's mirror has
    the place of their mirror, each with that other table. `tables`: as for
    `precedence`."""
    return work.source.mirrors.collisions(precedence(work, states, tables))


def precedence(
    work: Workplace, states: Mapping[TableName, TableState], tables: Iterable[TableName] = ()
) -> list[TableName]:
    """Return tables in the order of their right to a place that the settings give to
    two of them: tables whose mirrors are already at their places, then tables whose
    mirrors are elsewhere, then new ones. `tables`: tables of the server, which may be
    new."""
    plan = work.source
    if not plan.mirrors.rules:
        return []
    away = {table for table, state in states.items() if plan.misplaced_mirror(state) is not None}
    new = sorted(table for table in tables if table not in states)
    return [*sorted(states.keys() - away), *sorted(away), *new]


@dataclass(frozen=True, slots=True)
class Moves:
    """Tables whose mirrors have to move, each with the mirror's new name. `empty`:
    tables whose mirrors were never written. `reloaded`: tables whose mirrors have to be
    written again."""

    empty: Mapping[TableName, TableName]
    reloaded: Mapping[TableName, TableName]


def pending_moves(work: Workplace, states: Mapping[TableName, TableState] | None = None) -> Moves:
    """Return the mirrors that have to move. Mirrors that the next write moves anyway
    are left out, and so are written mirrors of tables that are being read from the
    source. `states`: the states of all tables; if None, as the ledger has them."""
    if states is None:
        states = work.ledger.table_states(work.source.name)
    away = {
        table: name
        for table, state in states.items()
        if state.condition is TableCondition.FOLLOWING
        and work.source.patterns.matches(table)
        and (name := work.source.misplaced_mirror(state)) is not None
    }
    colliding = collisions(work, states) if away else {}
    empty, reloaded = dict[TableName, TableName](), dict[TableName, TableName]()
    for table in away.keys() - colliding.keys():
        state = states[table]
        if state.mirror_version is None:
            empty[table] = away[table]
        elif state.is_complete and not _is_rewritten_next(work, table):
            reloaded[table] = away[table]
    return Moves(dict(sorted(empty.items())), dict(sorted(reloaded.items())))


def why_elsewhere(name: TableName) -> str:
    return f"its mirror is called {name} now"


def former_places(ledger: Ledger, source: str) -> list[str]:
    """Return the folders of the source that mirrors had before and that are not deleted
    yet."""
    mirrors = {state.mirror for state in ledger.table_states(source).values()}
    folders = sorted(ledger.examined_versions(source).keys() - mirrors)
    return [folder for folder in folders if not folder.startswith(f"{source}/_")]


_COMMITS: Final = 50
"""Number of newest commits of a folder whose metadata is read to find the mirror's
table."""


def owner_of(work: Workplace, folder: str) -> TableName | None:
    """Return the table whose mirror is or was in a folder; None if the folder's Delta
    log does not name it. The log is read because a recovered ledger does not know
    former folders' tables."""
    # Imported only if there are former folders, to keep idle runs fast.
    from lockstep.pipeline.recovery import mirror_facts

    facts = mirror_facts(folder, [*islice(work.mirrors.history(folder), _COMMITS)])
    return None if facts is None else facts.table


def blocked_folders(work: Workplace) -> list[str]:
    """Return the former folders that no new table may use for its mirror. A folder that
    the settings give to its own table is left out, so that the table finds its mirror
    there again if the ledger was set back to a time before the table began."""
    source = work.source

    def own(folder: str) -> bool:
        try:
            owner = owner_of(work, folder)
        except TableError:  # its log cannot be read
            return False
        return owner is not None and folder == mirror_path(source.name, source.mirror_name(owner))

    return [folder for folder in former_places(work.ledger, source.name) if not own(folder)]


def delete_former(work: Workplace, lease: Lease, folders: Iterable[str]) -> list[str]:
    """Delete those of the folders that are former places of mirrors, with all versions,
    and return them."""
    source = work.source.name
    former = sorted({*former_places(work.ledger, source)} & {*folders})
    for folder in former:
        work.mirrors.remove(folder, lambda: work.ledger.require_held(lease))
        work.ledger.note_examined_versions(lease, {folder: None})
    return former


def _is_rewritten_next(work: Workplace, table: TableName) -> bool:
    """Return whether a batch that is not merged yet makes the next write have all rows."""
    source = work.source.name
    waiting = work.ledger.pending(source).get(table)
    if not waiting:
        return False
    contents = work.ledger.contents(source, min(waiting), max(waiting), [table])
    return any(
        event.table == table and event.kind in REWRITES_ALL
        for content in contents
        for event in content.events
    )


def give_new_mirror(work: Workplace, lease: Lease, table: TableName, why: str) -> None:
    """Give the table a new mirror in a new folder. The former one stays as it is."""
    ledger, plan = work.ledger, work.source
    states = ledger.table_states(plan.name)
    state, taken = states[table], {other.mirror for other in states.values()}
    taken |= ledger.examined_versions(plan.name).keys()
    generation, number = state.generation, state.mirror_generation + 1
    if plan.misplaced_mirror(state) is not None:
        # If the mirror gets another name, its folders are numbered from 1 again.
        generation = number = 1
    name, fold = plan.mirror_name(table), plan.mirrors.is_configured(table)
    mirror = free_place(plan.name, name, generation, taken, number, fold=fold)
    while work.mirrors.version(mirror) is not None:
        taken.add(mirror)
        mirror = free_place(plan.name, name, generation, taken, number, fold=fold)
    ledger.give_up(lease, table)
    ledger.record_event(lease, table, MirrorReplaced(mirror))
    left = f"; {state.mirror} stays as it is" if state.mirror_version is not None else ""
    work.progress.note(f"the mirror of {table} is {mirror} from now on: {why}{left}")
