"""What became of entries in a catalog. Values only.

Belongs here: what is reported back. Does not: how it comes about (`register`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pipeline.catalog.naming import Left
from pipeline.catalog.values import EntryName
from pipeline.errors import LockstepError
from pipeline.table import TableName


class Deed(StrEnum):
    """What became of an entry."""

    REGISTERED = "registered"
    CHANGED = "changed"
    RENAMED = "renamed"
    DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Done:
    """Something that was done, or would be."""

    deed: Deed
    table: TableName
    name: EntryName


@dataclass(frozen=True, slots=True)
class CatalogReport:
    """`done`: what was changed in the catalog; `left`: tables that are not registered, or not as
    they should be; `fine`: how many are as they should be, of those that were looked at;
    `waiting`: what a run had no time for; `trouble`: what ended it too early. The next run goes on
    with both."""

    catalog: str
    done: tuple[Done, ...] = ()
    left: tuple[Left, ...] = ()
    fine: int = 0
    waiting: int = 0
    trouble: LockstepError | None = None
    seconds: float = 0.0
