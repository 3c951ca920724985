"""One consistent read of a table, or of some of its columns, between two marks.

Belongs here: opening the read, its marks, and noticing that the table is built otherwise.
Does not: rows into columns (`select`), the log's end and what is committed (`watermarks`).

Two sessions take part: one reads, the other asks. The statement that reads keeps the
table's metadata lock until the snapshot is closed, so a structure that is asked for once it
runs is the one that is read (MySQL manual, "Metadata Locking"). InnoDB refuses to read a
table that was altered between the snapshot and the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Final

import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from pipeline.changes.keys import key_columns
from pipeline.errors import StructureMoved, TableBusy, TableError
from pipeline.ports.source import TableSnapshot
from pipeline.retries import COMMITTED, COMMITTED_SOON, QUIET, QUIET_WITHOUT_LOCK, Retry
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import row_structure
from pipeline.schema.types import arrow_schema
from pipeline.server_errors import Meaning, meaning_of, names_of, told
from pipeline.source_warnings import LIMITS
from pipeline.table import TableName, TableStructure
from resources.mysql.answers import ReadingCursor
from resources.mysql.connection import (
    ConnectionSettings,
    connect,
    number_of,
    open_connection,
    text_of,
    translated,
)
from resources.mysql.defaults import with_values
from resources.mysql.dialect import Dialect, read_dialect
from resources.mysql.schemas import read_schemas
from resources.mysql.select import BEGIN, prepare_session, quoted_table, select_rows
from resources.mysql.watermarks import Mark, high_mark, low_mark, snapshot_place

_SNAPSHOTS: Final = frozenset({"innodb", "rocksdb", "tokudb"})
"""Engines that show their rows as of the snapshot; the others as of the statement."""

_LOCK_SECONDS: Final = 2
"""A LOCK TABLES that waits keeps writers waiting behind it: not for long."""

_NOT_LOCKED: Final = frozenset({1044, 1142, 1205, 1227})
"""ER_DBACCESS_DENIED_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_LOCK_WAIT_TIMEOUT,
ER_SPECIFIC_ACCESS_DENIED_ERROR."""

_LOST: Final = frozenset({0, 2006, 2013, 2055})
"""CR_SERVER_GONE_ERROR, CR_SERVER_LOST, CR_SERVER_LOST_EXTENDED; 0 of the driver: no session."""

_MOVED: Final = frozenset({1049, 1054, 1146, 1412})
"""ER_BAD_DB_ERROR, ER_BAD_FIELD_ERROR, ER_NO_SUCH_TABLE, ER_TABLE_DEF_CHANGED."""


@contextmanager
def reading(settings: ConnectionSettings) -> Iterator[ReadingCursor]:
    """An unbuffered cursor in a session that may read whole tables. Rows that were not
    fetched are left behind: the connection goes without them."""
    with translated(settings):
        connection = open_connection(settings)
        cursor = connection.cursor(ReadingCursor)
        try:
            prepare_session(cursor)
            yield cursor
        finally:
            _leave(connection, cursor)


def has_no_row(cursor: Cursor, table: TableName) -> bool:
    """False too where the server refuses to read it, as it does with a table that is gone."""
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
    whole = row_structure(table) if isinstance(table, TableSchema) else table
    key = key_columns(table) if isinstance(table, TableSchema) else frozenset(whole.primary_key)
    read = _narrowed(whole, columns)
    schema = arrow_schema(read)
    with reading(settings) as cursor:
        with (
            connect(settings) as asking,
            asking.cursor() as questions,
            explained(settings, whole.name, whole.names),
        ):
            taking = _Taking(cursor, questions, read, read_dialect(questions), key)
            opened = taking.exactly() if exact else taking.once()
            _require(questions, table, whole)
        yield TableSnapshot(
            table=whole.name,
            schema=schema,
            low=opened.low.at,
            high=opened.high.at,
            low_set=opened.low.executed,
            high_set=opened.high.executed,
            exact=opened.exact,
            batches=_told(settings, whole, opened.batches),
        )


@dataclass(frozen=True, slots=True)
class _Opened:
    low: Mark
    high: Mark
    exact: bool
    batches: Iterator[pa.RecordBatch]


@dataclass(frozen=True, slots=True)
class _Taking:
    """`cursor` reads, `questions` is the other session's."""

    cursor: ReadingCursor
    questions: Cursor
    structure: TableStructure
    dialect: Dialect
    key: frozenset[str]

    def once(self) -> _Opened:
        if self._has_snapshots():
            return self._selected(*self._snapshot())
        low = low_mark(self.questions, self.dialect)
        batches = self._select()  # has the table's lock from here on
        high = high_mark(self.questions, self.dialect)
        return _Opened(low, high, low.at == high.at, batches)

    def exactly(self) -> _Opened:
        """At a quiet moment, or under a lock, or at a quiet moment that is waited for."""
        if not self._has_snapshots():
            return self._held() or self.once()
        low, high = self._quiet(QUIET)
        if low == high:
            return self._selected(low, high)
        return self._locked() or self._selected(*self._quiet(QUIET_WITHOUT_LOCK))

    def _has_snapshots(self) -> bool:
        """By its engine; `StructureMoved` where there is no such table."""
        name = self.structure.name
        self.questions.execute(
            "select coalesce(engine, 'InnoDB') from information_schema.tables"
            " where table_schema = %s and table_name = %s",
            (name.database, name.name),
        )
        row = self.questions.fetchone()
        if row is None:
            raise _moved(name, "it is not there, or the account may not see it")
        return str(row[0]).lower() in _SNAPSHOTS

    def _quiet(self, retry: Retry) -> tuple[Mark, Mark]:
        """A snapshot with equal marks, or the last of so many."""
        for _ in retry.tries():
            low, high = self._snapshot(COMMITTED_SOON)
            if low == high:
                break
        return low, high

    def _snapshot(self, patience: Retry = COMMITTED) -> tuple[Mark, Mark]:
        """The marks around a snapshot; one and the same where its place is known."""
        low = low_mark(self.questions, self.dialect, patience=patience)
        self.cursor.execute(BEGIN)
        place = snapshot_place(self.cursor)
        high = high_mark(self.questions, self.dialect)
        if place is not None:
            low = high = replace(low, at=place)
        return low, high

    def _selected(self, low: Mark, high: Mark) -> _Opened:
        return _Opened(low, high, low.at == high.at, self._select())

    def _select(self) -> Iterator[pa.RecordBatch]:
        return select_rows(self.cursor, self.structure, self.key)

    def _locked(self) -> _Opened | None:
        """Nobody writes to the table while the snapshot is opened, and who did has committed;
        None where the account may not lock it, or others use it for too long."""
        if not self._lock(self.questions):
            return None
        mark = high_mark(self.questions, self.dialect)
        self.cursor.execute(BEGIN)
        batches = self._select()
        self.questions.execute("unlock tables")
        return _Opened(mark, mark, exact=True, batches=batches)

    def _held(self) -> _Opened | None:
        """As `_locked`, for a table whose rows are those of the statement: its reader keeps
        writers waiting to its end anyway, so it has the lock itself."""
        if not self._lock(self.cursor):
            return None
        mark = high_mark(self.questions, self.dialect)
        return _Opened(mark, mark, exact=True, batches=self._select())

    def _lock(self, cursor: Cursor) -> bool:
        cursor.execute(f"set session lock_wait_timeout = {_LOCK_SECONDS}")
        try:
            cursor.execute(f"lock tables {quoted_table(self.structure.name)} read")
        except pymysql.MySQLError as error:
            if error.args[0] not in _NOT_LOCKED:
                raise
            return False
        return True


