"""Parent tables of foreign keys. MySQL before 9.6 and MariaDB do not log the rows that
ON DELETE/UPDATE CASCADE changes in child tables. So each event on a parent is inspected
for its effects on the children.

No row of a parent is kept. It only matters whether rows were deleted, and whether the
bytes of a column that children refer to changed.

From 9.6 on, MySQL carries out foreign keys above its storage engines and logs the
changed rows; each rows event of such a statement has the flag 0x10. Before 9.6, on
MariaDB, and with `innodb_native_foreign_keys=ON`, the storage engine carries them out,
and only the parent's event is in the log. The flag 0x02 says that the statement did not
check foreign keys, so no child was changed (`Rows_event::enum_flag` in
`libs/mysql/binlog/event/rows_event.h`; tried on MySQL 9.7.4 and MariaDB 10.11.19).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from lockstep.pipeline.binlog.rows.maps import by_map
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.rows.table_map import TableMap, read_layouts
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.binlog.stream.ring import Block, Integers, TransactionGroup
from lockstep.pipeline.run.dump.image_decoder import checked_hidden_columns
from lockstep.pipeline.schema.history import Knowledge
from lockstep.pipeline.schema.model import ForeignKey, TableSchema
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

_DELETES = (EventType.DELETE_ROWS_V1, EventType.DELETE_ROWS)


@dataclass(frozen=True, slots=True)
class UnloggedLoss:
    """Changes of a captured table by a foreign key that are not in the log.
    `transaction`: the index of the first such transaction in its group. `at`: the place
    where it begins. `reason`: a sentence for people."""

    table: TableName
    transaction: int
    at: Coordinates
    reason: str

    def before(self, events: Integers) -> Integers:
        """Return the indexes of events that belong to earlier transactions."""
        return np.flatnonzero(events[:, columns.TRANSACTION] < self.transaction)


class CascadeWatch:
    """Inspects the events of the captured tables' parents, and finds changes of
    captured rows by foreign keys. `captured`: returns whether rows of a table are
    captured."""

    def __init__(self, structures: SchemaTracker, captured: Callable[[TableName], bool]) -> None:
        self._structures = structures
        self._captured = captured
        self._references: References | None = None
        self._watched: frozenset[TableName] = frozenset()
        self.inspected: dict[TableName, frozenset[TableName]] = {}
        """Parents whose events were inspected, each with its `children`."""

    def refresh(self) -> bool:
        """Read the foreign keys again after a change of structures. Return whether the
        set of watched tables changed."""
        if self._references is None:
            return False
        before, self._references = self._watched, None
        self._read_references()
        return self._watched != before

    def watches(self, table: TableName) -> bool:
        """Return whether a change of this table's rows may change rows of captured
        tables."""
        self._read_references()
        return self._structures.fold_case(table) in self._watched

    def _read_references(self) -> References:
        if self._references is None:
            fold = self._structures.fold_case
            self._references = References(self._structures.tables_with_foreign_keys(), fold)
            self._watched = self._references.above(self._captured)
        return self._references

    def lost(
        self, group: TransactionGroup, block: Block, maps: Iterable[TableMap]
    ) -> dict[TableName, UnloggedLoss]:
        """Return the captured tables with rows that foreign keys changed, without
        logging, because of this block's events. The value is the first such change.
        `maps`: all table maps, by number."""
        unseen = np.flatnonzero(unlogged(block.events))
        if not len(unseen):
            return {}
        references = self._read_references()
        if not self._watched:
            return {}
        by_number, changes = list(maps), dict[TableName, UnloggedChange]()
        for number, which, part in by_map(Block(block.data, block.events[unseen])):
            parent = by_number[number].table
            if not self.watches(parent):
                continue
            self.inspected[parent] = self.inspected.get(parent, frozenset()) | self.children(parent)
            of_parent = self._change_of(by_number[number], part, unseen[which])
            for table, change in references.below(parent, of_parent).items():
                if self._captured(table):
                    changes.setdefault(table, UnloggedChange()).add(change)
        lost = {}
        for table, change in changes.items():
            transaction = int(block.events[change.first, columns.TRANSACTION])
            lost[table] = UnloggedLoss(table, transaction, group.begin(transaction), change.reason)
        return lost

    def children(self, parent: TableName) -> frozenset[TableName]:
        """Return the captured tables that foreign keys may change together with the
        parent."""
        references = self._read_references()
        worst = UnloggedChange(deleted=0, updated=dict.fromkeys(references.columns_of(parent), 0))
        return frozenset(filter(self._captured, references.below(parent, worst)))

    def _change_of(self, mapped: TableMap, part: Block, events: Integers) -> UnloggedChange:
        """Return how these events changed the rows of the parent itself. `events`: the
        numbers of the events in their block."""
        deletes = np.isin(part.events[:, columns.TYPE], _DELETES)
        change = UnloggedChange(deleted=int(events[deletes][0]) if deletes.any() else None)
        wanted = self._read_references().columns_of(mapped.table)
        if wanted and not deletes.all():
            updates = Block(part.data, part.events[~deletes])
            rows = self._updated_columns(mapped, updates, wanted)
            change.updated = {name: int(events[~deletes][row]) for name, row in rows.items()}
        return change

    def _updated_columns(
        self, mapped: TableMap, updates: Block, wanted: Iterable[str]
    ) -> dict[str, int]:
        """Return the wanted columns that the updates changed, each with the index of
        the first event that changed it. If the events cannot be decoded, return all
        wanted columns: it is better to stop a table without need than to miss a
        change."""
        version = self._structures.version(mapped.table)
        if version is None or version.knowledge is not Knowledge.KNOWN:
            return dict.fromkeys(wanted, 0)
        structure = version.structure
        names = [column.name.lower() for column in structure.columns]
        try:
            hidden, layouts = checked_hidden_columns(version, mapped), read_layouts(mapped)
            decoder = TableDecoder(structure, layouts, pa.schema([]), hidden=hidden)
            places = [names.index(name) for name in wanted if name in names]
            rows = decoder.first_changes(updates, places)
        except TableError:
            return dict.fromkeys(wanted, 0)
        return {names[place]: row for place, row in rows.items()}


_KEYS_ABOVE_ENGINE: Final = 0x10
_KEYS_UNCHECKED: Final = 0x02
_WRITES: Final = (EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS)
_CHANGES_CHILDREN: Final = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


def unlogged(events: Integers) -> npt.NDArray[np.bool_]:
    """Return a mask of the deletes and updates whose foreign keys the storage engine
    carried out. They may have changed children without logging it."""
    flags = events[:, columns.FLAGS]
    writes = np.isin(events[:, columns.TYPE], _WRITES)
    mask: npt.NDArray[np.bool_] = ((flags & (_KEYS_ABOVE_ENGINE | _KEYS_UNCHECKED)) == 0) & ~writes
    return mask


@dataclass(slots=True)
class UnloggedChange:
    """A change of a table's rows that the log may lack.

    - `deleted`: the number of the first event that deleted rows; None if none did.
    - `updated`: the changed columns, in lower case, each with the number of the first event that
      changed it. Numbers ascend in the order of the log.
    - `reason`: a sentence for people.
    """

    deleted: int | None = None
    updated: dict[str, int] = field(default_factory=dict)
    reason: str = ""

    @property
    def first(self) -> int:
        """The number of the first event."""
        events = (self.deleted, *self.updated.values())
        return min(event for event in events if event is not None)

    def add(self, other: UnloggedChange) -> bool:
        """Add another change of the same table. Return whether this added a deletion, a
        column, or an earlier event."""
        before = self.deleted, dict(self.updated)
        deletions = [event for event in (self.deleted, other.deleted) if event is not None]
        self.deleted = min(deletions, default=None)
        for name, event in other.updated.items():
            self.updated[name] = min(event, self.updated.get(name, event))
        self.reason = self.reason or other.reason
        return (self.deleted, self.updated) != before


class References:
    """The foreign keys that change rows of children, by parent. `fold_case`: returns a name
    as the server compares names (in lower case, if it ignores case)."""

    def __init__(
        self, tables: Iterable[TableSchema], fold: Callable[[TableName], TableName]
    ) -> None:
        self._fold = fold
        self._keys: dict[TableName, list[tuple[TableName, ForeignKey]]] = {}
        for table in tables:
            for key in table.foreign_keys:
                if key.on_delete in _CHANGES_CHILDREN or key.on_update in _CHANGES_CHILDREN:
                    of_parent = self._keys.setdefault(fold(key.references), [])
                    of_parent.append((table.name, key))

    def above(self, wanted: Callable[[TableName], bool]) -> frozenset[TableName]:
        """Return the direct and indirect parents of wanted tables, by their folded
        names."""
        parents: set[TableName] = set()
        while new := {
            parent
            for parent, keys in self._keys.items()
            if parent not in parents
            and any(self._fold(child) in parents or wanted(child) for child, _ in keys)
        }:
            parents |= new
        return frozenset(parents)

    def columns_of(self, parent: TableName) -> frozenset[str]:
        """Return the parent's columns, in lower case, whose updates cascade to
        children."""
        return frozenset(
            name.lower()
            for _, key in self._keys.get(self._fold(parent), ())
            if key.on_update in _CHANGES_CHILDREN
            for name in key.referenced
        )

    def below(
        self, parent: TableName, change: UnloggedChange
    ) -> Mapping[TableName, UnloggedChange]:
        """Return the direct and indirect children of `parent`, each with the change
        that foreign keys may have made in it. `change`: the change of the parent's
        rows."""
        changes: dict[TableName, UnloggedChange] = {}
        names: dict[TableName, TableName] = {}
        waiting = [(self._fold(parent), change)]
        while waiting:
            folded_parent, change_of_parent = waiting.pop()
            for child, key in self._keys.get(folded_parent, ()):
                change_of_child = _passed_on(parent, change_of_parent, key)
                if change_of_child is None:
                    continue
                folded = self._fold(child)
                names[folded] = child
                # Foreign keys may form a cycle: a child is visited again only if its
                # change grew.
                if changes.setdefault(folded, UnloggedChange()).add(change_of_child):
                    waiting.append((folded, change_of_child))
        return {names[folded]: of_child for folded, of_child in changes.items()}


def _passed_on(
    parent: TableName, of_parent: UnloggedChange, key: ForeignKey
) -> UnloggedChange | None:
    """Return the change that a foreign key makes in the child after `of_parent`, a
    change of the parent; None if it makes none."""
    change, rule = UnloggedChange(), ""
    if of_parent.deleted is not None and key.on_delete in _CHANGES_CHILDREN:
        rule = f"ON DELETE {key.on_delete}"
        if key.on_delete == "CASCADE":
            change.deleted = of_parent.deleted
        else:
            change.updated = {name.lower(): of_parent.deleted for name in key.columns}
    referenced = [name.lower() for name in key.referenced]
    events = [of_parent.updated[name] for name in referenced if name in of_parent.updated]
    if events and key.on_update in _CHANGES_CHILDREN:
        rule = rule or f"ON UPDATE {key.on_update}"
        change.add(UnloggedChange(updated={name.lower(): min(events) for name in key.columns}))
    if not rule:
        return None
    change.reason = (
        f"rows of {parent} to which it may refer were changed, and the server does not log "
        f"the rows that {rule} of {key.name} changed"
    )
    return change
