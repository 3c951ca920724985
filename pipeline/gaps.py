"""What no batch read, the tables that it may have touched, and what made each of them whole.

Belongs here: when a table's part of a gap is history. Does not: which tables a gap names
(`pipeline.runs.gaps`), keeping them (`pipeline.ports.ledger`).

| behind the gap, in an acknowledged batch | the table's part |
|---|---|
| it was read from the source, made anew, or emptied | closed: its mirror has nothing of before |
| it was dropped | closed: its mirror ended |
| another table took its mirror with its name | goes on under that name |
| anything else | open |

A gap is history once all its parts are closed. Its changes stay missing from the changelogs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import Final

from pipeline.table_state import TableEventKind

CLOSING: Final = (
    TableEventKind.REREAD,
    TableEventKind.CREATED,
    TableEventKind.TRUNCATED,
    TableEventKind.DROPPED,
)


@dataclass(frozen=True, slots=True)
class Happened:
    """What happened to a table in an acknowledged batch: an event of `CLOSING`, or, without
    a kind, that its mirror went to the table `taker`."""

    table: str
    batch: int
    at: datetime
    kind: TableEventKind | None
    taker: str = ""


@dataclass(frozen=True, slots=True)
class Closed:
    """What made a table whole behind a gap: in which batch, acknowledged when, and under
    which name it went by then."""

    batch: int
    at: datetime
    kind: TableEventKind
    table: str


@dataclass(frozen=True, slots=True)
class Gap:
    """Changes between two places of the log that no batch read, by whose choice and why.
    `tables` may miss some; `closed`: those of them that are whole again."""

    decision: int
    batch: int
    decided_at: datetime
    author: str
    reason: str
    tables: tuple[str, ...]
    begin: str
    end: str
    closed: Mapping[str, Closed] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def open_tables(self) -> tuple[str, ...]:
        """Tables whose rows may be wrong."""
        return tuple(table for table in self.tables if table not in self.closed)

    @property
    def is_open(self) -> bool:
        return bool(self.open_tables)


def with_closed(gap: Gap, happened: Iterable[Happened]) -> Gap:
    """The gap with those of its tables that are whole again; `happened` in the order of the
    log, whatever else it tells of."""
    names = {table: table for table in gap.tables}
    closed: dict[str, Closed] = {}
    behind = (one for one in happened if one.batch >= gap.batch)
    for (_, handed), those in groupby(behind, key=lambda one: (one.batch, one.kind is None)):
        if handed:  # all of a batch at once: two tables may have changed places
            takers = {one.table: one.taker for one in those}
            names = {part: takers.get(now, now) for part, now in names.items()}
            continue
        for one in those:
            for part in [part for part, now in names.items() if now == one.table]:
                if one.kind is not None:
                    closed[part] = Closed(one.batch, one.at, one.kind, one.table)
                    del names[part]
    return replace(gap, closed=closed)
