"""The folders of mirrors in the lake, and when a mirror moves to another one. A mirror
is the Delta table with the current rows of a table.

When a table is first seen, the settings decide the folder of its mirror, and the ledger
records it. If the settings later name another folder, the table is reloaded, and all of
its rows are written there. The former folder stays until upkeep deletes it, because
earlier versions of the mirror are read from it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from lockstep.pipeline.mirror.layout import free_mirror_path, mirror_path
from lockstep.pipeline.model.lake_commit import table_of
from lockstep.pipeline.model.life import MirrorReplaced
from lockstep.pipeline.model.table_state import TableCondition, TableEventKind, TableState
from lockstep.pipeline.ports.ledger import Ledger
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.values.decisions import Lease
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.table import TableName

FULL_REWRITE_EVENTS = frozenset(
    {TableEventKind.REBUILT, TableEventKind.COPIED, TableEventKind.REREAD}
)
"""Events of a table after which the next write to its mirror has all of its rows."""


def collisions(
    ports: RunPorts, states: Mapping[TableName, TableState], tables: Iterable[TableName] = ()
) -> dict[TableName, TableName]:
    """Return the tables that must not be captured because another table's mirror has
    the folder of their mirror, each with that other table. `tables`: tables of the
    server, which may be new."""
    return ports.source.mirror_names.collisions(tables_by_precedence(ports, states, tables))


def tables_by_precedence(
    ports: RunPorts, states: Mapping[TableName, TableState], tables: Iterable[TableName] = ()
) -> list[TableName]:
    """Return tables in the order in which they get a folder that the settings give to
    several of them: tables whose mirrors are already in their folders, then tables
    whose mirrors are elsewhere, then new ones. `tables`: tables of the server, which
    may be new."""
    source, tables = ports.source, [*tables]
    if not source.mirror_names.may_collide({*states, *tables}):
        return []
    misplaced = {
        table for table, state in states.items() if source.new_mirror_name(state) is not None
    }
    new_tables = sorted(table for table in tables if table not in states)
    return [*sorted(states.keys() - misplaced), *sorted(misplaced), *new_tables]


@dataclass(frozen=True, slots=True)
class Moves:
    """Tables whose mirrors have to move, each with the mirror's new name. `unwritten`:
    their mirrors were never written. `to_reload`: their mirrors have to be written
    again."""

    unwritten: Mapping[TableName, TableName]
    to_reload: Mapping[TableName, TableName]


def pending_moves(ports: RunPorts, states: Mapping[TableName, TableState] | None = None) -> Moves:
    """Return the mirrors that have to move. Three kinds are left out: mirrors that the
    next write moves anyway, mirrors that have a version while their tables' rows are
    being read from the source, and mirrors with a write that is not settled. `states`:
    the states of all tables; if None, as the ledger has them."""
    if states is None:
        states = ports.ledger.table_states(ports.source.name)
    misplaced = {
        table: name
        for table, state in states.items()
        if state.condition is TableCondition.FOLLOWING
        and ports.source.patterns.matches(table)
        and (name := ports.source.new_mirror_name(state)) is not None
    }
    colliding_tables = collisions(ports, states) if misplaced else {}
    unwritten, to_reload = dict[TableName, TableName](), dict[TableName, TableName]()
    # A write that was begun ends in its folder: if its run was killed, the folder may have
    # rows that no version in the ledger says, and would seem free to other tables.
    intents = ports.ledger.open_intents(ports.source.name) if misplaced else []
    begun_tables = {intent.table for intent in intents}
    for table in misplaced.keys() - colliding_tables.keys() - begun_tables:
        state = states[table]
        if state.mirror_schema_version is None:
            unwritten[table] = misplaced[table]
        elif state.is_complete and not _is_rewritten_next(ports, table):
            to_reload[table] = misplaced[table]
    return Moves(dict(sorted(unwritten.items())), dict(sorted(to_reload.items())))


def move_reason(name: TableName) -> str:
    """Return why a mirror moves. `name`: its new name."""
    return f"its mirror is called {name} now"


def former_folders(ports: RunPorts) -> list[str]:
    """Return the folders that mirrors of the source had before and that are not deleted
    yet. The folder of a table that the ledger does not know is left out, because it
    still has the table's mirror: the table was dropped or left out when the ledger was
    made from the lake."""
    folders = unused_folders(ports.ledger, ports.source.name)
    tables = {folder: _readable_table(ports, folder) for folder in folders}
    states = ports.ledger.table_states(ports.source.name)
    return [folder for folder, table in tables.items() if table is None or table in states]


def unused_folders(ledger: Ledger, source: str) -> list[str]:
    """Return the folders of mirrors that the ledger knows and that no table in it has
    now."""
    mirrors = {state.mirror for state in ledger.table_states(source).values()}
    folders = sorted(ledger.examined_versions(source).keys() - mirrors)
    return [folder for folder in folders if not folder.startswith(f"{source}/_")]


def table_of_folder(ports: RunPorts, folder: str) -> TableName | None:
    """Return the table whose mirror is or was in a folder; None if the folder's Delta
    log does not name it. The log is read because a recovered ledger does not know
    former folders' tables."""
    return table_of(ports.mirrors.history(folder))


