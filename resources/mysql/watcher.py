"""Ends a read if another session waits for the read's lock, or if the read takes too
long.

The read's own connection is busy with rows, and so may be the thread that consumes
them. So a thread watches through a second session of the same account: an account may
kill its own sessions. The thread kills the whole session, because that releases its
locks at once; after killing only the statement, the transaction would keep them. If the
server does not answer the second session within the read timeout, the read has lost its
connection too, and its socket is shut down.

Sources: MySQL manual, "The metadata_locks Table" (`performance_schema`; an account
needs SELECT on `*.*`); "SHOW PROCESSLIST", which shows other accounts' sessions only
with PROCESS. Without either, no waiting session is noticed.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from threading import Event, Thread
from time import monotonic
from typing import Final
from uuid import uuid4

import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.snapshot.pace import Patience
from lockstep.pipeline.values.errors import LockstepError, SourceUnavailable, TableBusy
from lockstep.pipeline.values.server_errors import Meaning, meaning_of
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.connection import (
    ConnectionSettings,
    connect,
    number_of,
    shut_down_socket,
)

_CHECK_SECONDS: Final = 0.5
"""Seconds between two checks."""


@dataclass(slots=True)
class WatchedRead:
    """A read that the watcher may give up by its `patience`. `reason`, `hint`: the
    error if it gave the read up; `begun_at`: when the read began, and `answered_at`:
    when the server last answered the watcher, by the monotonic clock."""

    patience: Patience
    reason: str | None = None
    hint: str = ""
    begun_at: float = field(default_factory=monotonic)
    answered_at: float = field(default_factory=monotonic)

    def decide_to_give_up(self, *, waited_for: bool) -> bool:
        """Return whether to give the read up. If so, `reason` and `hint` are set."""
        decision = self.patience.decide(monotonic() - self.begun_at, waited_for=waited_for)
        if decision is None:
            return False
        self.reason, self.hint = decision
        return True

    @contextmanager
    def raising_busy(self) -> Iterator[None]:
        """Raise `TableBusy` with the reason instead of the error of a read that was
        given up."""
        try:
            yield
        except (SourceUnavailable, TableBusy) as error:
            if self.reason is None:
                raise
            raise TableBusy(self.reason, hint=self.hint) from error

    def raising_busy_in(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Yield the batches; raise `TableBusy` as `raising_busy` does."""
        with self.raising_busy():
            yield from batches


@contextmanager
def watch(
    settings: ConnectionSettings, cursor: Cursor, table: TableName, patience: Patience
) -> Iterator[WatchedRead]:
    """Watch the session of `cursor` while the body runs. The watcher connects only when
    `patience` may end the read. If it cannot connect, the read goes on."""
    watcher = _Watcher(settings, cursor.connection, table, WatchedRead(patience))
    with suppress(pymysql.MySQLError):  # some clusters have no user-level locks
        cursor.execute("select get_lock(%s, 0)", (watcher.lock,))
        cursor.fetchall()
    thread = Thread(target=watcher.run, name="watcher", daemon=True)
    thread.start()
    try:
        yield watcher.read
    finally:
        watcher.stop.set()
        thread.join()


@dataclass(slots=True)
class _Watcher:
    """The watcher of a `read` of a table, which runs over `read_connection`. `lock`:
    the name of a user-level lock that only the reading session holds; `stop`: set when
    the read has ended."""

    settings: ConnectionSettings
    read_connection: pymysql.Connection[Cursor]
    table: TableName
    read: WatchedRead
    lock: str = field(default_factory=lambda: f"lockstep-{uuid4().hex}")
    stop: Event = field(default_factory=Event)

    def run(self) -> None:
        patience = self.read.patience
        wait_seconds = min(
            patience.gives_way_seconds, patience.most_seconds or patience.gives_way_seconds
        )
        if self.stop.wait(max(wait_seconds, _CHECK_SECONDS)):
            return
        while not self.stop.is_set():
            try:
                with connect(self.settings) as connection, connection.cursor() as cursor:
                    if self._end_if_given_up(cursor):
                        return
            except LockstepError as error:
                if _is_answer(error):
                    self.read.answered_at = monotonic()
            if monotonic() - self.read.answered_at > self.settings.read_timeout:
                shut_down_socket(self.read_connection)
                return
            self.stop.wait(_CHECK_SECONDS)

    def _end_if_given_up(self, cursor: Cursor) -> bool:
        """Check repeatedly. Return True when the read is given up, False when it has
        ended."""
        while not self.stop.is_set():
            waited_for = is_waited_for(cursor, self.table)
            self.read.answered_at = monotonic()
            if self.read.decide_to_give_up(waited_for=waited_for):
                self._end_session(cursor)
                return True
            self.stop.wait(_CHECK_SECONDS)
        return False

    def _end_session(self, cursor: Cursor) -> None:
        """Kill the session if it is on the server that `cursor` is connected to, else
        shut down its socket, which the server notices when it sends the next row. The
        session is identified by its lock, not by its number: a host name may lead to
        several servers, and a restarted server assigns the same numbers again."""
        session_id = None
        with suppress(pymysql.MySQLError):
            cursor.execute("select is_used_lock(%s)", (self.lock,))
            ((session_id,),) = cursor.fetchall()
        if session_id is None:
            shut_down_socket(self.read_connection)
            return
        with suppress(pymysql.err.OperationalError):  # it ended meanwhile
            cursor.execute(f"kill {int(session_id)}")


