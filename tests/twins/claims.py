"""Whose the folders of a lake in memory are: `pipeline.ports.Claims` over `MemoryLake`.

Does not belong here: the tables in them (`lake`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from lockstep.pipeline.model.claim import Claim, Unclaimed
from lockstep.pipeline.model.lake_commit import parse_structures, structures_key, structures_text
from lockstep.pipeline.schema.model import TableSchema
from tests.twins.lake import MemoryLake


class MemoryClaims:
    """`pipeline.ports.Claims`."""

    def __init__(self, lake: MemoryLake) -> None:
        self._lake = lake

    def read(self, source: str) -> Claim | Unclaimed:
        kept = self._lake.tables.items()
        names = [name for name, of in kept if any(one.told(0).is_ours for one in of)]
        found = self._lake.claims.get(source)
        return found or Unclaimed(
            is_unwritten=not any(name.startswith(f"{source}/") for name in names)
        )

    def write(self, claim: Claim) -> None:
        self._lake.claims[claim.source] = claim

    def table_folders(self, source: str) -> list[str]:
        return [name for name in self._lake.tables if name.startswith(f"{source}/")]

    def store_structures(self, source: str, structures: Sequence[TableSchema]) -> str:
        text = structures_text(structures)
        self._lake.structures[structures_key(text)] = text
        return structures_key(text)

    def structures(self, source: str, key: str) -> list[TableSchema] | None:
        text = self._lake.structures.get(key)
        return None if text is None else parse_structures(key, text)

    def clear_structures(self, source: str, cleared: Callable[[TableSchema], TableSchema]) -> None:
        for key, text in self._lake.structures.items():
            before = parse_structures(key, text) or []
            after = [cleared(one) for one in before]
            if after != before:
                self._lake.structures[key] = structures_text(after, cleared=True)

    def move_away(self, folder: str, name: str) -> str:
        kept = f"_before/{name}/{folder}"
        for one in [table for table in self._lake.tables if _within(table, folder)]:
            self._lake.tables[f"_before/{name}/{one}"] = self._lake.tables.pop(one)
        path = self._lake.path
        for one in [file for file in self._lake.files if _within(file, path(folder))]:
            moved = path(f"_before/{name}/{one.removeprefix(path(''))}")
            self._lake.files[moved] = self._lake.files.pop(one)
        self._lake.claims.pop(folder, None)
        return kept


def _within(path: str, folder: str) -> bool:
    return path == folder or path.startswith(f"{folder}/")
