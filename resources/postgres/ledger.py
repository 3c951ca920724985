"""The ledger on Postgres: `pipeline.ports.Ledger` over one session and a lock.

Belongs here: which transaction a call is, the lock and its lease. The statements are
in `queries.sql`, the rules of order in `migrations/`, the errors in `connection`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime
from pathlib import Path
from time import sleep
from types import TracebackType
from typing import Concatenate, ParamSpec, TypeVar

import psycopg2
from psycopg2.extensions import connection as Connection
from psycopg2.extras import RealDictCursor

from pipeline.batch import Batch, BatchKind, BatchState, CaptureRecord, Cursor, Prepared
from pipeline.coverage import CaptureScope
from pipeline.decisions import Decision, Lease, LeaseView, Override, RecordedDecision
from pipeline.errors import Remedy, SourceBusy
from pipeline.gaps import Gap
from pipeline.intent import Intent, SettledWrite, VersionSetEntry
from pipeline.position import Coordinates, Lineage, Position, SetWitness
from pipeline.schema.history import DatabaseVersion, SchemaStatement, SchemaVersion
from pipeline.schema.model import TableSchema
from pipeline.segment import Segment, SourcePart
from pipeline.table import TableName
from pipeline.table_state import (
    Extent,
    SetAside,
    SnapshotPart,
    TableEvent,
    TableOrder,
    TableState,
)
from resources.postgres import history, lake_books, orders, reads, writes
from resources.postgres.connection import Session, Target, connect, translated
from resources.postgres.consumers import PostgresConsumers
from resources.postgres.embedded import EmbeddedServer
from resources.postgres.heartbeat import SILENT_SECONDS, Heartbeat
from resources.postgres.migrate import LOCK_NAMESPACE, migrate
from resources.postgres.queries import query

P = ParamSpec("P")
T = TypeVar("T")

_ENDING_TRIES = 40
_ENDING_SECONDS = 0.05
_ENDED = (BatchState.CAPTURED, BatchState.MERGED, BatchState.ACKNOWLEDGED)


def open_ledger(dsn: str, folder: Path) -> PostgresLedger:
    """Open the ledger and bring its schema up to this version.

    `dsn` is a libpq DSN or URL with its secrets in place, or "embedded": a server of
    our own below `folder`/ledger, started if it does not run. To be closed, best by
    `with`. Raises `ConfigurationError`, `LedgerUnavailable`, `LedgerNewer`.
    """
    if dsn != "embedded":
        return PostgresLedger(Target.parse(dsn))
    server = EmbeddedServer(folder / "ledger")
    try:
        return PostgresLedger(Target(server.dsn, "the embedded ledger"), server)
    except BaseException:
        server.close()
        raise


class PostgresLedger:
    """`pipeline.ports.Ledger`; safe to use from several threads.

    Reads and writes share one session. Each lock has a connection of its own, and the
    lock lasts as long as that does; writes are fenced by the lease's token instead.
    """

    def __init__(self, target: Target, server: EmbeddedServer | None = None) -> None:
        self._target = target
        self._server = server
        self._session = Session(target)
        self._identity: str | None = None
        self.consumers = PostgresConsumers(self._session)
        connection = connect(target)
        try:
            migrate(target, connection)
        finally:
            connection.close()

    def __enter__(self) -> PostgresLedger:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the session; let go of the embedded server, if it is one."""
        self._session.close()
        if self._server is not None:
            self._server.close()

    # -- the lock --------------------------------------------------------------------

    @contextmanager
    def lock(self, source: str, holder: str, dagster_run: str | None) -> Iterator[Lease]:
        connection = connect(self._target)
        try:
            with translated(self._target):
                key, token = self._take(connection, source, holder, dagster_run)
                if token is None and self._end_silent(connection, source):
                    key, token = self._take(connection, source, holder, dagster_run, wait=True)
            if token is None:
                raise self._busy(source)
            try:
                with Heartbeat(connection, source, token):
                    yield Lease(source, token, holder, dagster_run)
            finally:
                # A closed connection's lock goes a moment later, this one at once.
                with suppress(psycopg2.Error), connection.cursor() as cursor:
                    cursor.execute(query("unlock"), {"namespace": LOCK_NAMESPACE, "key": key})
        finally:
            with suppress(psycopg2.Error):
                connection.close()

    @staticmethod
    def _take(
        connection: Connection,
        source: str,
        holder: str,
        dagster_run: str | None,
        *,
        wait: bool = False,
    ) -> tuple[int, int | None]:
        """The lock's key and the new lease's token; None while another holds the lock.
        `wait` a little, for one whose connection is being ended."""
        with connection.cursor() as cursor:
            cursor.execute(query("source_key"), {"source": source})
            (key,) = cursor.fetchall()[0]
            connection.commit()
            for _ in range(_ENDING_TRIES if wait else 1):
                cursor.execute(query("try_lock"), {"namespace": LOCK_NAMESPACE, "key": key})
                if cursor.fetchall()[0][0]:
                    break
                connection.commit()
                sleep(_ENDING_SECONDS if wait else 0)
            else:
                return key, None
            values = {"source": source, "holder": holder, "dagster_run": dagster_run}
            cursor.execute(query("take_lease"), values)
            (token,) = cursor.fetchall()[0]
            connection.commit()
            return key, token

    @staticmethod
    def _end_silent(connection: Connection, source: str) -> bool:
        """End the connection of a holder that gives no sign of life; whether there was one.
        Should it wake up, its token is not the newest any more."""
        with connection.cursor() as cursor:
            values = {"source": source, "namespace": LOCK_NAMESPACE}
            cursor.execute(query("end_silent"), {**values, "silent_seconds": SILENT_SECONDS})
            ended = cursor.fetchall()
            connection.commit()
        return bool(ended)

    def _busy(self, source: str) -> SourceBusy:
        lease = self.lease(source)
        who = "another run"
        if lease is not None and lease.live:
            run = f", Dagster run {lease.dagster_run}" if lease.dagster_run else ""
            who = f"{lease.holder}{run}, since {lease.taken_at:%Y-%m-%d %H:%M:%S} UTC"
        return SourceBusy(
            f"The source {source!r} is busy: {who}.",
            hint="Wait for that run to end, then run again; `lockstep status` shows it.",
        )

    # -- reads -----------------------------------------------------------------------

    def _read(
        self,
        question: Callable[Concatenate[RealDictCursor, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        return self._session.read(lambda cursor: question(cursor, *args, **kwargs))

    def lease(self, source: str) -> LeaseView | None:
        return self._read(reads.lease, source)

    def captured_cursor(self, source: str) -> Cursor | None:
        return self._read(reads.newest, source, *_ENDED)

    def acknowledged_cursor(self, source: str) -> Cursor | None:
        return self._read(reads.newest, source, BatchState.ACKNOWLEDGED)

    def batches(self, source: str, *, limit: int = 20) -> list[Batch]:
        return self._read(reads.batches, source, limit)

    def unfinished(self, source: str) -> list[Batch]:
        return self._read(reads.unfinished, source)

    def live_batches(self, source: str, first: int, last: int) -> list[Batch]:
        return self._read(reads.live_batches, source, first, last)

    def batches_of(self, source: str, table: TableName) -> list[Batch]:
        return self._read(reads.batches_of, source, table)

    def segments(self, batch: int) -> list[Segment]:
        return self._read(reads.segments, batch)

    def source_parts(self, batch: int) -> list[SourcePart]:
        return self._read(reads.source_parts, batch)

    def table_states(self, source: str) -> dict[TableName, TableState]:
        return self._read(reads.table_states, source)

    def partial(self, source: str) -> list[Extent]:
        return self._read(reads.partial, source)

    def open_prepared(self, source: str) -> list[Prepared]:
        return self._read(reads.open_prepared, source)

    def ended_prepared(self, batch: int) -> list[Prepared]:
        return self._read(reads.ended_prepared, batch)

    def decisions(self, source: str, *, limit: int = 5) -> list[RecordedDecision]:
        return self._read(reads.decisions, source, limit)

    def open_override(self, source: str) -> Override | None:
        return self._read(reads.open_override, source)

    def gaps(self, source: str) -> list[Gap]:
        return self._read(reads.gaps, source)

    def overlaps(self, source: str) -> list[Batch]:
        return self._read(reads.overlaps, source)

    def lineage(self, source: str) -> Lineage:
        return self._read(reads.lineage, source)

    def set_witnesses(self, source: str, batch: int) -> list[SetWitness]:
        return self._read(reads.set_witnesses, source, batch)

    def capture_scopes(self, source: str) -> list[CaptureScope]:
        return self._read(reads.capture_scopes, source)

    def captured_by(self, source: str, dagster_run: str) -> Batch | None:
        return self._read(reads.captured_by, source, dagster_run)

    def reaching(self, source: str, server_uuid: str, moment: datetime) -> Batch | None:
        return self._read(reads.reaching, source, server_uuid, moment)

    def pending(self, source: str) -> dict[TableName, list[int]]:
        return self._read(reads.pending, source)

    def open_intents(self, source: str) -> list[Intent]:
        return self._read(reads.open_intents, source)

    def settled(self, source: str, batch: int) -> list[SettledWrite]:
        return self._read(reads.settled, source, batch)

    def last_settled(self, source: str, app_id: str) -> SettledWrite | None:
        return self._read(reads.last_settled, source, app_id)

    def version_set(self, source: str, batch: int) -> list[VersionSetEntry]:
        return self._read(reads.version_set, source, batch)

    # -- the lake ----------------------------------------------------------------------

    def identity(self) -> str:
        if self._identity is None:
            self._identity = self._session.read(lake_books.identity)
        return self._identity

    def looked(self, source: str) -> dict[str, int]:
        return self._read(lake_books.looked, source)

    def note_looked(self, lease: Lease, looked: Mapping[str, int | None]) -> None:
        self._write(lease, lake_books.note_looked, looked)

    def last_intended(self, source: str, app_id: str) -> int:
        return self._read(lake_books.last_intended, source, app_id)

    def begin_anew(self, lease: Lease, table: TableName) -> None:
        self._write(lease, lake_books.begin_anew, table)

    def number_above(self, lease: Lease, *, batch: int, txn_version: int) -> None:
        self._write(lease, lake_books.number_above, batch=batch, txn_version=txn_version)

    # -- the history of structures -----------------------------------------------------

    def has_history(self, source: str) -> bool:
        return self._read(history.has_history, source)

    def last_versions(self, source: str) -> dict[TableName, int]:
        return self._read(history.last_versions, source)

    def schema_at(
        self, source: str, table: TableName, *, batch: int, place: Coordinates
    ) -> SchemaVersion | None:
        return self._read(history.schema_at, source, table, batch, place)

    def schemas_at(self, source: str, *, batch: int, place: Coordinates) -> list[SchemaVersion]:
        return self._read(history.schemas_at, source, batch, place)

    def newest_schema(self, source: str, table: TableName) -> SchemaVersion | None:
        return self._read(history.schema_at, source, table, history.LAST_BATCH, history.LAST)

    def newest_schemas(self, source: str) -> list[SchemaVersion]:
        return self._read(history.schemas_at, source, history.LAST_BATCH, history.LAST)

    def referring_schemas(self, source: str) -> list[SchemaVersion]:
        return self._read(history.referring_schemas, source)

    def schema_version(self, source: str, table: TableName, number: int) -> SchemaVersion:
        return self._read(history.schema_version, source, table, number)

    def schema_versions(self, source: str, table: TableName) -> list[SchemaVersion]:
        return self._read(history.schema_versions, source, table)

    def databases(self, source: str) -> list[DatabaseVersion]:
        return self._read(history.databases_at, source, history.LAST_BATCH, history.LAST)

    def databases_at(self, source: str, *, batch: int, place: Coordinates) -> list[DatabaseVersion]:
        return self._read(history.databases_at, source, batch, place)

    def schema_statements(
        self, source: str, *, limit: int = 100, after: int = 0
    ) -> list[SchemaStatement]:
        return self._read(history.schema_statements, source, limit, after)

    def statement(self, source: str, number: int) -> SchemaStatement:
        return self._read(history.statement, source, number)

    def batch_covering(self, source: str, server_uuid: str, at: Coordinates) -> Batch | None:
        return self._read(history.batch_covering, source, server_uuid, at)

    def table_events(self, source: str, batch: int) -> list[TableEvent]:
        return self._read(history.table_events, source, batch)

    def snapshots(self, source: str, batch: int) -> list[SnapshotPart]:
        return self._read(history.snapshots, source, batch)

    def open_orders(self, source: str) -> list[TableOrder]:
        return self._read(orders.open_orders, source)

    def require_held(self, lease: Lease) -> None:
        self._read(writes.fence, lease)

    # -- writes ----------------------------------------------------------------------

    def _write(
        self,
        lease: Lease,
        step: Callable[Concatenate[RealDictCursor, Lease, P], T],
        /,
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        return self._session.write(
            lambda cursor: writes.fence(cursor, lease),
            lambda cursor, _: step(cursor, lease, *args, **kwargs),
        )

    def decide(self, lease: Lease, decision: Decision) -> RecordedDecision:
        return self._write(lease, writes.decide, decision)

    def note_gtids_off(self, lease: Lease) -> None:
        self._write(lease, writes.note_gtids_off)

    def choose_start(self, lease: Lease, *, place: str, reason: str, author: str) -> Override:
        return self._write(lease, writes.choose_start, place=place, reason=reason, author=author)

    def begin_batch(
        self,
        lease: Lease,
        start: Position,
        *,
        predecessor: int | None,
        start_decision: int | None,
        kind: BatchKind = BatchKind.ORDINARY,
    ) -> Batch:
        return self._write(lease, writes.begin_batch, start, predecessor, start_decision, kind)

    def record_capture(self, lease: Lease, batch: int, record: CaptureRecord) -> None:
        self._write(lease, writes.record_capture, batch, record)

    def abandon(self, lease: Lease, batch: int, reason: str) -> None:
        self._write(lease, writes.abandon, batch, reason)

    def set_aside(self, lease: Lease, set_aside: SetAside) -> None:
        self._write(lease, writes.set_aside, set_aside)

    def open_intent(
        self,
        lease: Lease,
        table: TableName,
        *,
        app_id: str,
        first_batch: int,
        last_batch: int,
        step: str,
    ) -> Intent:
        return self._write(
            lease,
            writes.open_intent,
            table,
            app_id=app_id,
            first_batch=first_batch,
            last_batch=last_batch,
            step=step,
        )

    def settle(
        self, lease: Lease, intent: Intent, delta_version: int, *, shows: int | None = None
    ) -> None:
        self._write(lease, writes.settle, intent, delta_version, shows)

    def mark_merged(self, lease: Lease) -> list[int]:
        return self._write(lease, writes.mark_merged)

    def acknowledge(self, lease: Lease, batch: int) -> None:
        self._write(lease, writes.acknowledge, batch)

    def renew_mirror(self, lease: Lease, table: TableName, mirror: str) -> TableState:
        return self._write(lease, writes.renew_mirror, table, mirror)

    def give_up(self, lease: Lease, table: TableName) -> None:
        self._write(lease, writes.give_up, table)

    def note_whole(self, lease: Lease, batch: int, tables: Collection[TableName]) -> None:
        extents = [Extent(table, None) for table in sorted(tables)]
        self._write(lease, writes.record_extents, batch, extents)

    def end_mirror(self, lease: Lease, table: TableName) -> None:
        self._write(lease, writes.end_mirror, table)

    def pause_table(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        remedy: Remedy | None = None,
    ) -> TableOrder:
        return self._write(lease, orders.pause, table, author, reason, remedy)

    def reload_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        return self._write(lease, orders.reload, table, author, reason)

    def resume_table(
        self, lease: Lease, table: TableName, *, author: str, reason: str
    ) -> TableOrder:
        return self._write(lease, orders.resume, table, author, reason)

    def release_table(
        self,
        lease: Lease,
        table: TableName,
        *,
        author: str,
        reason: str,
        schema: TableSchema | None = None,
        renames: Sequence[tuple[str, str]] = (),
    ) -> TableOrder:
        return self._write(lease, orders.release, table, author, reason, schema, renames)