def _is_answer(error: LockstepError) -> bool:
    """Return whether the error came from the server itself, not from the network."""
    cause = error.__cause__
    return (
        isinstance(cause, pymysql.MySQLError) and meaning_of(number_of(cause)) is not Meaning.LOST
    )


_LOCKS: Final = """
select lock_status, lock_type from performance_schema.metadata_locks
 where object_type = 'TABLE' and object_schema = %s and object_name = %s
"""
_EXCLUSIVE_LOCKS: Final = frozenset({"EXCLUSIVE", "SHARED_NO_READ_WRITE"})
_WAITING_STATE: Final = "waiting for table metadata lock"
_COMMENTS: Final = re.compile(r"\s*(?:/\*.*?\*/\s*)*", re.DOTALL)
_EXCLUSIVE_STATEMENTS: Final = re.compile(
    r"(?:alter|create|drop|optimize|rename|repair|truncate)\b", re.IGNORECASE
)
"""Statements that need an exclusive lock of a table."""
_LOCK_STATEMENT: Final = re.compile(r"lock\s+tables?\b", re.IGNORECASE)
_TO_WRITE: Final = re.compile(r"\bwrite\s*$", re.IGNORECASE)
"""The end of an item of LOCK TABLES, if the table is locked for writing. A READ lock
does not wait for readers; our own reads may take one."""

_REFUSALS: Final = frozenset({1044, 1049, 1142, 1146, 1227})
"""ER_DBACCESS_DENIED_ERROR, ER_BAD_DB_ERROR, ER_TABLEACCESS_DENIED_ERROR,
ER_NO_SUCH_TABLE, ER_SPECIFIC_ACCESS_DENIED_ERROR."""


def is_waited_for(cursor: Cursor, table: TableName) -> bool:
    """Return whether a statement waits for an exclusive lock of the table, as far as
    the account can see."""
    locks = _locks(cursor, table)
    if locks:
        return any(status == "PENDING" and kind in _EXCLUSIVE_LOCKS for status, kind in locks)
    return has_waiting_session(cursor, table)


def _locks(cursor: Cursor, table: TableName) -> list[tuple[str, str]]:
    """Return the metadata locks of the table, including that of our read; none if the
    server does not have performance_schema, or does not show it to this account."""
    try:
        cursor.execute(_LOCKS, (table.database, table.name))
    except pymysql.MySQLError as error:
        if number_of(error) not in _REFUSALS:
            raise
        return []
    return [(_text(status), _text(kind)) for status, kind in cursor.fetchall()]


def has_waiting_session(cursor: Cursor, table: TableName) -> bool:
    """Return whether a session in the process list waits for an exclusive lock of the
    table."""
    cursor.execute("show full processlist")
    return any(
        wants_whole_table(table, database=_text(row[3]), statement=_text(row[7]))
        for row in cursor.fetchall()
        if _text(row[6]).lower().startswith(_WAITING_STATE)
    )


def wants_whole_table(table: TableName, *, database: str, statement: str) -> bool:
    """Return whether the statement needs an exclusive lock of the table. `database`:
    the default database of its session."""
    comments = _COMMENTS.match(statement)
    bare = statement[comments.end() :] if comments else statement
    if _LOCK_STATEMENT.match(bare):
        parts = [part for part in bare.split(",") if _TO_WRITE.search(part)]
    else:
        parts = [bare] if _EXCLUSIVE_STATEMENTS.match(bare) else []
    return any(
        _mentions(part, table.name)
        and (database == table.database or _mentions(part, table.database))
        for part in parts
    )


def _mentions(statement: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", statement, re.IGNORECASE) is not None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
