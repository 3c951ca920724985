"""Under which names tables are registered, and what registering them takes. Pure.

Belongs here: the name of each table, the tables that get none, and which steps follow from what
should be registered and what the ledger knows is. Does not: which characters a catalog takes, which
it says itself (`ports.catalog`), what it turns out to have (`runs.registering`).

Catalogs do not tell `Orders` from `orders`, so names are in lower case, and of two tables that
differ in case alone one is registered: the one that was, or else the first.

Names that nobody needs are let go first, so that a table may take the name of one that is gone. An
entry that is to have the name of another table's is let go as well, and made again. A table that
was renamed and kept its folder takes its entry along; with another folder, it is
another entry.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from pipeline.catalog.values import Entry, EntryName, Registered, place
from pipeline.table import TableName

DATABASE, SOURCE = "{database}", "{source}"


@dataclass(frozen=True, slots=True)
class Left:
    """A table that is not registered, or not as it should be, and why; `hint`: what to do."""

    table: TableName
    name: EntryName
    reason: str
    hint: str


def entry_name(schema: str, source: str, table: TableName) -> EntryName:
    """`schema`: the template of `[catalog]`."""
    filled = schema.replace(SOURCE, source).replace(DATABASE, table.database)
    return EntryName(filled.lower(), table.name.lower())


def entry_names(
    tables: Collection[TableName],
    named: Callable[[TableName], EntryName],
    refuses: Callable[[EntryName], str | None],
    registered: Mapping[TableName, Registered],
) -> tuple[dict[TableName, EntryName], list[Left]]:
    """The names of all tables of a source; those that can have none, with the reason."""
    names: dict[TableName, EntryName] = {}
    left: list[Left] = []
    taken: dict[EntryName, TableName] = {}
    for table in sorted(tables, key=lambda table: (table not in registered, table)):
        name = named(table)
        why = refuses(name)
        if why is not None:
            left.append(Left(table, name, why, "rename the table at the source, or do without it"))
        elif name in taken:
            why = f"{taken[name]} has that name: catalogs do not tell large letters from small"
            left.append(Left(table, name, why, "rename one of the two at the source"))
        else:
            taken[name] = table
            names[table] = name
    return names, left


@dataclass(frozen=True, slots=True)
class Step:
    """`known`, what the ledger knows of an entry, becomes `wanted`: it is dropped where nothing is
    wanted, made where nothing is known, renamed where the names differ."""

    known: Registered | None
    wanted: Entry | None


def plan(
    wanted: Iterable[Entry],
    registered: Mapping[TableName, Registered],
    gone: Collection[TableName],
) -> list[Step]:
    """`wanted`: tables whose registration may have changed; `gone`: registered ones that the
    source has no more."""
    drops, renames, puts = dict.fromkeys(gone), list[Step](), list[Step]()
    names = {entry.name for table, entry in registered.items() if table not in drops}
    taking = {place(registered[table].location): table for table in gone}
    for entry in sorted(wanted, key=lambda entry: entry.table):
        known = registered.get(entry.table)
        if known is None:
            former = taking.get(place(entry.location))
            if former is not None and registered[former].name != entry.name:
                drops.pop(former, None)
                del taking[place(entry.location)]
                known = registered[former]
        if known is not None and known.name != entry.name and entry.name in names:
            # Another table's entry has the name until it gets its own: were this one renamed onto
            # that, the other's renaming would take it along.
            drops.setdefault(known.table)
            known = None
        renamed = known is not None and known.name != entry.name
        (renames if renamed else puts).append(Step(known, entry))
    return [*(Step(registered[table], None) for table in sorted(drops)), *renames, *puts]
