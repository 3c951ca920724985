"""One MySQL server as a port: facts, tables, dumps, consistent reads.

Belongs here: the statements that ask the server about itself. Does not: what the
answers mean for a run (`pipeline.start`, `pipeline.preflight`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import Any

import pyarrow as pa

from pipeline.batch import Xid
from pipeline.binlog.stream.framing import FIRST_OFFSET
from pipeline.errors import NothingMatches
from pipeline.gtid import GtidSet
from pipeline.ports.compared import ComparedRows, SourceHashes, SourceSample, SourceSum
from pipeline.ports.source import (
    Baseline,
    ConditionSnapshot,
    CurrentSchemas,
    ListedTable,
    ServerFacts,
    TableSnapshot,
)
from pipeline.position import Coordinates
from pipeline.schema.model import TableSchema
from pipeline.schema.rows import row_structure
from pipeline.snapshot.bounds import Bound, Range
from pipeline.snapshot.condition import Condition
from pipeline.snapshot.giving_way import PIECE_SECONDS
from pipeline.snapshot.pace import SourceLoad
from pipeline.survey import Survey
from pipeline.table import TableName, TableStructure
from resources.mysql.baseline import read_baseline, require_gone
from resources.mysql.chunks import estimated_rows, next_bound, open_chunk
from resources.mysql.comments import read_comments, read_table_comments
from resources.mysql.conditions import estimated_where, open_condition
from resources.mysql.connection import ConnectionSettings, connect
from resources.mysql.current_schemas import is_view, read_current, read_locked
from resources.mysql.dump import (
    MAX_OFFSET,
    MySqlDump,
    after_set,
    by_offset,
    by_wide_offset,
    own_server_id,
)
from resources.mysql.facts import read_facts
from resources.mysql.prepared import prepared_xids
from resources.mysql.privileges import may_not_be_read
from resources.mysql.questions import Questions
from resources.mysql.reader import explained, has_no_row, open_snapshot, reading
from resources.mysql.replica import Replica
from resources.mysql.row_hashes import open_hashes, read_sum
from resources.mysql.row_samples import read_rows, read_sample
from resources.mysql.schemas import ReadTables, read_whole_tables
from resources.mysql.scopes import ask, scopes_of
from resources.mysql.select import BEGIN, select_rows
from resources.mysql.server_pressure import source_load
from resources.mysql.survey import take_survey

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
    `read_from`: a replica that chunks of tables are read from."""

    def __init__(
        self, settings: ConnectionSettings, *, read_from: ConnectionSettings | None = None
    ) -> None:
        self._settings = settings
        self._questions = Questions(settings)
        self._replica = None if read_from is None else Replica(settings, read_from)

    def close(self) -> None:
        """End the session that is kept for questions; the next one opens another."""
        self._questions.close()

    def _reading(self) -> ConnectionSettings:
        """For the sessions of a read. None is kept beside them: an account may have few."""
        self._questions.close()
        return self._settings

    def facts(self) -> ServerFacts:
        with self._questions.cursor() as cursor:
            return read_facts(cursor, f"{self._settings.host}:{self._settings.port}")

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
            return prepared_xids(cursor)

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
        with connect(self._settings) as connection, connection.cursor() as cursor:
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
        with connect(self._settings) as connection, connection.cursor() as cursor:
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
        with connect(self._settings) as connection, connection.cursor() as cursor:
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
        with connect(self._settings) as connection, connection.cursor() as cursor:
            return read_current(cursor, tables)

    def is_view(self, name: TableName) -> bool:
        with self._questions.cursor() as cursor:
            return is_view(cursor, name)

    def locked_schema(self, table: TableName) -> CurrentSchemas:
        with (
            connect(self._settings) as connection,
            connection.cursor() as cursor,
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
            connect(self._settings) as connection,
            connection.cursor() as cursor,
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
        with connect(self._settings) as connection, connection.cursor() as cursor:
            return estimated_rows(cursor, tables)

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
