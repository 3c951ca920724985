"""A replica that rows are read from, while the log comes from the source itself.

A place of the source's log says nothing about a replica; a set of GTIDs does. So the source is
asked for a place of its log, and then for the set of what it has committed, which holds all before
that place. Once the replica has executed that set, whatever it shows has all before the place, in
whichever order its workers commit. And nothing that it shows can be behind the end of the source's
log, if that is asked for afterwards: it came from there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Final

from pymysql.cursors import Cursor, DictCursor

from pipeline.errors import LockstepError, ServerSettings, TableBusy
from pipeline.ports.source import TableSnapshot
from pipeline.position import Coordinates
from pipeline.retries import COMMITTED, REPLICA
from pipeline.schema.model import TableSchema
from pipeline.snapshot.bounds import Bound, Range
from pipeline.snapshot.pace import SourceLoad
from pipeline.survey import ReadReplica
from pipeline.table import TableName
from resources.mysql.chunks import next_bound, open_chunk
from resources.mysql.connection import ConnectionSettings, connect
from resources.mysql.dialect import read_dialect
from resources.mysql.reader import explained
from resources.mysql.server_pressure import source_load
from resources.mysql.watermarks import Watermark, high_mark, low_mark, read_value

_FILTERS: Final = re.compile(r"Replicate_(Do|Ignore|Wild|Rewrite)_\w+")
_WAITS: Final = 1
"""Seconds of one wait."""


class Replica:
    """`at` follows `source`. Safe from threads: what is remembered is good whoever asked for it."""

    def __init__(self, source: ConnectionSettings, at: ConnectionSettings) -> None:
        self._source, self._at = source, at
        self._marks: dict[tuple[TableName, Coordinates], Watermark] = {}

    @contextmanager
    def chunk(
        self, schema: TableSchema, rows: Range, since: Coordinates | None, *, most_seconds: float
    ) -> Iterator[TableSnapshot]:
        """See `pipeline.ports.SourceServer.chunk`."""
        low = self._caught_up(schema.name, since)
        with open_chunk(self._at, schema, rows, most_seconds=most_seconds) as read:
            high = self._end()
            yield replace(
                read,
                low=low.at,
                high=high.at,
                low_set=low.executed,
                high_set=high.executed,
                exact=False,
                prepared=None,
            )

    def next_bound(
        self, schema: TableSchema, after: Bound | None, rows: int, since: Coordinates | None
    ) -> Bound | None:
        """See `pipeline.ports.SourceServer.next_bound`."""
        self._caught_up(schema.name, since)
        names = [column.name for column in schema.columns]
        with (
            connect(self._at) as connection,
            connection.cursor() as cursor,
            explained(self._at, schema.name, names),
        ):
            return next_bound(cursor, schema, after, rows)

    def load(self) -> SourceLoad:
        """What it has to do, and how late it is."""
        with connect(self._at) as connection, connection.cursor() as cursor:
            return source_load(cursor)

    def state(self) -> ReadReplica:
        """Whether it may be read, however late it is."""
        try:
            with (
                connect(self._source) as ours,
                connect(self._at) as theirs,
                ours.cursor() as source,
                theirs.cursor() as replica,
            ):
                self._require_followed(source, replica)
                self._require_nothing_more(source, replica)
        except LockstepError as error:
            return ReadReplica(_name(self._at), error.message, error.hint)
        return ReadReplica(_name(self._at))

    def _end(self) -> Watermark:
        with connect(self._source) as connection, connection.cursor() as cursor:
            return high_mark(cursor, read_dialect(cursor))

    def _caught_up(self, table: TableName, since: Coordinates | None) -> Watermark:
        """A place of the source's log, not before `since`, before which the replica lacks nothing.
        `TableBusy` while it does; `ServerSettings` where it may not be read at all."""
        if since is not None and (known := self._marks.get((table, since))) is not None:
            return known
        with (
            connect(self._source) as ours,
            connect(self._at) as theirs,
            ours.cursor() as source,
            theirs.cursor() as replica,
        ):
            self._require_followed(source, replica)
            low = low_mark(source, read_dialect(source))
            low = replace(low, executed=_executed(source))
            self._await(replica, low.executed)
            self._require_nothing_more(source, replica)
        if since is not None:
            self._marks[table, since] = low
        return low

    def _require_followed(self, source: Cursor, replica: Cursor) -> None:
        for cursor, settings in ((source, self._source), (replica, self._at)):
            if read_dialect(cursor).mariadb:
                raise ServerSettings(
                    f"tables are read from a replica of MySQL only: {_name(settings)} is a MariaDB",
                    hint="remove read_from: tables are read from the source itself then",
                )
            if read_value(cursor, _MODE) != "ON":
                raise ServerSettings(
                    f"tables cannot be read from a replica without MySQL's GTIDs: {_name(settings)}"
                    " has none",
                    hint="set gtid_mode = ON on both servers, or remove read_from",
                )
        with DictCursor(replica.connection) as asking:
            asking.execute("show replica status")
            for row in asking.fetchall():
                for name, value in row.items():
                    if value and _FILTERS.fullmatch(name):
                        raise ServerSettings(
                            f"tables cannot be read from {_name(self._at)}: it leaves out a part "
                            f"of what it replicates ({name})",
                            hint="name a replica without filters as read_from, or remove it",
                        )

    def _await(self, replica: Cursor, executed: str) -> None:
        for _ in REPLICA.tries():
            replica.execute("select wait_for_executed_gtid_set(%s, %s)", (executed, _WAITS))
            if replica.fetchone() in ((0,), ("0",)):
                return
        raise TableBusy(
            f"{_name(self._at)}, a replica, has not executed what the source had "
            f"{REPLICA.seconds:g} s ago",
            hint="see whether it replicates; the next run reads on",
        )

    def _require_nothing_more(self, source: Cursor, replica: Cursor) -> None:
        """What is written on a replica alone is in no log that is read."""
        for _ in COMMITTED.tries():
            theirs = _executed(replica)
            source.execute("select gtid_subtract(%s, @@global.gtid_executed)", (theirs,))
            [(more,)] = source.fetchall()
            if not more:
                return
        raise ServerSettings(
            f"tables cannot be read from {_name(self._at)}: it has transactions that the source "
            f"lacks ({more})",
            hint="rebuild it, with super_read_only = ON, or name another replica as read_from",
        )


_MODE: Final = "select @@global.gtid_mode"


def _executed(cursor: Cursor) -> str:
    return read_value(cursor, "select @@global.gtid_executed")


def _name(settings: ConnectionSettings) -> str:
    return f"{settings.host}:{settings.port}"
