"""What registering tables takes. Pure.

Belongs here: which steps follow from what should be registered and what the ledger knows is. Does
not: what the catalog turns out to have, which is asked at each step (`runs.registering`).

Names that nobody needs are let go first, so that a table may take the name of one that is gone. A
table that was renamed and kept its folder takes its entry along; with another folder, it is
another entry.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from pipeline.catalog.values import Entry, Registered, place
from pipeline.table import TableName


@dataclass(frozen=True, slots=True)
class Wanted:
    """An entry, and the version of the table's structure that its mirror shows."""

    entry: Entry
    shows: int


@dataclass(frozen=True, slots=True)
class Drop:
    known: Registered


@dataclass(frozen=True, slots=True)
class Rename:
    """`known` becomes the entry of a table: under another name, or of another table."""

    known: Registered
    wanted: Wanted


@dataclass(frozen=True, slots=True)
class Put:
    """Make the entry, or have it say what it should; `known`: what the ledger knows of it."""

    wanted: Wanted
    known: Registered | None


Step = Drop | Rename | Put


def plan(
    wanted: Iterable[Wanted],
    registered: Mapping[TableName, Registered],
    gone: Collection[TableName],
) -> list[Step]:
    """`wanted`: tables whose registration may have changed; `gone`: registered ones that the
    source has no more."""
    drops, renames, puts = dict.fromkeys(gone), list[Rename](), list[Put]()
    taking = {place(registered[table].location): table for table in gone}
    for one in sorted(wanted, key=lambda one: one.entry.table):
        entry, known = one.entry, registered.get(one.entry.table)
        if known is not None and known.name != entry.name:
            renames.append(Rename(known, one))
            continue
        from_table = taking.get(place(entry.location)) if known is None else None
        if from_table is not None and registered[from_table].name != entry.name:
            drops.pop(from_table, None)
            del taking[place(entry.location)]
            renames.append(Rename(registered[from_table], one))
            continue
        puts.append(Put(one, known))
    return [*(Drop(registered[table]) for table in sorted(drops)), *renames, *puts]
