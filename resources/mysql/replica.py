"""A replica from which rows are read, while the log is read from the source itself.
Also a server's present load: running threads, connections, and replication lag.

Places in the source's log mean nothing on a replica, but GTIDs do. So first a place of
the source's log is read, then the set of GTIDs that the source has executed, which
includes all before that place. Once the replica has executed that set, its rows have
every change before the place, in whichever order its workers commit. The end of the
source's log, read afterwards, is after every change that the replica shows, because all
of them came from the source.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor, DictCursor

from lockstep.pipeline.ports.source import TableSnapshot
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.snapshot.chunks import Bound, Range
from lockstep.pipeline.snapshot.pace import SourceLoad
from lockstep.pipeline.values.errors import LockstepError, ServerSettings, TableBusy
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.retries import COMMITTED, REPLICA
from lockstep.pipeline.values.server_errors import Meaning, meaning_of
from lockstep.pipeline.values.survey import ReadReplica
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.chunks import next_bound, open_chunk
from lockstep.resources.mysql.connection import (
    ConnectionSettings,
    connect,
    number_of,
    open_and_identify,
    read_dialect,
    read_value,
)
from lockstep.resources.mysql.reader import translate_table_errors
from lockstep.resources.mysql.watermarks import LowMark, low_mark, read_log_end

_FILTERS: Final = re.compile(r"Replicate_(Do|Ignore|Wild|Rewrite)_\w+")
_WAIT_SECONDS: Final = 1
"""Seconds that one statement waits until the replica has executed a GTID set."""


class Replica:
    """Reads from `replica`, a replica of `source`: always from the server that answered
    first at its address. Threads may share it: once one thread has waited until the
    replica reached a place, all use that place for reads of the same table with the
    same `since`."""

    def __init__(self, source: ConnectionSettings, replica: ConnectionSettings) -> None:
        self._source, self._configured_replica = source, replica
        self._low_marks: dict[tuple[TableName, Coordinates], LowMark] = {}
        self._identified_replica: ConnectionSettings | None = None
        self._identifying = Lock()

    @property
    def _replica(self) -> ConnectionSettings:
        with self._identifying:
            if self._identified_replica is None:
                connection, self._identified_replica = open_and_identify(self._configured_replica)
                connection.close()
            return self._identified_replica

    @contextmanager
    def chunk(
        self,
        schema: TableSchema,
        key_range: Range,
        since: Coordinates | None,
        *,
        most_seconds: float,
    ) -> Iterator[TableSnapshot]:
        """See `pipeline.ports.SourceServer.chunk`."""
        low = self._wait_for_low_mark(schema.name, since)
        with open_chunk(self._replica, schema, key_range, most_seconds=most_seconds) as read:
            with connect(self._source) as connection, connection.cursor() as cursor:
                high = read_log_end(cursor)
            yield replace(
                read,
                low=low.at,
                high=high,
                low_set=low.executed_set,
                exact=False,
                prepared_transactions=None,
            )

    def next_bound(
        self, schema: TableSchema, after: Bound | None, row_count: int, since: Coordinates | None
    ) -> Bound | None:
        """See `pipeline.ports.SourceServer.next_bound`."""
        self._wait_for_low_mark(schema.name, since)
        names = [column.name for column in schema.columns]
        with (
            connect(self._replica) as connection,
            connection.cursor() as cursor,
            translate_table_errors(self._replica, schema.name, names),
        ):
            return next_bound(cursor, schema, after, row_count)

    def load(self) -> SourceLoad:
        """Return the replica's load and lag."""
        with connect(self._replica) as connection, connection.cursor() as cursor:
            return source_load(cursor)

    def state(self) -> ReadReplica:
        """Return the replica's address, with an error and a hint if it must not be read
        from. Its lag is ignored."""
        try:
            with self._cursors() as (source, replica):
                self._require_usable_settings(source, replica)
                self._require_no_own_transactions(source, replica)
        except LockstepError as error:
            return ReadReplica(_address(self._configured_replica), error.message, error.hint)
        return ReadReplica(_address(self._configured_replica))

    @contextmanager
    def _cursors(self) -> Iterator[tuple[Cursor, Cursor]]:
        """Yield cursors on the source and on the replica."""
        with (
            connect(self._source) as source_connection,
            connect(self._replica) as replica_connection,
            source_connection.cursor() as source,
            replica_connection.cursor() as replica,
        ):
            yield source, replica

    def _wait_for_low_mark(self, table: TableName, since: Coordinates | None) -> LowMark:
        """Return a place of the source's log, not before `since`, up to which the
        replica has executed everything. Raise `TableBusy` if the replica does not reach
        it in time, `ServerSettings` if it must not be read from at all."""
        if since is not None and (mark := self._low_marks.get((table, since))) is not None:
            return mark
        with self._cursors() as (source, replica):
            self._require_usable_settings(source, replica)
            low = low_mark(source, read_dialect(source))
            # The set is read again after the place, so that it includes all before it.
            low = replace(low, executed_set=_executed_set(source))
            self._wait_until_executed(replica, low.executed_set)
            self._require_no_own_transactions(source, replica)
        if since is not None:
            self._low_marks[table, since] = low
        return low

    def _require_usable_settings(self, source: Cursor, replica: Cursor) -> None:
        for cursor, settings in ((source, self._source), (replica, self._replica)):
            if read_dialect(cursor).is_mariadb:
                raise ServerSettings(
                    f"tables can be read from a replica only on MySQL: {_address(settings)} "
                    "is a MariaDB",
                    hint="remove read_from, so that tables are read from the source itself",
                )
            if read_value(cursor, "select @@global.gtid_mode") != "ON":
                raise ServerSettings(
                    "tables cannot be read from a replica without MySQL's GTIDs: "
                    f"{_address(settings)} has gtid_mode off",
                    hint="set gtid_mode = ON on both servers, or remove read_from",
                )
        for row in _replication_status(replica):
            for name, value in row.items():
                if value and _FILTERS.fullmatch(name):
                    raise ServerSettings(
                        f"tables cannot be read from {_address(self._replica)}: it leaves out a "
                        f"part of what it replicates ({name})",
                        hint="name a replica without filters as read_from, or remove read_from",
                    )

    def _wait_until_executed(self, replica: Cursor, executed: str) -> None:
        for _ in REPLICA.tries():
            replica.execute("select wait_for_executed_gtid_set(%s, %s)", (executed, _WAIT_SECONDS))
            if replica.fetchone() in ((0,), ("0",)):
                return
        raise TableBusy(
            f"the replica {_address(self._replica)} has not executed what the source had executed "
            f"{REPLICA.seconds:g} s ago",
            hint="check that it replicates; the next run continues reading",
        )

    def _require_no_own_transactions(self, source: Cursor, replica: Cursor) -> None:
        """Raise ServerSettings if the replica has transactions of its own: the source's
        log, which is captured, does not have them. A transaction that the source is still
        committing may be on the replica already, so there are several tries."""
        for _ in COMMITTED.tries():
            executed = _executed_set(replica)
            source.execute("select gtid_subtract(%s, @@global.gtid_executed)", (executed,))
            [(extra,)] = source.fetchall()
            if not extra:
                return
        raise ServerSettings(
            f"tables cannot be read from {_address(self._replica)}: it has transactions that the "
            f"source lacks ({extra})",
            hint="rebuild it, with super_read_only = ON, or name another replica as read_from",
        )


