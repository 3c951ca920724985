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

from lockstep.pipeline.binlog.rows.maps import split_by_map
from lockstep.pipeline.binlog.rows.rows import TableDecoder
from lockstep.pipeline.binlog.rows.table_map import TableMap, read_layouts
from lockstep.pipeline.binlog.stream import ring as columns
from lockstep.pipeline.binlog.stream.framing import EventType
from lockstep.pipeline.binlog.stream.ring import Block, Integers, TransactionGroup
from lockstep.pipeline.run.dump.table_map_check import checked_hidden_columns
from lockstep.pipeline.schema.history import Knowledge
from lockstep.pipeline.schema.model import ROW_CHANGING_ACTIONS, ForeignKey, TableSchema
from lockstep.pipeline.schema.tracker import SchemaTracker
from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName

_DELETES: Final = (EventType.DELETE_ROWS_V1, EventType.DELETE_ROWS)


@dataclass(frozen=True, slots=True)
class UnloggedCascade:
    """Changes of a captured table by a foreign key that are not in the log.
    `transaction_index`: the index, in its group, of the first transaction with such a
    change. `at`: the place where it begins. `reason`: a sentence for people, about the
    first such change."""

    table: TableName
    transaction_index: int
    at: Coordinates
    reason: str

    def before(self, events: Integers) -> Integers:
        """Return the indexes of events that belong to earlier transactions."""
        return np.flatnonzero(events[:, columns.TRANSACTION] < self.transaction_index)


class CascadeWatch:
    """Inspects the events of the captured tables' parents, and finds changes of
    captured rows by foreign keys. `is_captured`: returns whether rows of a table are
    captured."""

    def __init__(self, structures: SchemaTracker, is_captured: Callable[[TableName], bool]) -> None:
        self._structures = structures
        self._is_captured = is_captured
        self._read: tuple[References, frozenset[TableName]] | None = None
        self.inspected_parents: dict[TableName, frozenset[TableName]] = {}
        """Parents whose events were inspected, each with its `children`."""

    def refresh(self) -> bool:
        """Read the foreign keys again after a change of structures. Return whether the
        set of watched tables changed."""
        if self._read is None:
            return False
        _, watched_before = self._read
        self._read = None
        _, watched_parents = self._references_and_watched()
        return watched_parents != watched_before

    def watches(self, table: TableName) -> bool:
        """Return whether a change of this table's rows may change rows of captured
        tables."""
        _, watched_parents = self._references_and_watched()
        return self._structures.fold_case(table) in watched_parents

    def _references_and_watched(self) -> tuple[References, frozenset[TableName]]:
        """Return the foreign keys as last read, and the parents of captured tables."""
        if self._read is None:
            fold = self._structures.fold_case
            references = References(self._structures.tables_with_foreign_keys(), fold)
            self._read = references, references.parents_of(self._is_captured)
        return self._read

    def find_unlogged(
        self, group: TransactionGroup, block: Block, maps: Iterable[TableMap]
    ) -> dict[TableName, UnloggedCascade]:
        """Return the captured tables whose rows foreign keys may have changed without
        MySQL logging it, because of this block's events. Each table has the first such
        change. `maps`: all table maps, by index."""
        event_indexes = np.flatnonzero(may_change_children(block.events))
        if not len(event_indexes):
            return {}
        references, watched_parents = self._references_and_watched()
        if not watched_parents:
            return {}
        table_maps = list(maps)
        changes: dict[TableName, ChangedRows] = {}
        for map_index, indexes, sub_block in split_by_map(block.subset(event_indexes)):
            parent = table_maps[map_index].table
            if not self.watches(parent):
                continue
            known_children = self.inspected_parents.get(parent, frozenset())
            self.inspected_parents[parent] = known_children | self.children(parent)
            parent_change = self._change_of_parent(
                table_maps[map_index], sub_block, event_indexes[indexes]
            )
            for table, change in references.changes_of_children(parent, parent_change).items():
                if self._is_captured(table):
                    changes.setdefault(table, ChangedRows()).widen(change)
        unlogged_changes = {}
        for table, change in changes.items():
            transaction_index = int(block.events[change.first_event, columns.TRANSACTION])
            unlogged_changes[table] = UnloggedCascade(
                table, transaction_index, group.begin(transaction_index), change.reason
            )
        return unlogged_changes

    def children(self, parent: TableName) -> frozenset[TableName]:
        """Return the captured tables that foreign keys may change together with the
        parent."""
        references, _ = self._references_and_watched()
        largest_change = ChangedRows(
            first_delete=0, updated_columns=dict.fromkeys(references.columns_of(parent), 0)
        )
        return frozenset(
            filter(self._is_captured, references.changes_of_children(parent, largest_change))
        )

    def _change_of_parent(
        self, table_map: TableMap, sub_block: Block, event_indexes: Integers
    ) -> ChangedRows:
        """Return how the events of `sub_block` changed the rows of the parent itself.
        `event_indexes`: the indexes of these events in the whole block."""
        deletes = np.isin(sub_block.events[:, columns.TYPE], _DELETES)
        change = ChangedRows()
        if deletes.any():
            change.first_delete = int(event_indexes[deletes][0])
        references, _ = self._references_and_watched()
        referenced_columns = references.columns_of(table_map.table)
        if referenced_columns and not deletes.all():
            updates = sub_block.subset(~deletes)
            first_updates = self._updated_columns(table_map, updates, referenced_columns)
            change.updated_columns = {
                name: int(event_indexes[~deletes][index]) for name, index in first_updates.items()
            }
        return change

    def _updated_columns(
        self, table_map: TableMap, updates: Block, wanted_columns: Iterable[str]
    ) -> dict[str, int]:
        """Return the wanted columns that the updates changed, each with the index of
        the first event that changed it. If the events cannot be decoded, return all
        wanted columns: it is better to stop a table without need than to miss a
        change."""
        version = self._structures.version(table_map.table)
        if version is None or version.knowledge is not Knowledge.KNOWN:
            return dict.fromkeys(wanted_columns, 0)
        structure = version.structure
        names = [column.name.lower() for column in structure.columns]
        try:
            hidden, layouts = checked_hidden_columns(version, table_map), read_layouts(table_map)
            decoder = TableDecoder(structure, layouts, pa.schema([]), hidden_indexes=hidden)
            indexes = [names.index(name) for name in wanted_columns if name in names]
            first_events = decoder.first_changed_events(updates, indexes)
        except TableError:
            return dict.fromkeys(wanted_columns, 0)
        return {names[column]: event for column, event in first_events.items()}


