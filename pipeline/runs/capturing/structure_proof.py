"""The structures that a batch was read by, held against the server's before anything is recorded.

Belongs here: which tables are asked about, following the log from the batch's end to the answer,
and asking again under a lock before a table is accused. Does not: which differences count
(`pipeline.schema.row_meaning`), what becomes of a table that differs (`capture`, `catch_up`).

An ALTER under `sql_log_bin=0` stands nowhere in the log. If it keeps the number and types of the
columns, the rows behind it look like those before it. So the server is asked once all is read, when
whatever was altered before the batch's end shows:

1. All tables at once, and behind that the log's end. The log up to there is read for statements
   alone, which are followed on a copy of the structures: a table that is like that is proven.
2. A table that is not may be about to be altered by a statement that is not logged yet, or not done
   yet though it is logged. So it is asked about once more, while a lock keeps it as it is: whoever
   altered it before is done and logged then. If it still differs, no statement of the log did it.

A batch that ends long before the log's end is not proven: what lies between may have changed
anything, and is not worth reading for that alone.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from pipeline.binlog.search.log_scan import log_between
from pipeline.errors import DamagedEvent, LogStops, Remedy, SourceMoving, TableBusy, TableError
from pipeline.ports.source import CurrentSchemas
from pipeline.runs.capturing.baseline_schemas import statements_between
from pipeline.runs.capturing.basis import Basis
from pipeline.runs.capturing.log_reader import LogReading
from pipeline.runs.capturing.logged_statements import with_views
from pipeline.runs.capturing.segment_builder import Segmenter
from pipeline.runs.reread import Reread
from pipeline.schema.evolve import evolve, forget
from pipeline.schema.logged import LoggedStatement
from pipeline.schema.model import ServerSchema, TableSchema
from pipeline.schema.row_meaning import changed_meaning
from pipeline.schema.statements.changes import Irrelevant, NotUnderstood
from pipeline.schema.statements.read import read_change
from pipeline.table import TableName

FEW_BYTES: Final = 64 << 20
"""The log behind a batch is read for this proof if it is no longer than this, or than the log that
the batch read."""

_SHOWN: Final = 5
"""So many differences are told."""

_GONE: Final = ("the source does not have it",)


def misread_tables(
    basis: Basis, reading: LogReading, segmenter: Segmenter, rereads: Sequence[Reread] = ()
) -> Mapping[TableName, TableError]:
    """Return the tables of which nothing may be recorded, and why: the server has them otherwise
    than the history, and no statement in the log made the difference. `rereads`: tables that were
    read from the source.

    `SourceMoving` if a table differs, and others keep it from being asked about again.
    """
    gone = {reread.table for reread in rereads if reread.schema is None}
    selected = {reread.table for reread in rereads if reread.error is None}
    tables = ({*segmenter.tables_with_rows()} | {*filter(segmenter.wanted, selected)}) - gone
    if not tables:
        return {}
    server, later = basis.work.server, _LaterStructures(basis, reading, segmenter)
    names = sorted(name for table in tables for name in segmenter.names_since(table))
    current = server.current_schemas(names)
    if not later.reach(current):
        return {}
    differing = [name for name in names if later.differences(name, current.tables.get(name))]
    confirmed: dict[TableName, tuple[str, ...]] = {}
    for name in differing:
        locked = _locked(basis, name, is_shown=name in current.tables)
        if locked is not None and later.reach(locked):
            confirmed[name] = later.differences(name, locked.tables.get(name))
    return {
        table: _error(table, name, differences)
        for name, differences in confirmed.items()
        for table in sorted(tables)
        if differences and name in segmenter.names_since(table)
    }


def _locked(basis: Basis, table: TableName, *, is_shown: bool) -> CurrentSchemas | None:
    """Return the table as it is while nobody can alter it; None if the account may not read all of
    it, or if it cannot be looked at. `is_shown`: it was, without a lock."""
    try:
        return basis.work.server.locked_schema(table)
    except TableBusy as error:
        if not is_shown:
            return None
        raise SourceMoving(
            f"the structure of {table} is not the history's, and nobody can tell yet whether a "
            f"statement is about to be logged: {error.reason}",
            hint=f"run again; `show processlist` shows who keeps {table} locked",
        ) from error
    except TableError:
        return None


def _error(table: TableName, name: TableName, differences: tuple[str, ...]) -> TableError:
    """`name`: the one that the table has now."""
    if differences == _GONE:
        reason = "the source does not have it any more, and no statement in the log dropped it"
    else:
        what = (
            "its structure" if name == table else f"the structure of {name}, as it is called now,"
        )
        shown = "; ".join(differences[:_SHOWN])
        more = f"; and {len(differences) - _SHOWN} more" if len(differences) > _SHOWN else ""
        reason = (
            f"{what} is not the history's, and no statement in the log made the difference "
            f"(history, source): {shown}{more}"
        )
    return TableError(
        reason,
        hint="it was altered with sql_log_bin=0, or restored: "
        f"`lockstep release {table} --reason …` re-reads it from MySQL",
        remedy=Remedy.RELEASED_RESNAPSHOT,
    )


class _LaterStructures:
    """The structures at a place behind the batch's end, to which statements led since. Nothing of
    them is recorded: the next batch follows them again."""

    def __init__(self, basis: Basis, reading: LogReading, segmenter: Segmenter) -> None:
        self._basis = basis
        self._segmenter = segmenter
        self._at = reading.end.at
        self._most_bytes = max(FEW_BYTES, reading.log_bytes)
        self._schema: ServerSchema | None = None

    def reach(self, current: CurrentSchemas) -> bool:
        """Follow the log up to what the server answered; return whether that is known then."""
        facts, head = self._basis.run_start.facts, current.head
        if current.server_uuid != facts.server_uuid or head < self._at:
            return False
        if log_between(self._at, head, facts.binlogs) > self._most_bytes:
            return False
        begin, self._at = self._at, head
        run_start = self._basis.run_start
        try:
            statements = list(statements_between(self._basis.work, run_start, begin, head))
        except (LogStops, DamagedEvent):
            return False  # the next run meets it, and says what is to be done
        # Those behind one that is not understood are followed too.
        return not [statement for statement in statements if not self._follow(statement)]

    def differences(self, table: TableName, server: TableSchema | None) -> tuple[str, ...]:
        """Return what the server has otherwise; nothing if the table's structure is not known at
        this place, or if it was dropped."""
        history = self._structure(table)
        if history is None:
            return ()
        if server is None:
            return _GONE
        defaults = table in self._segmenter.filled
        found = changed_meaning(history, server, defaults=defaults)
        if found and self._basis.structures.told_by_log(table):
            found = changed_meaning(history, server, told_by_log=True)
        return found

    def _structure(self, table: TableName) -> TableSchema | None:
        if self._schema is not None:
            return self._schema.table(table)
        version = self._basis.structures.version(table)
        return None if version is None else version.schema

    def _known(self) -> ServerSchema:
        return self._basis.structures.whole() if self._schema is None else self._schema

    def _follow(self, logged: LoggedStatement) -> bool:
        """Return whether it is known which tables it changed."""
        statement = with_views(logged, self._known, self._basis.work.server)
        change = read_change(statement.text, statement.context)
        if isinstance(change, Irrelevant):
            return True
        before = self._known()
        if isinstance(change, NotUnderstood):
            self._schema = forget(before, change.may_touch or ())
            return change.may_touch is not None
        self._schema = evolve(before, change, statement.context).schema
        return True
