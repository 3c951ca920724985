"""One MySQL server as a port: facts, tables, structures, dumps, consistent reads.

No question about structures is in a snapshot: in REPEATABLE READ MySQL shows the structure of
before an ALTER. Those about current structures wait no longer than a few seconds for whoever
alters a table: what could not be looked at is missing from MariaDB's answer, and from that of
MySQL before 8.0.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, Final

import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from pipeline.batch import Xid
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.errors import HostUnknown, NothingMatches, ServerSettings, SourceUnavailable
from pipeline.gtid import GtidSet
from pipeline.ports.compared import ComparedRows, SourceHashes, SourceSample, SourceSum
from pipeline.ports.source import (
    Baseline,
    BinlogSize,
    ConditionSnapshot,
    CurrentSchemas,
    ListedTable,
    ServerFacts,
    TableSnapshot,
)
from pipeline.position import Coordinates, LogFile, ServerLife
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import row_structure
from pipeline.snapshot.bounds import Bound, Range
from pipeline.snapshot.condition import Condition
from pipeline.snapshot.giving_way import PIECE_SECONDS
from pipeline.snapshot.pace import SourceLoad
from pipeline.survey import Survey
from pipeline.table import TableName, TableStructure
from resources.mysql.chunks import (
    estimated,
    estimated_where,
    next_bound,
    open_chunk,
    open_condition,
)
from resources.mysql.connection import ConnectionSettings, connect, number_of
from resources.mysql.defaults import with_values
from resources.mysql.dialect import read_dialect
from resources.mysql.dump import (
    MAX_OFFSET,
    MySqlDump,
    after_set,
    by_offset,
    by_wide_offset,
    own_server_id,
)
from resources.mysql.prepared import prepared_if_told
from resources.mysql.privileges import may_not_be_read
from resources.mysql.questions import Questions
from resources.mysql.reader import explained, has_no_row, open_snapshot, reading
from resources.mysql.replica import Replica
from resources.mysql.row_hashes import open_hashes, read_rows, read_sample, read_sum
from resources.mysql.schemas import ReadTables, read_databases, read_schemas, read_whole_tables
from resources.mysql.scopes import ask, scopes_of
from resources.mysql.select import BEGIN, quoted_table, select_rows
from resources.mysql.server_pressure import source_load
from resources.mysql.survey import take_survey
from resources.mysql.watermarks import high_mark, low_mark, read_head, read_value

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
    """`pipeline.ports.SourceServer`. The questions of every run share a session while they follow
    each other; a dump, a read of rows and all that changes its session has one of its own.
    `standby`: it is asked if the first one cannot be reached. `read_from`: a replica that chunks of
    tables are read from."""

    def __init__(
        self,
        settings: ConnectionSettings,
        *,
        standby: ConnectionSettings | None = None,
        read_from: ConnectionSettings | None = None,
    ) -> None:
        self._both = settings, standby
        self._read_from = read_from
        self._questions = Questions(lambda: self._settings)

    @cached_property
    def _settings(self) -> ConnectionSettings:
        """Those of the server that answers first. It is asked from then on: a run never changes its
        server half-way. If neither answers, the error is the first one's."""
        primary, standby = self._both
        if standby is None:
            return primary
        try:
            with connect(primary):
                return primary
        except (SourceUnavailable, HostUnknown) as error:
            try:
                with connect(standby):
                    return standby
            except (SourceUnavailable, HostUnknown):
                raise error from None

    @cached_property
    def _replica(self) -> Replica | None:
        at = self._read_from
        return None if at is None else Replica(self._settings, at)

    def close(self) -> None:
        """End the session that is kept for questions; the next one opens another."""
        self._questions.close()

    @contextmanager
    def _asking(self) -> Iterator[Cursor]:
        """The cursor of a session of its own, for questions that change it."""
        with connect(self._settings) as connection, connection.cursor() as cursor:
            yield cursor

    def _reading(self) -> ConnectionSettings:
        """For the sessions of a read. None is kept beside them: an account may have few."""
        self._questions.close()
        return self._settings

    def facts(self) -> ServerFacts:
        with self._questions.cursor() as cursor:
            facts = read_facts(cursor, f"{self._settings.host}:{self._settings.port}")
        return replace(facts, standby=self._settings is self._both[1])

    def survey(self) -> Survey:
        survey = take_survey(self._settings)
        return survey if self._replica is None else replace(survey, read_from=self._replica.state())

    def dump(self, start: Coordinates) -> MySqlDump:
        if start.offset <= MAX_OFFSET:
            command = by_offset(start, own_server_id())
        elif self.facts().gtid_mode == "ON":
            command = by_wide_offset(start, own_server_id())
        else:
            start = Coordinates(start.file, FIRST_OFFSET)
            command = by_offset(start, own_server_id())
        return MySqlDump(self._settings, *command, begins=start)

    def dump_after(self, executed: GtidSet) -> MySqlDump:
        return MySqlDump(self._settings, *after_set(executed, own_server_id()))

    def prepared(self) -> frozenset[Xid]:
        with self._questions.cursor() as cursor:
            return prepared_if_told(cursor) or frozenset()

    def tables(self) -> list[ListedTable]:
        with self._questions.cursor() as cursor:
            tables = list(ask(cursor, _TABLES, scopes_of(None)))
            keys: dict[TableName, list[str]] = {}
            for name, (column,) in ask(cursor, _KEYS, scopes_of(None)):
                keys.setdefault(name, []).append(column)
        return [
            ListedTable(name, engine, int(rows), tuple(keys.get(name, ())))
            for name, (engine, rows) in tables
        ]

    def engines(self) -> dict[TableName, str]:
        with self._questions.cursor() as cursor:
            return {name: engine for name, (engine,) in ask(cursor, _ENGINES, scopes_of(None))}

    def structure(self, table: TableName) -> TableStructure:
        with self._asking() as cursor:
            read = read_whole_tables(cursor, [table])
            structures = _row_structures(read)
            if not structures and table not in read.unread:
                with explained(self._settings, table):
                    require_gone(cursor, table)
        if table in read.unread:
            raise may_not_be_read(self._settings, table, read.unread[table])
        if not structures:
            raise NothingMatches(
                f"the source has no table {table}, or none that is captured",
                hint=f"correct the name, or exclude {table}",
            )
        return structures[0]

    def structures(self) -> list[TableStructure]:
        with self._asking() as cursor:
            return _row_structures(read_whole_tables(cursor))

    @contextmanager
    def rows(self, structure: TableStructure) -> Iterator[Iterator[pa.RecordBatch]]:
        with (
            reading(self._reading()) as cursor,
            explained(self._settings, structure.name, structure.names),
        ):
            cursor.execute(BEGIN)
            yield select_rows(cursor, structure)

    def baseline(self, names: Collection[TableName] | None = None) -> Baseline:
        with self._asking() as cursor:
            if names is None or len(names) != 1:
                return read_baseline(cursor, names)
            (table,) = names
            with explained(self._settings, table):
                baseline = read_baseline(cursor, names)
                if table in baseline.unread:
                    raise may_not_be_read(self._settings, table, baseline.unread[table])
                if not baseline.tables:
                    require_gone(cursor, table)
                return baseline

    def current_schemas(self, tables: Collection[TableName]) -> CurrentSchemas:
        with self._asking() as cursor:
            return read_current(cursor, tables)

    def is_view(self, name: TableName) -> bool:
        with self._questions.cursor() as cursor:
            return is_view(cursor, name)

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        with (
            self._asking() as cursor,
            explained(self._settings, table),
        ):
            return read_locked(cursor, table)

    def comments(self, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
        with self._questions.cursor() as cursor:
            return read_comments(cursor, frozenset(tables))

    def table_comments(self, tables: Collection[TableName]) -> dict[TableName, str]:
        with self._questions.cursor() as cursor:
            return read_table_comments(cursor, frozenset(tables))

    def empty(self, tables: Collection[TableName]) -> frozenset[TableName]:
        with self._questions.cursor() as cursor:
            return frozenset(table for table in tables if has_no_row(cursor, table))

    def snapshot(
        self,
        table: TableSchema | TableStructure,
        columns: Sequence[str] | None = None,
        *,
        exact: bool = False,
    ) -> AbstractContextManager[TableSnapshot]:
        return open_snapshot(self._reading(), table, columns, exact=exact)

    def next_bound(
        self,
        schema: TableSchema,
        after: Bound | None,
        rows: int,
        *,
        since: Coordinates | None = None,
    ) -> Bound | None:
        if self._replica is not None:
            return self._replica.next_bound(schema, after, rows, since)
        with (
            self._asking() as cursor,
            explained(self._settings, schema.name, [column.name for column in schema.columns]),
        ):
            return next_bound(cursor, schema, after, rows)

    def chunk(
        self,
        schema: TableSchema,
        rows: Range,
        *,
        exact: bool = False,
        most_seconds: float = PIECE_SECONDS,
        since: Coordinates | None = None,
    ) -> AbstractContextManager[TableSnapshot]:
        if self._replica is not None and not exact:
            return self._replica.chunk(schema, rows, since, most_seconds=most_seconds)
        return open_chunk(self._reading(), schema, rows, exact=exact, most_seconds=most_seconds)

    def rows_where(
        self,
        schema: TableSchema,
        condition: Condition,
        *,
        most_seconds: float = PIECE_SECONDS,
    ) -> AbstractContextManager[ConditionSnapshot]:
        return open_condition(self._reading(), schema, condition, most_seconds=most_seconds)

    def estimated_where(self, table: TableName, condition: Condition) -> int:
        return estimated_where(self._settings, table, condition)

    def source_load(self) -> SourceLoad:
        if self._replica is not None:
            return self._replica.load()
        with self._questions.cursor() as cursor:
            return source_load(cursor)

    def estimated_rows(self, tables: Collection[TableName]) -> dict[TableName, int]:
        with self._asking() as cursor:
            return estimated(cursor, tables, "table_rows")

    def estimated_bytes(self, tables: Collection[TableName]) -> dict[TableName, int]:
        with self._asking() as cursor:
            return estimated(cursor, tables, "data_length")

    def row_sum(self, structure: TableStructure) -> SourceSum:
        return read_sum(self._reading(), structure)

    def row_hashes(self, structure: TableStructure) -> AbstractContextManager[SourceHashes]:
        return open_hashes(self._reading(), structure)

    def rows_by_hash(self, structure: TableStructure, keys: Collection[int]) -> ComparedRows:
        return read_rows(self._reading(), structure, keys)

    def sample(
        self,
        structure: TableStructure,
        starts: Sequence[tuple[Any, ...]] | Callable[[int, int], Sequence[int]],
    ) -> SourceSample:
        return read_sample(self._reading(), structure, starts)


def _row_structures(read: ReadTables) -> list[TableStructure]:
    """Ordinary tables alone, as `MySqlServer.tables` lists them."""
    return [row_structure(table) for table in read.tables if not table.system_versioned]


_SETTINGS = (
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
_EXECUTED = "select @@global.gtid_executed"
_BINLOG_STATE = "select @@global.gtid_binlog_state"
_PURGED = "select @@global.gtid_purged"
_CLOCK = "select utc_timestamp(6)"


def read_facts(cursor: Cursor, address: str) -> ServerFacts:
    """One round of questions; `ServerSettings` where the server has no log. `address`: host and
    port, to be printed."""
    found = _settings(cursor)
    if found.get("log_bin", "").upper() != "ON":
        raise ServerSettings(
            f"{address} writes no binary log",
            hint="set log_bin in the server's configuration and restart it",
        )
    mariadb = "mariadb" in found["version"].lower()
    executed = read_value(cursor, _BINLOG_STATE if mariadb else _EXECUTED)
    binlogs = _binlogs(cursor)
    head = read_head(cursor)
    purged = _first_list(cursor, binlogs) if mariadb else read_value(cursor, _PURGED)
    clock = datetime.fromisoformat(read_value(cursor, _CLOCK)).replace(tzinfo=UTC)
    life = _life(cursor, clock)
    server_id = found["server_id"]
    return ServerFacts(
        server_uuid=found.get("server_uuid") or f"server-id:{server_id}",
        server_id=int(server_id),
        version=found["version"],
        flavour="mariadb" if mariadb else "mysql",
        gtid_mode="ON" if mariadb else found.get("gtid_mode", "OFF"),
        gtid_executed=executed,
        gtid_purged=purged,
        binlogs=binlogs,
        head=head,
        settings=found,
        read_at=clock,
        life=life,
    )


def _settings(cursor: Cursor) -> dict[str, str]:
    cursor.execute(
        f"show global variables where variable_name in ({', '.join(['%s'] * len(_SETTINGS))})",
        _SETTINGS,
    )
    return {name.lower(): value for name, value in cursor.fetchall()}


def _life(cursor: Cursor, clock: datetime) -> ServerLife | None:
    cursor.execute("show global status where variable_name in ('uptime', 'com_reset')")
    found = {name.lower(): int(value) for name, value in cursor.fetchall()}
    uptime, resets = found.get("uptime"), found.get("com_reset")
    if uptime is None or resets is None:
        return None
    return ServerLife(clock - timedelta(seconds=uptime), resets)


def _first_list(cursor: Cursor, binlogs: tuple[BinlogSize, ...]) -> str:
    """What MariaDB executed before its oldest log file: the list at that file's head."""
    if not binlogs:
        return ""
    cursor.execute("show binlog events in %s limit 5", (str(binlogs[0].file),))
    found = [row[5] for row in cursor.fetchall() if row[2] == "Gtid_list"]
    return found[0].strip("[]") if found else ""


def _binlogs(cursor: Cursor) -> tuple[BinlogSize, ...]:
    cursor.execute("show binary logs")
    return tuple(BinlogSize(LogFile.parse(row[0]), int(row[1])) for row in cursor.fetchall())


_GONE: Final = frozenset({1049, 1146})
"""ER_BAD_DB_ERROR, ER_NO_SUCH_TABLE."""


def read_baseline(cursor: Cursor, names: Collection[TableName] | None = None) -> Baseline:
    """See `pipeline.ports.SourceServer.baseline`."""
    dialect = read_dialect(cursor)
    low = low_mark(cursor, dialect)
    databases = read_databases(cursor)
    read = read_whole_tables(cursor, names)
    tables = with_values(cursor, read.tables)
    high = high_mark(cursor, dialect)
    return Baseline(tables, databases, low.at, high.at, low.executed, high.executed, read.unread)


def require_gone(cursor: Cursor, table: TableName) -> None:
    """The server's own error where a table is there that information_schema does not show: to
    an account that may not read it, and of a table that cannot be opened."""
    _opens(cursor, f"select 1 from {quoted_table(table)} limit 0")


def _opens(cursor: Cursor, question: str) -> bool:
    """Ask for no row of a table; whether there is one of that name."""
    try:
        cursor.execute(question)
    except pymysql.MySQLError as error:
        if number_of(error) not in _GONE:
            raise
        return False
    return True


_BRIEFLY: Final = "set session lock_wait_timeout = 3"
_FRESH: Final = "set session transaction isolation level read committed"
"""Each question sees what is committed then, as outside of a transaction."""

_VIEW: Final = (
    "select 1 from information_schema.tables where table_schema = %s and table_name = %s "
    "and table_type in ('VIEW', 'SEQUENCE')"
)


def read_current(cursor: Cursor, tables: Collection[TableName]) -> CurrentSchemas:
    """See `pipeline.ports.SourceServer.current_schemas`."""
    cursor.execute(_BRIEFLY)
    schemas = {schema.name: schema for schema in read_schemas(cursor, tables, foreign_keys=False)}
    head = read_head(cursor)
    return CurrentSchemas(schemas, head, _server(cursor))


def is_view(cursor: Cursor, name: TableName) -> bool:
    """Return whether a view, or a sequence of MariaDB, that the account sees has that name."""
    cursor.execute(_VIEW, (name.database, name.name))
    return cursor.fetchone() is not None


def read_locked(cursor: Cursor, table: TableName) -> CurrentSchemas:
    """See `pipeline.ports.SourceServer.locked_schema`. The lock is the one of any SELECT in a
    transaction: until it ends, nobody alters the table (MySQL manual, "Metadata Locking")."""
    for statement in (_BRIEFLY, _FRESH, "start transaction read only"):
        cursor.execute(statement)
    # All columns, so that an account which may read some of them gets an error.
    if not _opens(cursor, f"select * from {quoted_table(table)} limit 0"):
        return CurrentSchemas({}, read_head(cursor), _server(cursor))
    return read_current(cursor, [table])


def _server(cursor: Cursor) -> str:
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


def read_table_comments(cursor: Cursor, tables: Collection[TableName]) -> dict[TableName, str]:
    """Those without one are left out."""
    found = ask(cursor, _TABLE_COMMENTS, scopes_of(tables))
    return {table: comment for table, (comment,) in found if table in tables}


def read_comments(cursor: Cursor, tables: Collection[TableName]) -> dict[TableName, dict[str, str]]:
    """By table and column; those without one are left out."""
    found: dict[TableName, dict[str, str]] = {}
    for table, (column, comment) in ask(cursor, _COMMENTS, scopes_of(tables)):
        if table in tables:
            found.setdefault(table, {})[column] = comment
    return found
