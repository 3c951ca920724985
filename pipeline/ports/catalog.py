"""A catalog in which mirrors are registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from pipeline.catalog.values import Entry, EntryName, Found


class Catalog(Protocol):
    """Every method that asks the catalog raises `CatalogUnavailable` where it does not answer,
    `CatalogRefused` where it says no, and `ConfigurationError` for what lockstep.toml can cure.
    None reads or writes a table's files."""

    @property
    def identity(self) -> str:
        """Which catalog this is, for people and the ledger; the same in each run."""

    @property
    def marks(self) -> bool:
        """Whether entries keep the properties that Lockstep marks them with."""

    @property
    def columns(self) -> bool:
        """Whether entries keep columns; elsewhere readers see those of the table's log."""

    def location(self, mirror: str) -> str:
        """A mirror's URL as entries have it; '' for the lake's."""

    def refuses(self, name: EntryName) -> str | None:
        """Why there can be no such name; asks nobody."""

    def require_ready(self) -> str:
        """Ask whether it answers and lets us in; a sentence that says so."""

    def find(self, name: EntryName) -> Found | None: ...

    def put(self, entry: Entry, known: EntryName | None) -> None:
        """Make the entry, and its schema where there is none. `known`: the entry that becomes it,
        of that name or of another one; where a catalog changes none, it is dropped and made anew.
        No other entry has the name."""

    def drop(self, name: EntryName) -> None:
        """The entry is gone, not the table's files; none there is no error."""


@dataclass(frozen=True, slots=True)
class Registry:
    """Where mirrors are registered. `schema`: the template of the names of schemas."""

    catalog: Catalog
    schema: str
