"""Which tables there are, in a file beside lockstep.toml: loading never needs a server.

`.lockstep/catalogue.json` is `{"sources": {name: {"tables": [entry, …]}}}`. It is a
copy for Dagster's page only: what is done is in the ledger. Missing or old is no error.
Tables keep their place in the list, so that generated names stay; new ones are appended,
and one whose mirror is gone keeps its place without being shown.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from assets.files import changing_object, read_object
from pipeline.changes.layout import NO_PLACE
from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableState

FILE = "catalogue.json"


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A captured table; `mirror` and `changelog` are paths relative to the lake. `ended`: its
    mirror was removed, or it may not have one. `told`: what Dagster was last told of the table; ""
    for nothing. `key`: the parts of its asset's key where a translator chose them."""

    database: str
    name: str
    mirror: str
    changelog: str
    dropped: bool = False
    ended: bool = False
    told: str = ""
    key: tuple[str, ...] = ()

    @property
    def table(self) -> TableName:
        return TableName(self.database, self.name)


_ENTRY: Final = TypeAdapter(CatalogueEntry)


def read_catalogue(folder: Path, source: str) -> tuple[CatalogueEntry, ...]:
    """The source's tables in their fixed order; empty when the file is missing or is not
    one of ours."""
    return _entries(read_object(folder / FILE), source)


def fingerprint(catalogue: Mapping[str, Sequence[CatalogueEntry]]) -> str:
    """16 hex digits that change with whatever the location declares of the tables."""
    declared = {
        source: [asdict(replace(entry, told="", key=())) for entry in catalogue[source]]
        for source in sorted(catalogue)
    }
    return hashlib.sha256(json.dumps(declared).encode()).hexdigest()[:16]


def entries_of(
    states: Mapping[TableName, TableState], told: Mapping[TableName, str] = MappingProxyType({})
) -> list[CatalogueEntry]:
    """The tables of a ledger; `told`: what Dagster last heard about each."""
    return [
        CatalogueEntry(
            table.database,
            table.name,
            state.mirror,
            state.changelog,
            dropped=state.condition is TableCondition.DROPPED,
            ended=state.mirror_ended or state.mirror.endswith(NO_PLACE),
            told=told.get(table, ""),
        )
        for table, state in states.items()
    ]


def joined(
    known: Sequence[CatalogueEntry], seen: Iterable[CatalogueEntry], *, complete: bool
) -> tuple[CatalogueEntry, ...]:
    """Known entries at their places, brought up to date, then new ones by name. What was told
    of a table stays where nothing else is told.

    `complete`: what was not seen is gone from the source, and stays, marked dropped.
    """
    fresh = {entry.table: entry for entry in seen}
    kept = []
    for old in known:
        new = fresh.pop(old.table, replace(old, dropped=True) if complete else old)
        kept.append(replace(new, told=new.told or old.told, key=old.key))
    return (*kept, *(fresh[table] for table in sorted(fresh)))


def update_catalogue(
    folder: Path, source: str, seen: Iterable[CatalogueEntry], *, complete: bool
) -> bool:
    """Replace the file atomically, one process at a time; other sources stay as they are.
    Whether the location declares something else at its next load."""
    with changing_object(folder / FILE) as content:
        known = _entries(content, source)
        entries = joined(known, seen, complete=complete)
        _put(content, source, entries)
    return fingerprint({source: entries}) != fingerprint({source: known})


def note_keys(folder: Path, source: str, keys: Mapping[TableName, tuple[str, ...]]) -> None:
    """Replace which keys a translator chose; the file is written only where they are others."""
    if all(entry.key == keys.get(entry.table, ()) for entry in read_catalogue(folder, source)):
        return
    with changing_object(folder / FILE) as content:
        known = _entries(content, source)
        _put(content, source, [replace(one, key=keys.get(one.table, ())) for one in known])


def _put(content: dict[str, Any], source: str, entries: Iterable[CatalogueEntry]) -> None:
    tables = {"tables": [asdict(entry) for entry in entries]}
    content["sources"] = {**_sources(content), source: tables}


def _sources(content: Mapping[str, Any]) -> dict[str, Any]:
    sources = content.get("sources")
    return sources if isinstance(sources, dict) else {}


def _entries(content: Mapping[str, Any], source: str) -> tuple[CatalogueEntry, ...]:
    """Entries that can be read; those of another shape are left out, and a table once."""
    of_source = _sources(content).get(source)
    listed = of_source.get("tables") if isinstance(of_source, dict) else None
    entries: dict[TableName, CatalogueEntry] = {}
    for item in listed if isinstance(listed, list) else ():
        with suppress(ValidationError):
            entry = _ENTRY.validate_python(item)
            entries.setdefault(entry.table, entry)
    return tuple(entries.values())
