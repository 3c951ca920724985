"""A read between two marks, of a table whose structure is checked while it is read.

There are two sessions: one reads, the other runs queries about the server. The reading statement
holds the table's metadata lock until its transaction ends, so a structure that is queried after it
started is the one of the rows (MySQL manual, "Metadata Locking"). InnoDB refuses to read a table
that was altered between the snapshot and the statement.
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
"""Writers queue up behind a LOCK TABLES that waits, so it must not wait long."""

_NOT_LOCKED: Final = frozenset({1044, 1142, 1205, 1227})
"""ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_LOCK_WAIT_TIMEOUT,
ER_SPECIFIC_ACCESS_DENIED_ERROR."""


@dataclass(frozen=True, slots=True)
class ReadWatermarks:
    """The log around a read. `prepared`: a set with every XA transaction that was prepared before
    `low` and whose rows are not in the read; None if it is unknown."""

    low: Watermark
    high: Watermark
    prepared: frozenset[Xid] | None

    @property
    def quiet(self) -> bool:
        """True if nothing was logged between the marks."""
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class OpenedRead:
    """A read in progress. `exact`: nothing was committed to the table between the marks."""

    marks: ReadWatermarks
    exact: bool
    batches: Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class MarkedRead:
    """A read of one table: `cursor` reads, `questions` belongs to the other session. `key`, `where`
    and `along`: as in `select_rows`."""

    cursor: ReadingCursor
    questions: Cursor
    structure: TableStructure
    dialect: Dialect
    key: frozenset[str]
    where: str | None = None
    along: str = ""

    def once(self) -> OpenedRead:
        """Open the read, whatever was logged between its marks."""
        if self._has_snapshots():
            return self._selected(self._snapshot())
        low = low_mark(self.questions, self.dialect)
        prepared = prepared_if_told(self.questions)
        batches = self._select()  # holds the table's lock from here on
        marks = ReadWatermarks(low, high_mark(self.questions, self.dialect), prepared)
        return OpenedRead(marks, low.at == marks.high.at, batches)

    def exactly(self) -> OpenedRead:
        """Open the read with equal marks if possible: at a moment without writes, else under a lock
        of the table, else by waiting longer for a moment without writes."""
        if not self._has_snapshots():
            return self._held() or self.once()
        marks = self._quiet(QUIET)
        if marks.quiet:
            return self._selected(marks)
        return self._locked() or self._selected(self._quiet(QUIET_WITHOUT_LOCK))

    def _has_snapshots(self) -> bool:
        """Return whether the engine has snapshots; `StructureMoved` if there is no such table."""
        snapshots = has_snapshots(self.questions, self.structure.name)
        if snapshots is None:
            raise moved(self.structure.name, "it was dropped, or the account may not see it")
        return snapshots

    def _quiet(self, retry: Retry) -> ReadWatermarks:
        """Open snapshots until the marks are equal; return the marks of the last one."""
        for _ in retry.tries():
            marks = self._snapshot(COMMITTED_SOON)
            if marks.quiet:
                break
        return marks

    def _snapshot(self, patience: Retry = COMMITTED) -> ReadWatermarks:
        """Open a snapshot and return the marks around it, which are equal if its place is known.

        A transaction that was prepared before `low` and is not in the snapshot was not committed
        when the snapshot was opened, so XA RECOVER, run between the two, lists it. If the
        snapshot's place is known, it may be after that query. A transaction prepared since then is
        listed by a second XA RECOVER, unless it was committed, which the count of XA COMMITs shows.
        """
        low = low_mark(self.questions, self.dialect, patience=patience)
        commits = committed_count(self.questions)
        prepared = prepared_if_told(self.questions)
        self.cursor.execute(BEGIN)
        place = snapshot_place(self.cursor)
        if place is None:
            return ReadWatermarks(low, high_mark(self.questions, self.dialect), prepared)
        low = replace(low, at=place)
        since = prepared_if_told(self.questions)
        no_commits = commits is not None and committed_count(self.questions) == commits
        if prepared is None or since is None or not no_commits:
            return ReadWatermarks(low, low, None)
        return ReadWatermarks(low, low, prepared | since)

    def _selected(self, marks: ReadWatermarks) -> OpenedRead:
        return OpenedRead(marks, marks.low.at == marks.high.at, self._select())

    def _select(self) -> Iterator[pa.RecordBatch]:
        return select_rows(
            self.cursor, self.structure, self.key, where=self.where, along=self.along
        )

    def _locked(self) -> OpenedRead | None:
        """Open the snapshot under a lock of the table: all writers have committed and none can
        write. None if the account may not lock it, or the lock is not granted in time."""
        if not self._lock(self.questions):
            return None
        marks = self._now()
        self.cursor.execute(BEGIN)
        batches = self._select()
        self.questions.execute("unlock tables")
        return OpenedRead(marks, exact=True, batches=batches)

    def _held(self) -> OpenedRead | None:
        """Open the read under a lock, for an engine without snapshots. The reading session holds
        the lock to its end, because such a read blocks writers anyway."""
        if not self._lock(self.cursor):
            return None
        return OpenedRead(self._now(), exact=True, batches=self._select())

    def _now(self) -> ReadWatermarks:
        mark = high_mark(self.questions, self.dialect)
        return ReadWatermarks(mark, mark, prepared_if_told(self.questions))

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
    structure: TableStructure,
    *,
    rows_only: bool = False,
) -> None:
    """Raise `StructureMoved` if the table has another structure now. For a `TableSchema`, defaults
    and collations are compared too. `rows_only`: ignore attributes that do not affect existing
    rows: defaults and visibility."""
    schemas = read_schemas(cursor, [structure.name])
    if not schemas:
        raise moved(structure.name, "it was dropped")
    now = row_structure(schemas[0])
    if now.fingerprint != structure.fingerprint:
        raise moved(structure.name, _difference(structure, now))
    if isinstance(table, TableSchema):
        columns, expected = with_values(cursor, schemas)[0].columns, table.columns
        if rows_only:
            columns, expected = _of_rows(columns), _of_rows(expected)
        if columns != expected:
            raise moved(structure.name, _redefined(expected, columns))


def _of_rows(columns: Sequence[ColumnSchema]) -> tuple[ColumnSchema, ...]:
    return tuple(
        replace(column, default=None, on_update=False, invisible=False) for column in columns
    )


def _redefined(expected: Sequence[ColumnSchema], now: Sequence[ColumnSchema]) -> str:
    """Name the differences that no row image shows, such as a collation, which orders a key."""
    pairs = zip(expected, now, strict=True)
    changed = [a.name for a, b in pairs if replace(a, default=None) != replace(b, default=None)]
    return f"the definition of {', '.join(changed)} differs" if changed else "a default differs"


def _difference(expected: TableStructure, now: TableStructure) -> str:
    names = [[column.name for column in each.columns] for each in (expected, now)]
    if names[0] != names[1]:
        return f"columns {', '.join(names[1])} instead of {', '.join(names[0])}"
    pairs = zip(expected.columns, now.columns, strict=True)
    changed = [ours.name for ours, theirs in pairs if ours != theirs]
    if changed:
        return f"the definition of {', '.join(changed)} differs"
    return "its primary key differs"


def moved(table: TableName, difference: str) -> StructureMoved:
    """Return the error for a table with another structure; `difference` is in words."""
    return StructureMoved(
        f"{table} does not have the structure it is to be read with: {difference}",
        hint="run again, which reads its structure again",
    )