def _readable_table(ports: RunPorts, folder: str) -> TableName | None:
    """Return the result of `table_of_folder`; None also if the log cannot be read."""
    with suppress(TableError):
        return table_of_folder(ports, folder)
    return None


def blocked_folders(ports: RunPorts) -> list[str]:
    """Return the unused folders that no new table may use for its mirror. A folder is
    not blocked if it has a table's mirror and the settings name it for this table. So a
    table finds its mirror again if the ledger was restored to a time before it knew the
    table."""
    source = ports.source

    def is_own(folder: str) -> bool:
        table = _readable_table(ports, folder)
        return table is not None and folder == mirror_path(source.name, source.mirror_name(table))

    return [folder for folder in unused_folders(ports.ledger, source.name) if not is_own(folder)]


def remove_former_folders(ports: RunPorts, lease: Lease, folders: Iterable[str]) -> list[str]:
    """Delete those of the folders that mirrors had before, with all versions, and return
    them."""
    folders_to_delete = sorted({*former_folders(ports)} & {*folders})
    for folder in folders_to_delete:
        ports.mirrors.remove(folder, lambda: ports.ledger.require_held(lease))
        ports.ledger.note_examined_versions(lease, {folder: None})
    return folders_to_delete


def _is_rewritten_next(ports: RunPorts, table: TableName) -> bool:
    """Return whether the next write replaces all rows of the mirror, because of an
    event in a batch that is not merged yet."""
    source = ports.source.name
    waiting = ports.ledger.pending_batches(source).get(table)
    if not waiting:
        return False
    contents = ports.ledger.contents(source, min(waiting), max(waiting), [table])
    return any(
        event.table == table and event.kind in FULL_REWRITE_EVENTS
        for content in contents
        for event in content.events
    )


def replace_mirror(ports: RunPorts, lease: Lease, table: TableName, reason: str) -> None:
    """Give the table a new mirror in a new folder. The former one stays as it is."""
    state, mirror = ports.ledger.table_states(ports.source.name)[table], next_folder(ports, table)
    ports.ledger.give_up(lease, table)
    ports.ledger.record_event(lease, table, MirrorReplaced(mirror))
    former_clause = f"; {state.mirror} stays as it is" if _has_files(ports, state) else ""
    ports.progress.note(f"the mirror of {table} is {mirror} from now on: {reason}{former_clause}")


def _has_files(ports: RunPorts, state: TableState) -> bool:
    try:
        return ports.mirrors.version(state.mirror) is not None
    except TableError:  # its log cannot be read
        return True


def next_folder(ports: RunPorts, table: TableName) -> str:
    """Return the folder of the table's mirror if the present one is replaced."""
    ledger, source = ports.ledger, ports.source
    states = ledger.table_states(source.name)
    state = states[table]
    used_folders = {other.mirror for other in states.values()}
    used_folders |= ledger.examined_versions(source.name).keys()
    generation, mirror_generation = state.generation, state.mirror_generation + 1
    if source.new_mirror_name(state) is not None:
        # If the mirror gets another name, its folders are numbered from 1 again.
        generation = mirror_generation = 1
    name, is_configured = source.mirror_name(table), source.mirror_names.is_configured(table)
    find_folder = partial(
        free_mirror_path, source.name, name, generation, ignores_case=is_configured
    )
    while ports.mirrors.version(mirror := find_folder(used_folders, mirror_generation)) is not None:
        used_folders.add(mirror)
    return mirror
