"""Parent tables of foreign keys: a server that does not log the rows which a cascade changes in
the children logs no more than the parent's event, so each event on a parent is inspected.

Belongs here: which tables those are, captured or not, and what their events in a block did to
captured children. Does not: what foreign keys do (`foreign_keys`), what becomes of the tables that
lost rows (`segment_builder`).

No value of a table that is only watched is decoded and no row of it is kept: what counts is that
rows were deleted, and whether columns that children refer to got other bytes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from pipeline.binlog.rows.parts import by_map
from pipeline.binlog.rows.rows import TableDecoder
from pipeline.binlog.rows.table_map import TableMap, read_layouts
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.framing import EventType
from pipeline.binlog.stream.ring import Block, Integers, TransactionGroup
from pipeline.errors import TableError
from pipeline.position import Coordinates
from pipeline.runs.capturing.foreign_keys import Harm, References, unlogged
from pipeline.runs.capturing.schema_choice import checked
from pipeline.schema.history import Knowledge
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName

_DELETES = (EventType.DELETE_ROWS_V1, EventType.DELETE_ROWS)


@dataclass(frozen=True, slots=True)
class LostRows:
    """A captured table lost rows, or values of them, unseen: in `transaction` (its row in
    the run's index), which begins at `at`."""

    table: TableName
    transaction: int
    at: Coordinates
    reason: str

    def before(self, events: Integers) -> Integers:
        """Which events belong to transactions before that one."""
        return np.flatnonzero(events[:, columns.TRANSACTION] < self.transaction)


class Watch:
    """`captured_tables`: whether rows of a table are taken, if there are any."""

    def __init__(self, structures: SchemaTracker, captured: Callable[[TableName], bool]) -> None:
        self._structures = structures
        self._captured = captured
        self._references: References | None = None
        self._watched: frozenset[TableName] = frozenset()
        self.inspected: dict[TableName, frozenset[TableName]] = {}
        """Parents whose events were read by their structures, each with its `children`."""

    def moved(self) -> bool:
        """Structures changed; whether other tables are watched since."""
        before = self._watched
        if self._references is None:
            return False
        self._references = None
        self._known()
        return self._watched != before

    def watches(self, table: TableName) -> bool:
        """Whether rows of captured tables may go with this one's."""
        self._known()
        return self._structures.fold(table) in self._watched

    def _any(self) -> bool:
        self._known()
        return bool(self._watched)

    def _known(self) -> References:
        if self._references is None:
            fold = self._structures.fold
            self._references = References(self._structures.referring(), fold)
            self._watched = self._references.above(self._captured)
        return self._references

    def lost(
        self, group: TransactionGroup, block: Block, maps: Iterable[TableMap]
    ) -> dict[TableName, LostRows]:
        """What a block's events did to captured tables unseen. `maps`: by their numbers."""
        unseen = np.flatnonzero(unlogged(block.events))
        if not len(unseen) or not self._any():
            return {}
        known, found = list(maps), dict[TableName, Harm]()
        for number, which, part in by_map(Block(block.data, block.events[unseen])):
            parent = known[number].table
            if not self.watches(parent):
                continue
            self.inspected[parent] = self.inspected.get(parent, frozenset()) | self.children(parent)
            harm = self._harm(known[number], part, unseen[which])
            for table, one in self._known().below(parent, harm).items():
                if self._captured(table):
                    found.setdefault(table, Harm()).add(one)
        return {table: _lost(group, block, table, one) for table, one in found.items()}

    def children(self, parent: TableName) -> frozenset[TableName]:
        """Captured tables whose rows may change unseen together with the parent's."""
        references = self._known()
        worst = Harm(deleted=0, updated=dict.fromkeys(references.columns_of(parent), 0))
        return frozenset(filter(self._captured, references.below(parent, worst)))

    def _harm(self, mapped: TableMap, part: Block, events: Integers) -> Harm:
        """What these events of one table did to its own rows."""
        deletes = np.isin(part.events[:, columns.TYPE], _DELETES)
        harm = Harm(deleted=int(events[deletes][0]) if deletes.any() else None)
        wanted = self._known().columns_of(mapped.table)
        if wanted and not deletes.all():
            updates = Block(part.data, part.events[~deletes])
            changes = self._changes(mapped, updates, wanted)
            harm.updated = {name: int(events[~deletes][row]) for name, row in changes.items()}
        return harm

    def _changes(self, mapped: TableMap, updates: Block, wanted: Iterable[str]) -> dict[str, int]:
        """Columns that updates changed, each with the first event; where that cannot be told,
        all of them."""
        version = self._structures.version(mapped.table)
        if version is None or version.knowledge is not Knowledge.KNOWN:
            return dict.fromkeys(wanted, 0)
        structure = version.structure
        names = [column.name.lower() for column in structure.columns]
        try:
            hidden, layouts = checked(version, mapped), read_layouts(mapped)
            decoder = TableDecoder(structure, layouts, pa.schema([]), hidden=hidden)
            places = [names.index(name) for name in wanted if name in names]
            found = decoder.first_changes(updates, places)
        except TableError:
            return dict.fromkeys(wanted, 0)
        return {names[place]: row for place, row in found.items()}


def _lost(group: TransactionGroup, block: Block, table: TableName, harm: Harm) -> LostRows:
    transaction = int(block.events[harm.first, columns.TRANSACTION])
    return LostRows(table, transaction, group.begin(transaction), harm.reason)
