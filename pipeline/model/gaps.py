"""Gaps: parts of the log that no batch read because somebody chose to skip them. Tables
may lack changes after a gap. A table is open as long as its mirror (the Delta table
with its current rows) may lack some of them; afterwards it is closed.

Not here: which tables a gap names (`pipeline.run.begin`), keeping gaps
(`pipeline.ports.ledger`).

| after the gap, in an acknowledged batch | the table is |
|---|---|
| it was read from the source, created, or truncated | closed: no older row is in its mirror |
| all its rows were found equal to the source's at a place after the gap | closed |
| it was dropped | closed: its mirror ended |
| it was renamed | as open as before, under the new name |
| anything else | open |

A comparison does not close a table that was renamed after the gap. Once all tables of a
gap are closed, nobody has to act on the gap any more. Its changes stay missing from the
changelogs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import ClassVar, Final

from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.proof.proven import ComparisonRecord, EqualityProof
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Position

CLOSING: Final = (
    TableEventKind.REREAD,
    TableEventKind.CREATED,
    TableEventKind.TRUNCATED,
    TableEventKind.DROPPED,
)
"""Events after which no row from before the gap is in a table's mirror."""


@dataclass(frozen=True, slots=True)
class ClosingEvent:
    """An event that matters to a gap: `table` had an event of a `kind` in `CLOSING`,
    or, if `kind` is None, was renamed to `new_name`. `batch` and `at`: the acknowledged
    batch, and when it was acknowledged. `place`: number of the log file and offset of
    the statement."""

    table: str
    batch: int
    at: datetime
    kind: TableEventKind | None
    new_name: str = ""
    place: tuple[int, int] = (0, 0)


@dataclass(frozen=True, slots=True)
class ClosedTable:
    """The closing of a table after a gap. An event of a `kind` in `CLOSING` closed it,
    in the acknowledged batch `batch`, where the table's name was `table`. If `kind` is
    None, a comparison closed it, and `batch` is the first batch after the gap."""

    json_keys: ClassVar = ("batch", "at as closed_at", "by", "table")

    batch: int
    at: datetime
    kind: TableEventKind | None
    table: str

    @property
    def by(self) -> str:
        return "compared" if self.kind is None else self.kind.value


@dataclass(frozen=True, slots=True)
class Gap:
    """The part of the log from `begin` to `end`, which no batch read, because `author`
    decided so (`decision`) for `reason`. `batch`: the first batch after it. `tables`:
    the tables that may lack changes of it; `closed`: those of them that are closed."""

    decision: int
    batch: int
    decided_at: datetime
    author: str
    reason: str
    tables: tuple[str, ...]
    begin: str
    end: str
    closed: Mapping[str, ClosedTable] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def open_tables(self) -> tuple[str, ...]:
        return tuple(table for table in self.tables if table not in self.closed)

    @property
    def is_open(self) -> bool:
        return bool(self.open_tables)


def comparison_times(
    records: Iterable[ComparisonRecord], start: Position, acknowledged_at: datetime | None
) -> dict[str, datetime]:
    """Return the tables whose rows were all found equal at a place after a gap, each
    with the time of that comparison. `start` and `acknowledged_at` are those of the
    first batch after the gap."""
    return {
        str(record.table): record.proven_at
        for record in records
        if record.is_whole and record.proof is not None and record.proven_at is not None
        if acknowledged_at is not None and record.proven_at > acknowledged_at
        if _is_at_or_after(record.proof, start)
    }


def _is_at_or_after(proof: EqualityProof, start: Position) -> bool:
    """Return whether the proof's place is `start` or later. Places in logs of different
    names can only be compared by their GTIDs."""
    is_same_log = proof.at.file.base == start.at.file.base
    if is_same_log and proof.at < start.at:
        return False
    if not start.gtid_set:
        return is_same_log
    return GtidSet.parse(proof.gtid_set).contains(start.gtid_set)


def with_closed(
    gap: Gap, events: Iterable[ClosingEvent], equal: Mapping[str, datetime] = MappingProxyType({})
) -> Gap:
    """Return the gap with its closed tables. `events`: events of any batches and
    tables, in the order of the log. `equal`: the result of `comparison_times`."""
    names = {table: table for table in gap.tables}  # its tables → their names at the event
    closed: dict[str, ClosedTable] = {}
    later = (event for event in events if event.batch >= gap.batch)
    for (_, are_renames), events_together in groupby(
        later, key=lambda event: ((event.batch, event.place), event.kind is None)
    ):
        if are_renames:  # all renames of a statement at once, because it may swap two names
            new_names = {event.table: event.new_name for event in events_together}
            names = {table: new_names.get(name, name) for table, name in names.items()}
            continue
        for event in events_together:
            for table in [table for table, name in names.items() if name == event.table]:
                if event.kind is not None:
                    closed[table] = ClosedTable(event.batch, event.at, event.kind, event.table)
                    del names[table]
    for table, name in names.items():
        if table == name and table in equal:
            closed[table] = ClosedTable(gap.batch, equal[table], None, table)
    return replace(gap, closed=closed)
