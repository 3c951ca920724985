"""What is known of a mirror before its upkeep, and what is wanted of it. Values only.

Belongs here: facts and the policy. Does not: gathering them (`pipeline.runs.upkeeping`), what
follows (`decide`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

SMALL_FILES: Final = 16
DELETED_SHARE: Final = 0.1

CLOCKS_APART: Final = timedelta(minutes=10)
"""So far two clocks may differ before nothing is deleted by either."""


@dataclass(frozen=True, slots=True)
class UpkeepPolicy:
    """What [upkeep] says. `small_files`: so many small files are put together; `file_bytes`: how
    large files are then, None by the size of the table; `deleted_share`: from which part of its
    rows on a mirror is freed of deleted ones; `purge`: of each, whatever its share;
    `keep_changes`: how long changes stay in changelogs, None for good."""

    small_files: int = SMALL_FILES
    file_bytes: int | None = None
    deleted_share: float = DELETED_SHARE
    purge: bool = False
    keep_changes: timedelta | None = None


@dataclass(frozen=True, slots=True)
class Pile:
    """Files, and their bytes together."""

    files: int = 0
    bytes: int = 0

    @classmethod
    def of(cls, sizes: Sequence[int]) -> Pile:
        return cls(len(sizes), sum(sizes))


@dataclass(frozen=True, slots=True)
class Clocks:
    """What this machine's clock says, what the ledger's does, the moment of the mirror's newest
    commit, and when somebody had the source last; None where nobody told."""

    machine: datetime
    ledger: datetime
    newest: datetime | None = None
    held: datetime | None = None


@dataclass(frozen=True, slots=True)
class MirrorFiles:
    """The files of a mirror's newest version: their sizes in bytes, the rows in them, and how many
    of those are deleted; None where nobody tells. `unneeded`: files that no version needs which
    was replaced within the promised time; `untold`: why those cannot be told. `free`: bytes that
    the lake has room for, None where nobody tells."""

    sizes: tuple[int, ...]
    rows: int | None
    deleted: int | None
    unneeded: Pile = Pile()
    untold: str | None = None
    free: int | None = None
