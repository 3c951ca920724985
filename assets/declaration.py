"""The attributes that all assets of Lockstep share, and the translator class.

Other projects use a translator to change the assets of mirrors (the Delta tables with
the current rows of MySQL tables), as with dagster-dlt and dagster-dbt.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from lockstep.assets.names import SourceNames
from lockstep.assets.table_list import read_table_list
from lockstep.pipeline.values.table import TableName
from lockstep.resources.config import Settings


@dataclass(frozen=True, slots=True)
class MirroredTable:
    """A MySQL table whose mirror is an asset. `spec`: the asset as Lockstep declares
    it. A run asks a translator only for the key, with a spec without metadata."""

    source: str
    database: str
    name: str
    spec: dg.AssetSpec


class LockstepTranslator:
    """The translator that changes nothing. Subclass it and override `get_asset_spec`.

    A mirror's key may depend only on the source, the database and the table, because
    each run calls the method again and must get the same key.
    """

    def get_asset_spec(self, table: MirroredTable) -> dg.AssetSpec:
        """Return the asset of a mirror: `table.spec`, or a copy with other attributes."""
        return table.spec


@dataclass(frozen=True, slots=True)
class Declaration:
    """The names and attributes that the configuration gives to one source's assets."""

    names: SourceNames
    owners: Sequence[str]
    tags: Mapping[str, str]
    translator: LockstepTranslator

    @classmethod
    def of(
        cls, settings: Settings, source: str, translator: LockstepTranslator | None = None
    ) -> Declaration:
        section = settings.file.dagster
        names = _default_names(settings, source)
        declaration = cls(names, section.owners, section.tags, translator or LockstepTranslator())
        if translator is None:
            return declaration

        def translated_key(table: TableName) -> dg.AssetKey:
            default_spec = declaration.make_spec(names.default_table_key(table))
            return declaration.translate(table, default_spec).key

        return replace(declaration, names=replace(names, translated_key=translated_key))

    def translate(self, table: TableName, spec: dg.AssetSpec) -> dg.AssetSpec:
        """Return the translator's asset for a mirror. `spec`: the asset as Lockstep
        declares it."""
        mirrored_table = MirroredTable(self.names.source, table.database, table.name, spec)
        return self.translator.get_asset_spec(mirrored_table)

    def make_spec(
        self, key: dg.AssetKey, *, tags: Mapping[str, str] | None = None, **attributes: Any
    ) -> dg.AssetSpec:
        return dg.AssetSpec(
            key,
            group_name=self.names.group_name,
            owners=self.owners,
            tags={**self.tags, **(tags or {})},
            **attributes,
        )


def loaded_names(settings: Settings, source: str) -> SourceNames:
    """Return the names of a source's assets, with the keys of mirrors from the time
    when Dagster last loaded the definitions. These keys are read from the list of
    tables, because the command line cannot import a project's translator."""
    entries = read_table_list(settings.state_folder, source)
    keys = {entry.table: dg.AssetKey(entry.key) for entry in entries if entry.key}
    names = _default_names(settings, source)
    return replace(
        names, translated_key=lambda table: keys.get(table) or names.default_table_key(table)
    )


def _default_names(settings: Settings, source: str) -> SourceNames:
    section = settings.file.dagster
    mirror_names = settings.source(source).mirror_names()
    return SourceNames(source, section.key_prefix, section.group, mirror_names=mirror_names)
