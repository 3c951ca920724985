"""A consistent read of a table, or of some of its columns or rows, between two
watermarks (places in the log before and after it).

There are two sessions: one reads, the other runs queries about the server. The reading
statement holds the table's metadata lock until its transaction ends. So a structure
that is queried after the statement started is the structure of its rows (MySQL manual,
"Metadata Locking"). InnoDB refuses to read a table that was altered between the
snapshot and the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.ports.source import TableSnapshot
from lockstep.pipeline.schema.model import ColumnSchema, TableSchema
from lockstep.pipeline.schema.rows import key_columns, row_structure
from lockstep.pipeline.schema.types import arrow_schema
from lockstep.pipeline.snapshot.pace import Patience
from lockstep.pipeline.values.errors import StructureMoved, TableBusy, TableError
from lockstep.pipeline.values.retries import (
    COMMITTED,
    COMMITTED_SOON,
    QUIET,
    QUIET_WITHOUT_LOCK,
    Retry,
)
from lockstep.pipeline.values.server_errors import (
    LIMIT_WARNINGS,
    Meaning,
    explain,
    meaning_of,
    quotable_names,
)
from lockstep.pipeline.values.table import TableName, TableStructure, quoted_table
from lockstep.resources.mysql.connection import (
    ConnectionSettings,
    Dialect,
    connect,
    number_of,
    open_connection,
    read_dialect,
    remove_read_timeout,
    text_of,
    translate_errors,
)
from lockstep.resources.mysql.defaults import with_default_values
from lockstep.resources.mysql.receiving import ReadingCursor
from lockstep.resources.mysql.schemas import read_schemas
from lockstep.resources.mysql.select import BEGIN, keep_warnings, select_rows
from lockstep.resources.mysql.visible_tables import unreadable_table_error
from lockstep.resources.mysql.watcher import watch
from lockstep.resources.mysql.watermarks import (
    Watermark,
    has_snapshots,
    high_mark,
    low_mark,
    prepared_transactions,
    snapshot_place,
    xa_commit_count,
)

_LOCK_SECONDS: Final = 2
"""Seconds that LOCK TABLES waits. Writers queue up after it, so it must not wait long."""

_LOCK_REFUSALS: Final = frozenset({1044, 1142, 1205, 1227})
"""ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_LOCK_WAIT_TIMEOUT,
ER_SPECIFIC_ACCESS_DENIED_ERROR."""


@dataclass(frozen=True, slots=True)
class ReadWatermarks:
    """The log's places around a read. `prepared`: the XA transactions that were
    prepared before `low` and that the read may lack; None if they are unknown."""

    low: Watermark
    high: Watermark
    prepared: frozenset[Xid] | None

    @property
    def is_quiet(self) -> bool:
        """True if nothing was logged between the marks."""
        return self.low == self.high


@dataclass(frozen=True, slots=True)
class OpenedRead:
    """A read in progress. `exact`: nothing was committed to the table between the
    marks."""

    marks: ReadWatermarks
    exact: bool
    batches: Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class TableRead:
    """A read of one table that is to be opened. `cursor` reads; `query_cursor` belongs
    to the other session. `key`, `where`, `index_hint`: parameters of `select_rows`."""

    cursor: ReadingCursor
    query_cursor: Cursor
    structure: TableStructure
    dialect: Dialect
    key: frozenset[str]
    where: str | None = None
    index_hint: str = ""

    def open_once(self) -> OpenedRead:
        """Open the read once, even if something is logged between its marks."""
        if self._has_snapshots():
            return self._open_at(self._begin_snapshot())
        low = low_mark(self.query_cursor, self.dialect)
        prepared = prepared_transactions(self.query_cursor)
        batches = self._select()  # holds the table's lock from here on
        marks = ReadWatermarks(low, high_mark(self.query_cursor, self.dialect), prepared)
        return OpenedRead(marks, low.at == marks.high.at, batches)

    def open_exactly(self) -> OpenedRead:
        """Open the read with equal marks if possible: at a moment without writes, else
        under a lock of the table, else by waiting longer for a moment without
        writes."""
        if not self._has_snapshots():
            return self._open_with_lock() or self.open_once()
        marks = self._snapshot_when_quiet(QUIET)
        if marks.is_quiet:
            return self._open_at(marks)
        return self._open_under_lock() or self._open_at(
            self._snapshot_when_quiet(QUIET_WITHOUT_LOCK)
        )

    def _has_snapshots(self) -> bool:
        """Return whether the engine has snapshots. Raise `StructureMoved` if there is
        no such table."""
        snapshots = has_snapshots(self.query_cursor, self.structure.name)
        if snapshots is None:
            raise structure_moved(
                self.structure.name, "it was dropped, or the account may not see it"
            )
        return snapshots

    def _snapshot_when_quiet(self, retry: Retry) -> ReadWatermarks:
        """Open snapshots until the marks are equal; return the marks of the last one."""
        for _ in retry.tries():
            marks = self._begin_snapshot(COMMITTED_SOON)
            if marks.is_quiet:
                break
        return marks

    def _begin_snapshot(self, retry: Retry = COMMITTED) -> ReadWatermarks:
        """Open a snapshot and return the marks around it, which are equal if its place
        is known.

        A transaction that was prepared before `low` and is not in the snapshot was not
        committed when the snapshot was opened, so XA RECOVER, run between the two,
        lists it. If the snapshot's place is known, it may be after that query. A second
        XA RECOVER lists a transaction that was prepared after the first one, unless it
        was committed meanwhile; the count of XA COMMITs shows that.
        """
        low = low_mark(self.query_cursor, self.dialect, retry=retry)
        commit_count = xa_commit_count(self.query_cursor)
        prepared = prepared_transactions(self.query_cursor)
        self.cursor.execute(BEGIN)
        place = snapshot_place(self.cursor)
        if place is None:
            return ReadWatermarks(low, high_mark(self.query_cursor, self.dialect), prepared)
        low = replace(low, at=place)
        prepared_later = prepared_transactions(self.query_cursor)
        no_commits = commit_count is not None and xa_commit_count(self.query_cursor) == commit_count
        if prepared is None or prepared_later is None or not no_commits:
            return ReadWatermarks(low, low, None)
        return ReadWatermarks(low, low, prepared | prepared_later)

    def _open_at(self, marks: ReadWatermarks) -> OpenedRead:
        return OpenedRead(marks, marks.low.at == marks.high.at, self._select())

    def _select(self) -> Iterator[pa.RecordBatch]:
        return select_rows(
            self.cursor, self.structure, self.key, where=self.where, index_hint=self.index_hint
        )

    def _open_under_lock(self) -> OpenedRead | None:
        """Open the snapshot under a lock of the table: all writers have committed and
        none can write. Return None if the account is not allowed to lock the table, or
        the lock is not granted in time."""
        if not self._try_lock(self.query_cursor):
            return None
        marks = self._present_marks()
        self.cursor.execute(BEGIN)
        batches = self._select()
        self.query_cursor.execute("unlock tables")
        return OpenedRead(marks, exact=True, batches=batches)

    def _open_with_lock(self) -> OpenedRead | None:
        """Open the read under a lock, for an engine without snapshots. The reading
        session holds the lock to its end, because such a read blocks writers anyway."""
        if not self._try_lock(self.cursor):
            return None
        return OpenedRead(self._present_marks(), exact=True, batches=self._select())

    def _present_marks(self) -> ReadWatermarks:
        mark = high_mark(self.query_cursor, self.dialect)
        return ReadWatermarks(mark, mark, prepared_transactions(self.query_cursor))

    def _try_lock(self, cursor: Cursor) -> bool:
        cursor.execute(f"set session lock_wait_timeout = {_LOCK_SECONDS}")
        try:
            cursor.execute(f"lock tables {quoted_table(self.structure.name)} read")
        except pymysql.MySQLError as error:
            if error.args[0] not in _LOCK_REFUSALS:
                raise
            return False
        return True


def require_unchanged(
    cursor: Cursor,
    table: TableSchema | TableStructure,
    structure: TableStructure,
    *,
    rows_only: bool = False,
) -> None:
    """Raise `StructureMoved` if the table no longer has `structure`, its columns in row
    images. If `table` is a `TableSchema`, defaults and collations are compared too.
    `rows_only`: ignore attributes that do not affect existing rows: defaults and
    visibility."""
    schemas = read_schemas(cursor, [structure.name])
    if not schemas:
        raise structure_moved(structure.name, "it was dropped")
    now = row_structure(schemas[0])
    if now.fingerprint != structure.fingerprint:
        raise structure_moved(structure.name, _difference(structure, now))
    if isinstance(table, TableSchema):
        columns, expected = with_default_values(cursor, schemas)[0].columns, table.columns
        if rows_only:
            columns, expected = _relevant_to_rows(columns), _relevant_to_rows(expected)
        if columns != expected:
            raise structure_moved(structure.name, _redefinition(expected, columns))


def _relevant_to_rows(columns: Sequence[ColumnSchema]) -> tuple[ColumnSchema, ...]:
    """Return the columns without the attributes that do not affect existing rows."""
    return tuple(
        replace(column, default=None, on_update=False, invisible=False) for column in columns
    )


def _redefinition(expected: Sequence[ColumnSchema], now: Sequence[ColumnSchema]) -> str:
    """Return a phrase about differences that no row image shows, such as another
    collation."""
    pairs = zip(expected, now, strict=True)
    changed = [a.name for a, b in pairs if replace(a, default=None) != replace(b, default=None)]
    return f"the definition of {', '.join(changed)} differs" if changed else "a default differs"


def _difference(expected: TableStructure, now: TableStructure) -> str:
    names = [[column.name for column in structure.columns] for structure in (expected, now)]
    if names[0] != names[1]:
        return f"columns {', '.join(names[1])} instead of {', '.join(names[0])}"
    pairs = zip(expected.columns, now.columns, strict=True)
    changed = [
        expected_column.name for expected_column, column in pairs if expected_column != column
    ]
    if changed:
        return f"the definition of {', '.join(changed)} differs"
    return "its primary key differs"


def structure_moved(table: TableName, difference: str) -> StructureMoved:
    """Return the error for a table with another structure. `difference`: a phrase for
    the message."""
    return StructureMoved(
        f"{table} no longer has the expected structure: {difference}",
        hint="run again; a run reads the structure first",
    )


_LOST_ERRORS: Final = frozenset({0, 2006, 2013, 2055})
"""CR_SERVER_GONE_ERROR, CR_SERVER_LOST, CR_SERVER_LOST_EXTENDED; the driver's 0 for a
closed session."""

_MOVED_ERRORS: Final = frozenset({1049, 1054, 1146, 1176, 1412})
"""ER_BAD_DB_ERROR, ER_BAD_FIELD_ERROR, ER_NO_SUCH_TABLE, ER_KEY_DOES_NOT_EXITS,
ER_TABLE_DEF_CHANGED."""


@contextmanager
def reading_cursor(
    settings: ConnectionSettings, *, without_timeout: bool = False
) -> Iterator[ReadingCursor]:
    """Yield an unbuffered cursor in a session of its own. If rows are left at the end,
    the connection is cut instead of reading them. `without_timeout`: the first row may
    take longer than the read timeout; a watcher is needed then (`watcher.watch`)."""
    with translate_errors(settings):
        connection = open_connection(settings)
        cursor = connection.cursor(ReadingCursor)
        try:
            keep_warnings(cursor)
            if without_timeout:
                remove_read_timeout(connection)
            yield cursor
        finally:
            _close_session(connection, cursor)


def has_no_row(cursor: Cursor, table: TableName) -> bool:
    """Return whether a table is empty. Return False also if the server refuses to read
    it, for instance because it was dropped."""
    try:
        cursor.execute(f"select 1 from {quoted_table(table)} limit 1")
    except pymysql.MySQLError as error:
        if not error.args or error.args[0] in _LOST_ERRORS:
            raise
        return False
    return not cursor.fetchall()


@contextmanager
def open_snapshot(
    settings: ConnectionSettings,
    table: TableSchema | TableStructure,
    columns: Sequence[str] | None = None,
    *,
    exact: bool = False,
) -> Iterator[TableSnapshot]:
    """See `pipeline.ports.SourceServer.snapshot`."""
    with (
        reading_cursor(settings) as cursor,
        watch(settings, cursor, table.name, Patience(0.0)) as read,
    ):
        with read.raising_busy():
            snapshot = take_snapshot(settings, cursor, table, columns, exact=exact)
        yield replace(snapshot, batches=read.raising_busy_in(snapshot.batches))


def take_snapshot(
    settings: ConnectionSettings,
    cursor: ReadingCursor,
    table: TableSchema | TableStructure,
    columns: Sequence[str] | None = None,
    *,
    exact: bool = False,
    where: str | None = None,
    index_hint: str = "",
    rows_only: bool = False,
) -> TableSnapshot:
    """Open a snapshot, which lasts as long as the session of `cursor` (from
    `reading_cursor`). `where`: a condition in complete SQL for the rows to read, with
    its `index_hint`. `rows_only`: a changed default or visibility is no error."""
    structure = row_structure(table) if isinstance(table, TableSchema) else table
    key = key_columns(table) if isinstance(table, TableSchema) else frozenset(structure.primary_key)
    selected = _narrow(structure, columns)
    schema = arrow_schema(selected)
    with (
        connect(settings) as query_connection,
        query_connection.cursor() as query_cursor,
        translate_table_errors(settings, structure.name, structure.names),
    ):
        read = TableRead(
            cursor, query_cursor, selected, read_dialect(query_cursor), key, where, index_hint
        )
        open_read = read.open_exactly() if exact else read.open_once()
        require_unchanged(query_cursor, table, structure, rows_only=rows_only)
    low, high = open_read.marks.low, open_read.marks.high
    return TableSnapshot(
        table=structure.name,
        schema=schema,
        low=low.at,
        high=high.at,
        low_set=low.executed_set,
        high_set=high.executed_set,
        exact=open_read.exact,
        batches=_translate_table_errors_in(settings, structure, open_read.batches),
        prepared_transactions=open_read.marks.prepared,
    )


def _narrow(structure: TableStructure, columns: Sequence[str] | None) -> TableStructure:
    """Return the structure with only the key and these columns, in the table's order.
    Raise ValueError for a column that the table lacks."""
    if columns is None:
        return structure
    wanted = {*columns, *structure.primary_key}
    missing = wanted - {column.name for column in structure.columns}
    if missing:
        raise ValueError(f"{structure.name} has no column {', '.join(sorted(missing))}")
    return replace(structure, columns=tuple(c for c in structure.columns if c.name in wanted))


@contextmanager
def translate_table_errors(
    settings: ConnectionSettings, table: TableName, columns: Sequence[str] = ()
) -> Iterator[None]:
    """Translate errors as `translate_errors` does, for statements about one table: an
    error about that table becomes a TableError with the server's text."""
    with translate_errors(settings):
        try:
            yield
        except pymysql.MySQLError as error:
            names = quotable_names(table, columns)
            table_error = _table_error(settings, table, number_of(error), text_of(error), names)
            if table_error is None:
                raise
            raise table_error from error
        except UnicodeDecodeError as error:
            raise TableError(
                "the source sent text that is not UTF-8",
                hint="correct those rows in the source, or exclude the table",
            ) from error


