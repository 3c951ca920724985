"""Tables that come back through the log: from where on they count, and by which structure.

Belongs here: what each of them brings to a capture. Does not: which tables those are, and
where the reading begins (`catching_up`), tables read from the source (`joining`).

What lies before a table's place was captured before it stopped: its rows, and statements
that begin there. A structure that a person gave holds from that place on, or, where a
statement stands there, from behind it: that statement is the one that could not be followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.ports.ledger import Ledger
from pipeline.position import Coordinates
from pipeline.schema.context import StatementContext
from pipeline.schema.history import History, Knowledge, SchemaVersion
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.model import TableSchema
from pipeline.schema.statements.lexer import CannotRead
from pipeline.schema.statements.reader import StatementReader
from pipeline.schema.stored import why_values_change
from pipeline.schema.tracker import SchemaTracker
from pipeline.table import TableName
from pipeline.table_state import TableOrder


@dataclass(frozen=True, slots=True)
class Comeback:
    """A table, the order that brings it back, and the place it stopped at. `version`: what
    held for it there, where another catching up recorded it."""

    order: TableOrder
    low: Coordinates
    version: SchemaVersion | None = None

    @property
    def table(self) -> TableName:
        return self.order.table


class ComingBack:
    """The tables of one capture that come back."""

    def __init__(self, comebacks: Sequence[Comeback], structures: SchemaTracker) -> None:
        self.lows = {one.table: one.low for one in comebacks}
        self._structures = structures
        self._waiting = {
            one.table: one
            for one in comebacks
            if one.order.schema is not None or one.version is not None
        }
        self.doubts: dict[TableName, str] = {}
        """Tables whose rows of before may have changed in a way that no log tells."""

    def passes(self, table: TableName, logged: LoggedStatement) -> bool:
        """Whether nothing follows from a statement for the table: it was followed before, or
        a person says what came of it."""
        low = self.lows.get(table)
        if low is None:
            return False
        given = table in self._waiting and logged.begin == low
        return logged.begin < low or given

    def behind(self, logged: LoggedStatement) -> Iterator[tuple[Comeback, SchemaVersion]]:
        """Structures that a person gave and that hold behind this statement."""
        for one in list(self._waiting.values()):
            if one.low == logged.begin:
                yield from self._adopted(one, logged.end, logged)

    def reached(self, at: Coordinates | None) -> Iterator[tuple[Comeback, SchemaVersion]]:
        """Structures that hold before `at` and that a person gave (None: the log is over)."""
        for one in list(self._waiting.values()):
            if at is None or one.low < at:
                yield from self._adopted(one, one.low)

    def _adopted(
        self, one: Comeback, at: Coordinates, stopped_by: LoggedStatement | None = None
    ) -> Iterator[tuple[Comeback, SchemaVersion]]:
        del self._waiting[one.table]
        given = one.order.schema
        if one.version is not None:
            self._structures.resume(one.version)
        if given is None:
            return
        before = self._structures.last_known(one.table)
        doubt = None
        if before is not None:
            renames = stopped_by is not None and may_rename_columns(
                stopped_by.text, stopped_by.context
            )
            doubt = which_is_which(before, given, renames=renames)
            doubt = doubt or _changed_values(before, given)
        if doubt is not None:
            self.doubts[one.table] = doubt
        yield one, self._structures.take_word(given, at)


def may_rename_columns(text: str, context: StatementContext) -> bool:
    """Whether a statement that nobody followed may give columns other names."""
    try:
        reader = StatementReader(text, context)
    except CannotRead:
        return True
    while not reader.over:
        if reader.next().keyword in ("CHANGE", "RENAME"):
            return True
    return False


def which_is_which(before: TableSchema, given: TableSchema, *, renames: bool) -> str | None:
    """Why names alone do not tell which column of a structure given is which of before."""
    if renames:
        return "the statement that stopped it gives names anew, which the structure given hides"
    gone = [column.name for column in before.columns if given.column(column.name) is None]
    new = [column.name for column in given.columns if before.column(column.name) is None]
    if gone and new:
        return (
            f"by the structure given {', '.join(gone)} may have become {', '.join(new)}, or have "
            "gone while that is new"
        )
    return None


def _changed_values(before: TableSchema, given: TableSchema) -> str | None:
    """What may have become of rows that are there, by a statement that nobody followed."""
    for column in given.columns:
        old = before.column(column.name)
        why = None if old is None else why_values_change(old, column, strict=False)
        if why is not None:
            return (
                f"by the structure given, values of column {column.name!r} may have changed: {why}"
            )
    return None


# -- structures that are recorded already --------------------------------------------------


class RecordedBefore:
    """`Recorded`: the versions of batches from `since` on. Once a table is told otherwise
    than then, nothing that was recorded of it counts any more."""

    def __init__(self, ledger: Ledger, source: str, since: int) -> None:
        self._ledger, self._source, self._since = ledger, source, since
        self._known: dict[TableName, list[SchemaVersion]] = {}
        self._others: set[TableName] = set()

    def __call__(
        self, table: TableName, since: Coordinates, schema: TableSchema | None, reason: str | None
    ) -> SchemaVersion | None:
        if table in self._others:
            return None
        if table not in self._known:
            self._known[table] = self._ledger.schema_versions(self._source, table)
        told = schema.fingerprint if schema is not None else _without_schema(reason)
        for one in reversed(self._known[table]):
            if one.batch >= self._since and one.since == since and one.fingerprint == told:
                return one
        self._others.add(table)
        return None


def _without_schema(reason: str | None) -> str:
    return (Knowledge.DROPPED if reason is None else Knowledge.UNKNOWN).value


def history_of(history: History, tables: Mapping[TableName, object]) -> History:
    """What was learnt of these tables, and the statements that say so."""
    versions = [one for one in history.versions if one.table in tables]
    told = sorted({one.statement for one in versions if one.statement is not None})
    numbers = {statement: number for number, statement in enumerate(told)}
    return History(
        tuple(history.statements[number] for number in told),
        tuple(
            replace(one, statement=None if one.statement is None else numbers[one.statement])
            for one in versions
        ),
    )
