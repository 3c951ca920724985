"""The session in which a server is asked short questions, kept from one question to the next.

A run asks a dozen times, and a handshake takes longer than most answers, with TLS above all. A
session is only used again soon, by nobody else at a time, and while the server keeps it.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from time import monotonic
from typing import Any, Final, TypeAlias
from weakref import finalize

import pymysql
from pymysql.cursors import Cursor

from resources.mysql.connection import ConnectionSettings, open_connection, translated

Idle: TypeAlias = "deque[tuple[pymysql.Connection[Cursor], float]]"
"""Sessions that nobody uses, and since when, by the monotonic clock."""

KEPT_SECONDS: Final = 10.0
"""After that an account's privileges, or whoever answers at that address, may be others."""


class Questions:
    """Sessions for one question after the other, at most one of them idle; for several threads,
    each of which has a session of its own while it asks."""

    def __init__(self, settings: Callable[[], ConnectionSettings]) -> None:
        self._settings = settings
        self._idle: Idle = deque()
        finalize(self, _close_all, self._idle)

    @contextmanager
    def cursor(self) -> Iterator[Cursor]:
        """A session's cursor, for questions that leave the session as they found it. Where one of
        them fails the session is closed. Failures come out as `pipeline.errors`."""
        settings = self._settings()
        with translated(settings):
            connection = self._kept() or open_connection(settings)
            try:
                with connection.cursor() as cursor:
                    yield cursor
            except BaseException:
                _close(connection)
                raise
            self._keep(connection)

    def close(self) -> None:
        """Close the idle session; the next question opens another one."""
        _close_all(self._idle)

    def _kept(self) -> pymysql.Connection[Cursor] | None:
        with suppress(IndexError):
            connection, since = self._idle.pop()
            if monotonic() - since < KEPT_SECONDS and _is_silent(connection):
                return connection
            _close(connection)
        return None

    def _keep(self, connection: pymysql.Connection[Cursor]) -> None:
        self.close()
        self._idle.append((connection, monotonic()))


def _close_all(idle: Idle) -> None:
    with suppress(IndexError):
        while True:
            _close(idle.pop()[0])


def _is_silent(connection: pymysql.Connection[Cursor]) -> bool:
    """A server says nothing unasked, but that it closes the session."""
    driver: Any = connection  # no public call for its socket
    at_hand = select.poll()
    at_hand.register(driver._sock, select.POLLIN)
    return not at_hand.poll(0)


def _close(connection: pymysql.Connection[Cursor]) -> None:
    if connection.open:
        connection.close()
