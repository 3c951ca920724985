"""Which tables of a source may have to be registered anew, and what their entries say.

Comments are no part of structures, so no version of a structure tells that one changed: a table is
looked at again when a statement of the log has its name in it.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass

from pipeline.catalog.plan import Left, entry_name, entry_names
from pipeline.catalog.values import Entry, EntryColumn, EntryName, Registered, place
from pipeline.changes.lineage import own_comments
from pipeline.errors import TableError
from pipeline.mirror_names import MirrorNames
from pipeline.ports.catalog import Catalog, Registry
from pipeline.ports.ledger import Ledger
from pipeline.runs.context import Workplace
from pipeline.schema.types import sql_type
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableState

_STATEMENTS = 500
"""Read at a time."""

_WORD = re.compile(r"[\w$]+")


@dataclass(frozen=True, slots=True)
class GatheredEntries:
    """`wanted`: tables to look at; `gone`: registered ones that the source has no more; `left`:
    those that can have no name. `statement`: up to which comments were looked at; `seen`: what
    the ledger had of that before."""

    registered: Mapping[TableName, Registered]
    wanted: tuple[Entry, ...] = ()
    gone: tuple[TableName, ...] = ()
    left: tuple[Left, ...] = ()
    statement: int = 0
    seen: int = 0


def gather(work: Workplace, registry: Registry, *, every: bool = False) -> GatheredEntries:
    """`every`: all tables, not only those whose registration may have changed. The source is asked
    for comments of the tables that are looked at, and for nothing where there are none."""
    ledger, source = work.ledger, work.source.name
    seen = ledger.registrations(source, registry.catalog.identity).statement
    statement, texts = _statements(work, seen)
    words = frozenset(word for text in texts for word in _WORD.findall(text))
    states = ledger.table_states(source)
    registered, names, left, differing = _compared(ledger, work.source.mirrors, registry, states)
    stays = {
        table
        for table, state in states.items()
        if table in names or (state.condition is not TableCondition.DROPPED and not _there(state))
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
    """What the ledger knows of a source's entries. `waiting`: tables that a run will register, or
    change the entry of; `left`: those that can have no name."""

    catalog: str
    registered: int
    waiting: tuple[TableName, ...]
    left: tuple[TableName, ...]


def stand(ledger: Ledger, mirrors: MirrorNames, registry: Registry) -> CatalogStanding:
    """Asks neither source nor catalog."""
    states = ledger.table_states(mirrors.source)
    registered, _, left, differing = _compared(ledger, mirrors, registry, states)
    made = sum(1 for entry in registered.values() if entry.content is not None)
    unnamed = tuple(entry.table for entry in left)
    return CatalogStanding(registry.catalog.identity, made, tuple(sorted(differing)), unnamed)


def _compared(
    ledger: Ledger, mirrors: MirrorNames, registry: Registry, states: Mapping[TableName, TableState]
) -> tuple[
    Mapping[TableName, Registered], dict[TableName, EntryName], list[Left], frozenset[TableName]
]:
    """The entries that the ledger knows of; the names of all tables that have a mirror, and those
    that can have none; the tables whose entry is not known to be as it should be."""
    catalog, source = registry.catalog, mirrors.source
    registered = ledger.registrations(source, catalog.identity).entries
    there = [table for table, state in states.items() if _there(state)]

    def named(table: TableName) -> EntryName:
        return entry_name(registry.schema, source, mirrors.of(table))

    names, left = entry_names(there, named, catalog.refuses, registered)
    differing = frozenset(
        table
        for table, name in names.items()
        if _differs(registered.get(table), states[table], name, catalog)
    )
    return registered, names, left, differing


def _statements(work: Workplace, seen: int) -> tuple[int, list[str]]:
    """The newest statement, and the texts of those behind `seen`, in small letters."""
    texts: list[str] = []
    while True:
        statements = work.ledger.schema_statements(work.source.name, limit=_STATEMENTS, after=seen)
        texts += [statement.text.lower() for statement in statements]
        seen = max((statement.id for statement in statements), default=seen)
        if len(statements) < _STATEMENTS:
            return seen, texts


def _named_in(name: str, words: Collection[str], texts: Collection[str]) -> bool:
    """Whether a statement may be about a table of that name."""
    if _WORD.fullmatch(name):
        return name in words
    return any(name in text for text in texts)


def _there(state: TableState) -> bool:
    """Whether the lake has a mirror that shows the table; one that is written anew at another
    place keeps its entry until then."""
    return state.mirror_version is not None and state.condition is not TableCondition.DROPPED


def _differs(
    known: Registered | None, state: TableState, name: EntryName, catalog: Catalog
) -> bool:
    if known is None or known.name != name or known.shows != state.mirror_version:
        return True
    return place(known.location) != place(catalog.location(state.mirror))


def _wanted(
    work: Workplace,
    registry: Registry,
    states: Collection[TableState],
    names: Mapping[TableName, EntryName],
) -> tuple[tuple[Entry, ...], list[Left]]:
    """Their entries; mirrors that cannot be read are left."""
    tables = frozenset(state.table for state in states)
    of_tables = work.server.table_comments(tables)
    of_columns = work.server.comments(tables) if registry.catalog.columns else {}
    found, left = [], []
    for state in states:
        try:
            comments = own_comments(work.source.policies_of(state.table))
            comments |= of_columns.get(state.table, {})
            columns = _columns(work, registry, state, comments)
        except TableError as error:
            left.append(Left(state.table, names[state.table], error.reason, error.hint))
            continue
        entry = Entry(
            source=work.source.name,
            table=state.table,
            name=names[state.table],
            location=registry.catalog.location(state.mirror),
            comment=of_tables.get(state.table, ""),
            columns=columns,
            shows=state.mirror_version,
        )
        found.append(entry)
    return tuple(found), left


def _columns(
    work: Workplace, registry: Registry, state: TableState, comments: Mapping[str, str]
) -> tuple[EntryColumn, ...]:
    version = work.mirrors.version(state.mirror) if registry.catalog.columns else None
    if version is None:
        return ()
    told = {name.lower(): comment for name, comment in comments.items()}
    return tuple(
        EntryColumn(field.name, sql_type(field.type), told.get(field.name.lower(), ""))
        for field in work.mirrors.schema(state.mirror, version)
    )
