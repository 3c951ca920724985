"""The choice of tables whose catalog entries may have to change, and the content of the entries.

A changed comment makes no new version of a structure. Therefore a table is examined again when a
statement in the log contains its name.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from lockstep.pipeline.catalog.plan import Unregistered, entry_name, entry_names
from lockstep.pipeline.catalog.values import Entry, EntryColumn, EntryName, Registered, place
from lockstep.pipeline.mirror.lineage import own_comments
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.ports.catalog import Catalog, Registry
from lockstep.pipeline.ports.ledger import Ledger, Writes
from lockstep.pipeline.run.context import Workplace
from lockstep.pipeline.schema.types import sql_type
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.mirror_names import MirrorNames
from lockstep.pipeline.values.table import TableName

_STATEMENTS = 500
"""Statements that are read from the ledger at a time."""

_WORD = re.compile(r"[\w$]+")


@dataclass(frozen=True, slots=True)
class GatheredEntries:
    """The entries to examine. `wanted`: their content; `gone`: registered tables that the lake no
    longer shows; `left`: tables that cannot be registered. `statement`: the newest statement whose
    comments are taken into account; `seen`: the newest statement at the last registration."""

    registered: Mapping[TableName, Registered]
    wanted: tuple[Entry, ...] = ()
    gone: tuple[TableName, ...] = ()
    left: tuple[Unregistered, ...] = ()
    statement: int = 0
    seen: int = 0


def gather(work: Workplace, registry: Registry, *, every: bool = False) -> GatheredEntries:
    """Gather the entries of tables whose registration may have changed, or of all tables (`every`).
    The source is asked for the comments of these tables only."""
    ledger, source = work.ledger, work.source.name
    seen = ledger.registrations(source, registry.catalog.identity).statement
    statement, texts = _statements(work, seen)
    words = frozenset(word for text in texts for word in _WORD.findall(text))
    states = ledger.table_states(source)
    registered, names, left, differing = _compared(ledger, work.source.mirrors, registry, states)
    stays = {
        table
        for table, state in states.items()
        if table in names
        or (state.condition is not TableCondition.DROPPED and not _is_shown(state))
    }
    gone = [table for table in registered if table not in stays]
    due = [
        states[table]
        for table in names
        if every or table in differing or _named_in(table.name.lower(), words, texts)
    ]
    wanted: tuple[Entry, ...] = ()
    if due:
        wanted, unread = _wanted(work, registry, due, names)
        left += unread
    return GatheredEntries(registered, wanted, tuple(gone), tuple(left), statement, seen)


@dataclass(frozen=True, slots=True)
class CatalogStanding:
    """The state of a source's registrations according to the ledger. `registered`: the
    number of entries; `waiting`: tables whose entries the next run creates or changes;
    `left`: tables that can have no name in the catalog."""

    catalog: str
    registered: int
    waiting: tuple[TableName, ...]
    left: tuple[TableName, ...]


def stand(ledger: Ledger, mirrors: MirrorNames, registry: Registry) -> CatalogStanding:
    """Return the state of a source's registrations; only the ledger is read."""
    states = ledger.table_states(mirrors.source)
    registered, _, left, differing = _compared(ledger, mirrors, registry, states)
    count = sum(1 for entry in registered.values() if entry.content is not None)
    unnamed = tuple(entry.table for entry in left)
    return CatalogStanding(registry.catalog.identity, count, tuple(sorted(differing)), unnamed)


def _compared(
    ledger: Writes, mirrors: MirrorNames, registry: Registry, states: Mapping[TableName, TableState]
) -> tuple[
    Mapping[TableName, Registered],
    dict[TableName, EntryName],
    list[Unregistered],
    frozenset[TableName],
]:
    """Return the registered entries, the names for all tables with a mirror, the tables that can
    have no name, and the tables whose registered entry is not as it should be."""
    catalog, source = registry.catalog, mirrors.source
    registered = ledger.registrations(source, catalog.identity).entries
    shown = [table for table, state in states.items() if _is_shown(state)]

    def named(table: TableName) -> EntryName:
        return entry_name(registry.schema, source, mirrors.of(table))

    names, left = entry_names(shown, named, catalog.refuses, registered)
    differing = frozenset(
        table
        for table, name in names.items()
        if _differs(registered.get(table), states[table], name, catalog)
    )
    return registered, names, left, differing


def _statements(work: Workplace, seen: int) -> tuple[int, list[str]]:
    """Return the id of the newest statement, and the lower-case texts of those after `seen`."""
    texts: list[str] = []
    while True:
        statements = work.ledger.schema_statements(work.source.name, limit=_STATEMENTS, after=seen)
        texts += [statement.text.lower() for statement in statements]
        seen = max((statement.id for statement in statements), default=seen)
        if len(statements) < _STATEMENTS:
            return seen, texts


def _named_in(name: str, words: Collection[str], texts: Collection[str]) -> bool:
    """Return whether a statement may concern a table of this name."""
    if _WORD.fullmatch(name):
        return name in words
    return any(name in text for text in texts)


def _is_shown(state: TableState) -> bool:
    """Return whether the lake has a mirror that shows the table. A table whose mirror is
    being written again in another folder has none until that is done, and keeps its entry."""
    return state.mirror_version is not None and state.condition is not TableCondition.DROPPED


def _differs(
    registered: Registered | None, state: TableState, name: EntryName, catalog: Catalog
) -> bool:
    if registered is None or registered.name != name or registered.shows != state.mirror_version:
        return True
    return place(registered.location) != place(catalog.location(state.mirror))


def _wanted(
    work: Workplace,
    registry: Registry,
    states: Collection[TableState],
    names: Mapping[TableName, EntryName],
) -> tuple[tuple[Entry, ...], list[Unregistered]]:
    """Return the entries of tables, and the tables whose mirrors cannot be read."""
    tables = frozenset(state.table for state in states)
    table_comments = work.server.table_comments(tables)
    column_comments = work.server.comments(tables) if registry.catalog.columns else {}
    entries, left = [], []
    for state in states:
        try:
            comments = own_comments(work.source.policies_of(state.table))
            comments |= column_comments.get(state.table, {})
            columns = _columns(work, registry, state, comments)
        except TableError as error:
            left.append(Unregistered(state.table, names[state.table], error.reason, error.hint))
            continue
        entry = Entry(
            source=work.source.name,
            table=state.table,
            name=names[state.table],
            location=registry.catalog.location(state.mirror),
            comment=table_comments.get(state.table, ""),
            columns=columns,
            shows=state.mirror_version,
        )
        entries.append(entry)
    return tuple(entries), left


def _columns(
    work: Workplace, registry: Registry, state: TableState, comments: Mapping[str, str]
) -> tuple[EntryColumn, ...]:
    version = work.mirrors.version(state.mirror) if registry.catalog.columns else None
    if version is None:
        return ()
    folded = {name.lower(): comment for name, comment in comments.items()}
    return tuple(
        EntryColumn(field.name, sql_type(field.type), folded.get(field.name.lower(), ""))
        for field in work.mirrors.schema(state.mirror, version)
    )
