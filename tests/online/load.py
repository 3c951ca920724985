"""Threads that write to tables all the time, whatever happens to their structure.

Belongs here: the writes, and that none of them fails for a reason of its own. Does not: who
changes structures.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from typing import Final

import pymysql

from tests.fix_mysql import MySqlStand

KEYS: Final = 40
"""Ids run round below this, so that rows are updated and come again; a changed key is one
above it."""

_PASSING: Final = frozenset({1146, 1205, 1213})
"""The table has no name just now (a cut-over in two statements), a lock wait that timed out,
a deadlock: whoever writes tries again, as applications do."""

PAUSE_SECONDS: Final = 0.01
"""Between two rounds: a hot table, and the processor is left to who follows it."""

PATIENCE_SECONDS: Final = 120


class Load:
    """Inserts, updates, deletes and changes of keys in each table (columns `id`, `v`), some
    committed by themselves and some together, from entering to leaving."""

    def __init__(self, mysql: MySqlStand, tables: Sequence[str]) -> None:
        self._mysql = mysql
        self._tables = tables
        self._over = threading.Event()
        self._written = threading.Condition()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._error: pymysql.MySQLError | None = None
        self.rounds = 0

    def __enter__(self) -> Load:
        self._thread.start()
        self.go_on()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def go_on(self, rounds: int = 5) -> None:
        """Wait until it wrote so many rounds more."""
        with self._written:
            goal = self.rounds + rounds
            self._written.wait_for(
                lambda: self.rounds >= goal or self._error is not None, PATIENCE_SECONDS
            )
            assert self.rounds >= goal, self._error

    def _write(self) -> None:
        try:
            with self._mysql.connect() as connection:
                while not self._over.wait(PAUSE_SECONDS):
                    for table in self._tables:
                        _try(connection, _alone(table, self.rounds))
                        _try(connection, ["begin", *_together(table, self.rounds), "commit"])
                    with self._written:
                        self.rounds += 1
                        self._written.notify_all()
        except pymysql.MySQLError as error:
            with self._written:
                self._error = error
                self._written.notify_all()


def _try(connection: pymysql.Connection[pymysql.cursors.Cursor], statements: Iterable[str]) -> None:
    try:
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)
    except pymysql.MySQLError as error:
        if error.args[0] not in _PASSING:
            raise
        connection.rollback()


def _alone(table: str, number: int) -> tuple[str, ...]:
    at, other, third = number % KEYS, (number * 7 + 3) % KEYS, (number * 11 + 5) % KEYS
    return (
        f"delete from {table} where id = {third}",
        f"insert into {table} (id, v) values ({at}, {number}) on duplicate key update v = {number}",
        f"update {table} set v = v + 1000 where id = {other}",
        f"update ignore {table} set id = id + {KEYS} where id = {third + 1}",
    )


def _together(table: str, number: int) -> tuple[str, ...]:
    first = (number * 5) % KEYS
    return (
        f"update {table} set v = -v where id between {first} and {first + 3}",
        f"delete from {table} where id = {first + KEYS}",
        f"replace into {table} (id, v) values ({first}, {number}), ({first + KEYS}, {number})",
    )
