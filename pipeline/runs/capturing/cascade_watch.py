"""Parent tables of foreign keys: a server that does not log the rows which a cascade changes in
the children logs no more than the parent's event, so each event on a parent is inspected.

No value of a table that is only watched is decoded and no row of it is kept: what counts is that
rows were deleted, and whether columns that children refer to got other bytes.

MySQL from 9.6 on carries out foreign keys above its engines and logs what they do; each rows
event of such a statement has the flag 0x10. Before that, with
`innodb_native_foreign_keys=ON`, and on MariaDB the engine does it, and only the parent's
event is in the log. The flag 0x02 says that foreign keys were not looked at
(`Rows_event::enum_flag` in `libs/mysql/binlog/event/rows_event.h`; tried on MySQL 9.7.4 and
MariaDB 10.11.19).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.binlog.rows.parts import by_map
from pipeline.binlog.rows.rows import TableDecoder
from pipeline.binlog.rows.table_map import TableMap, read_layouts
from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.framing import EventType
from pipeline.binlog.stream.ring import Block, Integers, TransactionGroup
from pipeline.errors import TableError
from pipeline.position import Coordinates
from pipeline.runs.capturing.image_decoder import checked
from pipeline.schema.history import Knowledge
from pipeline.schema.model import ForeignKey, TableSchema
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
        if not len(unseen):
            return {}
        references = self._known()
        if not self._watched:
            return {}
        known, found = list(maps), dict[TableName, Harm]()
        for number, which, part in by_map(Block(block.data, block.events[unseen])):
            parent = known[number].table
            if not self.watches(parent):
                continue
            self.inspected[parent] = self.inspected.get(parent, frozenset()) | self.children(parent)
            harm = self._harm(known[number], part, unseen[which])
            for table, one in references.below(parent, harm).items():
                if self._captured(table):
                    found.setdefault(table, Harm()).add(one)
        lost = {}
        for table, harm in found.items():
            transaction = int(block.events[harm.first, columns.TRANSACTION])
            lost[table] = LostRows(table, transaction, group.begin(transaction), harm.reason)
        return lost

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


_BY_SQL: Final = 0x10
_UNCHECKED: Final = 0x02
_WRITES: Final = (EventType.WRITE_ROWS_V1, EventType.WRITE_ROWS)
_ACTS: Final = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


def unlogged(events: Integers) -> npt.NDArray[np.bool_]:
    """Which rows events delete or update, and let foreign keys act unseen."""
    flags = events[:, columns.FLAGS]
    writes = np.isin(events[:, columns.TYPE], _WRITES)
    found: npt.NDArray[np.bool_] = ((flags & (_BY_SQL | _UNCHECKED)) == 0) & ~writes
    return found


@dataclass(slots=True)
class Harm:
    """What became of some of a table's rows, each with the first event that did it, a number
    that grows with the log: they were deleted, or these columns (in lower case) got other
    values. `reason`: a sentence, for what no event tells."""

    deleted: int | None = None
    updated: dict[str, int] = field(default_factory=dict)
    reason: str = ""

    @property
    def first(self) -> int:
        """The event that did the first of it."""
        return min(one for one in (self.deleted, *self.updated.values()) if one is not None)

    def add(self, other: Harm) -> bool:
        """Both; whether that is more than there was."""
        before = self.deleted, dict(self.updated)
        deletions = [one for one in (self.deleted, other.deleted) if one is not None]
        self.deleted = min(deletions, default=None)
        for name, event in other.updated.items():
            self.updated[name] = min(event, self.updated.get(name, event))
        self.reason = self.reason or other.reason
        return (self.deleted, self.updated) != before


class References:
    """The foreign keys that change rows by themselves, by the table they refer to. `fold`:
    a name as the server compares it."""

    def __init__(
        self, tables: Iterable[TableSchema], fold: Callable[[TableName], TableName]
    ) -> None:
        self._fold = fold
        self._keys: dict[TableName, list[tuple[TableName, ForeignKey]]] = {}
        for table in tables:
            for key in table.foreign_keys:
                if key.on_delete in _ACTS or key.on_update in _ACTS:
                    of_parent = self._keys.setdefault(fold(key.references), [])
                    of_parent.append((table.name, key))

    def above(self, wanted: Callable[[TableName], bool]) -> frozenset[TableName]:
        """The tables, by their folded names, whose rows may take rows of a wanted table with
        them."""
        tables: set[TableName] = set()
        grown = True
        while grown:
            new = {
                parent
                for parent, keys in self._keys.items()
                if parent not in tables
                and any(self._fold(child) in tables or wanted(child) for child, _ in keys)
            }
            tables |= new
            grown = bool(new)
        return frozenset(tables)

    def columns_of(self, parent: TableName) -> frozenset[str]:
        """Columns whose new values children take over, in lower case."""
        return frozenset(
            name.lower()
            for _, key in self._keys.get(self._fold(parent), ())
            if key.on_update in _ACTS
            for name in key.referenced
        )

    def below(self, parent: TableName, harm: Harm) -> Mapping[TableName, Harm]:
        """Which tables have lost what, unseen, after that harm to `parent`."""
        whole: dict[TableName, Harm] = {}
        names: dict[TableName, TableName] = {}
        waiting = [(self._fold(parent), harm)]
        while waiting:
            own, done = waiting.pop()
            for child, key in self._keys.get(own, ()):
                passed_on = _passed_on(parent, done, key)
                if passed_on is None:
                    continue
                folded = self._fold(child)
                names[folded] = child
                if whole.setdefault(folded, Harm()).add(passed_on):
                    waiting.append((folded, passed_on))
        return {names[folded]: one for folded, one in whole.items()}


def _passed_on(parent: TableName, done: Harm, key: ForeignKey) -> Harm | None:
    """What a key makes of harm to the table it refers to; None: nothing."""
    harm, rule = Harm(), ""
    if done.deleted is not None and key.on_delete in _ACTS:
        rule = f"ON DELETE {key.on_delete}"
        if key.on_delete == "CASCADE":
            harm.deleted = done.deleted
        else:
            harm.updated = {name.lower(): done.deleted for name in key.columns}
    events = [done.updated[one.lower()] for one in key.referenced if one.lower() in done.updated]
    if events and key.on_update in _ACTS:
        rule = rule or f"ON UPDATE {key.on_update}"
        harm.add(Harm(updated={name.lower(): min(events) for name in key.columns}))
    if not rule:
        return None
    harm.reason = (
        f"rows of {parent} that it may refer to were changed, and the server does not log "
        f"what {rule} of {key.name} did"
    )
    return harm
