"""When a read of a table is left, because others wait for the table or it takes too long.

Who reads a table holds its metadata lock until the read's end. Whoever alters it then waits, and
everybody who comes later waits behind, also to read.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

PIECE_SECONDS: Final = 3600.0
"""So long a table may be read in one piece: the server keeps old rows for the read meanwhile."""

CHUNK_SECONDS: Final = 5.0
"""So long who waits for the table waits for the end of a chunk, which is near."""


@dataclass(frozen=True, slots=True)
class Patience:
    """`gives_way`: seconds from a read's beginning until it is left for others that wait.
    `most`: seconds it may take at all; None: any."""

    gives_way: float
    most: float | None = None


def patience(*, whole: bool, most_seconds: float = PIECE_SECONDS) -> Patience:
    """Of a read of all the table, or of a chunk of it."""
    return Patience(0.0, most_seconds) if whole else Patience(CHUNK_SECONDS)


def leaves(rule: Patience, seconds: float, *, waited_for: bool) -> str | None:
    """Why a read that has lasted `seconds` is left now; None: it goes on."""
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