def _executed_set(cursor: Cursor) -> str:
    return read_value(cursor, "select @@global.gtid_executed")


def _address(settings: ConnectionSettings) -> str:
    return f"{settings.host}:{settings.port}"


_LAG_COLUMNS: Final = frozenset({"seconds_behind_source", "seconds_behind_master"})


def source_load(cursor: Cursor) -> SourceLoad:
    """See `pipeline.ports.SourceServer.source_load`."""
    cursor.execute(
        "show global status where variable_name in ('threads_running', 'threads_connected')"
    )
    status = {str(name).lower(): int(value) for name, value in cursor.fetchall()}
    return SourceLoad(
        threads_running=status.get("threads_running", 0),
        replica_lag=max(_lags(cursor), default=None),
        connections=status.get("threads_connected", 0),
        max_connections=int(read_value(cursor, "select @@global.max_connections")),
    )


def _lags(cursor: Cursor) -> list[float]:
    """Return the replication lag in seconds behind each source from which this server
    replicates, if it is known and the account may see it."""
    try:
        rows = _replication_status(cursor)
    except pymysql.MySQLError as error:
        if meaning_of(number_of(error)) not in (Meaning.PRIVILEGE, Meaning.ACCESS):
            raise
        return []
    return [
        float(value)
        for row in rows
        for name, value in row.items()
        if name.lower() in _LAG_COLUMNS and value is not None
    ]


def _replication_status(cursor: Cursor) -> list[dict[str, Any]]:
    """Return a row for each source from which the server replicates. MariaDB may have
    several, which only its own statement shows."""
    dialect = read_dialect(cursor)
    word = "replica" if dialect.is_mysql_from(8, 0, 22) else "slave"
    with DictCursor(cursor.connection) as status_cursor:
        status_cursor.execute(f"show {'all slaves' if dialect.is_mariadb else word} status")
        return [*status_cursor.fetchall()]
