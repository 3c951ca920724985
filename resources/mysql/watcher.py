"""Ends a read that others wait for, or that takes too long.

The read's own connection is busy with rows, and whoever takes them may be busy too: so another
session looks, of the same account, which may end its own. A killed session frees its locks at
once; a killed statement would leave them to its transaction. A server that tells the other session
nothing for so long as is waited for elsewhere reads nothing either: then the read has lost its
connection.

Sources: MySQL manual, "The metadata_locks Table" (`performance_schema`, which an account with
SELECT on `*.*` reads); "SHOW PROCESSLIST", which shows other accounts' sessions to who has
PROCESS. Where neither tells, nobody is seen waiting.
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

from pipeline.errors import LockstepError, SourceUnavailable, TableBusy
from pipeline.server_errors import Meaning, meaning_of
from pipeline.snapshot.giving_way import Patience, cure, leaves
from pipeline.table import TableName
from resources.mysql.connection import ConnectionSettings, connect, cut, number_of

_LOOKS_EVERY: Final = 0.5
"""Seconds."""


@dataclass(slots=True)
class Watched:
    """A read that may be left; `reason` says why it was. `answered`: when the server last said
    anything to another session."""

    rule: Patience
    reason: str | None = None
    hint: str = ""
    begun: float = field(default_factory=monotonic)
    answered: float = field(default_factory=monotonic)

    def leave(self, *, waited_for: bool) -> bool:
        """Whether it is left now; from then on its errors are told as `reason`."""
        seconds = monotonic() - self.begun
        self.reason = leaves(self.rule, seconds, waited_for=waited_for)
        self.hint = cure(self.rule, waited_for=waited_for)
        return self.reason is not None

    @contextmanager
    def excused(self) -> Iterator[None]:
        """`TableBusy` for what becomes of a read that was left."""
        try:
            yield
        except (SourceUnavailable, TableBusy) as error:
            if self.reason is None:
                raise
            raise TableBusy(self.reason, hint=self.hint) from error

    def excusing(self, batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        with self.excused():
            yield from batches


@contextmanager
def watched(
    settings: ConnectionSettings, cursor: Cursor, table: TableName, rule: Patience
) -> Iterator[Watched]:
    """The session of `cursor`, looked after while the body runs; nobody looks before the rule
    may apply. Where others are not let in to look the read goes on: it would have anyway."""
    session = _Session(f"lockstep-{uuid4().hex}", cursor.connection)
    with suppress(pymysql.MySQLError):  # some clusters have none of these locks
        cursor.execute("select get_lock(%s, 0)", (session.lock,))
        cursor.fetchall()
    read, stop = Watched(rule), Event()
    thread = Thread(
        target=_look, args=(settings, session, table, read, stop), name="watcher", daemon=True
    )
    thread.start()
    try:
        yield read
    finally:
        stop.set()
        thread.join()


@dataclass(frozen=True, slots=True)
class _Session:
    """The one that reads: the name of a lock that it alone has, and our end of it."""

    lock: str
    connection: pymysql.Connection[Cursor]

    def end(self, cursor: Cursor) -> None:
        """By a KILL, if it is one of the server that `cursor` asks: behind a name there may be
        several, and one that was started anew gives numbers again. Else by cutting our end, which
        its server notices with the next row that it sends."""
        number = None
        with suppress(pymysql.MySQLError):
            cursor.execute("select is_used_lock(%s)", (self.lock,))
            ((number,),) = cursor.fetchall()
        if number is None:
            cut(self.connection)
            return
        with suppress(pymysql.err.OperationalError):  # it ended meanwhile
            cursor.execute(f"kill {int(number)}")


def _look(
    settings: ConnectionSettings, session: _Session, table: TableName, read: Watched, stop: Event
) -> None:
    first = min(read.rule.gives_way, read.rule.most or read.rule.gives_way)
    if stop.wait(max(first, _LOOKS_EVERY)):
        return
    while not stop.is_set():
        try:
            with connect(settings) as connection, connection.cursor() as cursor:
                if _left(cursor, session, table, read, stop):
                    return
        except LockstepError as error:
            if _is_answer(error):
                read.answered = monotonic()
        if monotonic() - read.answered > settings.read_timeout:
            cut(session.connection)
            return
        stop.wait(_LOOKS_EVERY)


def _is_answer(error: LockstepError) -> bool:
    """Whether the server said it, and nobody on the way."""
    cause = error.__cause__
    return (
        isinstance(cause, pymysql.MySQLError) and meaning_of(number_of(cause)) is not Meaning.LOST
    )


def _left(cursor: Cursor, session: _Session, table: TableName, read: Watched, stop: Event) -> bool:
    """False once nobody reads any more."""
    while not stop.is_set():
        waited_for = waiting_for(cursor, table)
        read.answered = monotonic()
        if read.leave(waited_for=waited_for):
            session.end(cursor)
            return True
        stop.wait(_LOOKS_EVERY)
    return False


_LOCKS: Final = """
select lock_status, lock_type from performance_schema.metadata_locks
 where object_type = 'TABLE' and object_schema = %s and object_name = %s
