"""What lockstep.toml says of one table's shape.

Belongs here: the values, and how several blocks that match one table become one. Does not: what
they come to for a table's structure (`shape`), the file (`resources.config`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Final

from pipeline.shape.condition import Condition


class Hash(StrEnum):
    """What is hashed of a value."""

    EXACT = "exact"
    LOWER = "lower"
    """A text in lower case, so that spellings that differ by case have one hash."""


class Conversion(StrEnum):
    """The type that a column has in the lake instead of its own."""

    BOOLEAN = "boolean"
    """Of whole numbers that are 0 or 1."""
    UUID = "uuid"
    """The text of a UUID, of BINARY(16), or in lower case of CHAR(36)."""
    MICROSECONDS = "microseconds"
    """Of TIME: a whole number of microseconds."""
    STRING = "string"
    """The text that SELECT prints."""


@dataclass(frozen=True, slots=True)
class Mask:
    """`kind`: first or last, which show `keep` characters of a value that is longer; year, of a
    date; null, which shows nothing."""

    kind: str
    keep: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.keep}" if self.keep else self.kind


_MASK: Final = re.compile(r"(?P<kind>first|last):(?P<keep>[1-9]\d{0,3})|year|null", re.ASCII)


def read_mask(text: str) -> Mask:
    """`last:4`, `first:2`, `year` or `null`; ValueError for any other text."""
    match = _MASK.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no mask: write first:N, last:N, year or null")
    return Mask(match["kind"], int(match["keep"])) if match["kind"] else Mask(text)


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

    def __or__(self, later: ShapeRules) -> ShapeRules:
        """These rules with those of a later block: what the later one says, key by key, counts."""
        return ShapeRules(
            **{
                key.name: getattr(self if getattr(later, key.name) is None else later, key.name)
                for key in fields(self)
            }
        )
