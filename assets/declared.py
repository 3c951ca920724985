"""What every asset of ours has in common: group, owners, tags, kinds.

Belongs here: how an asset is declared. Does not: what each is (`steps`, `tables`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import dagster as dg

from assets.names import SourceNames
from resources.config import Settings


@dataclass(frozen=True, slots=True)
class Declaration:
    """What the configuration says of one source's assets."""

    names: SourceNames
    owners: Sequence[str] = ()
    tags: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, settings: Settings, source: str) -> Declaration:
        shown = settings.dagster
        names = SourceNames(source, shown.key_prefix, shown.group)
        return cls(names, shown.owners, shown.tags)

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
