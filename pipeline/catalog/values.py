"""A mirror's entry in a catalog: as it should be, as the ledger knows it, as the catalog has it."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from lockstep.pipeline.values.table import TableName

SOURCE_MARK: Final = "lockstep.source"
TABLE_MARK: Final = "lockstep.table"
CONTENT_MARK: Final = "lockstep.content"
"""Properties of an entry by which Lockstep recognizes it as its own."""


@dataclass(frozen=True, slots=True, order=True)
class EntryName:
    """The name of an entry in the configured catalog."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class EntryColumn:
    """A column of an entry; `type` is a type of Spark SQL (`pipeline.schema.types.sql_type`)."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """The entry that the catalog should have for a table's mirror.

    `location` is the mirror's URL as the catalog spells it; `columns` is empty if the catalog keeps
    none. `shows` is the version of the table's structure that the mirror shows; only the ledger
    records it.
    """

    source: str
    table: TableName
    name: EntryName
    location: str
    comment: str = ""
    columns: tuple[EntryColumn, ...] = ()
    shows: int | None = None

    @property
    def content(self) -> str:
        """Hash of comment, columns and location, in 16 hex digits."""
        columns = [[column.name, column.type, column.comment] for column in self.columns]
        text = json.dumps([self.comment, columns, place(self.location)], separators=(",", ":"))
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def marks(self) -> dict[str, str]:
        return {
            SOURCE_MARK: self.source,
            TABLE_MARK: str(self.table),
            CONTENT_MARK: self.content,
        }


@dataclass(frozen=True, slots=True)
class Registered:
    """An entry as the ledger recorded it. `content` and `shows`, the version of the table's
    structure, are None while the entry is being written: the catalog may have it, or still have the
    former one, or none."""

    table: TableName
    name: EntryName
    location: str
    content: str | None = None
    shows: int | None = None


@dataclass(frozen=True, slots=True)
class Registrations:
    """A source's recorded entries, and the number of the last statement whose comments they follow.
    `statement` is 0 if they follow none."""

    entries: Mapping[TableName, Registered]
    statement: int


@dataclass(frozen=True, slots=True)
class CatalogEntry:
    """What the catalog has under a name. `location` is None if that is not a table with a location;
    `source` and `content` are its marks, None without them."""

    location: str | None
    source: str | None = None
    content: str | None = None


def place(location: str) -> str:
    """Return a location in its one spelling: file:/a, file:///a/ and /a are equal, s3a: is s3:."""
    match = re.fullmatch(r"(?:file:)?/+(.*?)/*", location)
    if match is not None:
        return f"file:///{match[1]}"
    return re.sub(r"^s3[an]:", "s3:", location).rstrip("/")


def marked(found: CatalogEntry, source: str, root: str, known: Registered | None) -> bool:
    """Return whether an entry was made by Lockstep for this source and this lake. The marks alone
    do not prove it, since another project may have a source of the same name: the location must
    also be below `root`, or be the one that the ledger recorded."""
    if found.location is None or found.source != source:
        return False
    below = place(found.location).startswith(f"{place(root)}/")
    return below or (known is not None and at_one_of(found, (known.location,)))


def at_one_of(found: CatalogEntry, locations: Iterable[str]) -> bool:
    """Return whether the catalog's entry is a table at one of these locations."""
    return found.location is not None and place(found.location) in map(place, locations)
