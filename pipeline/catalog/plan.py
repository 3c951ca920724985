"""Each table's name in the catalog, and the steps from the registered entries to the wanted ones.

Catalogs do not distinguish `Orders` from `orders`, so names are in lower case. Of two tables whose
names differ in case only, one is registered: the one that already is, otherwise the first.

Entries that are not needed any more are dropped first, so that a table can take the name of a
dropped one. An entry whose new name belongs to the entry of another table is dropped too, and
created again. A renamed table that kept its folder keeps its entry; in another folder it gets a new
one.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from lockstep.pipeline.catalog.values import Entry, EntryName, Registered, place
from lockstep.pipeline.values.table import TableName

DATABASE, SOURCE = "{database}", "{source}"


@dataclass(frozen=True, slots=True)
class Unregistered:
    """A table that is not registered, or not as it should be, with the reason and a hint."""

    table: TableName
    name: EntryName
    reason: str
    hint: str


def entry_name(schema: str, source: str, table: TableName) -> EntryName:
    """Return the name of a table's entry; `schema` is the template under `[catalog]`."""
    filled = schema.replace(SOURCE, source).replace(DATABASE, table.database)
    return EntryName(filled.lower(), table.name.lower())


def entry_names(
    tables: Collection[TableName],
    named: Callable[[TableName], EntryName],
    refuses: Callable[[EntryName], str | None],
    registered: Mapping[TableName, Registered],
) -> tuple[dict[TableName, EntryName], list[Unregistered]]:
    """Return the names of a source's tables, and the tables that cannot have one, with the reason.
    `named` gives the name of a table's entry, `refuses` the reason why the catalog refuses a
    name."""
    names: dict[TableName, EntryName] = {}
    left: list[Unregistered] = []
    taken: dict[EntryName, TableName] = {}
    for table in sorted(tables, key=lambda table: (table not in registered, table)):
        name = named(table)
        reason = refuses(name)
        if reason is not None:
            hint = "rename the table at the source, or do without its entry"
            left.append(Unregistered(table, name, reason, hint))
        elif name in taken:
            reason = (
                f"{taken[name]} has that name: catalogs do not distinguish upper from lower case"
            )
            left.append(
                Unregistered(table, name, reason, "rename one of the two tables at the source")
            )
        else:
            taken[name] = table
            names[table] = name
    return names, left


@dataclass(frozen=True, slots=True)
class Step:
    """One change of the catalog: the entry `known`, as the ledger recorded it, becomes `wanted`. It
    is dropped if nothing is wanted, created if nothing is known, renamed if the names differ."""

    known: Registered | None
    wanted: Entry | None


def plan(
    wanted: Iterable[Entry],
    registered: Mapping[TableName, Registered],
    gone: Collection[TableName],
) -> list[Step]:
    """Return the steps in their order: drops, then renames, then entries to create or to update.
    `wanted` are the entries that may have changed; `gone` are registered tables that were dropped
    at the source."""
    drops, renames, puts = dict.fromkeys(gone), list[Step](), list[Step]()
    names = {entry.name for table, entry in registered.items() if table not in drops}
    dropped_at = {place(registered[table].location): table for table in gone}
    for entry in sorted(wanted, key=lambda entry: entry.table):
        current = registered.get(entry.table)
        if current is None:
            former = dropped_at.get(place(entry.location))
            if former is not None and registered[former].name != entry.name:
                # The same folder under another name: the table was renamed.
                drops.pop(former, None)
                del dropped_at[place(entry.location)]
                current = registered[former]
        if current is not None and current.name != entry.name and entry.name in names:
            # Another table's entry still has this name. If this entry were renamed to it, the
            # later rename of the other one would take both along.
            drops.setdefault(current.table)
            current = None
        renamed = current is not None and current.name != entry.name
        (renames if renamed else puts).append(Step(current, entry))
    return [*(Step(registered[table], None) for table in sorted(drops)), *renames, *puts]
