"""The port `SourceServer` for a MySQL server: facts, tables, structures, dumps,
consistent reads.

Structures are never read in a snapshot: in REPEATABLE READ MySQL would show them as
before an ALTER. Queries for current structures wait a few seconds at most for a session
that alters a table. MariaDB, and MySQL before 8.0, omit a table that they could not
open in that time.
"""

from __future__ import annotations

import select
from collections import deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from time import monotonic
from typing import Any, Final, TypeAlias
from weakref import finalize

import numpy as np
import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.binlog.stream.framing import FIRST_OFFSET
from lockstep.pipeline.model.batch import Xid
from lockstep.pipeline.ports.source import (
    Baseline,
    BinlogSize,
    ComparedRows,
    ConditionSnapshot,
    CurrentSchemas,
    ListedTable,
    ReadMarks,
    ServerFacts,
    SourceHashes,
    SourceSample,
    SourceSum,
    TableSnapshot,
)
from lockstep.pipeline.proof.hashes import RowHasher, RowSum
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.shape.shaping import Shaping
from lockstep.pipeline.snapshot.chunks import Bound, Range
from lockstep.pipeline.snapshot.condition import RowCondition
from lockstep.pipeline.snapshot.pace import PIECE_SECONDS, SourceLoad
from lockstep.pipeline.values.errors import (
    HostUnknown,
    NothingMatches,
    NotSampled,
    ServerSettings,
    SourceUnavailable,
    TableBusy,
    TableError,
)
from lockstep.pipeline.values.gtid import GtidSet
from lockstep.pipeline.values.position import Coordinates, LogFile, ServerProcess
from lockstep.pipeline.values.retries import TABLE_READ
from lockstep.pipeline.values.server_errors import Meaning, meaning_of
from lockstep.pipeline.values.survey import Survey, grant_statement
from lockstep.pipeline.values.table import TableName, TableStructure, quoted_table
from lockstep.resources.mysql.chunks import (
    estimate_by_statistic,
    estimated_rows_where,
    next_bound,
    open_chunk,
    open_condition,
)
from lockstep.resources.mysql.connection import (
    ConnectionSettings,
    connect,
    number_of,
    open_and_identify,
    open_connection,
    read_dialect,
    read_value,
    translate_errors,
)
from lockstep.resources.mysql.defaults import with_default_values
from lockstep.resources.mysql.reader import open_snapshot, translate_table_errors
from lockstep.resources.mysql.receiving import (
    MAX_OFFSET,
    MySqlDump,
    gtid_set_command,
    offset_command,
    wide_offset_command,
)
from lockstep.resources.mysql.replica import Replica, source_load
from lockstep.resources.mysql.row_hashes import open_hashes, read_rows, read_sample, read_sum
from lockstep.resources.mysql.schemas import (
    GONE_ERRORS,
    WholeTables,
    read_databases,
    read_schemas,
    read_whole_tables,
)
from lockstep.resources.mysql.shaped import ShapedTable, ShapedTables
from lockstep.resources.mysql.survey import take_survey
from lockstep.resources.mysql.visible_tables import (
    is_privilege_missing,
    scopes_of,
    select_by_table,
    unreadable_table_error,
)
from lockstep.resources.mysql.watermarks import (
    commits_in_order,
    low_mark,
    prepared_transactions,
    read_log_end,
)

IdleSessions: TypeAlias = "deque[tuple[pymysql.Connection[Cursor], float]]"
"""Idle sessions, each with the time at which it became idle (monotonic clock, seconds)."""

MAX_IDLE_SECONDS: Final = 10.0
"""Longest time in seconds that an idle session is kept. After it, the account's
privileges may have changed, or another server may have this address."""


