"""A thread that writes to tables all the time, whatever happens to their structure.

Belongs here: the writes, and that none of them fails. Does not: who changes structures.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from types import TracebackType

import pymysql

from tests.fix_mysql import MySqlStand

ROWS = 40
"""Ids run round below this, so that rows are updated and come again."""


class Writer:
    """Inserts, updates and deletes, one after the other in each table (columns `id`, `v`),
    each committed by itself, from entering to leaving."""

    def __init__(self, mysql: MySqlStand, tables: Sequence[str]) -> None:
        self._mysql = mysql
        self._tables = tables
        self._over = threading.Event()
        self._written = threading.Condition()
        self._thread = threading.Thread(target=self._write, daemon=True)
        self._error: pymysql.MySQLError | None = None
        self.rounds = 0

    def __enter__(self) -> Writer:
        self._thread.start()
        self.go_on()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()
        if self._error is not None:
            raise self._error

    def go_on(self, rounds: int = 10) -> None:
        """Wait until it wrote so many rounds more."""
        with self._written:
            goal = self.rounds + rounds
            self._written.wait_for(lambda: self.rounds >= goal or self._error is not None, 60)
            assert self.rounds >= goal, self._error

    def _write(self) -> None:
        try:
            with self._mysql.connect() as connection, connection.cursor() as cursor:
                while not self._over.is_set():
                    for table in self._tables:
                        for statement in _statements(table, self.rounds):
                            cursor.execute(statement)
                    with self._written:
                        self.rounds += 1
                        self._written.notify_all()
        except pymysql.MySQLError as error:
            self._error = error


def _statements(table: str, number: int) -> tuple[str, ...]:
    at, other, third = number % ROWS, (number * 7 + 3) % ROWS, (number * 11 + 5) % ROWS
    return (
        f"delete from {table} where id = {third}",
        f"insert into {table} (id, v) values ({at}, {number}) on duplicate key update v = {number}",
        f"update {table} set v = v + 1000 where id = {other}",
        f"update ignore {table} set id = id + {ROWS} where id = {third + 1}",
        f"delete from {table} where id = {third + ROWS}",
    )
