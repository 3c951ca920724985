"""Decides how mirrors (the Delta tables with the current rows) are entered in a
catalog: which entries there should be, and which steps turn the recorded entries into
them.

Catalogs do not distinguish `Orders` from `orders`, so names are in lower case. If the
names of several tables differ only in case, one of the tables is registered: one that
already is, otherwise the first.

Unneeded entries are dropped first, so that a table can take the name of a dropped one.
If an entry's new name still belongs to another table's entry, the entry is dropped and
created again. A renamed table keeps its entry if its mirror stays in its folder; if the
mirror is in another folder, the table gets a new entry.
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
"""Properties of an entry. The first two show that Lockstep made the entry; the last is
the hash of its content at that time."""

DATABASE_PLACEHOLDER, SOURCE_PLACEHOLDER = "{database}", "{source}"
"""Parts of the template for names of schemas."""


@dataclass(frozen=True, slots=True, order=True)
class EntryName:
    """The name of an entry in a catalog."""

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

    `location`: the mirror's URL as the catalog spells it. `columns`: empty if the
    catalog keeps none. `schema_version`: the version of the table's structure that the
    mirror shows; only the ledger records it.
    """

    source: str
    table: TableName
    name: EntryName
    location: str
    comment: str = ""
    columns: tuple[EntryColumn, ...] = ()
    schema_version: int | None = None

    @property
    def content_hash(self) -> str:
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
            CONTENT_MARK: self.content_hash,
        }


@dataclass(frozen=True, slots=True)
class RecordedEntry:
    """An entry as the ledger recorded it. `content_hash`, `schema_version`: those of
    the `WantedEntry` that was written. Both are None while the entry is being written:
    the catalog may then have the new entry, the former one, or none. `new_name`: while
    the entry is being renamed, the name that it gets: the catalog may then have it
    under either name."""

    table: TableName
    name: EntryName
    location: str
    content_hash: str | None = None
    schema_version: int | None = None
    new_name: EntryName | None = None


@dataclass(frozen=True, slots=True)
class Registrations:
    """A source's recorded entries. Their comments are those of the columns after the
    DDL statement `statement_id`; 0 if there was none."""

    entries: Mapping[TableName, RecordedEntry]
    statement_id: int


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """An entry that was found in the catalog. `location`: None if it is not a table
    with a location. `source`, `content_hash`: Lockstep's marks, or None."""

    location: str | None
    source: str | None = None
    content_hash: str | None = None


def normal_location(location: str) -> str:
    """Return a location in a form that can be compared: `file:/a`, `file:///a/` and
    `/a` are the same folder, and so are `s3a:` and `s3:`."""
    match = re.fullmatch(r"(?:file:)?/+(.*?)/*", location)
    if match is not None:
        return f"file:///{match[1]}"
    return re.sub(r"^s3[an]:", "s3:", location).rstrip("/")


def is_own_entry(
    entry: CatalogEntry, source: str, lake: str, recorded: RecordedEntry | None
) -> bool:
    """Return whether an entry was made by Lockstep for this source and this lake.
    Another project may have a source of the same name, so the marks alone are no proof:
    the location must also be below that of the lake, or be the recorded one."""
    if entry.location is None or entry.source != source:
        return False
    is_below = normal_location(entry.location).startswith(f"{normal_location(lake)}/")
    return is_below or (recorded is not None and is_at_one_of(entry, (recorded.location,)))


def is_at_one_of(entry: CatalogEntry, locations: Iterable[str]) -> bool:
    """Return whether an entry is a table at one of these locations."""
    if entry.location is None:
        return False
    return normal_location(entry.location) in map(normal_location, locations)


@dataclass(frozen=True, slots=True)
class MissingEntry:
    """A table that has no entry, or an outdated one, and why."""

    table: TableName
    name: EntryName
    reason: str
    hint: str


def entry_name(schema_template: str, source: str, table: TableName) -> EntryName:
    """Return the name of a table's entry. `schema_template`: `schemas` of the section
    `[catalog]`."""
    schema = schema_template.replace(SOURCE_PLACEHOLDER, source)
    schema = schema.replace(DATABASE_PLACEHOLDER, table.database)
    return EntryName(schema.lower(), table.name.lower())


def entry_names(
    tables: Collection[TableName],
    name_of: Callable[[TableName], EntryName],
    refusal_reason: Callable[[EntryName], str | None],
    recorded: Mapping[TableName, RecordedEntry],
) -> tuple[dict[TableName, EntryName], list[MissingEntry]]:
    """Return the name of each table's entry, and the tables that cannot have one.
    `name_of`: returns the name for a table; `refusal_reason`: returns why the catalog
    refuses a name, or None."""
    owners: dict[EntryName, TableName] = {}
    missing: list[MissingEntry] = []
    # Tables that are registered come first, so that they keep their names.
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
            hint = "rename one of the two tables at the source"
            missing.append(MissingEntry(table, name, reason, hint))
        else:
            owners[name] = table
    return {table: name for name, table in owners.items()}, missing


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
    entries = sorted(wanted, key=lambda entry: entry.table)
    to_drop = set(dropped_tables)
    current_entries = dict(recorded)
    dropped_at = {normal_location(recorded[table].location): table for table in dropped_tables}
    for entry in entries:
        former_table = dropped_at.get(normal_location(entry.location))
        if entry.table in recorded or former_table is None:
            continue
        former = recorded[former_table]
        if former.name != entry.name:
            # The same folder under another name: the table was renamed, and takes the
            # entry with it.
            del dropped_at[normal_location(entry.location)]
            to_drop.discard(former.table)
            current_entries[entry.table] = former
    renames: list[EntryStep] = []
    updates: list[EntryStep] = []
    kept_names = {entry.name for table, entry in recorded.items() if table not in to_drop}
    for entry in entries:
        current = current_entries.get(entry.table)
        if current is not None and current.name != entry.name and entry.name in kept_names:
            # Another entry still has this name, and is renamed later. If this entry
            # took the name now, the later rename, which goes by the name, would rename
            # this entry.
            to_drop.add(current.table)
            current = None
        is_renamed = current is not None and current.name != entry.name
        (renames if is_renamed else updates).append(EntryStep(current, entry))
    return [*(EntryStep(recorded[table], None) for table in sorted(to_drop)), *renames, *updates]
