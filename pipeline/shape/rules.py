"""The settings of a table's shape in lockstep.toml, and how those of several blocks that match a
table are combined. `shape` resolves them for a table's structure.

| key | value | what the lake shows |
|---|---|---|
| include_columns | patterns of names | these columns, and no other |
| exclude_columns | patterns of names | all columns but these |
| hash_columns | patterns of names, or names with `exact` or `lower` | HMAC-SHA-256 of the value |
| mask_columns | names with `first:N`, `last:N`, `year` or `null` | that part of the value |
| types | names with `boolean`, `uuid`, `microseconds` or `string` | the value as that type |
| rows | a condition | the rows for which it is TRUE |
| keep_clear | a reason | old values stay in clear when less is shown; without it they are purged |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from lockstep.pipeline.schema.treatments import Conversion, Hash, Mask
from lockstep.pipeline.shape.condition import Condition


@dataclass(frozen=True, slots=True)
class ShapeRules:
    """The settings of a table's shape; None if a setting is absent. Names of columns are shell
    patterns, which ignore case and also apply to columns that do not exist yet."""

    include_columns: tuple[str, ...] | None = None
    exclude_columns: tuple[str, ...] | None = None
    hash_columns: Mapping[str, Hash] | None = None
    mask_columns: Mapping[str, Mask] | None = None
    types: Mapping[str, Conversion] | None = None
    rows: Condition | None = None
    keep_clear: str | None = None
    """Why values captured in clear stay when less is shown; None: they are purged."""

    def __or__(self, later: ShapeRules) -> ShapeRules:
        """Combine these rules with those of a later block, whose settings override these one by
        one."""
        return ShapeRules(
            **{
                key.name: getattr(self if getattr(later, key.name) is None else later, key.name)
                for key in fields(self)
            }
        )


NO_RULES: Final = ShapeRules()
"""The rules of a table that is shown as it is."""
