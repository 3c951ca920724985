"""What lockstep.toml says of one table's shape.

Belongs here: the values, and how several blocks that match one table become one. Does not: what
they come to for a table's structure (`shape`), the file (`resources.config`).

| key | value | what the lake shows |
|---|---|---|
| include_columns | patterns of names | these columns, and no other |
| exclude_columns | patterns of names | all columns but these |
| hash_columns | patterns of names, or names with `exact` or `lower` | HMAC-SHA-256 of the value |
| mask_columns | names with `first:N`, `last:N`, `year` or `null` | that part of the value |
| types | names with `boolean`, `uuid`, `microseconds` or `string` | the value as that type |
| rows | a condition | the rows for which it is TRUE |
| keep_clear | why | what was captured in clear stays, which goes otherwise when less is shown |
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Final

from pipeline.schema.treatments import Conversion, Hash, Mask
from pipeline.shape.condition import Condition


@dataclass(frozen=True, slots=True)
class ShapeRules:
    """The shape of a table as it was written; None where nothing was. Names of columns are shell
    patterns, whatever their case, and hold for columns that do not exist yet."""

    include_columns: tuple[str, ...] | None = None
    exclude_columns: tuple[str, ...] | None = None
    hash_columns: Mapping[str, Hash] | None = None
    mask_columns: Mapping[str, Mask] | None = None
    types: Mapping[str, Conversion] | None = None
    rows: Condition | None = field(default=None)
    keep_clear: str | None = None
    """Why what was captured in clear stays so when less is shown; None: it is cleared."""

    def __or__(self, later: ShapeRules) -> ShapeRules:
        """These rules with those of a later block: what the later one says, key by key, counts."""
        return ShapeRules(
            **{
                key.name: getattr(self if getattr(later, key.name) is None else later, key.name)
                for key in fields(self)
            }
        )


NO_RULES: Final = ShapeRules()
"""Of a table that is shown as it is."""
