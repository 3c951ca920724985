"""Treatments of columns: how the lake shows a column that it does not show as it is.

Each is a value and has a text, which the ledger stores. `pipeline.shape` resolves the settings of a
table to one treatment per column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Fate(StrEnum):
    """The treatments without parameters."""

    SHOWN = "shown"
    LEFT_OUT = "left out"


class Hash(StrEnum):
    """The value is shown as a keyed hash."""

    EXACT = "exact"
    LOWER = "lower"
    """A hash of the text in lower case: spellings that differ in case have one hash."""


class Conversion(StrEnum):
    """The whole value is shown as another type."""

    BOOLEAN = "boolean"
    """From whole numbers that are 0 or 1."""
    UUID = "uuid"
    """The text of a UUID in lower case, from BINARY(16) or CHAR(36)."""
    MICROSECONDS = "microseconds"
    """A whole number of microseconds, from TIME."""
    STRING = "string"
    """The text that SELECT prints."""


@dataclass(frozen=True, slots=True)
class Mask:
    """A part of the value is shown. `kind`: "first" and "last" show `keep` characters of a longer
    value, "year" the year of a date, "null" shows nothing."""

    kind: str
    keep: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.keep}" if self.keep else self.kind


_MASK: Final = re.compile(r"(?P<kind>first|last):(?P<keep>[1-9]\d{0,3})|year|null", re.ASCII)


def read_mask(text: str) -> Mask:
    """Read `last:4`, `first:2`, `year` or `null`; raise ValueError for any other text."""
    match = _MASK.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no mask: write first:N, last:N, year or null")
    return Mask(match["kind"], int(match["keep"])) if match["kind"] else Mask(text)


Treatment = Fate | Hash | Mask | Conversion


def hides_values(treatment: Treatment) -> bool:
    """Return whether the treatment hides values: all but showing them, in whatever type."""
    return treatment is not Fate.SHOWN and not isinstance(treatment, Conversion)


LEFT_OUT: Final = Fate.LEFT_OUT.value
ROWS_BY: Final = "rows by it"
"""Words added to those of a column on which the condition on rows depends."""


def treatment_words(treatment: Treatment) -> str:
    """Return the ledger's text: `left out`, `hash lower`, `mask last:4`, `as uuid`."""
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
    """Read a text of `treatment_words`; raise ValueError for any other."""
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
    """Return the treatment as part of a sentence: `hashed`, `masked last:4`."""
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
    """Return how the lake shows a table, in one line: `email hashed, ssn left out, rows where not
    test`; empty if it shows all of it as it is."""
    words = [
        f"{name} {shown_in_words(treatment)}"
        for name, treatment in zip(names, treatments, strict=True)
        if treatment is not Fate.SHOWN
    ]
    return ", ".join([*words, *([] if rows is None else [f"rows where {rows}"])])
