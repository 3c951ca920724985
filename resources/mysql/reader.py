"""A consistent read of a table, or of some of its columns or rows, between two
watermarks (places in the log before and after it).

There are two sessions: one reads, the other runs queries about the server. The reading
statement holds the table's metadata lock until its transaction ends, so the structure
cannot change in that time: the other session queries it after the statement started
(MySQL manual, "Metadata Locking"). InnoDB refuses to read a table that was altered
between the snapshot and the statement.
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
from lockstep.pipeline.values.position import Coordinates
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
from lockstep.pipeline.values.table import Column, TableName, TableStructure, quoted_table
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
from lockstep.resources.mysql.select import BEGIN, keep_warnings, select_rows, structure_moved
from lockstep.resources.mysql.visible_tables import unreadable_table_error
from lockstep.resources.mysql.watcher import watch
from lockstep.resources.mysql.watermarks import (
    LowMark,
    has_snapshots,
    low_mark,
    mark_at_end,
    prepared_transactions,
    read_log_end,
    snapshot_place,
    xa_commit_count,
)


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


def _close_session(connection: pymysql.Connection[Any], cursor: ReadingCursor) -> None:
    """Close the session. PyMySQL would first read the rest of a result; this function
    cuts the connection instead."""
    if cursor.answer is not None and cursor.answer.abandon():
        return
    driver: Any = connection  # its private attributes
    result = driver._result
    if result is not None and result.unbuffered_active:
        result.unbuffered_active = False
        driver._result = None
        driver._force_close()
    elif connection.open:
        cursor.close()
        connection.close()


@contextmanager
def open_snapshot(
    settings: ConnectionSettings,
    table: TableSchema | TableStructure,
    columns: Sequence[str] | None = None,
) -> Iterator[TableSnapshot]:
    """See `pipeline.ports.SourceServer.snapshot`."""
    with (
        reading_cursor(settings) as cursor,
        watch(settings, cursor, table.name, Patience(0.0)) as watched_read,
    ):
        with watched_read.raising_busy():
            snapshot = open_snapshot_in_session(settings, cursor, table, columns)
        yield replace(snapshot, batches=watched_read.raising_busy_in(snapshot.batches))


def open_snapshot_in_session(
    settings: ConnectionSettings,
    cursor: ReadingCursor,
    table: TableSchema | TableStructure,
    columns: Sequence[str] | None = None,
    *,
    exact: bool = False,
    where: str | None = None,
    index_hint: str = "",
    ignores_defaults: bool = False,
) -> TableSnapshot:
    """Open a snapshot, which lasts as long as the session of `cursor` (from
    `reading_cursor`). `where`: a condition in SQL for the rows to read, with its
    `index_hint`. `ignores_defaults`: a changed default or visibility is no error."""
    schema: TableSchema | None = None
    if isinstance(table, TableSchema):
        schema, structure, key = table, row_structure(table), key_columns(table)
    else:
        structure, key = table, frozenset(table.primary_key)
    read_structure = _narrow(structure, columns)
    batch_schema = arrow_schema(read_structure)
    with (
        connect(settings) as query_connection,
        query_connection.cursor() as query_cursor,
        translate_table_errors(settings, structure.name, structure.names),
    ):
        read = TableRead(
            cursor,
            query_cursor,
            read_structure,
            read_dialect(query_cursor),
            key=key,
            where=where,
            index_hint=index_hint,
        )
        opened_read = read.open_exactly() if exact else read.open_once()
        _require_unchanged(query_cursor, structure, schema, ignores_defaults=ignores_defaults)
    marks = opened_read.marks
    return TableSnapshot(
        table=structure.name,
        schema=batch_schema,
        low=marks.low.at,
        high=marks.high,
        low_set=marks.low.executed_set,
        exact=marks.is_exact,
        batches=_translate_table_errors_in(settings, structure, opened_read.batches),
        prepared_transactions=marks.prepared,
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


_LOCK_SECONDS: Final = 2
"""Seconds that LOCK TABLES waits. Writers queue up after it, so it must not wait long."""

_LOCK_REFUSALS: Final = frozenset({1044, 1142, 1205, 1227})
"""ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_LOCK_WAIT_TIMEOUT,
ER_SPECIFIC_ACCESS_DENIED_ERROR."""


@dataclass(frozen=True, slots=True)
class ReadWatermarks:
    """The log's places around a read. `prepared`: the XA transactions that were
    prepared before `low` and that the read may lack; None if they are unknown."""

    low: LowMark
    high: Coordinates
    prepared: frozenset[Xid] | None

    @property
    def is_exact(self) -> bool:
        """True if nothing was logged between the marks."""
        return self.low.at == self.high


@dataclass(frozen=True, slots=True)
class OpenedRead:
    """A read in progress."""

    marks: ReadWatermarks
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
        """Open the read without trying again if something is logged between its
        marks."""
        if self._has_snapshots():
            return OpenedRead(self._begin_snapshot(), self._select())
        low = low_mark(self.query_cursor, self.dialect)
        prepared = prepared_transactions(self.query_cursor)
        batches = self._select()  # holds the table's lock from here on
        marks = ReadWatermarks(low, read_log_end(self.query_cursor), prepared)
        return OpenedRead(marks, batches)

    def open_exactly(self) -> OpenedRead:
        """Open the read with equal marks if possible: at a moment without writes, else
        under a lock of the table, else by waiting longer for a moment without
        writes."""
        if not self._has_snapshots():
            return self._open_current_rows_under_lock() or self.open_once()
        marks = self._snapshot_when_quiet(QUIET)
        if marks.is_exact:
            return OpenedRead(marks, self._select())
        locked_read = self._open_snapshot_under_lock()
        if locked_read is not None:
            return locked_read
        return OpenedRead(self._snapshot_when_quiet(QUIET_WITHOUT_LOCK), self._select())

    def _has_snapshots(self) -> bool:
        """Return whether the engine has snapshots. Raise `StructureMoved` if there is
        no such table."""
        engine_has_snapshots = has_snapshots(self.query_cursor, self.structure.name)
        if engine_has_snapshots is None:
            raise structure_moved(
                self.structure.name, "it was dropped, or the account may not see it"
            )
        return engine_has_snapshots

    def _snapshot_when_quiet(self, retry: Retry) -> ReadWatermarks:
        """Open snapshots until the marks are equal; return the marks of the last one."""
        for _ in retry.tries():
            marks = self._begin_snapshot(COMMITTED_SOON)
            if marks.is_exact:
                break
        return marks

    def _begin_snapshot(self, retry: Retry = COMMITTED) -> ReadWatermarks:
        """Open a snapshot and return the marks around it. They are equal if the server
        reports the snapshot's place.

        A transaction that was prepared before the low mark, and is not in the snapshot,
        is still prepared when the snapshot is opened. So an XA RECOVER after the low
        mark and before the snapshot lists it. If the low mark is then moved to the
        snapshot's place, a transaction may have been prepared after that XA RECOVER. A
        second XA RECOVER, after the snapshot, lists it, unless it was committed
        meanwhile. The count of XA COMMITs shows whether any was.
        """
        low = low_mark(self.query_cursor, self.dialect, retry=retry)
        commit_count = xa_commit_count(self.query_cursor)
        prepared = prepared_transactions(self.query_cursor)
        self.cursor.execute(BEGIN)
        place = snapshot_place(self.cursor)
        if place is None:
            return ReadWatermarks(low, read_log_end(self.query_cursor), prepared)
        low = replace(low, at=place)
        prepared_later = prepared_transactions(self.query_cursor)
        later_commit_count = xa_commit_count(self.query_cursor)
        may_have_commits = commit_count is None or later_commit_count != commit_count
        if prepared is None or prepared_later is None or may_have_commits:
            return ReadWatermarks(low, place, None)
        return ReadWatermarks(low, place, prepared | prepared_later)

    def _select(self) -> Iterator[pa.RecordBatch]:
        return select_rows(
            self.cursor, self.structure, self.key, where=self.where, index_hint=self.index_hint
        )

    def _open_snapshot_under_lock(self) -> OpenedRead | None:
        """Open the snapshot under a lock of the table: all writers have committed and
        none can write. Return None if the account is not allowed to lock the table, or
        the lock is not granted in time."""
        if not self._try_lock(self.query_cursor):
            return None
        marks = self._marks_under_lock()
        self.cursor.execute(BEGIN)
        batches = self._select()
        self.query_cursor.execute("unlock tables")
        return OpenedRead(marks, batches)

    def _open_current_rows_under_lock(self) -> OpenedRead | None:
        """Open the read under a lock, for an engine without snapshots. The reading
        session holds the lock to its end, because such a read blocks writers anyway."""
        if not self._try_lock(self.cursor):
            return None
        return OpenedRead(self._marks_under_lock(), self._select())

    def _marks_under_lock(self) -> ReadWatermarks:
        low = mark_at_end(self.query_cursor, self.dialect)
        return ReadWatermarks(low, low.at, prepared_transactions(self.query_cursor))

    def _try_lock(self, cursor: Cursor) -> bool:
        cursor.execute(f"set session lock_wait_timeout = {_LOCK_SECONDS}")
        try:
            cursor.execute(f"lock tables {quoted_table(self.structure.name)} read")
        except pymysql.MySQLError as error:
            if number_of(error) not in _LOCK_REFUSALS:
                raise
            return False
        return True


def _require_unchanged(
    cursor: Cursor,
    structure: TableStructure,
    schema: TableSchema | None,
    *,
    ignores_defaults: bool,
) -> None:
    """Raise `StructureMoved` if the table no longer has this structure of row images,
    or no longer this schema, which also has defaults and collations.
    `ignores_defaults`: ignore defaults and visibility, which do not affect existing
    rows."""
    schemas = read_schemas(cursor, [structure.name])
    if not schemas:
        raise structure_moved(structure.name, "it was dropped")
    now = row_structure(schemas[0])
    if now.fingerprint != structure.fingerprint:
        raise structure_moved(structure.name, _difference(structure, now))
    if schema is None:
        return
    columns = with_default_values(cursor, schemas)[0].columns
    expected = schema.columns
    if ignores_defaults:
        columns, expected = _without_defaults(columns), _without_defaults(expected)
    if columns != expected:
        difference = _changed_definitions(_without_defaults(expected), _without_defaults(columns))
        raise structure_moved(structure.name, difference or "a default or a visibility differs")


def _without_defaults(columns: Sequence[ColumnSchema]) -> tuple[ColumnSchema, ...]:
    """Return the columns without the attributes that do not affect existing rows."""
    return tuple(
        replace(column, default=None, on_update=False, invisible=False) for column in columns
    )


def _difference(expected: TableStructure, now: TableStructure) -> str:
    """Return a phrase about the difference of two structures."""
    if expected.names != now.names:
        return f"columns {', '.join(now.names)} instead of {', '.join(expected.names)}"
    return _changed_definitions(expected.columns, now.columns) or "its primary key differs"


def _changed_definitions(
    expected: Sequence[Column | ColumnSchema], now: Sequence[Column | ColumnSchema]
) -> str | None:
    """Return a phrase that names the columns whose definitions differ, or None."""
    changed = [old.name for old, new in zip(expected, now, strict=True) if old != new]
    return f"the definition of {', '.join(changed)} differs" if changed else None


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


_MOVED_ERRORS: Final = frozenset({1049, 1054, 1146, 1176, 1412})
"""ER_BAD_DB_ERROR, ER_BAD_FIELD_ERROR, ER_NO_SUCH_TABLE, ER_KEY_DOES_NOT_EXITS,
ER_TABLE_DEF_CHANGED."""


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
            cure = LIMIT_WARNINGS.get(number, "fix the problem that MySQL reports")
            return TableError(
                f"MySQL refuses to read the table: {message}", hint=f"{cure} at the source"
            )
        case _:
            return None


def _translate_table_errors_in(
    settings: ConnectionSettings, structure: TableStructure, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with translate_table_errors(settings, structure.name, structure.names):
        yield from batches
