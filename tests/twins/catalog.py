"""A catalog in memory: `pipeline.ports.catalog`.

Belongs here: entries by name, with or without marks. Does not: what is to be in them.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from lockstep.pipeline.catalog import (
    CONTENT_MARK,
    SOURCE_MARK,
    CatalogEntry,
    EntryName,
    WantedEntry,
)
from lockstep.pipeline.values.errors import CatalogRefused


@dataclass(slots=True)
class MemoryCatalog:
    """`entries` and, by name, the marks that each has; `asked` counts calls."""

    has_marks: bool = True
    has_columns: bool = True
    identity: str = "A catalog in memory"
    root: str = "file:///lake"
    entries: dict[EntryName, tuple[WantedEntry, dict[str, str]]] = field(default_factory=dict)
    asked: int = 0

    def location(self, folder: str) -> str:
        return f"{self.root}/{folder}" if folder else self.root

    def reason_refused(self, name: EntryName) -> str | None:
        return None if str(name).replace(".", "").isidentifier() else f"no catalog takes {name}"

    def probe(self) -> str:
        self._ask()
        return self.identity

    def find(self, name: EntryName) -> CatalogEntry | None:
        self._ask()
        if name not in self.entries:
            return None
        entry, marks = self.entries[name]
        return CatalogEntry(entry.location, marks.get(SOURCE_MARK), marks.get(CONTENT_MARK))

    def put(self, entry: WantedEntry, replaced_name: EntryName | None) -> None:
        if replaced_name is not None:
            self.drop(replaced_name)
        self.create(entry)

    def create(self, entry: WantedEntry) -> None:
        self._ask()
        if self.reason_refused(entry.name) is not None:
            raise CatalogRefused(f"{self.identity} refuses {entry.name}", hint="rename it")
        if entry.name in self.entries:
            raise ValueError(f"{entry.name} is there")
        self.entries[entry.name] = (entry, entry.marks if self.has_marks else {})

    def drop(self, name: EntryName) -> None:
        self._ask()
        self.entries.pop(name, None)

    def add(self, entry: WantedEntry) -> None:
        """Somebody else's."""
        self.entries[entry.name] = (replace(entry), {})

    def _ask(self) -> None:
        self.asked += 1
