"""Many events told to Dagster at once.

Dagster's SQLite storage opens two databases for each event, commits to both and waits for the disk:
a run that changed a thousand tables spends longer on telling of them than on merging. Within
`at_once` its databases stay open, many events share a commit, what their tables are like is looked
at once, and an event is written out once (`event_text`). They are the same events in the same
order; other storages are left as they are.

Dagster offers no such thing publicly. So this module, and no other but `timeline`, uses what it
keeps for itself: three methods of one class. With another storage, events are stored one by one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache
from threading import get_ident
from typing import Any, Final

import dagster as dg
from dagster._core.storage.event_log.sqlite.sqlite_event_log import SqliteEventLogStorage
from sqlalchemy import create_engine
from sqlalchemy.engine import Connection
from sqlalchemy.pool import NullPool

from assets.event_text import write_events_once

EVENTS: Final = 200
"""Events of one commit: while they are stored, nobody else's can be."""

_PATIENCE: Final = 30
"""Seconds to wait for another process that stores events, as Dagster does."""

Connect = Callable[[str], AbstractContextManager[Connection]]


@contextmanager
def at_once(instance: dg.DagsterInstance) -> Iterator[None]:
    """Events that this thread logs within are in the storage when it ends, however it ends."""
    storage = instance.event_log_storage
    if not isinstance(storage, SqliteEventLogStorage) or "_connect" in vars(storage):
        yield
        return
    with ExitStack() as closing:
        held = _Held(storage, storage._connect, closing)
        instead = {
            "_connect": held.connect,
            "has_table": cache(storage.has_table),
            "_has_asset_key_index_cols_on_connection": _once(
                storage._has_asset_key_index_cols_on_connection
            ),
        }
        vars(storage).update(instead)
        write_events_once()
        try:
            yield
        finally:
            for name in instead:
                del vars(storage)[name]
            held.commit()


def _once(look: Callable[[Connection], bool]) -> Callable[[Connection], bool]:
    """The first answer, whatever connection is asked over."""
    found: list[bool] = []

    def answer(connection: Connection) -> bool:
        if not found:
            found.append(look(connection))
        return found[0]

    return answer


@dataclass(slots=True)
class _Held:
    """The storage's databases that are open, by the names of its shards."""

    storage: SqliteEventLogStorage
    original: Connect
    closing: ExitStack
    thread: int = field(default_factory=get_ident)
    open: dict[str, Connection] = field(default_factory=dict)
    events: int = 0

    def connect(self, shard: str) -> AbstractContextManager[Any]:
        """Another thread's events are its own affair."""
        if get_ident() != self.thread:
            return self.original(shard)
        if shard != "index":  # a run's database is the first that an event is written to
            self.events += 1
            if self.events % EVENTS == 0:
                self.commit()
        return nullcontext(self.open.get(shard) or self._opened(shard))

    def commit(self) -> None:
        for connection in self.open.values():
            connection.commit()
            connection.begin()  # or Dagster would, and commit what it has begun

    def _opened(self, shard: str) -> Connection:
        with self.original(shard):
            """Makes the database, if it is not there."""
        engine = create_engine(
            self.storage.conn_string_for_shard(shard),
            poolclass=NullPool,
            connect_args={"timeout": _PATIENCE},
        )
        self.closing.callback(engine.dispose)
        self.open[shard] = self.closing.enter_context(engine.connect())
        self.open[shard].begin()
        return self.open[shard]