_KEYS_ABOVE_ENGINE: Final = 0x10
_KEYS_UNCHECKED: Final = 0x02
_WRITES: Final = (EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS)


def may_change_children(events: Integers) -> npt.NDArray[np.bool_]:
    """Return a mask of the deletes and updates whose foreign keys the storage engine
    carried out. They may have changed children without logging it."""
    flags = events[:, columns.FLAGS]
    writes = np.isin(events[:, columns.TYPE], _WRITES)
    mask: npt.NDArray[np.bool_] = ((flags & (_KEYS_ABOVE_ENGINE | _KEYS_UNCHECKED)) == 0) & ~writes
    return mask


@dataclass(slots=True)
class ChangedRows:
    """A change of a table's rows: of a parent by events of the log, or of a child by
    foreign keys.

    - `first_delete`: the index of the first event that deleted rows; None if none did.
    - `updated_columns`: the changed columns, in lower case, each with the index of the
      first event that changed it. Indexes ascend in the order of the log.
    - `reason`: a sentence for people, about the first event.
    """

    first_delete: int | None = None
    updated_columns: dict[str, int] = field(default_factory=dict)
    reason: str = ""

    @property
    def first_event(self) -> int:
        """The index of the first event."""
        events = (self.first_delete, *self.updated_columns.values())
        return min(event for event in events if event is not None)

    def widen(self, other: ChangedRows) -> bool:
        """Add another change of the same table. Return whether this added a deletion, a
        column, or an earlier event."""
        if not self.reason or other.first_event < self.first_event:
            self.reason = other.reason
        previous = self.first_delete, dict(self.updated_columns)
        delete_events = [
            event for event in (self.first_delete, other.first_delete) if event is not None
        ]
        self.first_delete = min(delete_events, default=None)
        for name, event in other.updated_columns.items():
            self.updated_columns[name] = min(event, self.updated_columns.get(name, event))
        return (self.first_delete, self.updated_columns) != previous


