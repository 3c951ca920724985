"""The rule when a read of a table is given up: an ALTER waits for the table, or it takes too long.

A read holds the table's metadata lock until its end. Meanwhile an ALTER waits for the lock, and all
later statements on the table, reads too, wait for the ALTER.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PIECE_SECONDS: Final = 3600.0
"""The longest read of a whole table. Until its end the server cannot purge old row versions."""

CHUNK_SECONDS: Final = 5.0
"""Time for which an ALTER waits for the end of a chunk, which is usually near."""


@dataclass(frozen=True, slots=True)
class Patience:
    """`gives_way`: seconds from a read's beginning until it gives way to an ALTER. `most`: seconds
    that it may take, None for any."""

    gives_way: float
    most: float | None = None


def patience(*, whole: bool, most_seconds: float = PIECE_SECONDS) -> Patience:
    """Return the rule for a read of the whole table, or of a chunk."""
    return Patience(0.0, most_seconds) if whole else Patience(CHUNK_SECONDS)


def leaves(rule: Patience, seconds: float, *, waited_for: bool) -> str | None:
    """Return why a read that has lasted `seconds` is given up now, or None if it continues."""
    if waited_for and seconds >= rule.gives_way:
        return "its read gave way to ALTER, which waited for the table"
    if rule.most is not None and seconds >= rule.most:
        return f"it took longer than {rule.most:g} s to be read in one piece"
    return None


def cure(rule: Patience, *, waited_for: bool) -> str:
    if waited_for or rule.most is None:
        return "the next run reads it again"
    return (
        "give the table a PRIMARY KEY that it can be read by in chunks, or more time; the next "
        "run reads it again"
    )
