"""Tables that come back through the log: from where on they count, and by which structure.

What lies before a table's place was captured before it stopped: its rows, and statements
that begin there. A structure that a person gave holds from that place on, or, where a
statement stands there, from behind it: that statement is the one that could not be followed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pipeline.ports.ledger import Ledger
from pipeline.position import Coordinates
from pipeline.schema.consequences import GOES_ON, NOT_FOLLOWED, Consequence
from pipeline.schema.correspondence import columns_from, may_rename_columns, why_unclear
from pipeline.schema.history import History, Knowledge, SchemaVersion
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.model import TableSchema
from pipeline.schema.model_json import schema_fingerprint
from pipeline.schema.tracker import SchemaTracker
from pipeline.schema.versions import ColumnsFrom
from pipeline.table import TableName
from pipeline.table_state import TableOrder


@dataclass(frozen=True, slots=True)
class Comeback:
    """A table, the order that brings it back, and the place it stopped at. `version`: what held for
    it there; None where nothing was recorded."""

    order: TableOrder
    low: Coordinates
    version: SchemaVersion | None = None

    @property
    def table(self) -> TableName:
        return self.order.table


class ComingBack:
    """The tables of one capture that come back."""

    def __init__(self, comebacks: Sequence[Comeback], structures: SchemaTracker) -> None:
        self.lows = {comeback.table: comeback.low for comeback in comebacks}
        self._structures = structures
        self._held = [comeback for comeback in comebacks if comeback.version is not None]
        self._waiting = {
            comeback.table: comeback for comeback in comebacks if comeback.order.schema is not None
        }
        self._stopped_by: dict[TableName, Consequence] = {}
        self.doubts: dict[TableName, str] = {}
        """Tables whose rows of before may have changed in a way that no log tells."""

    def passes(self, table: TableName, logged: LoggedStatement, consequence: Consequence) -> bool:
        """Whether nothing follows from a statement for the table: it was followed before, or
        a person says what came of it. What a statement that is followed does to rows no
        structure tells: then it is read from the source."""
        low = self.lows.get(table)
        if low is None:
            return False
        given = table in self._waiting and logged.begin == low
        if given:
            self._stopped_by[table] = consequence
        return logged.begin < low or given

    def behind(self, logged: LoggedStatement) -> Iterator[tuple[Comeback, SchemaVersion]]:
        """Structures that a person gave and that hold behind this statement."""
        for comeback in list(self._waiting.values()):
            if comeback.low == logged.begin:
                yield self._adopted(comeback, logged.end, logged)

    def reached(self, at: Coordinates | None) -> Iterator[tuple[Comeback, SchemaVersion]]:
        """Structures that hold before `at` and that a person gave (None: the log is over)."""
        for one in self._held:
            if one.version is not None and (at is None or one.low <= at):
                self._structures.resume(one.version)
        self._held = [comeback for comeback in self._held if at is not None and at < comeback.low]
        for one in list(self._waiting.values()):
            if at is None or one.low < at:
                yield self._adopted(one, one.low)

    def _adopted(
        self, comeback: Comeback, at: Coordinates, logged: LoggedStatement | None = None
    ) -> tuple[Comeback, SchemaVersion]:
        del self._waiting[comeback.table]
        given, renames = comeback.order.schema, comeback.order.renames
        assert given is not None, "only tables with a structure wait"
        before, renaming, doubt = self._structures.last_known(comeback.table), False, None
        stopped_by = self._stopped_by.get(comeback.table)
        if stopped_by is not None and stopped_by.rule != NOT_FOLLOWED:
            # Its columns have the names that the statement left.
            renames, doubt = (), None if stopped_by.action in GOES_ON else stopped_by.reason
        elif stopped_by is not None and logged is not None:
            renaming = may_rename_columns(logged.text, logged.context)
        origins = None
        if before is not None:
            doubt = doubt or why_unclear(before, given, renames, renaming=renaming)
            origins = columns_from(before, given, renames)
        if doubt is not None:
            self.doubts[comeback.table] = doubt
        return comeback, self._structures.take_word(given, at, origins)


# -- structures that are recorded already --------------------------------------------------


class RecordedBefore:
    """The versions of batches from `since` on. Once a table is told otherwise
    than then, nothing that was recorded of it counts any more."""

    def __init__(self, ledger: Ledger, source: str, since: int) -> None:
        self._ledger, self._source, self._since = ledger, source, since
        self._known: dict[TableName, list[SchemaVersion]] = {}
        self._others: set[TableName] = set()

    def __call__(
        self,
        table: TableName,
        since: Coordinates,
        schema: TableSchema | None,
        reason: str | None,
        word: ColumnsFrom | None = None,
    ) -> SchemaVersion | None:
        if table in self._others:
            return None
        if table not in self._known:
            self._known[table] = self._ledger.schema_versions(self._source, table)
        gone = Knowledge.DROPPED if reason is None else Knowledge.UNKNOWN
        told = gone.value if schema is None else schema_fingerprint(schema)
        for version in reversed(self._known[table]):
            same = version.since == since and version.fingerprint == told
            if version.batch >= self._since and same and word in (None, version.columns_from):
                return version
        self._others.add(table)
        return None


def history_of(history: History, tables: Mapping[TableName, object]) -> History:
    """What was learnt of these tables, and the statements that say so."""
    versions = [version for version in history.versions if version.table in tables]
    told = sorted({version.statement for version in versions if version.statement is not None})
    numbers = {statement: number for number, statement in enumerate(told)}
    return History(
        tuple(history.statements[number] for number in told),
        tuple(
            replace(
                version, statement=None if version.statement is None else numbers[version.statement]
            )
            for version in versions
        ),
    )