class QuerySessions:
    """A pool of sessions for short queries, with at most one idle session, which the
    next query uses. A run has a dozen such queries, and a handshake takes longer than
    most of their answers, particularly with TLS. Threads may share the pool: no two
    queries share a session at the same time."""

    def __init__(self, get_settings: Callable[[], ConnectionSettings]) -> None:
        self._get_settings = get_settings
        self._idle_sessions: IdleSessions = deque()
        finalize(self, _close_sessions, self._idle_sessions)

    @contextmanager
    def cursor(self) -> Iterator[Cursor]:
        """Yield a cursor for queries that do not change the session. If one fails, the
        session is closed; errors are raised as `pipeline.values.errors`."""
        settings = self._get_settings()
        with translate_errors(settings):
            connection = self._take_idle() or open_connection(settings)
            try:
                with connection.cursor() as cursor:
                    yield cursor
            except BaseException:
                _close(connection)
                raise
            self.keep(connection)

    def keep(self, connection: pymysql.Connection[Cursor]) -> None:
        """Keep a session for the next query."""
        self.close()  # another thread may have returned a session meanwhile
        self._idle_sessions.append((connection, monotonic()))

    def close(self) -> None:
        """Close the idle session; the next query opens another."""
        _close_sessions(self._idle_sessions)

    def _take_idle(self) -> pymysql.Connection[Cursor] | None:
        with suppress(IndexError):
            connection, idle_since = self._idle_sessions.pop()
            if monotonic() - idle_since < MAX_IDLE_SECONDS and _is_alive(connection):
                return connection
            _close(connection)
        return None


def _close_sessions(sessions: IdleSessions) -> None:
    with suppress(IndexError):
        while True:
            _close(sessions.pop()[0])


def _is_alive(connection: pymysql.Connection[Cursor]) -> bool:
    """Return False if the server closed the session. The socket then has something to
    read: without a query the server sends nothing else."""
    driver: Any = connection  # no public call for its socket
    poll = select.poll()
    poll.register(driver._sock, select.POLLIN)
    return not poll.poll(0)


def _close(connection: pymysql.Connection[Cursor]) -> None:
    if connection.open:
        connection.close()


_TABLES = """
select table_schema, table_name, coalesce(engine, ''), coalesce(table_rows, 0)
from information_schema.tables where table_type = 'BASE TABLE' and {where}
order by table_schema, table_name
"""
_ENGINES = """
select table_schema, table_name, coalesce(engine, '')
from information_schema.tables where table_type = 'BASE TABLE' and {where}
order by table_schema, table_name
"""
_KEYS = """
select table_schema, table_name, column_name from information_schema.statistics
where index_name = 'PRIMARY' and {where} order by table_schema, table_name, seq_in_index
"""


