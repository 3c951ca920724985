"""A pool of at most one idle session, in which short queries run.

A run has a dozen of them, and a handshake takes longer than most of their answers, particularly
with TLS. An idle session is used again only for a few seconds, and only if the server still has it.
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
"""Idle sessions, and since when they are idle, by the monotonic clock."""

KEPT_SECONDS: Final = 10.0
"""Longest time that a session is kept idle. Later, the account's privileges, or the server at this
address, may be others."""


class Questions:
    """Sessions for one query after another, at most one of them idle. Threads may share it: each
    query has a session of its own."""

    def __init__(self, settings: Callable[[], ConnectionSettings]) -> None:
        self._settings = settings
        self._idle: Idle = deque()
        finalize(self, _close_all, self._idle)

    @contextmanager
    def cursor(self) -> Iterator[Cursor]:
        """Yield a cursor for queries that do not change the session. If one fails, the session is
        closed; errors are raised as `pipeline.errors`."""
        settings = self._settings()
        with translated(settings):
            connection = self._reusable() or open_connection(settings)
            try:
                with connection.cursor() as cursor:
                    yield cursor
            except BaseException:
                _close(connection)
                raise
            self._keep(connection)

    def close(self) -> None:
        """Close the idle session; the next query opens another."""
        _close_all(self._idle)

    def _reusable(self) -> pymysql.Connection[Cursor] | None:
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
    """Return whether there is nothing to read. A server sends nothing unasked, except that it
    closes the session."""
    driver: Any = connection  # no public call for its socket
    readable = select.poll()
    readable.register(driver._sock, select.POLLIN)
    return not readable.poll(0)


def _close(connection: pymysql.Connection[Cursor]) -> None:
    if connection.open:
        connection.close()
