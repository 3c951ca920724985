"""Leases on Postgres. A lease is the right of one process to write for a source; an
advisory lock on a connection of its own guards it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from uuid import UUID

import psycopg2
from psycopg2.extensions import connection as Connection

from lockstep.pipeline.model.batch import RunsOutsideDagster, WritesOutsideDagster
from lockstep.pipeline.ports.lease_check import check_lease_on_error
from lockstep.pipeline.values.decisions import Lease, LeaseView
from lockstep.pipeline.values.errors import SourceBusy
from lockstep.pipeline.values.retries import LOCK
from lockstep.pipeline.values.table import TableName
from lockstep.resources.holders import is_dead_holder
from lockstep.resources.postgres.connection import (
    LOCK_NAMESPACE,
    connect,
    is_lost,
    translate_errors,
)
from lockstep.resources.postgres.session import LedgerPort, query
from lockstep.resources.postgres.writes import settled_write

BEAT_SECONDS = 5.0
"""Seconds between two heartbeats of a lease's holder."""
SILENT_SECONDS = 60.0
"""Seconds without a heartbeat after which another run takes the source over: the holder
is suspended, or its machine is gone although the connection seems alive. A busy process
keeps sending heartbeats."""


class PostgresLeases(LedgerPort):
    """The port `Leases` (`pipeline.ports.ledger`), which describes each method, on
    Postgres."""

    @contextmanager
    def lock(
        self, source: str, holder: str, run_id: str | None, *, in_dagster: bool = False
    ) -> Iterator[Lease]:
        address = self._session.address
        lock_key: int = self._only("source_key", source=source)["lock_key"]
        connection = connect(address)
        try:
            with translate_errors(address):
                backend_pid = self._take_lock(connection, source, lock_key)
            # This runs in the shared session: the backend of the new connection would
            # have to compile the functions of the triggers first.
            row = self._only(
                "take_lease",
                source=source,
                holder=holder,
                run_id=run_id,
                in_dagster=in_dagster,
                backend_pid=backend_pid,
            )
            token: int = row["token"]
            lease = Lease(source, token, holder, run_id)
            self._cached_rows[source] = {}
            try:
                with (
                    Heartbeat(connection, source, token, lambda: self._lose(lease)),
                    check_lease_on_error(lambda: self.require_held(lease)),
                ):
                    yield lease
            finally:
                self._cached_rows.pop(source, None)
                # Closing the connection would release the lock only a moment later.
                with suppress(psycopg2.Error), connection.cursor() as cursor:
                    cursor.execute(query("end_lease"), {"source": source, "token": token})
                    cursor.execute(query("unlock"), {"namespace": LOCK_NAMESPACE, "key": lock_key})
        finally:
            with suppress(psycopg2.Error):
                connection.close()

    def _take_lock(self, connection: Connection, source: str, lock_key: int) -> int:
        """Take the lock, and return the pid of the backend that holds it for this
        process. If the present holder is silent or dead, wait until its connection has
        ended. Raise `SourceBusy` if the lock stays with another process."""
        backend_pid = _try_lock(connection, lock_key)
        if backend_pid is None and (
            self._end_silent_holder(source) or self._is_holder_dead(source)
        ):
            tries = (_try_lock(connection, lock_key) for _ in LOCK.tries())
            backend_pid = next((pid for pid in tries if pid is not None), None)
        if backend_pid is None:
            raise self._busy_error(source)
        return backend_pid

    def _busy_error(self, source: str) -> SourceBusy:
        lease = self.newest_lease(source)
        holder = "another run"
        if lease is not None and lease.live:
            run = f", run {lease.run_id}" if lease.run_id else ""
            holder = f"{lease.holder}{run}, since {lease.taken_at:%Y-%m-%d %H:%M:%S} UTC"
        return SourceBusy(
            f"The source {source!r} is busy: {holder}.",
            hint="Wait for that run to end, then run again; `lockstep status` shows it.",
        )

    def newest_lease(self, source: str) -> LeaseView | None:
        row = self._first("lease", source=source, namespace=LOCK_NAMESPACE)
        return None if row is None else LeaseView(**row)

    def run_before(self, lease: Lease) -> LeaseView | None:
        row = self._first("run_before", source=lease.source, token=lease.token)
        return None if row is None else LeaseView(**row)

    def _end_silent_holder(self, source: str) -> bool:
        """End the connection of a holder without heartbeats, and return whether there
        was one. If that process wakes up, its token is no longer the newest."""
        values = {"namespace": LOCK_NAMESPACE, "silent_seconds": SILENT_SECONDS}
        return bool(self._all("end_silent", source=source, **values))

    def _is_holder_dead(self, source: str) -> bool:
        """Return whether the holder was a process of this host that is dead. Its lock
        is released a moment later, when Postgres has finished its last statement and
        finds the connection closed."""
        lease = self.newest_lease(source)
        return lease is not None and is_dead_holder(lease.holder)

    def _lose(self, lease: Lease) -> None:
        self._session.lose(lease)
        self._cached_rows.pop(lease.source, None)

    def require_held(self, lease: Lease) -> None:
        self._require_newest(lease, self._all("fence", source=lease.source))

    def require_not_lost(self, lease: Lease) -> None:
        self._session.require_not_lost(lease)

    def require_writable(self) -> None:
        # An update of no row, which is refused as any write would be.
        with self._session.transaction("write_nothing"):
            pass

    # -- clients of a Spark server -------------------------------------------------------------

    def spark_clients(self, source: str) -> list[UUID]:
        return [UUID(row["client"]) for row in self._all("spark_clients", source=source)]

    def note_spark_client(self, lease: Lease, client: UUID) -> None:
        with self._transaction(lease, changes=()) as transaction:
            values = {"source": lease.source, "client": str(client), "token": lease.token}
            transaction.run("note_spark_client", **values)

    def forget_spark_client(self, lease: Lease, client: UUID) -> None:
        with self._transaction(lease, changes=()) as transaction:
            transaction.run("forget_spark_client", source=lease.source, client=str(client))

    # -- runs that Dagster does not record -----------------------------------------------------

    def runs_outside_dagster(
        self, source: str, after: int, through: int, *, all_runs: bool = False
    ) -> RunsOutsideDagster:
        span = {"source": source, "after": after, "through": through}
        row = self._only("runs_outside_dagster", **span, all=all_runs)
        return RunsOutsideDagster(row["runs"], tuple(row["batches"]), row["died"], row["forgotten"])

    def writes_outside_dagster(
        self,
        source: str,
        after: int,
        through: int,
        beyond: TableName | None,
        most: int,
        *,
        all_runs: bool = False,
    ) -> list[WritesOutsideDagster]:
        rows = self._all(
            "writes_outside_dagster",
            source=source,
            after=after,
            through=through,
            database="" if beyond is None else beyond.database,
            name="" if beyond is None else beyond.name,
            most=most,
            all=all_runs,
        )
        return [
            WritesOutsideDagster(
                settled_write(row), frozenset(zip(row["firsts"], row["lasts"], strict=True))
            )
            for row in rows
        ]


