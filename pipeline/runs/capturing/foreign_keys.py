"""Foreign keys whose actions the log does not have.

Belongs here: which tables' rows a server may have changed by itself, because a row that
they refer to, directly or through other tables, was deleted or got another key. Does not:
whose events are looked at (`cascade_watch`), what is done about it (`segment_builder`).

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

from pipeline.binlog.stream import ring as columns
from pipeline.binlog.stream.framing import EventType
from pipeline.binlog.stream.ring import Integers
from pipeline.schema.model import ForeignKey, TableSchema
from pipeline.table import TableName

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
