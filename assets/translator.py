"""How mirrors appear in Dagster where somebody chooses: their keys, groups, owners, tags.

Belongs here: the class that other projects subclass, as dagster-dlt's and dagster-dbt's
translators are, and the keys that the command line knows of it. Does not: what a mirror is by
default (`tables`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg

from pipeline.table import TableName


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


class KnownKeys(LockstepTranslator):
    """The keys that a location declared when it was last loaded. The command line logs its runs
    under these, because it cannot import the location."""

    def __init__(self, keys: Mapping[TableName, dg.AssetKey]) -> None:
        self._keys = keys

    def get_asset_spec(self, table: MirroredTable) -> dg.AssetSpec:
        key = self._keys.get(TableName(table.database, table.name))
        return table.spec if key is None else table.spec.replace_attributes(key=key)
