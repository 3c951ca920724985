"""Under which names tables are registered. Pure.

Belongs here: the name of each table, and the tables that get none. Does not: which characters a
catalog takes, which it says itself (`ports.catalog`).

Catalogs do not tell `Orders` from `orders`, so names are in lower case, and of two tables that
differ in case alone one is registered: the one that was, or else the first.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from pipeline.catalog.values import EntryName, Registered
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
    for table in _first_come(tables, registered):
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


def _first_come(
    tables: Iterable[TableName], registered: Mapping[TableName, Registered]
) -> list[TableName]:
    return sorted(tables, key=lambda table: (table not in registered, table))
