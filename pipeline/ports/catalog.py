"""The port to a catalog (Hive metastore, Unity Catalog) in which mirrors are
registered: the Delta tables with the current rows of source tables."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from lockstep.pipeline.catalog import CatalogEntry, EntryName, WantedEntry


class Catalog(Protocol):
    """A catalog. Each method that asks it raises `CatalogUnavailable` if it does not
    answer, `CatalogRefused` if it refuses, and `ConfigurationError` if a setting in
    lockstep.toml is wrong. No method reads or writes a table's files."""

    @property
    def identity(self) -> str:
        """The catalog's name for people and for the ledger; the same in each run."""

    @property
    def has_marks(self) -> bool:
        """True if entries keep the properties by which Lockstep recognises its own."""

    @property
    def has_columns(self) -> bool:
        """True if entries keep columns; otherwise readers see the columns of the Delta
        log."""

    def reason_refused(self, name: EntryName) -> str | None:
        """Return why the catalog does not allow the name, or None. The catalog is not
        asked."""

    def probe(self) -> str:
        """Ask the catalog anything, and return a sentence which says that it answers."""

    def find(self, name: EntryName) -> CatalogEntry | None:
        """Return the entry of that name, or None."""

    def put(self, entry: WantedEntry, replaced_name: EntryName | None) -> None:
        """Write the entry, and create its schema if it is missing. `replaced_name`: the
        name of the entry that it replaces, or None. A catalog that cannot change
        entries drops the old one and creates the new one. Call it only if no other
        entry has the name."""

    def drop(self, name: EntryName) -> None:
        """Drop the entry but not the table's files; a missing entry is no error."""


@dataclass(frozen=True, slots=True)
class Registry:
    """A catalog in which mirrors are registered. `schema_template`: the template for
    the names of their schemas. `locate` returns the URL of a folder in the form that
    the catalog's entries have; the folder is relative to the lake, '' is the lake."""

    catalog: Catalog
    schema_template: str
    locate: Callable[[str], str]
