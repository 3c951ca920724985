"""Treatments: each says how the lake shows the values of one column.

The ledger (Lockstep's tables in Postgres) stores a treatment as a text.
`pipeline.shape` resolves a table's settings to one treatment per column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Visibility(StrEnum):
    """The treatments without parameters."""

    SHOWN = "shown"
    LEFT_OUT = "left out"


class Hash(StrEnum):
    """The lake shows a keyed hash instead of the value."""

    EXACT = "exact"
    LOWER = "lower"
    """A hash of the text in lower case: texts that differ only in case have the same
    hash."""


class Conversion(StrEnum):
    """The lake shows the whole value as another type."""

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
    """The lake shows a part of the value. `kind`: "first" and "last" show `length`
    characters of a longer value, "year" the year of a date, "null" shows NULL."""

    kind: str
    length: int = 0

    def __str__(self) -> str:
        return f"{self.kind}:{self.length}" if self.length else self.kind


_MASK: Final = re.compile(r"(?P<kind>first|last):(?P<length>[1-9]\d{0,3})|year|null", re.ASCII)


def read_mask(text: str) -> Mask:
    """Read `last:4`, `first:2`, `year` or `null`; raise ValueError for any other
    text."""
    match = _MASK.fullmatch(text)
    if match is None:
        raise ValueError(f"{text!r} is no mask: write first:N, last:N, year or null")
    return Mask(match["kind"], int(match["length"])) if match["kind"] else Mask(text)


Treatment = Visibility | Hash | Mask | Conversion


def hides_values(treatment: Treatment) -> bool:
    """Return whether the treatment shows less than the whole value."""
    return treatment is not Visibility.SHOWN and not isinstance(treatment, Conversion)


@dataclass(frozen=True, slots=True)
class ColumnUse:
    """The use of a column by the settings: its treatment, and whether the condition on
    rows contains it."""

    treatment: Treatment = Visibility.SHOWN
    is_in_condition: bool = False

    @property
    def needs_values(self) -> bool:
        """True if the result of the settings depends on the column's values."""
        is_computed = self.treatment not in (Visibility.SHOWN, Visibility.LEFT_OUT)
        return self.is_in_condition or is_computed


def treatment_to_text(treatment: Treatment) -> str:
    """Return the ledger's text of a treatment: left out, hash lower, mask last:4, as
    uuid."""
    match treatment:
        case Visibility():
            return treatment.value
        case Hash():
            return f"hash {treatment.value}"
        case Mask():
            return f"mask {treatment}"
        case Conversion():
            return f"as {treatment.value}"


def treatment_from_text(text: str) -> Treatment:
    """Read a text that `treatment_to_text` returns; raise ValueError for any other
    text."""
    kind, _, parameter = text.partition(" ")
    match kind:
        case "hash":
            return Hash(parameter)
        case "mask":
            return read_mask(parameter)
        case "as":
            return Conversion(parameter)
        case _:
            return Visibility(text)


def treatment_in_words(treatment: Treatment) -> str:
    """Return the treatment as part of a sentence: `hashed`, `masked last:4`."""
    match treatment:
        case Hash.LOWER:
            return "hashed in lower case"
        case Hash():
            return "hashed"
        case Mask():
            return f"masked {treatment}"
        case _:
            return treatment_to_text(treatment)


def treatments_in_words(names: Sequence[str], treatments: Sequence[Treatment]) -> dict[str, str]:
    """Return each column that the lake does not show as it is, with its treatment in
    words."""
    return {
        name: treatment_in_words(treatment)
        for name, treatment in zip(names, treatments, strict=True)
        if treatment is not Visibility.SHOWN
    }


def shape_in_words(
    names: Sequence[str], treatments: Sequence[Treatment], row_condition: str | None
) -> str:
    """Return how the lake shows a table, in one line: `email hashed, ssn left out, rows
    where not test`; empty if it shows every column and row as it is."""
    words = [f"{name} {text}" for name, text in treatments_in_words(names, treatments).items()]
    if row_condition is not None:
        words.append(f"rows where {row_condition}")
    return ", ".join(words)