def _narrowed(structure: TableStructure, columns: Sequence[str] | None) -> TableStructure:
    """The key and these columns, in the table's order; ValueError for one it lacks."""
    if columns is None:
        return structure
    wanted = {*columns, *structure.primary_key}
    missing = wanted - {column.name for column in structure.columns}
    if missing:
        raise ValueError(f"{structure.name} has no column {', '.join(sorted(missing))}")
    return replace(structure, columns=tuple(c for c in structure.columns if c.name in wanted))


def _require(cursor: Cursor, table: TableSchema | TableStructure, whole: TableStructure) -> None:
    """`StructureMoved` unless the table is built like that now; one that is given with its
    defaults has these too."""
    found = read_schemas(cursor, [whole.name])
    if not found:
        raise _moved(whole.name, "it is not there any more")
    now = row_structure(found[0])
    if now.fingerprint != whole.fingerprint:
        raise _moved(whole.name, _difference(whole, now))
    if isinstance(table, TableSchema) and with_values(cursor, found)[0].columns != table.columns:
        raise _moved(whole.name, "another default")


def _difference(expected: TableStructure, now: TableStructure) -> str:
    names = [[column.name for column in each.columns] for each in (expected, now)]
    if names[0] != names[1]:
        return f"columns {', '.join(names[1])} instead of {', '.join(names[0])}"
    pairs = zip(expected.columns, now.columns, strict=True)
    changed = [ours.name for ours, theirs in pairs if ours != theirs]
    return f"another definition of {', '.join(changed)}" if changed else "another primary key"


def _moved(table: TableName, difference: str) -> StructureMoved:
    return StructureMoved(
        f"{table} does not have the structure it should be read with: {difference}",
        hint="run again: its structure is read again",
    )


@contextmanager
def explained(
    settings: ConnectionSettings, table: TableName, columns: Sequence[str] = ()
) -> Iterator[None]:
    """As `translated`, for statements about one table: what an error packet says of it is a
    TableError, in the server's own words."""
    with translated(settings):
        try:
            yield
        except pymysql.MySQLError as error:
            names = names_of(table, columns)
            about = _about(settings, table, number_of(error), text_of(error), names)
            if about is None:
                raise
            raise about from error
        except UnicodeDecodeError as error:
            raise TableError(
                "the source sent text that is not in the character set it says",
                hint="correct those rows in the source, or exclude the table",
            ) from error


def _about(
    settings: ConnectionSettings, table: TableName, number: int, text: str, names: frozenset[str]
) -> StructureMoved | TableError | None:
    """What an error means for the table; None where it is about more than that."""
    if number in _MOVED:
        return _moved(table, text)
    said = told(number, text, names)
    match meaning_of(number):
        case Meaning.BUSY:
            return TableBusy(
                f"it could not be read now: {said}", hint="the next run tries it again"
            )
        case Meaning.PRIVILEGE:
            return TableError(
                f"the account may not read it: {said}",
                hint=f"grant select on `{table.database}`.`{table.name}` to {settings.user!r}",
            )
        case Meaning.REFUSED:
            cure = LIMITS.get(number, "fix what it complains of")
            return TableError(f"MySQL refuses to read it: {said}", hint=f"{cure} at the source")
        case _:
            return None


def _told(
    settings: ConnectionSettings, table: TableStructure, batches: Iterator[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    with explained(settings, table.name, table.names):
        yield from batches


def _leave(connection: pymysql.Connection[Any], cursor: ReadingCursor) -> None:
    """PyMySQL would read a result to its end before it closes."""
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
