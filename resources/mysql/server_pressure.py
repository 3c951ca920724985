"""A server's present load: running threads, connections, and replication lag."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pymysql
from pymysql.cursors import Cursor, DictCursor

from lockstep.pipeline.snapshot.pace import SourceLoad

_REPLICA: Final = ("show replica status", "show all slaves status", "show slave status")
"""The statements in the order in which they are tried: for MySQL 8.0.22 and newer, for
MariaDB (it can have several sources), for older servers."""

_LAG: Final = frozenset({"seconds_behind_source", "seconds_behind_master"})


def source_load(cursor: Cursor) -> SourceLoad:
    """See `pipeline.ports.SourceServer.source_load`."""
    cursor.execute(
        "show global status where variable_name in ('threads_running', 'threads_connected')"
    )
    status = {str(name).lower(): int(value) for name, value in cursor.fetchall()}
    cursor.execute("select @@global.max_connections")
    row = cursor.fetchone()
    return SourceLoad(
        threads_running=status.get("threads_running", 0),
        replica_lag=max(_lags(cursor), default=None),
        connections=status.get("threads_connected", 0),
        max_connections=0 if row is None else int(row[0]),
    )


def _lags(cursor: Cursor) -> Iterator[float]:
    """Yield the replication lag in seconds behind each source from which this server
    replicates, if it is known."""
    for question in _REPLICA:
        with DictCursor(cursor.connection) as asking:
            try:
                asking.execute(question)
            except pymysql.MySQLError as error:
                if error.args[0] not in _REFUSED:
                    raise
                continue
            for row in asking.fetchall():
                for name, value in row.items():
                    if name.lower() in _LAG and value is not None:
                        yield float(value)
            return


_REFUSED: Final = frozenset({1044, 1064, 1142, 1227})
"""Errors of a server that does not know a statement or denies it to the account:
ER_DBACCESS_DENIED_ERROR, ER_PARSE_ERROR, ER_TABLEACCESS_DENIED_ERROR,
ER_SPECIFIC_ACCESS_DENIED_ERROR."""