def _try_lock(connection: Connection, lock_key: int) -> int | None:
    """Take the lock, and return the pid of its Postgres backend; None while another
    process holds it."""
    with connection.cursor() as cursor:
        cursor.execute(query("try_lock"), {"namespace": LOCK_NAMESPACE, "key": lock_key})
        [(is_locked, backend_pid)] = cursor.fetchall()
    return int(backend_pid) if is_locked else None


class Heartbeat:
    """Heartbeats for one lease while the context lasts, over the lock's connection.
    `on_lost` is called once, from the thread, if that connection is gone or another
    holder has taken over."""

    def __init__(
        self, connection: Connection, source: str, token: int, on_lost: Callable[[], None]
    ) -> None:
        self._connection = connection
        self._on_lost = on_lost
        self._values = {"source": source, "token": token}
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._send_heartbeats, name="lease", daemon=True)

    def __enter__(self) -> Heartbeat:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _send_heartbeats(self) -> None:
        while not self._stop.wait(BEAT_SECONDS):
            if not self._send_heartbeat():
                self._on_lost()
                return

    def _send_heartbeat(self) -> bool:
        """Send a heartbeat; return False if the lock is lost."""
        try:
            with self._connection.cursor() as cursor:
                cursor.execute(query("heartbeat"), self._values)
                return cursor.rowcount == 1
        except psycopg2.Error as error:
            # A transaction of this run may lock the row for longer than `lock_timeout`:
            # the statement failed, but the session and its advisory lock are alive.
            return not (is_lost(error) or self._connection.closed)
