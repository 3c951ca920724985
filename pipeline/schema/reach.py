"""Which tables a statement changes that stands in the log instead of its rows.

Not here: which names its text has (`statements.row_changes`), what a run does about the
answer (`pipeline.runs.capturing`).

The answer is a proof or none: whatever the history does not know of is `Unknown`. Triggers are
taken to run on rows that a foreign key changes, which some servers let them do.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Final

from pipeline.engines import is_merge, is_part
from pipeline.schema.model import (
    DatabaseCode,
    ExpressionDefault,
    RowCode,
    ServerSchema,
    TableSchema,
)
from pipeline.schema.statements.row_changes import DELETE, INSERT, UPDATE
from pipeline.table import TableName

_VIRTUAL: Final = frozenset({"information_schema", "performance_schema"})
_ACTS: Final = frozenset({"CASCADE", "SET NULL", "SET DEFAULT"})


@dataclass(frozen=True, slots=True)
class Reaches:
    """It may change these captured tables and, for certain, no others; why, in words, for each."""

    tables: dict[TableName, str]


@dataclass(frozen=True, slots=True)
class Unknown:
    """Which tables it changes cannot be told. `target`: the one that its text names first."""

    reason: str
    target: TableName | None = None


Verdict = Reaches | Unknown


class _CannotTell(Exception):
    """Why it cannot be told."""


def reached(
    change: RowCode,
    schema: ServerSchema,
    captured: Callable[[TableName], bool],
    trusted: Callable[[TableName], bool],
) -> Verdict:
    """Which of the captured tables a statement changes at the place where `schema` holds.
    `trusted`: tables of which a person says that statements which change them change no other."""
    if change.reason is not None:
        return Unknown(change.reason)
    if change.writes and all(trusted(table) for table, _ in change.writes):
        return Reaches({})
    closure = _Closure(schema, captured, trusted)
    try:
        closure.follow(change, "it changes it")
    except _CannotTell as error:
        return Unknown(str(error), change.writes[0][0] if change.writes else None)
    return Reaches(closure.found)


@dataclass(slots=True)
class _Closure:
    schema: ServerSchema
    captured: Callable[[TableName], bool]
    trusted: Callable[[TableName], bool]
    found: dict[TableName, str] = field(default_factory=dict)
    _seen: set[tuple[TableName, str]] = field(default_factory=set)
    _read: set[TableName] = field(default_factory=set)

    def follow(self, change: RowCode, why: str) -> None:
        for table in change.reads:
            self._reads(table, own=table in change.own)
        for table, events in change.writes:
            self._writes(table, events, why)

    def _code(self, table: TableName) -> DatabaseCode | None:
        database = self.schema.database(table.database)
        return None if database is None else database.code

    def _is_base(self, table: TableName) -> bool:
        folded, code = self.schema.fold(table), self._code(table)
        system = code is not None and table.name in code.tables
        return system or folded in self.schema.tables or folded in self.schema.unknown

    def _view(self, table: TableName) -> RowCode | None:
        code = self._code(table)
        view = None if code is None else code.view(table.name)
        return None if view is None else view.code

    def _reads(self, table: TableName, *, own: bool = False) -> None:
        if table in self._read or self.trusted(table) or table.database.lower() in _VIRTUAL:
            return
        self._read.add(table)
        view = self._view(table)
        if view is not None:
            self._body(view, f"the view {table}")
            for one in view.reads:
                self._reads(one, own=one in view.own)
        elif not self._is_base(table) and not own:
            raise _CannotTell(f"the history knows no table {table}")

    def _body(self, code: RowCode, what: str) -> RowCode:
        if code.reason is not None:
            raise _CannotTell(f"what {what} does is not known: {code.reason}")
        return code

    def _writes(self, table: TableName, kinds: Iterable[str], why: str) -> None:
        if self.trusted(table):
            return
        folded = self.schema.fold(table)
        events = frozenset(kind for kind in kinds if (folded, kind) not in self._seen)
        if not events:
            return
        self._seen |= {(folded, event) for event in events}
        view = self._view(table)
        if view is not None:
            behind = self._body(view, f"the view {table}")
            for one in behind.reads:
                if one not in behind.own:
                    self._writes(one, events, f"it is behind the view {table}")
                self._reads(one, own=one in behind.own)
            return
        if not self._is_base(table):
            raise _CannotTell(f"the history knows no table {table}")
        known = self.schema.table(table)
        name = table if known is None else known.name
        if self.captured(name):
            self.found.setdefault(name, why)
        if known is not None and INSERT in events:
            self._require_no_sequence(known)
        self._fire(table, events)
        for child, kinds_there in self._children(table, events):
            self._writes(child, kinds_there, f"a foreign key of it refers to {table}")
        if known is not None and is_merge(known.engine):
            for member in self._members(known):
                self._writes(member, events, f"it may be a part of {table}")

    def _require_no_sequence(self, table: TableSchema) -> None:
        """MariaDB's sequences are tables that a default may change."""
        for column in table.columns:
            default = column.default
            text = default.text.lower() if isinstance(default, ExpressionDefault) else ""
            if "nextval" in text or "next value" in text or "setval" in text:
                raise _CannotTell(f"{table.name} takes the default of {column.name} from elsewhere")

    def _fire(self, table: TableName, events: frozenset[str]) -> None:
        code = self._code(table)
        if code is None or code.triggers is None:
            raise _CannotTell(
                f"whether {table} has triggers is not known: the account lacks TRIGGER on it, or "
                "lacked it when the history began"
            )
        for trigger in code.triggers:
            if self.schema.fold(trigger.table) == self.schema.fold(table) and (
                events.intersection(trigger.events)
            ):
                body = self._body(trigger.code, f"the trigger {trigger.name} of {table}")
                self.follow(body, f"the trigger {trigger.name} of {table} changes it")

    def _children(
        self, table: TableName, events: frozenset[str]
    ) -> Iterator[tuple[TableName, set[str]]]:
        folded = self.schema.fold(table)
        for child in self.schema.tables.values():
            for key in child.foreign_keys:
                if self.schema.fold(key.references) != folded:
                    continue
                done = set[str]()
                if DELETE in events and key.on_delete in _ACTS:
                    done.add(DELETE if key.on_delete == "CASCADE" else UPDATE)
                if UPDATE in events and key.on_update in _ACTS:
                    done.add(UPDATE)
                if done:
                    yield child.name, done

    def _members(self, merge: TableSchema) -> Iterator[TableName]:
        """Tables that a MERGE table may have as its parts: the history has no list of them, but
        they are MyISAM, and built alike."""
        built = [column.type for column in merge.columns]
        for table in self.schema.tables.values():
            alike = [column.type for column in table.columns] == built
            if alike and is_part(table.engine):
                yield table.name
