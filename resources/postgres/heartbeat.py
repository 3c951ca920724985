"""The signs of life that a lease's holder gives, from a thread of its own.

Belongs here: saying every few seconds that this process lives. Does not: what becomes of
one that is silent, which whoever wants the lock decides (`leases`).
"""

from __future__ import annotations

import threading
from types import TracebackType

import psycopg2
from psycopg2.extensions import connection as Connection

from resources.postgres.queries import query

BEAT_SECONDS = 5.0
SILENT_SECONDS = 60.0
"""A holder that gave no sign for so long is taken over. A process that is stopped, or a
machine that is gone behind a connection that stays, gives none; a busy one does."""


class Heartbeat:
    """Signs of life for one lease while the context lasts, over the lock's connection."""

    def __init__(self, connection: Connection, source: str, token: int) -> None:
        self._connection = connection
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
            try:
                with self._connection.cursor() as cursor:
                    cursor.execute(query("beat"), self._values)
                    self._connection.commit()
            except psycopg2.Error:
                return  # the lock is gone with the connection; the next step is told
