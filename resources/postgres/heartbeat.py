"""The signs of life that a lease's holder gives, from a thread of its own.

Belongs here: saying every few seconds that this process lives, and noticing that it holds the
lock no more. Does not: what becomes of a holder that is silent, which whoever wants the lock
decides (`leases`); what a holder without a lock may still do (`session`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import TracebackType

import psycopg2
from psycopg2.extensions import connection as Connection

from resources.postgres.connection import is_lost
from resources.postgres.queries import query

BEAT_SECONDS = 5.0
SILENT_SECONDS = 60.0
"""A holder that gave no sign for so long is taken over. A process that is stopped, or a
machine that is gone behind a connection that stays, gives none; a busy one does."""


class Heartbeat:
    """Signs of life for one lease while the context lasts, over the lock's connection. `lost` is
    called once, from the thread, when that connection is gone or another holder has taken over."""

    def __init__(
        self, connection: Connection, source: str, token: int, lost: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._lost = lost
        self._values = {"source": source, "token": token}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="lease", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._over.set()
        self._thread.join()

    def _beat(self) -> None:
        while not self._over.wait(BEAT_SECONDS):
            if not self._given():
                self._lost()
                return

    def _given(self) -> bool:
        """Give a sign of life; return False if the lock is lost."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(query("beat"), self._values)
                return cursor.rowcount == 1
        except psycopg2.Error as error:
            # A step of this very run may have the row for longer than `lock_timeout`: the session
            # goes on, and so does its lock.
            return not (is_lost(error) or self._connection.closed)