class References:
    """The foreign keys that change rows of children, by parent. `fold_case`: returns a
    name as the server compares names (in lower case, if it ignores case)."""

    def __init__(
        self, schemas: Iterable[TableSchema], fold_case: Callable[[TableName], TableName]
    ) -> None:
        self._fold_case = fold_case
        self._keys: dict[TableName, list[tuple[TableName, ForeignKey]]] = {}
        for table in schemas:
            for key in table.foreign_keys:
                if key.on_delete in ROW_CHANGING_ACTIONS or key.on_update in ROW_CHANGING_ACTIONS:
                    keys_of_parent = self._keys.setdefault(fold_case(key.references), [])
                    keys_of_parent.append((table.name, key))

    def parents_of(self, is_wanted: Callable[[TableName], bool]) -> frozenset[TableName]:
        """Return the direct and indirect parents of wanted tables, by their folded
        names."""
        parents: set[TableName] = set()
        while new_parents := {
            parent
            for parent, keys in self._keys.items()
            if parent not in parents
            and any(self._fold_case(child) in parents or is_wanted(child) for child, _ in keys)
        }:
            parents |= new_parents
        return frozenset(parents)

    def columns_of(self, parent: TableName) -> frozenset[str]:
        """Return the parent's columns, in lower case, whose updates cascade to
        children."""
        return frozenset(
            name.lower()
            for _, key in self._keys.get(self._fold_case(parent), ())
            if key.on_update in ROW_CHANGING_ACTIONS
            for name in key.referenced
        )

    def changes_of_children(
        self, parent: TableName, change: ChangedRows
    ) -> Mapping[TableName, ChangedRows]:
        """Return the direct and indirect children of `parent`, each with the change
        that foreign keys may have made in it. `change`: the change of the parent's
        rows."""
        changes: dict[TableName, ChangedRows] = {}
        names: dict[TableName, TableName] = {}
        parents_to_visit = [(self._fold_case(parent), change)]
        while parents_to_visit:
            folded_parent, change_of_parent = parents_to_visit.pop()
            for child, key in self._keys.get(folded_parent, ()):
                change_of_child = _change_by_key(change_of_parent, key)
                if change_of_child is None:
                    continue
                folded_child = self._fold_case(child)
                names[folded_child] = child
                # Foreign keys may form a cycle: a child is visited again only if its
                # change grew.
                if changes.setdefault(folded_child, ChangedRows()).widen(change_of_child):
                    parents_to_visit.append((folded_child, change_of_child))
        return {
            names[folded_child]: change_of_child
            for folded_child, change_of_child in changes.items()
        }


def _change_by_key(parent_change: ChangedRows, key: ForeignKey) -> ChangedRows | None:
    """Return the change that a foreign key makes in the child after `parent_change`, a
    change of the parent; None if it makes none."""
    change = ChangedRows()
    action = ""
    if parent_change.first_delete is not None and key.on_delete in ROW_CHANGING_ACTIONS:
        action = f"ON DELETE {key.on_delete}"
        if key.on_delete == "CASCADE":
            change.first_delete = parent_change.first_delete
        else:
            change.updated_columns = {
                name.lower(): parent_change.first_delete for name in key.columns
            }
    referenced_columns = [name.lower() for name in key.referenced]
    events = [
        parent_change.updated_columns[name]
        for name in referenced_columns
        if name in parent_change.updated_columns
    ]
    if events and key.on_update in ROW_CHANGING_ACTIONS:
        if not action or min(events) < change.first_event:
            action = f"ON UPDATE {key.on_update}"
        change.widen(
            ChangedRows(updated_columns={name.lower(): min(events) for name in key.columns})
        )
    if not action:
        return None
    change.reason = (
        f"rows of its parent table {key.references} were changed, and the server does not log the "
        f"rows that {action} of {key.name} changed"
    )
    return change
