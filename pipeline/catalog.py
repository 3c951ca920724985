"""Decides how mirrors (the Delta tables with the current rows) are entered in a
catalog: which entries there should be, and by which steps the recorded entries become
these. Pure.

Catalogs do not distinguish `Orders` from `orders`, so names are in lower case. Of two
tables whose names differ only in case, one is registered: the one that already is,
otherwise the first.

Unneeded entries are dropped first, so that a table can take the name of a dropped one.
If an entry's new name still belongs to another table's entry, the entry is dropped and
created again. A renamed table keeps its entry if its mirror stays in its folder; in
another folder it gets a new one.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from lockstep.pipeline.values.table import TableName

SOURCE_MARK: Final = "lockstep.source"
TABLE_MARK: Final = "lockstep.table"
CONTENT_MARK: Final = "lockstep.content"
"""Properties of an entry by which Lockstep recognizes it as its own."""


@dataclass(frozen=True, slots=True, order=True)
class EntryName:
    """The name of an entry in the catalog that the settings name."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class EntryColumn:
    """A column of an entry; `type` is a type of Spark SQL
    (`pipeline.schema.types.sql_type`)."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class WantedEntry:
    """The entry that the catalog should have for a table's mirror.

    `location` is the mirror's URL as the catalog spells it; `columns` is empty if the
    catalog keeps none. `schema_version` is the version of the table's structure that
    the mirror shows; only the ledger records it.
    """

    source: str
    table: TableName
    name: EntryName
    location: str
    comment: str = ""
    columns: tuple[EntryColumn, ...] = ()
    schema_version: int | None = None

    @property
    def content(self) -> str:
        """Hash of comment, columns and location, in 16 hex digits."""
        columns = [[column.name, column.type, column.comment] for column in self.columns]
        content = [self.comment, columns, normal_location(self.location)]
        text = json.dumps(content, separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def marks(self) -> dict[str, str]:
        """The properties that mark the entry as Lockstep's."""
        return {
            SOURCE_MARK: self.source,
            TABLE_MARK: str(self.table),
            CONTENT_MARK: self.content,
        }


@dataclass(frozen=True, slots=True)
class RecordedEntry:
    """An entry as the ledger recorded it. `content`: hash of comment, columns and
    location; `schema_version`: of the table's structure. Both are None while the entry
    is being written: the catalog may then have the new entry, the former one, or
    none."""

    table: TableName
    name: EntryName
    location: str
    content: str | None = None
    schema_version: int | None = None


@dataclass(frozen=True, slots=True)
class Registrations:
    """A source's recorded entries. `statement_number`: of the last DDL statement whose
    column comments they show; 0 for none."""

    entries: Mapping[TableName, RecordedEntry]
    statement_number: int


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What the catalog has under a name. `location`: None if it is not a table with a
    location. `source`, `content`: Lockstep's marks, None without them."""

    location: str | None
    source: str | None = None
    content: str | None = None


def normal_location(location: str) -> str:
    """Return a location in a normal form: file:/a, file:///a/ and /a are equal, as are
    s3a: and s3:."""
    match = re.fullmatch(r"(?:file:)?/+(.*?)/*", location)
    if match is not None:
        return f"file:///{match[1]}"
    return re.sub(r"^s3[an]:", "s3:", location).rstrip("/")


def hadoop_location(location: str) -> str:
    """Return a location in the lake by the scheme that Hadoop has for its store."""
    return re.sub(r"^s3:", "s3a:", location)


def is_own_entry(
    entry: CatalogEntry, source: str, root: str, recorded: RecordedEntry | None
) -> bool:
    """Return whether an entry was made by Lockstep for this source and this lake.
    Another project may have a source of the same name, so the marks alone are no proof:
    the location must also be below `root`, or be the one that the ledger recorded."""
    if entry.location is None or entry.source != source:
        return False
    is_below = normal_location(entry.location).startswith(f"{normal_location(root)}/")
    return is_below or (recorded is not None and is_at_one_of(entry, (recorded.location,)))


