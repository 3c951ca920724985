"""Gaps: parts of the log that no batch read because somebody chose to skip them. Tables
may lack changes after a gap. A table is open as long as its mirror (the Delta table
with its current rows) may lack some of them; afterwards it is closed.

Not here: which tables a gap names (`pipeline.run.begin`), keeping gaps
(`pipeline.ports.ledger`).

| after the gap, in an acknowledged batch | the table is |
|---|---|
| it was read from the source, created, or truncated | closed: no older row is in its mirror |
| all its rows were found equal to the source's | closed, as of the batch that was compared |
| it was dropped | closed: its mirror ended |
| it was renamed | as open as before, under the new name |
| anything else | open |

Once all tables of a gap are closed, nobody has to act on the gap any more. Its changes
stay missing from the changelogs, and from what mirrors showed before they were closed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import groupby
from types import MappingProxyType
from typing import ClassVar, Final

from lockstep.pipeline.model.table_state import TableEventKind
from lockstep.pipeline.values.table import TableName

CLOSING: Final = (
    TableEventKind.REREAD,
    TableEventKind.CREATED,
    TableEventKind.TRUNCATED,
    TableEventKind.DROPPED,
)
"""Events after which no row from before the gap is in a table's mirror."""


@dataclass(frozen=True, slots=True)
class GapEvent:
    """An event that matters to a gap: `table` had an event of a `kind` in `CLOSING`, or
    was renamed to `new_name`; with neither, all of its rows were found equal to the
    source's at the end of the batch. `batch` and `at`: the acknowledged batch, and when
    it was acknowledged or the rows were compared. `place`: number of the log file and
    offset of the statement."""

    json_keys: ClassVar = ("batch", "at as closed_at", "by", "table")

    table: str
    batch: int
    at: datetime
    kind: TableEventKind | None
    new_name: str = ""
    place: tuple[int, int] = (0, 0)

    @property
    def by(self) -> str:
        return "compared" if self.kind is None else self.kind.value


@dataclass(frozen=True, slots=True)
class Gap:
    """The part of the log from `begin` to `end`, which no batch read, because `author`
    decided so (`decision`) for `reason`. `batch`: the first batch after it. `tables`:
    the tables that may lack changes of it; `closed`: those of them that are closed,
    each with the event that closed it; `new_names`: the names of those that are open
    and were renamed since."""

    decision: int
    batch: int
    decided_at: datetime
    author: str
    reason: str
    tables: tuple[str, ...]
    begin: str
    end: str
    closed: Mapping[str, GapEvent] = field(default_factory=lambda: MappingProxyType({}))
    new_names: Mapping[str, str] = field(default_factory=lambda: MappingProxyType({}))

    @property
    def open_tables(self) -> tuple[str, ...]:
        return tuple(table for table in self.tables if table not in self.closed)

    @property
    def is_open(self) -> bool:
        return bool(self.open_tables)

    @property
    def sentence(self) -> str:
        return f"{self.begin} to {self.end} was never read ({self.reason})"

    def open_among(self, tables: Iterable[TableName]) -> list[TableName]:
        """Return those of these tables, by their names now, that are open."""
        names = {self.new_names.get(table, table) for table in self.open_tables}
        return sorted(table for table in tables if str(table) in names)


def with_closed(gap: Gap, events: Iterable[GapEvent]) -> Gap:
    """Return the gap with its closed tables. `events`: events of any batches and
    tables, in the order of the log."""
    names = {table: table for table in gap.tables}  # its tables → their names at the event
    closed: dict[str, GapEvent] = {}
    later = (event for event in events if event.batch >= gap.batch)
    # Events of one statement have one place.
    for (_, are_renames), events_together in groupby(
        later, key=lambda event: ((event.batch, event.place), bool(event.new_name))
    ):
        if are_renames:  # all renames of a statement at once, because it may swap two names
            new_names = {event.table: event.new_name for event in events_together}
            names = {table: new_names.get(name, name) for table, name in names.items()}
            continue
        for event in events_together:
            for table in [table for table, name in names.items() if name == event.table]:
                closed[table] = event
                del names[table]
    new_names = {table: name for table, name in names.items() if table != name}
    return replace(gap, closed=closed, new_names=new_names)
