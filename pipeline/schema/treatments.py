"""What becomes of a column on its way to the lake, as a value and as words.

The ledger keeps the words. What rules come to for a structure is `pipeline.shape`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Fate(StrEnum):
    """What becomes of a column of which there is no more to say."""

    SHOWN = "shown"
    LEFT_OUT = "left out"


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


Treatment = Fate | Hash | Mask | Conversion
"""What becomes of one column."""


def hides_values(treatment: Treatment) -> bool:
    """Whether not every value of a column is shown, in whatever type."""
    return treatment is not Fate.SHOWN and not isinstance(treatment, Conversion)


LEFT_OUT: Final = Fate.LEFT_OUT.value
ROWS_BY: Final = "rows by it"
"""Among the words of a column that a condition on rows asks."""


def treatment_words(treatment: Treatment) -> str:
    """As people read it and the ledger keeps it: `left out`, `hash lower`, `mask last:4`,
    `as uuid`."""
    match treatment:
        case Fate():
            return treatment.value
        case Hash():
            return f"hash {treatment.value}"
        case Mask():
            return f"mask {treatment}"
        case Conversion():
            return f"as {treatment.value}"


def read_treatment(words: str) -> Treatment:
    """The inverse of `treatment_words`; ValueError for other words."""
    kind, _, rest = words.partition(" ")
    match kind:
        case "hash":
            return Hash(rest)
        case "mask":
            return read_mask(rest)
        case "as":
            return Conversion(rest)
        case _:
            return Fate(words)


def shown_in_words(treatment: Treatment) -> str:
    """The same for a person who reads about a table: `hashed`, `masked last:4`."""
    match treatment:
        case Hash.LOWER:
            return "hashed in lower case"
        case Hash():
            return "hashed"
        case Mask():
            return f"masked {treatment}"
        case _:
            return treatment_words(treatment)


def shape_in_words(names: Sequence[str], treatments: Sequence[Treatment], rows: str | None) -> str:
    """What a lake shows of a table, in one line: `email hashed, ssn left out, rows where not test`;
    empty if it shows all of it as it is."""
    return ", ".join(_shape_words(names, treatments, rows))


def _shape_words(
    names: Sequence[str], treatments: Sequence[Treatment], rows: str | None
) -> Iterator[str]:
    for name, treatment in zip(names, treatments, strict=True):
        if treatment is not Fate.SHOWN:
            yield f"{name} {shown_in_words(treatment)}"
    if rows is not None:
        yield f"rows where {rows}"
