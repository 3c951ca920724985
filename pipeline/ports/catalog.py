"""A catalog in which mirrors are registered."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from lockstep.pipeline.catalog import CatalogEntry, Entry, EntryName


class Catalog(Protocol):
    """Each method that asks the catalog raises `CatalogUnavailable` if it does not answer,
    `CatalogRefused` if it refuses, and `ConfigurationError` for what lockstep.toml can cure.
    None reads or writes a table's files."""

    @property
    def identity(self) -> str:
        """The catalog's name for people and for the ledger; the same in each run."""

    @property
    def marks(self) -> bool:
        """Whether entries keep the properties that Lockstep marks them with."""

    @property
    def columns(self) -> bool:
        """Whether entries keep columns; elsewhere readers see those of the table's log."""

    def location(self, mirror: str) -> str:
        """Return a mirror's URL as entries have it; for '', the lake's."""

    def refuses(self, name: EntryName) -> str | None:
        """Return why the catalog allows no such name, without asking it."""

    def require_ready(self) -> str:
        """Ask the catalog, and return a sentence that says that it answers and admits us."""

    def find(self, name: EntryName) -> CatalogEntry | None: ...

    def put(self, entry: Entry, known: EntryName | None) -> None:
        """Write the entry, and create its schema if it is missing. `known`: the entry that it
        replaces, under that name or another; a catalog that cannot change entries drops it and
        creates it again. No other entry has the name."""

    def drop(self, name: EntryName) -> None:
        """Drop the entry, not the table's files; a missing entry is no error."""


@dataclass(frozen=True, slots=True)
class Registry:
    """The catalog in which mirrors are registered. `schema`: the template of schemas' names."""

    catalog: Catalog
    schema: str