class MySqlServer:
    """The port `SourceServer` for a server of MySQL or MariaDB. Short queries share a
    session (`QuerySessions`); dumps, reads of rows, and queries that change the session
    have their own. `standby`: the server to use if the first one cannot be reached.
    `read_from`: a replica from which chunks of tables are read. `shaping`: the settings
    that hide or change rows and columns; no method returns a value that they hide."""

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        standby: ConnectionSettings | None = None,
        read_from: ConnectionSettings | None = None,
        shaping: Shaping | None = None,
    ) -> None:
        self._primary = settings
        self._standby = standby
        self._shaping = shaping or Shaping()
        self._shaped_tables = ShapedTables(self._shaping, self.own_cursor)
        self._read_from = read_from
        self._query_sessions = QuerySessions(lambda: self._settings)

    @cached_property
    def _settings(self) -> ConnectionSettings:
        """The settings of the primary, or of the standby if only the standby answers,
        with the identity of the server that answered. The choice is made once: a run
        never changes its server halfway, wherever the address leads later. If neither
        answers, the primary's error is raised."""
        try:
            return self._identify(self._primary)
        except (SourceUnavailable, HostUnknown) as error:
            if self._standby is None:
                raise
            try:
                return self._identify(self._standby)
            except (SourceUnavailable, HostUnknown):
                raise error from None

    def _identify(self, settings: ConnectionSettings) -> ConnectionSettings:
        connection, identified = open_and_identify(settings)
        self._query_sessions.keep(connection)
        return identified

    @cached_property
    def _replica(self) -> Replica | None:
        replica = self._read_from
        return None if replica is None else Replica(self._settings, replica)

    @contextmanager
    def own_cursor(self) -> Iterator[Cursor]:
        """Yield a cursor in a session of its own, for queries that change it."""
        with connect(self._settings) as connection, connection.cursor() as cursor:
            yield cursor

    @contextmanager
    def _cursor_on(self, table: TableName, columns: Sequence[str] = ()) -> Iterator[Cursor]:
        """Yield a cursor as `own_cursor` does, for statements about one table."""
        with (
            self.own_cursor() as cursor,
            translate_table_errors(self._settings, table, columns),
        ):
            yield cursor

    def _settings_for_read(self) -> ConnectionSettings:
        """Return the settings for the sessions of a read. The idle session is closed
        first, because an account may be limited to few sessions."""
        self._query_sessions.close()
        return self._settings

    def facts(self) -> ServerFacts:
        with self._query_sessions.cursor() as cursor:
            facts = read_facts(cursor, f"{self._settings.host}:{self._settings.port}")
        is_standby = replace(self._settings, server=None) == self._standby
        return replace(facts, is_standby=is_standby)

    def survey(self) -> Survey:
        survey = take_survey(replace(self._settings, server=None))
        return (
            survey if self._replica is None else replace(survey, read_replica=self._replica.state())
        )

    def dump(self, start: Coordinates) -> MySqlDump:
        # COM_BINLOG_DUMP has 32 bits for the offset. Beyond 4 GiB only MySQL's dump by
        # GTIDs can begin at the offset; without GTIDs the file is read from its
        # beginning.
        command = offset_command
        if start.offset > MAX_OFFSET:
            facts = self.facts()
            if facts.flavour == "mysql" and facts.gtid_mode == "ON":
                command = wide_offset_command
            else:
                start = Coordinates(start.file, FIRST_OFFSET)
        return MySqlDump(self._settings, *command(start), begins=start)

    def dump_after(self, executed: GtidSet) -> MySqlDump:
        return MySqlDump(self._settings, *gtid_set_command(executed))

    def prepared(self) -> frozenset[Xid]:
        with self._query_sessions.cursor() as cursor:
            return prepared_transactions(cursor) or frozenset()

    def tables(self) -> list[ListedTable]:
        with self._query_sessions.cursor() as cursor:
            tables = list(select_by_table(cursor, _TABLES, scopes_of(None)))
            keys: dict[TableName, list[str]] = {}
            for name, (column,) in select_by_table(cursor, _KEYS, scopes_of(None)):
                keys.setdefault(name, []).append(column)
        return [
            ListedTable(name, engine, int(rows), tuple(keys.get(name, ())))
            for name, (engine, rows) in tables
        ]

    def engines(self) -> dict[TableName, str]:
        with self._query_sessions.cursor() as cursor:
            return {
                name: engine
                for name, (engine,) in select_by_table(cursor, _ENGINES, scopes_of(None))
            }

    def missing_grants(self, tables: Collection[TableName]) -> dict[TableName, str]:
        with self._query_sessions.cursor() as cursor:
            refused_tables = [
                table
                for table in tables
                if is_privilege_missing(cursor, f"select 1 from {quoted_table(table)} limit 0")
            ]
            account = read_value(cursor, "select current_user()") if refused_tables else ""
        return {
            table: grant_statement("SELECT", quoted_table(table), account)
            for table in refused_tables
        }

    def structure(self, table: TableName) -> TableStructure:
        with self._cursor_on(table) as cursor:
            whole_tables = read_whole_tables(cursor, [table])
            if not whole_tables.tables:
                self._require_missing(cursor, table, whole_tables.unread)
        schemas = _ordinary_tables(whole_tables)
        if not schemas:
            raise NothingMatches(
                f"the source has no table {table} that can be captured",
                hint=f"correct the name, or exclude {table}",
            )
        return self._lake_structure(schemas[0])

    def structures(self) -> list[TableStructure]:
        """Return all structures. If a table's settings cannot be applied, return the
        structure that it has on the server."""
        with self.own_cursor() as cursor:
            schemas = _ordinary_tables(read_whole_tables(cursor))
        structures = []
        for schema in schemas:
            try:
                structures.append(self._lake_structure(schema))
            except TableError:
                structures.append(row_structure(schema))
        return structures

    def _lake_structure(self, schema: TableSchema) -> TableStructure:
        shape = self._shaping.shape(schema)
        return row_structure(schema) if shape is None else shape.structure

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        table = next(iter(names)) if names is not None and len(names) == 1 else None
        with self.own_cursor() if table is None else self._cursor_on(table) as cursor:
            baseline = read_baseline(cursor, names)
            if table is not None and not baseline.tables:
                self._require_missing(cursor, table, baseline.unread_tables)
        return replace(baseline, tables=tuple(map(self._shaping.redact, baseline.tables)))

    def _require_missing(
        self, cursor: Cursor, table: TableName, unread: Mapping[TableName, str]
    ) -> None:
        """Raise the error for a table that exists although information_schema does not
        show it as a whole: the account cannot read it, or the server cannot open it."""
        if table in unread:
            raise unreadable_table_error(self._settings, table, unread[table])
        _exists(cursor, table)  # called for its error only

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        with self.own_cursor() as cursor:
            return self._shaped_tables.redact(read_current_schemas(cursor, tables))

    def is_view_or_sequence(self, name: TableName) -> bool:
        with self._query_sessions.cursor() as cursor:
            cursor.execute(_FIND_VIEW, (name.database, name.name))
            return cursor.fetchone() is not None

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        with self._cursor_on(table) as cursor:
            return self._shaped_tables.redact(read_locked_schema(cursor, table))

    def comments(self, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
        """Return the comments except those of hidden columns: a comment may reveal
        values."""
        comments: dict[TableName, dict[str, str]] = {}
        names = frozenset(tables)
        with self._query_sessions.cursor() as cursor:
            for table, (column, comment) in select_by_table(cursor, _COMMENTS, scopes_of(names)):
                if table in names and not self._shaping.hides_column(table, column):
                    comments.setdefault(table, {})[column] = comment
        return comments

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        """Return the comments except those of tables with a shape: they may reveal
        hidden values."""
        names = frozenset(table for table in tables if self._shaping.rules_of(table) is None)
        with self._query_sessions.cursor() as cursor:
            rows = select_by_table(cursor, _TABLE_COMMENTS, scopes_of(names))
            return {table: comment for table, (comment,) in rows if table in names}

    def empty_tables(
        self, tables: Collection[TableName], after: Coordinates
    ) -> frozenset[TableName]:
        if not tables:  # Do not wait for transactions in progress.
            return frozenset()
        with self._query_sessions.cursor() as cursor:
            if low_mark(cursor, read_dialect(cursor)).at < after:
                return frozenset()
            return frozenset(table for table in tables if _has_no_row(cursor, table))

    @contextmanager
    def snapshot(
        self, table: TableSchema | TableStructure, columns: Sequence[str] | None = None
    ) -> Iterator[TableSnapshot]:
        shaped = self._shaped_tables.read(table)
        if shaped is not None:
            table = shaped.schema
            if columns is not None:
                shaped = shaped.for_columns(columns)
                columns = shaped.shaper.source_columns
        settings = self._settings_for_read()
        with open_snapshot(settings, table, columns) as snapshot:
            yield snapshot if shaped is None else shaped.shape_snapshot(snapshot)

    def next_bound(
        self,
        schema: TableSchema,
        after: Bound | None,
        row_count: int,
        *,
        since: Coordinates | None = None,
    ) -> Bound | None:
        shaped = self._shaped_tables.read(schema)
        if shaped is None or not shaped.hides_bounds:
            return self._next_bound(schema, after, row_count, since)
        cipher = shaped.bound_cipher
        if cipher is None:
            return None
        after = None if after is None else cipher.decrypt(after)
        bound = self._next_bound(schema, after, row_count, since)
        return None if bound is None else cipher.encrypt(bound)

    def _next_bound(
        self, schema: TableSchema, after: Bound | None, row_count: int, since: Coordinates | None
    ) -> Bound | None:
        if self._replica is not None:
            return self._replica.next_bound(schema, after, row_count, since)
        with self._cursor_on(schema.name, schema.names) as cursor:
            return next_bound(cursor, schema, after, row_count)

    @contextmanager
    def chunk(
        self,
        schema: TableSchema,
        key_range: Range,
        *,
        exact: bool = False,
        most_seconds: float = PIECE_SECONDS,
        since: Coordinates | None = None,
    ) -> Iterator[TableSnapshot]:
        shaped = self._shaped_tables.read(schema)
        if shaped is not None:
            schema, key_range = shaped.schema, shaped.decrypt_bounds(key_range)
        if self._replica is not None and not exact:
            chunk = self._replica.chunk(schema, key_range, since, most_seconds=most_seconds)
        else:
            settings = self._settings_for_read()
            chunk = open_chunk(settings, schema, key_range, exact=exact, most_seconds=most_seconds)
        with chunk as snapshot:
            yield snapshot if shaped is None else shaped.shape_snapshot(snapshot)

    @contextmanager
    def rows_where(
        self,
        schema: TableSchema,
        condition: RowCondition,
        *,
        most_seconds: float = PIECE_SECONDS,
    ) -> Iterator[ConditionSnapshot]:
        shaped = self._shaped_tables.read(schema)
        if shaped is not None and shaped.hides_bounds:
            # Rows are read again by their keys as the lake has them. A hashed key finds
            # no row, and a key does not tell whether the condition takes its row.
            raise TableError(
                "the table's key is hashed or rows are left out, so single rows cannot be "
                "read again",
                hint=f"read the whole table by `lockstep reload {schema.name.word} --from source "
                "--reason …`",
            )
        schema = schema if shaped is None else shaped.schema
        settings = self._settings_for_read()
        with open_condition(settings, schema, condition, most_seconds=most_seconds) as snapshot:
            if shaped is not None:
                snapshot = replace(snapshot, rows=shaped.shape_snapshot(snapshot.rows))
            yield snapshot

    def estimated_rows_where(self, table: TableName, condition: RowCondition) -> int:
        return estimated_rows_where(self._settings, table, condition)

    def source_load(self) -> SourceLoad:
        if self._replica is not None:
            return self._replica.load()
        with self._query_sessions.cursor() as cursor:
            return source_load(cursor)

    def estimated_rows(self, tables: Collection[TableName]) -> dict[TableName, int]:
        with self.own_cursor() as cursor:
            return estimate_by_statistic(cursor, tables, "table_rows")

    def estimated_bytes(self, tables: Collection[TableName]) -> dict[TableName, int]:
        with self.own_cursor() as cursor:
            return estimate_by_statistic(cursor, tables, "data_length")

    # -- comparisons ---------------------------------------------------------------------------

    def row_sum(self, structure: TableStructure) -> SourceSum:
        shaped = self._shaped_tables.read(structure)
        if shaped is None:
            return read_sum(self._settings_for_read(), structure)
        hasher, total = self._hasher(shaped), RowSum()
        with self._open_shaped_read(shaped) as (marks, batches):
            for batch in batches:
                total += hasher.row_sum(batch)
        return SourceSum(total, marks)

    @contextmanager
    def row_hashes(self, structure: TableStructure) -> Iterator[SourceHashes]:
        shaped = self._shaped_tables.read(structure)
        if shaped is None:
            with open_hashes(self._settings_for_read(), structure) as hashes:
                yield hashes
            return
        hasher = self._hasher(shaped)
        with self._open_shaped_read(shaped) as (marks, batches):
            pairs = ((hasher.key_hashes(batch), hasher.row_hashes(batch)) for batch in batches)
            yield SourceHashes(marks, pairs)

    def rows_by_hash(self, structure: TableStructure, keys: Collection[int]) -> ComparedRows:
        shaped = self._shaped_tables.read(structure)
        if shaped is None:
            return read_rows(self._settings_for_read(), structure, keys)
        hasher = self._hasher(shaped)
        hashes = np.array(sorted(keys), np.uint64)
        with self._open_shaped_read(shaped) as (marks, batches):
            matching_batches = [
                batch.filter(pa.array(np.isin(hasher.key_hashes(batch), hashes)))
                for batch in batches
            ]
        return ComparedRows(marks, pa.Table.from_batches(matching_batches, hasher.schema))

    def sample(
        self,
        structure: TableStructure,
        starts: Sequence[tuple[Any, ...]] | Callable[[int, int], Sequence[int]],
    ) -> SourceSample:
        shaped = self._shaped_tables.read(structure)
        if shaped is None:
            return read_sample(self._settings_for_read(), structure, starts)
        if shaped.hides_bounds:
            raise NotSampled(
                "the table's key is hashed or rows are left out, so samples cannot be compared",
                hint=f"compare the whole table by `lockstep verify {structure.name.word}`",
            )
        sample = read_sample(self._settings_for_read(), row_structure(shaped.schema), starts)
        shaper = shaped.shaper
        rows = (
            pa.Table.from_batches(map(shaper.shape_rows, table.to_batches()), shaper.schema)
            for table in sample.rows
        )
        return replace(sample, rows=tuple(rows))

    def _hasher(self, shaped: ShapedTable) -> RowHasher:
        return RowHasher(shaped.lake_structure, self.facts().flavour)

    @contextmanager
    def _open_shaped_read(
        self, shaped: ShapedTable
    ) -> Iterator[tuple[ReadMarks, Iterator[pa.RecordBatch]]]:
        with self.own_cursor() as cursor:
            ordered = commits_in_order(cursor, read_dialect(cursor))
        with open_snapshot(self._settings_for_read(), shaped.schema) as read:
            marks = ReadMarks(read.low, read.high, read.low_set, ordered)
            yield marks, shaped.shape_batches(read.batches)


def _ordinary_tables(tables: WholeTables) -> list[TableSchema]:
    """Return the tables that are not system-versioned. `MySqlServer.tables` does not
    list system-versioned tables either."""
    return [table for table in tables.tables if not table.system_versioned]


_VARIABLES = (
    "server_uuid",
    "server_id",
    "version",
    "version_comment",
    "gtid_mode",
    "log_bin",
    "binlog_format",
    "binlog_row_image",
    "binlog_row_metadata",
    "binlog_row_value_options",
    "binlog_transaction_compression",
    "binlog_checksum",
    "binlog_expire_logs_seconds",
    "binlog_expire_logs_auto_purge",
    "default_storage_engine",
    "explicit_defaults_for_timestamp",
    "expire_logs_days",
    "lower_case_table_names",
    "system_time_zone",
)
_EXECUTED_GTIDS = "select @@global.gtid_executed"
_BINLOG_STATE = "select @@global.gtid_binlog_state"
_PURGED_GTIDS = "select @@global.gtid_purged"
_SERVER_CLOCK = "select utc_timestamp(6)"


def read_facts(cursor: Cursor, address: str) -> ServerFacts:
    """Read the server's facts. Raise `ServerSettings` if it has no binary log.
    `address`: host and port, for the message."""
    settings = _read_variables(cursor)
    if settings.get("log_bin", "").upper() != "ON":
        raise ServerSettings(
            f"{address} writes no binary log",
            hint="set log_bin in the server's configuration and restart it",
        )
    mariadb = "mariadb" in settings["version"].lower()
    executed = read_value(cursor, _BINLOG_STATE if mariadb else _EXECUTED_GTIDS)
    cursor.execute("show binary logs")
    binlogs = tuple(BinlogSize(LogFile.parse(row[0]), int(row[1])) for row in cursor.fetchall())
    head = read_log_end(cursor)
    purged = _purged_gtids(cursor, binlogs) if mariadb else read_value(cursor, _PURGED_GTIDS)
    clock = datetime.fromisoformat(read_value(cursor, _SERVER_CLOCK)).replace(tzinfo=UTC)
    server_id = settings["server_id"]
    return ServerFacts(
        server_uuid=settings.get("server_uuid") or f"server-id:{server_id}",
        server_id=int(server_id),
        version=settings["version"],
        flavour="mariadb" if mariadb else "mysql",
        gtid_mode="ON" if mariadb else settings.get("gtid_mode", "OFF"),
        gtid_executed=executed,
        gtid_purged=purged,
        binlogs=binlogs,
        head=head,
        settings=settings,
        read_at=clock,
        server_process=_server_process(cursor, clock),
    )


def _read_variables(cursor: Cursor) -> dict[str, str]:
    cursor.execute(
        f"show global variables where variable_name in ({', '.join(['%s'] * len(_VARIABLES))})",
        _VARIABLES,
    )
    return {name.lower(): value for name, value in cursor.fetchall()}


def _server_process(cursor: Cursor, clock: datetime) -> ServerProcess | None:
    """Return when the server process started and how many RESETs it executed; None if
    unknown."""
    cursor.execute("show global status where variable_name in ('uptime', 'com_reset')")
    status = {name.lower(): int(value) for name, value in cursor.fetchall()}
    uptime, resets = status.get("uptime"), status.get("com_reset")
    if uptime is None or resets is None:
        return None
    return ServerProcess(clock - timedelta(seconds=uptime), resets)


def _purged_gtids(cursor: Cursor, binlogs: tuple[BinlogSize, ...]) -> str:
    """Return the GTIDs that MariaDB executed before its oldest log file, from the list
    at the beginning of that file."""
    if not binlogs:
        return ""
    cursor.execute("show binlog events in %s limit 5", (str(binlogs[0].file),))
    lists = [row[5] for row in cursor.fetchall() if row[2] == "Gtid_list"]
    return lists[0].strip("[]") if lists else ""


def read_baseline(cursor: Cursor, names: Collection[TableName] | None = None) -> Baseline:
    """See `pipeline.ports.SourceServer.baseline`. Tables that are named are read before
    the low mark, too: a single table that was altered meanwhile is read again, and of
    several those are left out. For all tables this is needless: the caller looks for
    such statements in the log between the marks."""
    dialect = read_dialect(cursor)
    for _ in TABLE_READ.tries():
        before = None if names is None else set(read_whole_tables(cursor, names).tables)
        low = low_mark(cursor, dialect)
        databases = read_databases(cursor)
        whole_tables = read_whole_tables(cursor, names)
        steady = [table for table in whole_tables.tables if before is None or table in before]
        if names is None or len(names) > 1 or len(steady) == len(whole_tables.tables):
            tables = with_default_values(cursor, tuple(steady))
            high = read_log_end(cursor)
            return Baseline(tables, databases, low.at, high, low.executed_set, whole_tables.unread)
    raise TableBusy(
        "it kept being altered while its structure was read", hint="the next run tries it again"
    )


def _exists(cursor: Cursor, table: TableName, columns: str = "1") -> bool:
    """Select no row of a table; return whether the table exists, or raise the server's
    error."""
    try:
        cursor.execute(f"select {columns} from {quoted_table(table)} limit 0")
    except pymysql.MySQLError as error:
        if number_of(error) not in GONE_ERRORS:
            raise
        return False
    return True


def _has_no_row(cursor: Cursor, table: TableName) -> bool:
    """Return whether a table is empty. Return False also if the server refuses to read
    it, for instance because it was dropped."""
    try:
        cursor.execute(f"select 1 from {quoted_table(table)} limit 1")
    except pymysql.MySQLError as error:
        if meaning_of(number_of(error)) is Meaning.LOST:
            raise
        return False
    return not cursor.fetchall()


_SHORT_LOCK_WAIT: Final = "set session lock_wait_timeout = 3"
"""Queries for current structures wait at most 3 s for a lock."""
_READ_COMMITTED: Final = "set session transaction isolation level read committed"
"""Each statement sees what is committed when it starts, as outside of a transaction."""

_FIND_VIEW: Final = (
    "select 1 from information_schema.tables where table_schema = %s and table_name = %s "
    "and table_type in ('VIEW', 'SEQUENCE')"
)


def read_current_schemas(cursor: Cursor, tables: Collection[TableName]) -> CurrentSchemas:
    """See `pipeline.ports.SourceServer.current_schemas`."""
    cursor.execute(_SHORT_LOCK_WAIT)
    schemas = {schema.name: schema for schema in read_schemas(cursor, tables, foreign_keys=False)}
    head = read_log_end(cursor)
    return CurrentSchemas(schemas, head, _server_uuid(cursor))


def read_locked_schema(cursor: Cursor, table: TableName) -> CurrentSchemas:
    """See `pipeline.ports.SourceServer.locked_schema`. The lock is the metadata lock of
    any SELECT in a transaction: until that ends, nobody can alter the table (MySQL
    manual, "Metadata Locking")."""
    for statement in (_SHORT_LOCK_WAIT, _READ_COMMITTED, "start transaction read only"):
        cursor.execute(statement)
    # Select all columns, so that an account that may read only some of them gets an
    # error.
    if not _exists(cursor, table, "*"):
        return CurrentSchemas({}, read_log_end(cursor), _server_uuid(cursor))
    return read_current_schemas(cursor, [table])


def _server_uuid(cursor: Cursor) -> str:
    """Return the server's UUID, or `server-id:` and its id on MariaDB."""
    try:
        return read_value(cursor, "select @@global.server_uuid")
    except pymysql.err.OperationalError:  # MariaDB has none
        return f"server-id:{read_value(cursor, 'select @@global.server_id')}"


_COMMENTS: Final = """
select table_schema, table_name, column_name, column_comment
  from information_schema.columns where column_comment <> '' and {where}
"""

_TABLE_COMMENTS: Final = """
select table_schema, table_name, table_comment
  from information_schema.tables
 where table_comment <> '' and table_type <> 'VIEW' and {where}
"""
