"""A read between two marks, of a table that is built as whoever reads it thinks.

Two sessions take part: one reads, the other asks. The statement that reads keeps the
table's metadata lock until its transaction ends, so a structure that is asked for once it
runs is the one that is read (MySQL manual, "Metadata Locking"). InnoDB refuses to read a
table that was altered between the snapshot and the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from pipeline.batch import Xid
from pipeline.errors import StructureMoved
from pipeline.retries import COMMITTED, COMMITTED_SOON, QUIET, QUIET_WITHOUT_LOCK, Retry
from pipeline.schema.model import ColumnSchema, TableSchema
from pipeline.schema.rows import row_structure
from pipeline.table import TableName, TableStructure
from resources.mysql.answers import ReadingCursor
from resources.mysql.defaults import with_values
from resources.mysql.dialect import Dialect
from resources.mysql.prepared import committed_count, prepared_if_told
from resources.mysql.schemas import read_schemas
from resources.mysql.select import BEGIN, quoted_table, select_rows
from resources.mysql.watermarks import Watermark, has_snapshots, high_mark, low_mark, snapshot_place

_LOCK_SECONDS: Final = 2
"""A LOCK TABLES that waits keeps writers waiting behind it: not for long."""

_NOT_LOCKED: Final = frozenset({1044, 1142, 1205, 1227})
"""ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_LOCK_WAIT_TIMEOUT,
ER_SPECIFIC_ACCESS_DENIED_ERROR."""


@dataclass(frozen=True, slots=True)
class TakenMarks:
    """The log around a read. `prepared`: every XA transaction that may be prepared before `low`
    and is not in the read, and maybe others; None where nobody can say."""

    low: Watermark
    high: Watermark
    prepared: frozenset[Xid] | None

    @property
    def one(self) -> bool:
        """Whether nothing was logged between them."""
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class OpenedRead:
    """A read that is under way. `exact`: nothing that concerns the table was committed between."""

    marks: TakenMarks
    exact: bool
    batches: Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class Taking:
    """`cursor` reads, `questions` is the other session's. `key`: columns that rows are told by;
    `where`: the condition for the rows that are read, all of them without one; `along`: as in
    `select_rows`."""

    cursor: ReadingCursor
    questions: Cursor
    structure: TableStructure
    dialect: Dialect
    key: frozenset[str]
    where: str | None = None
    along: str = ""

    def once(self) -> OpenedRead:
        if self._has_snapshots():
            return self._selected(self._snapshot())
        low = low_mark(self.questions, self.dialect)
        prepared = prepared_if_told(self.questions)
        batches = self._select()  # has the table's lock from here on
        marks = TakenMarks(low, high_mark(self.questions, self.dialect), prepared)
        return OpenedRead(marks, low.at == marks.high.at, batches)

    def exactly(self) -> OpenedRead:
        """At a quiet moment, or under a lock, or at a quiet moment that is waited for."""
        if not self._has_snapshots():
            return self._held() or self.once()
        marks = self._quiet(QUIET)
        if marks.one:
            return self._selected(marks)
        return self._locked() or self._selected(self._quiet(QUIET_WITHOUT_LOCK))

    def _has_snapshots(self) -> bool:
        """`StructureMoved` where there is no such table."""
        found = has_snapshots(self.questions, self.structure.name)
        if found is None:
            raise moved(self.structure.name, "it is not there, or the account may not see it")
        return found

    def _quiet(self, retry: Retry) -> TakenMarks:
        """A snapshot with equal marks, or the last of so many."""
        for _ in retry.tries():
            marks = self._snapshot(COMMITTED_SOON)
            if marks.one:
                break
        return marks

    def _snapshot(self, patience: Retry = COMMITTED) -> TakenMarks:
        """The marks around a snapshot; one and the same where its place is known.

        What is prepared before `low`, and not seen, is not committed when the snapshot is
        opened: it is prepared still when that is asked in between. A place may lie behind the
        answer: then what was prepared since is either prepared still, or its commit counted.
        """
        low = low_mark(self.questions, self.dialect, patience=patience)
        commits = committed_count(self.questions)
        prepared = prepared_if_told(self.questions)
        self.cursor.execute(BEGIN)
        place = snapshot_place(self.cursor)
        if place is None:
            return TakenMarks(low, high_mark(self.questions, self.dialect), prepared)
        low = replace(low, at=place)
        since = prepared_if_told(self.questions)
        whole = commits is not None and committed_count(self.questions) == commits
        if prepared is None or since is None or not whole:
            return TakenMarks(low, low, None)
        return TakenMarks(low, low, prepared | since)

    def _selected(self, marks: TakenMarks) -> OpenedRead:
        return OpenedRead(marks, marks.low.at == marks.high.at, self._select())

    def _select(self) -> Iterator[pa.RecordBatch]:
        return select_rows(
            self.cursor, self.structure, self.key, where=self.where, along=self.along
        )

    def _locked(self) -> OpenedRead | None:
        """Nobody writes to the table while the snapshot is opened, and who did has committed;
        None where the account may not lock it, or others use it for too long."""
        if not self._lock(self.questions):
            return None
        marks = self._now()
        self.cursor.execute(BEGIN)
        batches = self._select()
        self.questions.execute("unlock tables")
        return OpenedRead(marks, exact=True, batches=batches)

    def _held(self) -> OpenedRead | None:
        """As `_locked`, for a table whose rows are those of the statement: its reader keeps
        writers waiting to its end anyway, so it has the lock itself."""
        if not self._lock(self.cursor):
            return None
        return OpenedRead(self._now(), exact=True, batches=self._select())

    def _now(self) -> TakenMarks:
        mark = high_mark(self.questions, self.dialect)
        return TakenMarks(mark, mark, prepared_if_told(self.questions))

    def _lock(self, cursor: Cursor) -> bool:
        cursor.execute(f"set session lock_wait_timeout = {_LOCK_SECONDS}")
        try:
            cursor.execute(f"lock tables {quoted_table(self.structure.name)} read")
        except pymysql.MySQLError as error:
            if error.args[0] not in _NOT_LOCKED:
                raise
            return False
        return True


def require_built(
    cursor: Cursor,
    table: TableSchema | TableStructure,
    whole: TableStructure,
    *,
    rows_alone: bool = False,
) -> None:
    """`StructureMoved` unless the table is built like that now; one that is given with its
    defaults and collations has these too. `rows_alone`: but for what no row that is there has to
    do with: defaults, visibility."""
    schemas = read_schemas(cursor, [whole.name])
    if not schemas:
        raise moved(whole.name, "it is not there any more")
    now = row_structure(schemas[0])
    if now.fingerprint != whole.fingerprint:
        raise moved(whole.name, _difference(whole, now))
    if isinstance(table, TableSchema):
        columns, expected = with_values(cursor, schemas)[0].columns, table.columns
        if rows_alone:
            columns, expected = _of_rows(columns), _of_rows(expected)
        if columns != expected:
            raise moved(whole.name, _redefined(expected, columns))


def _of_rows(columns: Sequence[ColumnSchema]) -> tuple[ColumnSchema, ...]:
    return tuple(
        replace(column, default=None, on_update=False, invisible=False) for column in columns
    )


def _redefined(expected: Sequence[ColumnSchema], now: Sequence[ColumnSchema]) -> str:
    """What no row image shows: another collation orders a key otherwise."""
    pairs = zip(expected, now, strict=True)
    changed = [a.name for a, b in pairs if replace(a, default=None) != replace(b, default=None)]
    return f"another definition of {', '.join(changed)}" if changed else "another default"


def _difference(expected: TableStructure, now: TableStructure) -> str:
    names = [[column.name for column in each.columns] for each in (expected, now)]
    if names[0] != names[1]:
        return f"columns {', '.join(names[1])} instead of {', '.join(names[0])}"
    pairs = zip(expected.columns, now.columns, strict=True)
    changed = [ours.name for ours, theirs in pairs if ours != theirs]
    return f"another definition of {', '.join(changed)}" if changed else "another primary key"


def moved(table: TableName, difference: str) -> StructureMoved:
    """`difference`: in words."""
    return StructureMoved(
        f"{table} does not have the structure it should be read with: {difference}",
        hint="run again: its structure is read again",
    )
