"""Ends a read that others wait for, or that takes too long.

Belongs here: the thread that looks, and the KILL. Does not: when a read is left
(`pipeline.snapshot.giving_way`), who waits (`waiting`).

The read's own connection is busy with rows, and whoever takes them may be busy too: so another
session looks, of the same account, which may end its own. A killed session frees its locks at
once; a killed statement would leave them to its transaction. A server that tells the other session
nothing for so long as is waited for elsewhere reads nothing either: then the read has lost its
connection.
"""

from __future__ import annotations

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
from resources.mysql.waiting import waiting_for

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
