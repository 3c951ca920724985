"""What every asset of ours has in common: group, owners, tags, kinds.

Belongs here: how an asset is declared. Does not: what each is (`steps`, `tables`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import dagster as dg

from assets.catalogue import read_catalogue
from assets.names import SourceNames
from assets.translator import KnownKeys, LockstepTranslator, MirroredTable
from pipeline.table import TableName
from resources.config import Settings


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
        shown = settings.dagster
        plain = SourceNames(source, shown.key_prefix, shown.group)
        if translator is None:
            return cls(plain, shown.owners, shown.tags)
        defaults = cls(plain, shown.owners, shown.tags, translator)

        def key_of(table: TableName) -> dg.AssetKey:
            return defaults.translated(table, defaults.spec(plain.default(table))).key

        return replace(defaults, names=replace(plain, translated=key_of))

    @classmethod
    def as_loaded(cls, settings: Settings, source: str) -> Declaration:
        """With the keys that the location had when it was last loaded."""
        entries = read_catalogue(settings.state_folder, source)
        known = {entry.table: dg.AssetKey(entry.key) for entry in entries if entry.key}
        return cls.of(settings, source, KnownKeys(known))

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
