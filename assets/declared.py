"""How assets are declared: what all of ours have in common, and the class by which other projects
choose how mirrors appear, as dagster-dlt's and dagster-dbt's translators are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dagster as dg

from assets.catalogue import read_catalogue
from assets.names import SourceNames
from pipeline.table import TableName
from resources.config import Settings


@dataclass(frozen=True, slots=True)
class MirroredTable:
    """A MySQL table whose mirror is an asset. `spec`: the asset as Lockstep declares it.

    Runs ask for the key of a table alone; `spec` then has no metadata.
    """

    source: str
    database: str
    name: str
    spec: dg.AssetSpec


class LockstepTranslator:
    """Subclass it and override `get_asset_spec`.

    A mirror's key may depend on the source, the database and the table alone: runs ask for it
    too, and must always be given the same.
    """

    def get_asset_spec(self, table: MirroredTable) -> dg.AssetSpec:
        """The asset of a mirror: `table.spec`, or the same with other attributes."""
        return table.spec


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the configuration says of one source's assets."""

    names: SourceNames
    owners: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)
    translator: LockstepTranslator = field(default_factory=LockstepTranslator)

    @classmethod
    def of(
        cls, settings: Settings, source: str, translator: LockstepTranslator | None = None
    ) -> Declaration:
        shown, plain = settings.file.dagster, _plain_names(settings, source)
        if translator is None:
            return cls(plain, shown.owners, shown.tags)
        defaults = cls(plain, shown.owners, shown.tags, translator)

        def key_of(table: TableName) -> dg.AssetKey:
            return defaults.translated(table, defaults.spec(plain.default(table))).key

        return replace(defaults, names=replace(plain, translated=key_of))

    def translated(self, table: TableName, spec: dg.AssetSpec) -> dg.AssetSpec:
        """A mirror's asset as the translator has it; `spec`: as it is by default."""
        mirrored = MirroredTable(self.names.source, table.database, table.name, spec)
        return self.translator.get_asset_spec(mirrored)

    def spec(
        self, key: dg.AssetKey, *, tags: Mapping[str, str] | None = None, **attributes: Any
    ) -> dg.AssetSpec:
        return dg.AssetSpec(
            key,
            group_name=self.names.group_name,
            owners=self.owners,
            tags={**self.tags, **(tags or {})},
            **attributes,
        )


def names_as_loaded(settings: Settings, source: str) -> SourceNames:
    """Names by the keys of the location's last load: the command line cannot import it."""
    entries = read_catalogue(settings.state_folder, source)
    known = {entry.table: dg.AssetKey(entry.key) for entry in entries if entry.key}
    plain = _plain_names(settings, source)
    return replace(plain, translated=lambda table: known.get(table) or plain.default(table))


def _plain_names(settings: Settings, source: str) -> SourceNames:
    """The names that no translator chose."""
    shown, mirrors = settings.file.dagster, settings.source(source).mirrors()
    return SourceNames(source, shown.key_prefix, shown.group, mirrors=mirrors)
