"""Which tables there are, in a file beside lockstep.toml: loading never needs a server.

`.lockstep/catalogue.json` is `{"sources": {name: {"tables": [entry, …]}}}`. It is a
copy for Dagster's page only: what is done is in the ledger. Missing or old is no error.
Tables keep their place in the list, so that generated names stay; new ones are appended,
and one whose mirror is gone keeps its place without being shown.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pipeline.table import TableName
from pipeline.table_state import TableCondition, TableState
from resources.file_lock import alone
from resources.private import make_private

FILE = "catalogue.json"


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """A captured table; `mirror` and `changelog` are paths relative to the lake. `ended`: its
    mirror was removed. `told`: what Dagster was last told of the table; "" for nothing. `key`: the
    parts of its asset's key where a translator chose them."""

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


def read_catalogue(folder: Path, source: str) -> tuple[CatalogueEntry, ...]:
    """The source's tables in their fixed order; empty when the file is missing or is not
    one of ours."""
    return _entries(_read(folder).get(source))


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
            ended=state.mirror_ended,
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
    make_private(folder)
    with alone(folder / f"{FILE}.lock"):
        sources = _read(folder)
        known = _entries(sources.get(source))
        entries = joined(known, seen, complete=complete)
        if entries == known and source in sources:
            return False
        _write(folder, {**sources, source: _listed(entries)})
        return fingerprint({source: entries}) != fingerprint({source: known})


def note_keys(folder: Path, source: str, keys: Mapping[TableName, tuple[str, ...]]) -> None:
    """Replace which keys a translator chose; the file is written only where they are others."""
    if all(entry.key == keys.get(entry.table, ()) for entry in read_catalogue(folder, source)):
        return
    with alone(folder / f"{FILE}.lock"):
        sources = _read(folder)
        entries = [
            replace(entry, key=keys.get(entry.table, ())) for entry in _entries(sources.get(source))
        ]
        _write(folder, {**sources, source: _listed(entries)})


def _listed(entries: Iterable[CatalogueEntry]) -> dict[str, Any]:
    return {"tables": [asdict(entry) for entry in entries]}


def _write(folder: Path, sources: Mapping[str, Any]) -> None:
    replace_file(folder / FILE, json.dumps({"sources": sources}, ensure_ascii=False, indent=1))


def _read(folder: Path) -> dict[str, Any]:
    try:
        data = json.loads((folder / FILE).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    sources = data.get("sources") if isinstance(data, dict) else None
    return sources if isinstance(sources, dict) else {}


def _entries(source: Any) -> tuple[CatalogueEntry, ...]:
    """Entries that can be read; those of another shape are left out, and a table once."""
    listed = source.get("tables") if isinstance(source, dict) else None
    entries: dict[TableName, CatalogueEntry] = {}
    for item in listed if isinstance(listed, list) else ():
        try:
            entry = CatalogueEntry(
                database=str(item["database"]),
                name=str(item["name"]),
                mirror=str(item["mirror"]),
                changelog=str(item["changelog"]),
                dropped=bool(item.get("dropped", False)),
                ended=bool(item.get("ended", False)),
                told=str(item.get("told", "")),
                key=tuple(map(str, item.get("key", ()))),
            )
        except (KeyError, TypeError, AttributeError):
            continue
        entries.setdefault(entry.table, entry)
    return tuple(entries.values())


def replace_file(path: Path, text: str) -> None:
    """With this text: whoever reads it sees the old one or the new one, whole."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
