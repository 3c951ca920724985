"""What a catalog says, and is to say, of a mirror. Values only."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from pipeline.table import TableName

SOURCE_MARK: Final = "lockstep.source"
TABLE_MARK: Final = "lockstep.table"
CONTENT_MARK: Final = "lockstep.content"
"""Properties of an entry by which Lockstep knows it again."""


@dataclass(frozen=True, slots=True, order=True)
class EntryName:
    """A name in the catalog that is configured."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"


@dataclass(frozen=True, slots=True)
class EntryColumn:
    """`type` as Spark's SQL calls it (`pipeline.schema.types.sql_type`)."""

    name: str
    type: str
    comment: str = ""


@dataclass(frozen=True, slots=True)
class Entry:
    """What the catalog is to say of a table's mirror. `location`: its URL as the catalog has it;
    `columns`: none where the catalog keeps none. `shows`: the version of the table's structure that
    the mirror shows, which the ledger alone is told."""

    source: str
    table: TableName
    name: EntryName
    location: str
    comment: str = ""
    columns: tuple[EntryColumn, ...] = ()
    shows: int | None = None

    @property
    def content(self) -> str:
        """16 hex digits that change with comment, columns and place."""
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
    """An entry that the ledger knows of. `content` and `shows`, the version of the table's
    structure, are None while it is being made: it is there, or not, or as it was before."""

    table: TableName
    name: EntryName
    location: str
    content: str | None = None
    shows: int | None = None


@dataclass(frozen=True, slots=True)
class Registrations:
    """The entries of a source in a catalog, and the statement up to which they follow comments; 0
    for none."""

    entries: Mapping[TableName, Registered]
    statement: int


@dataclass(frozen=True, slots=True)
class Found:
    """What the catalog has under a name. `location`: None for what is no table with a place;
    `source`, `content`: its marks, None where it has none."""

    location: str | None
    source: str | None = None
    content: str | None = None


def place(location: str) -> str:
    """The one spelling of a location: file:/a, file:///a/ and /a are one, s3a: is s3:."""
    match = re.fullmatch(r"(?:file:)?/+(.*?)/*", location)
    if match is not None:
        return f"file:///{match[1]}"
    return re.sub(r"^s3[an]:", "s3:", location).rstrip("/")


def marked(found: Found, source: str, root: str, known: Registered | None) -> bool:
    """Whether an entry has the marks of this source, and is of this lake, at `root`, or where the
    ledger knows it to be: another project may have a source of the same name."""
    if found.location is None or found.source != source:
        return False
    below = place(found.location).startswith(f"{place(root)}/")
    return below or (known is not None and at_one_of(found, (known.location,)))


def at_one_of(found: Found, locations: Iterable[str]) -> bool:
    """Whether it is a table, at one of these places."""
    return found.location is not None and place(found.location) in map(place, locations)
