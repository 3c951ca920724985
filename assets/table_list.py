"""The list of captured tables, kept in a file beside lockstep.toml, so that Dagster can
load its definitions while all servers are down.

`.lockstep/catalogue.json` is `{"sources": {name: {"tables": [entry, …]}}}`. It only
serves Dagster's page, and may be missing or old. A table keeps its index in the list,
because Dagster's names of outputs contain it: new tables are appended, and a table that
has lost its mirror (the Delta table with its current rows) stays in the list without
being shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from lockstep.assets.state_files import edit_json_object, read_json_object
from lockstep.pipeline.mirror.layout import NO_MIRROR
from lockstep.pipeline.model.table_state import TableCondition, TableState
from lockstep.pipeline.values.table import TableName

FILE = "catalogue.json"


@dataclass(frozen=True, slots=True)
class TableEntry:
    """A captured table.

    `mirror`, `changelog`: paths relative to the lake.
    `dropped`: it was dropped at the source.
    `ended`: it has no mirror, because the mirror was removed, or because the mirror of
    another table has its name.
    `reported`: a digest of the state that was last reported to Dagster, or "".
    `key`: the parts of the asset key that a translator chose, if it chose one.
    """

    database: str
    name: str
    mirror: str
    changelog: str
    dropped: bool = False
    ended: bool = False
    reported: str = ""
    key: tuple[str, ...] = ()

    @property
    def table(self) -> TableName:
        return TableName(self.database, self.name)


TableLists = Mapping[str, Sequence[TableEntry]]
"""The captured tables of each source, by its name."""

_ENTRY_ADAPTER: Final = TypeAdapter(TableEntry)


def read_table_list(folder: Path, source: str) -> tuple[TableEntry, ...]:
    """Return the source's tables in their fixed order; none if the file is missing or
    damaged."""
    return _valid_entries(read_json_object(folder / FILE), source)


def table_entries(
    states: Mapping[TableName, TableState], reported: Mapping[TableName, str] = MappingProxyType({})
) -> list[TableEntry]:
    """Return an entry for each table that has a state in the ledger. `reported`: the
    digest of the state that was last reported to Dagster, for tables that have one."""
    return [
        TableEntry(
            table.database,
            table.name,
            state.mirror,
            state.changelog,
            dropped=state.condition is TableCondition.DROPPED,
            ended=state.is_mirror_removed or state.mirror.endswith(NO_MIRROR),
            reported=reported.get(table, ""),
        )
        for table, state in states.items()
    ]


def update_table_list(
    folder: Path, source: str, updates: Iterable[TableEntry], *, complete: bool
) -> tuple[TableName, ...]:
    """Replace entries of the source by their updates, and append new ones. Return the
    tables whose definitions in Dagster change. An update without `reported` keeps the
    old digest. `complete`: there is an update for each table of the source, so a table
    without an update was dropped there."""
    with edit_json_object(folder / FILE) as content:
        before = {entry.table: entry for entry in _valid_entries(content, source)}
        after = {
            table: replace(entry, dropped=True) if complete else entry
            for table, entry in before.items()
        }
        for update in sorted(updates, key=lambda entry: entry.table):
            old = before.get(update.table, update)
            reported = update.reported or old.reported
            after[update.table] = replace(update, reported=reported, key=old.key)
        _store_entries(content, source, after.values())
    return tuple(
        table
        for table, entry in after.items()
        if table not in before or shown_fields(entry) != shown_fields(before[table])
    )


def shown_fields(entry: TableEntry) -> TableEntry:
    """Return the entry with only those fields that change Dagster's definitions. The key
    is not one of them, because the translator computes it from the others."""
    return replace(entry, reported="", key=())


def record_keys(folder: Path, source: str, keys: Mapping[TableName, tuple[str, ...]]) -> None:
    """Record the keys that a translator chose. If they are unchanged, the file is not
    even locked, because Dagster's page may run without permission to write."""
    if all(entry.key == keys.get(entry.table, ()) for entry in read_table_list(folder, source)):
        return
    with edit_json_object(folder / FILE) as content:
        entries = _valid_entries(content, source)
        _store_entries(
            content, source, [replace(entry, key=keys.get(entry.table, ())) for entry in entries]
        )


def forget_reported_states(folder: Path, source: str) -> None:
    """Record that no table's state was reported to Dagster."""
    with edit_json_object(folder / FILE) as content:
        entries = _valid_entries(content, source)
        _store_entries(content, source, [replace(entry, reported="") for entry in entries])


def _store_entries(content: dict[str, Any], source: str, entries: Iterable[TableEntry]) -> None:
    tables = {"tables": [asdict(entry) for entry in entries]}
    content["sources"] = {**_source_sections(content), source: tables}


def _source_sections(content: Mapping[str, Any]) -> dict[str, Any]:
    sources = content.get("sources")
    return sources if isinstance(sources, dict) else {}


def _valid_entries(content: Mapping[str, Any], source: str) -> tuple[TableEntry, ...]:
    """Return the entries of a file that may be damaged: the valid ones, each table once."""
    section = _source_sections(content).get(source)
    items = section.get("tables") if isinstance(section, dict) else None
    entries: dict[TableName, TableEntry] = {}
    for item in items if isinstance(items, list) else ():
        with suppress(ValidationError):
            entry = _ENTRY_ADAPTER.validate_python(item)
            entries.setdefault(entry.table, entry)
    return tuple(entries.values())
