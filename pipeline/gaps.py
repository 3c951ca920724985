"""What no batch read, the tables that it may have touched, and what made each of them whole.

Not here: which tables a gap names (`pipeline.runs.begin`), keeping them (`pipeline.ports.ledger`).

| behind the gap, once its batch is acknowledged | the table's part |
|---|---|
| it was read from the source, made anew, or emptied | closed: its mirror has nothing of before |
| all its rows were found equal to the source's at a place behind the gap | closed |
| it was dropped | closed: its mirror ended |
| its rows went to another name | goes on under that name |
| anything else | open |

A comparison tells nothing of a table whose rows have gone to another name since. A gap
is history once all its parts are closed. Its changes stay missing from the changelogs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import ClassVar, Final

from pipeline.gtid import GtidSet
from pipeline.position import Position
from pipeline.proof.proven import Proven, TableProof
from pipeline.table_state import TableEventKind

CLOSING: Final = (
    TableEventKind.REREAD,
    TableEventKind.CREATED,
    TableEventKind.TRUNCATED,
    TableEventKind.DROPPED,
)


@dataclass(frozen=True, slots=True)
class ClosingEvent:
    """What happened to a table in an acknowledged batch: an event of `CLOSING`, or, without
    a kind, that its rows went to the table `taker`. `place`: of the statement, by the file's number
    and the offset."""

    table: str
    batch: int
    at: datetime
    kind: TableEventKind | None
    taker: str = ""
    place: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class Closed:
    """What made a table whole behind a gap: in which batch, acknowledged when, and under
    which name it went by then. `kind` None: a comparison found it equal then, and `batch` is the
    one behind the gap."""

    json_keys: ClassVar = ("batch", "at", "by", "table")

    batch: int
    at: datetime
    kind: TableEventKind | None
    table: str

    @property
    def by(self) -> str:
        return "compared" if self.kind is None else self.kind.value


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
        return tuple(table for table in self.tables if table not in self.closed)

    @property
    def is_open(self) -> bool:
        return bool(self.open_tables)


def found_equal(
    proofs: Iterable[TableProof], start: Position, acknowledged_at: datetime | None
) -> dict[str, datetime]:
    """Tables of which every row was found equal at a place behind a gap, and when; `start`: of
    the batch that goes on there, `acknowledged_at` of that one."""
    return {
        str(proof.table): proof.proven_at
        for proof in proofs
        if proof.whole and proof.proven is not None and proof.proven_at is not None
        if acknowledged_at is not None and proof.proven_at > acknowledged_at
        if _reached(proof.proven, start)
    }


def _reached(proven: Proven, start: Position) -> bool:
    """On the log of another server GTIDs alone tell."""
    here = proven.at.file.base == start.at.file.base
    if here and proven.at < start.at:
        return False
    if not start.gtid_set:
        return here
    return GtidSet.parse(proven.gtid_set).contains(start.gtid_set)


def with_closed(
    gap: Gap, happened: Iterable[ClosingEvent], equal: Mapping[str, datetime] = MappingProxyType({})
) -> Gap:
    """The gap with those of its tables that are whole again; `happened` in the order of the
    log, whatever else it tells of; `equal`: as `found_equal` tells."""
    names = {table: table for table in gap.tables}
    closed: dict[str, Closed] = {}
    behind = (event for event in happened if event.batch >= gap.batch)
    for (_, handed), those in groupby(
        behind, key=lambda one: ((one.batch, one.place), one.kind is None)
    ):
        if handed:  # all of a statement at once: two tables may have changed places
            takers = {event.table: event.taker for event in those}
            names = {part: takers.get(now, now) for part, now in names.items()}
            continue
        for one in those:
            for part in [part for part, now in names.items() if now == one.table]:
                if one.kind is not None:
                    closed[part] = Closed(one.batch, one.at, one.kind, one.table)
                    del names[part]
    for part, now in names.items():
        if part == now and part in equal:
            closed[part] = Closed(gap.batch, equal[part], None, part)
    return replace(gap, closed=closed)