def is_at_one_of(entry: CatalogEntry, locations: Iterable[str]) -> bool:
    """Return whether the catalog's entry is a table at one of these locations."""
    if entry.location is None:
        return False
    return normal_location(entry.location) in map(normal_location, locations)


DATABASE_PLACEHOLDER, SOURCE_PLACEHOLDER = "{database}", "{source}"


@dataclass(frozen=True, slots=True)
class MissingEntry:
    """A table without an entry, or with an outdated one; with the reason and a hint."""

    table: TableName
    name: EntryName
    reason: str
    hint: str


def entry_name(schema: str, source: str, table: TableName) -> EntryName:
    """Return the name of a table's entry. `schema`: the template under `[catalog]`."""
    filled = schema.replace(SOURCE_PLACEHOLDER, source)
    filled = filled.replace(DATABASE_PLACEHOLDER, table.database)
    return EntryName(filled.lower(), table.name.lower())


def entry_names(
    tables: Collection[TableName],
    name_of: Callable[[TableName], EntryName],
    refusal_reason: Callable[[EntryName], str | None],
    recorded: Mapping[TableName, RecordedEntry],
) -> tuple[dict[TableName, EntryName], list[MissingEntry]]:
    """Return the name of each table's entry, and the tables that cannot have one.
    `name_of`: returns the name for a table; `refusal_reason`: returns why the catalog
    refuses a name, or None."""
    names: dict[TableName, EntryName] = {}
    missing: list[MissingEntry] = []
    owners: dict[EntryName, TableName] = {}
    for table in sorted(tables, key=lambda table: (table not in recorded, table)):
        name = name_of(table)
        reason = refusal_reason(name)
        if reason is not None:
            hint = "rename the table at the source, or do without its entry"
            missing.append(MissingEntry(table, name, reason, hint))
        elif name in owners:
            reason = (
                f"{owners[name]} has that name: catalogs do not distinguish upper from lower case"
            )
            missing.append(
                MissingEntry(table, name, reason, "rename one of the two tables at the source")
            )
        else:
            owners[name] = table
            names[table] = name
    return names, missing


@dataclass(frozen=True, slots=True)
class EntryStep:
    """One change of the catalog: the entry `recorded` becomes `wanted`. Without
    `wanted` it is dropped, without `recorded` created; if the names differ, it is
    renamed."""

    recorded: RecordedEntry | None
    wanted: WantedEntry | None


def plan_steps(
    wanted: Iterable[WantedEntry],
    recorded: Mapping[TableName, RecordedEntry],
    dropped_tables: Collection[TableName],
) -> list[EntryStep]:
    """Return the steps in their order: drops, renames, then entries to create or to
    update. `wanted`: the entries that may have changed; `dropped_tables`: tables with
    an entry that were dropped at the source."""
    drops = dict.fromkeys(dropped_tables)
    renames, updates = list[EntryStep](), list[EntryStep]()
    names = {entry.name for table, entry in recorded.items() if table not in drops}
    dropped_at = {normal_location(recorded[table].location): table for table in dropped_tables}
    for entry in sorted(wanted, key=lambda entry: entry.table):
        current = recorded.get(entry.table)
        if current is None:
            former = dropped_at.get(normal_location(entry.location))
            if former is not None and recorded[former].name != entry.name:
                # The same folder under another name: the table was renamed.
                drops.pop(former, None)
                del dropped_at[normal_location(entry.location)]
                current = recorded[former]
        if current is not None and current.name != entry.name and entry.name in names:
            # Another table's entry still has this name. If this entry took it now, the
            # later rename of the other entry would rename this one.
            drops.setdefault(current.table)
            current = None
        is_renamed = current is not None and current.name != entry.name
        (renames if is_renamed else updates).append(EntryStep(current, entry))
    return [*(EntryStep(recorded[table], None) for table in sorted(drops)), *renames, *updates]
