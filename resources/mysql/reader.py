"""A consistent read of a table, of some of its columns, or of some of its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from pipeline.errors import StructureMoved, TableBusy, TableError
from pipeline.ports.source import TableSnapshot
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import key_columns, row_structure
from pipeline.schema.types import arrow_schema
from pipeline.server_errors import LIMITS, Meaning, meaning_of, names_of, told
from pipeline.snapshot.giving_way import Patience
from pipeline.table import TableName, TableStructure
from resources.mysql.answers import ReadingCursor
from resources.mysql.connection import (
    ConnectionSettings,
    connect,
    number_of,
    open_connection,
    text_of,
    translated,
    wait_long,
)
from resources.mysql.dialect import read_dialect
from resources.mysql.privileges import may_not_be_read
from resources.mysql.select import quoted_table
from resources.mysql.taking import MarkedRead, moved, require_built
from resources.mysql.warnings import keep_warnings
from resources.mysql.watcher import watched

_LOST: Final = frozenset({0, 2006, 2013, 2055})
"""CR_SERVER_GONE_ERROR, CR_SERVER_LOST, CR_SERVER_LOST_EXTENDED; the driver's 0 for a closed
session."""

_MOVED: Final = frozenset({1049, 1054, 1146, 1176, 1412})
"""ER_BAD_DB_ERROR, ER_BAD_FIELD_ERROR, ER_NO_SUCH_TABLE, ER_KEY_DOES_NOT_EXITS,
ER_TABLE_DEF_CHANGED."""


@contextmanager
def reading(settings: ConnectionSettings, *, patient: bool = False) -> Iterator[ReadingCursor]:
    """Yield an unbuffered cursor in a session of its own. Rows that were not fetched at the end are
    discarded together with the connection. `patient`: the first row may take long; use it with a
    watcher (`watcher.watched`)."""
    with translated(settings):
        connection = open_connection(settings)
        cursor = connection.cursor(ReadingCursor)
        try:
            keep_warnings(cursor)
            if patient:
                wait_long(connection)
            yield cursor
        finally:
            _leave(connection, cursor)


def has_no_row(cursor: Cursor, table: TableName) -> bool:
    """Return whether a table is empty; False also if the server refuses to read it, as it does for
    a dropped table."""
    try:
        cursor.execute(f"select 1 from {quoted_table(table)} limit 1")
    except pymysql.MySQLError as error:
        if not error.args or error.args[0] in _LOST:
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
        reading(settings) as cursor,
        watched(settings, cursor, table.name, Patience(0.0)) as read,
    ):
        with read.excused():
            snapshot = take(settings, cursor, table, columns, exact=exact)
        yield replace(snapshot, batches=read.excusing(snapshot.batches))


def take(
    settings: ConnectionSettings,
    cursor: ReadingCursor,
    table: TableSchema | TableStructure,
    columns: Sequence[str] | None = None,
    *,
    exact: bool = False,
    where: str | None = None,
    along: str = "",
    rows_only: bool = False,
) -> TableSnapshot:
    """Open a snapshot, which lasts as long as the session of `cursor`, one of `reading`. `where`: a
    condition in complete SQL for the rows to read, with `along` as its index hint.
    `rows_only`: as in `require_built`."""
    structure = row_structure(table) if isinstance(table, TableSchema) else table
    key = key_columns(table) if isinstance(table, TableSchema) else frozenset(structure.primary_key)
    read = _narrowed(structure, columns)
    schema = arrow_schema(read)
    with (
        connect(settings) as asking,
        asking.cursor() as questions,
        explained(settings, structure.name, structure.names),
    ):
        marked = MarkedRead(cursor, questions, read, read_dialect(questions), key, where, along)
        opened = marked.exactly() if exact else marked.once()
        require_built(questions, table, structure, rows_only=rows_only)
    low, high = opened.marks.low, opened.marks.high
    return TableSnapshot(
        table=structure.name,
        schema=schema,
        low=low.at,
        high=high.at,
        low_set=low.executed,
        high_set=high.executed,
        exact=opened.exact,
        batches=_with_errors(settings, structure, opened.batches),
        prepared=opened.marks.prepared,
    )


def _narrowed(structure: TableStructure, columns: Sequence[str] | None) -> TableStructure:
    """Return the structure with the key and these columns only, in the table's order; ValueError
    for a column that it lacks."""
    if columns is None:
        return structure
    wanted = {*columns, *structure.primary_key}
    missing = wanted - {column.name for column in structure.columns}
    if missing:
        raise ValueError(f"{structure.name} has no column {', '.join(sorted(missing))}")
    return replace(structure, columns=tuple(c for c in structure.columns if c.name in wanted))


@contextmanager
def explained(
    settings: ConnectionSettings, table: TableName, columns: Sequence[str] = ()
) -> Iterator[None]:
    """Translate errors as `translated` does, for statements about one table: an error about that
    table becomes a TableError with the server's text."""
    with translated(settings):
        try:
            yield
        except pymysql.MySQLError as error:
            names = names_of(table, columns)
            about = _table_error(settings, table, number_of(error), text_of(error), names)
            if about is None:
                raise
            raise about from error
        except UnicodeDecodeError as error:
            raise TableError(
                "the source sent text that is not UTF-8",
                hint="correct those rows in the source, or exclude the table",
            ) from error


def _table_error(
    settings: ConnectionSettings, table: TableName, number: int, text: str, names: frozenset[str]
) -> StructureMoved | TableError | None:
    """Return the error for the table; None if the server's error is not about this table only."""
    if number in _MOVED:
        return moved(table, text)
    message = told(number, text, names)
    match meaning_of(number):
        case Meaning.BUSY:
            return TableBusy(
                f"the table could not be read now: {message}", hint="the next run tries it again"
            )
        case Meaning.PRIVILEGE:
            return may_not_be_read(
                settings, table, f"the account may not read the table: {message}"
            )
        case Meaning.REFUSED:
            cure = LIMITS.get(number, "fix the problem that it reports")
            return TableError(
                f"MySQL refuses to read the table: {message}", hint=f"{cure} at the source"
            )
        case _:
            return None


def _with_errors(
    settings: ConnectionSettings, table: TableStructure, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with explained(settings, table.name, table.names):
        yield from batches


def _leave(connection: pymysql.Connection[Any], cursor: ReadingCursor) -> None:
    """Close the session without reading the rest of a result, as PyMySQL would."""
    if cursor.answer is not None and cursor.answer.leave():
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