def _table_error(
    settings: ConnectionSettings, table: TableName, number: int, text: str, names: frozenset[str]
) -> StructureMoved | TableError | None:
    """Return the error for the table; None if the server's error is not about this
    table only."""
    if number in _MOVED_ERRORS:
        return structure_moved(table, text)
    message = explain(number, text, names)
    match meaning_of(number):
        case Meaning.BUSY:
            return TableBusy(
                f"the table could not be read now: {message}", hint="the next run tries it again"
            )
        case Meaning.PRIVILEGE:
            return unreadable_table_error(
                settings, table, f"the account may not read the table: {message}"
            )
        case Meaning.REFUSED:
            cure = LIMIT_WARNINGS.get(number, "fix the problem that it reports")
            return TableError(
                f"MySQL refuses to read the table: {message}", hint=f"{cure} at the source"
            )
        case _:
            return None


def _translate_table_errors_in(
    settings: ConnectionSettings, table: TableStructure, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with translate_table_errors(settings, table.name, table.names):
        yield from batches


def _close_session(connection: pymysql.Connection[Any], cursor: ReadingCursor) -> None:
    """Close the session. PyMySQL would first read the rest of a result; this cuts the
    connection."""
    if cursor.answer is not None and cursor.answer.abandon():
        return
    stream: Any = connection
    result = stream._result
    if result is not None and result.unbuffered_active:
        result.unbuffered_active = False
        stream._result = None
        stream._force_close()
    elif connection.open:
        cursor.close()
        connection.close()