"""
_ALL_OF_IT: Final = frozenset({"EXCLUSIVE", "SHARED_NO_READ_WRITE"})
_STATE: Final = "waiting for table metadata lock"
_COMMENTS: Final = re.compile(r"\s*(?:/\*.*?\*/\s*)*", re.DOTALL)
_TAKES_ALL: Final = re.compile(
    r"(?:alter|create|drop|optimize|rename|repair|truncate)\b", re.IGNORECASE
)
"""Statements that want a table for themselves."""
_LOCKS_TABLES: Final = re.compile(r"lock\s+tables?\b", re.IGNORECASE)
_TO_WRITE: Final = re.compile(r"\bwrite\s*$", re.IGNORECASE)
"""Of one table in LOCK TABLES. READ, which our own reads lock a table with, is content beside who
reads."""

_UNTOLD: Final = frozenset({1044, 1049, 1142, 1146, 1227})
"""ER_DBACCESS_DENIED_ERROR, ER_BAD_DB_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_NO_SUCH_TABLE,
ER_SPECIFIC_ACCESS_DENIED_ERROR."""


def waiting_for(cursor: Cursor, table: TableName) -> bool:
    """Whether a statement waits to have the table for itself, as far as the account sees it."""
    locks = _locks(cursor, table)
    if locks:
        return any(status == "PENDING" and kind in _ALL_OF_IT for status, kind in locks)
    return sessions_wait(cursor, table)


def _locks(cursor: Cursor, table: TableName) -> list[tuple[str, str]]:
    """Those of whoever uses the table, who reads it for us among them; none at all where the
    server does not keep that table, or not for this account."""
    try:
        cursor.execute(_LOCKS, (table.database, table.name))
    except pymysql.MySQLError as error:
        if error.args[0] not in _UNTOLD:
            raise
        return []
    return [(_text(status), _text(kind)) for status, kind in cursor.fetchall()]


def sessions_wait(cursor: Cursor, table: TableName) -> bool:
    """The same by the list of sessions alone."""
    cursor.execute("show full processlist")
    return any(
        wants(table, database=_text(row[3]), statement=_text(row[7]))
        for row in cursor.fetchall()
        if _text(row[6]).lower().startswith(_STATE)
    )


def wants(table: TableName, *, database: str, statement: str) -> bool:
    """Whether the statement needs the table for itself. `database`: the one its session uses."""
    begun = _COMMENTS.match(statement)
    bare = statement[begun.end() :] if begun else statement
    if _LOCKS_TABLES.match(bare):
        parts = [part for part in bare.split(",") if _TO_WRITE.search(part)]
    else:
        parts = [bare] if _TAKES_ALL.match(bare) else []
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
