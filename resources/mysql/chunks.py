"""Reads a part of a table's rows consistently, between two watermarks. The part is a
chunk (a range of the key), or the rows that a condition selects; for a condition,
given keys can be looked up besides."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

import pyarrow as pa
import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.ports.source import ConditionSnapshot, TableSnapshot
from lockstep.pipeline.schema.model import TableSchema
from lockstep.pipeline.schema.rows import row_structure
from lockstep.pipeline.snapshot.chunks import (
    Bound,
    Range,
    bound_of,
    chunk_index,
    chunk_key,
    key_expressions,
    only_on_mysql,
    order_by,
    point_condition,
    range_condition,
)
from lockstep.pipeline.snapshot.condition import HINT, RowCondition
from lockstep.pipeline.snapshot.pace import CHUNK_PATIENCE, PIECE_SECONDS, Patience
from lockstep.pipeline.values.errors import ConditionRefused
from lockstep.pipeline.values.server_errors import Meaning, explain, meaning_of, quotable_names
from lockstep.pipeline.values.table import TableName, TableStructure, quoted, quoted_table
from lockstep.resources.mysql.connection import (
    ConnectionSettings,
    connect,
    number_of,
    read_dialect,
    text_of,
)
from lockstep.resources.mysql.reader import (
    open_snapshot_in_session,
    reading_cursor,
    translate_table_errors,
)
from lockstep.resources.mysql.receiving import ReadingCursor
from lockstep.resources.mysql.select import select_rows, structure_moved
from lockstep.resources.mysql.visible_tables import scopes_of, select_by_table
from lockstep.resources.mysql.watcher import WatchedRead, watch

_ESTIMATES: Final = """
select table_schema, table_name, {statistic} from information_schema.tables
 where table_rows is not null and {where}
"""
_READ_FRESH_STATISTICS: Final = "set session information_schema_stats_expiry = 0"
"""Lets MySQL read a table's present statistics instead of values that it caches for a
day."""


def next_bound(
    cursor: Cursor, schema: TableSchema, after: Bound | None, row_count: int
) -> Bound | None:
    """Return the end of the next chunk: the key of the last of the `row_count` rows
    after `after`. Return None if at most that many rows are left, or if this server
    cannot cut the table by any key.

    The server reads one index entry for each row of the chunk: 0.09 s for 100,000
    entries in memory, while reading these rows takes 1.6 s. InnoDB stores the rows in
    the primary key, so they are in memory when the chunk is read next.
    """
    key = chunk_key(schema)
    if not key or (only_on_mysql(schema) and read_dialect(cursor).is_mariadb):
        return None
    _require_chunk_key(schema, Range(after=after))
    cursor.execute(
        f"select {', '.join(key_expressions(schema))} from {quoted_table(schema.name)} "
        f"{index_hint(schema)} where {range_condition(Range(after=after))} "
        f"order by {order_by(key)} limit 2 offset {row_count - 1}"
    )
    last_and_next = cursor.fetchall()
    return bound_of(schema, last_and_next[0]) if len(last_and_next) > 1 else None


@contextmanager
def open_chunk(
    settings: ConnectionSettings,
    schema: TableSchema,
    key_range: Range,
    *,
    exact: bool = False,
    most_seconds: float = PIECE_SECONDS,
) -> Iterator[TableSnapshot]:
    """See `pipeline.ports.SourceServer.chunk`."""
    _require_chunk_key(schema, key_range)
    is_whole = key_range.is_whole_table
    patience = Patience(0.0, most_seconds) if is_whole else CHUNK_PATIENCE
    condition = None if is_whole else range_condition(key_range)
    with (
        reading_cursor(settings) as cursor,
        watch(settings, cursor, schema.name, patience) as watched_read,
    ):
        with watched_read.raising_busy():
            snapshot = open_snapshot_in_session(
                settings,
                cursor,
                schema,
                exact=exact,
                where=condition,
                index_hint=index_hint(schema),
                ignores_defaults=True,
            )
        yield replace(snapshot, batches=watched_read.raising_busy_in(snapshot.batches))


def index_hint(schema: TableSchema) -> str:
    """Return the index hint for the table's chunk key; "" if it has none."""
    index = chunk_index(schema)
    return "" if index is None else f"force index ({quoted(index.name)})"


def estimate_by_statistic(
    cursor: Cursor, tables: Collection[TableName], statistic: str
) -> dict[TableName, int]:
    """See `pipeline.ports.SourceServer.estimated_rows`; `statistic` is the column of
    information_schema.tables to return."""
    with suppress(pymysql.MySQLError):  # MariaDB has no such setting
        cursor.execute(_READ_FRESH_STATISTICS)
    wanted = frozenset(tables)
    estimates = select_by_table(
        cursor, _ESTIMATES.replace("{statistic}", statistic), scopes_of(wanted)
    )
    return {table: int(value) for table, (value,) in estimates if table in wanted}


def _require_chunk_key(schema: TableSchema, key_range: Range) -> None:
    """Raise `StructureMoved` if the bounds of the range are not values of the table's
    chunk key."""
    key = chunk_key(schema)
    if key_range.columns not in ((), key):
        by = ", ".join(key) or "nothing"
        raise structure_moved(
            schema.name,
            f"it is now cut into chunks by {by}; this chunk was cut by "
            f"{', '.join(key_range.columns)}",
        )


_MOST_KEYS: Final = 1_000
"""Largest number of keys in one statement."""


def estimated_rows_where(
    settings: ConnectionSettings, table: TableName, condition: RowCondition
) -> int:
    """See `pipeline.ports.SourceServer.estimated_rows_where`."""
    with (
        connect(settings) as connection,
        connection.cursor() as cursor,
        translate_table_errors(settings, table),
    ):
        return _estimate_by_explain(cursor, table, condition)


@contextmanager
def open_condition(
    settings: ConnectionSettings,
    schema: TableSchema,
    condition: RowCondition,
    *,
    most_seconds: float = PIECE_SECONDS,
) -> Iterator[ConditionSnapshot]:
    """See `pipeline.ports.SourceServer.rows_where`."""
    structure = row_structure(schema)
    with (
        reading_cursor(settings, without_timeout=True) as cursor,
        watch(settings, cursor, schema.name, Patience(0.0, most_seconds)) as watched_read,
    ):
        with (
            watched_read.raising_busy(),
            translate_table_errors(settings, schema.name, structure.names),
        ):
            # Called for its error only: the server may refuse the condition.
            _estimate_by_explain(cursor, schema.name, condition)
            snapshot = open_snapshot_in_session(
                settings, cursor, schema, where=f"({condition.text})"
            )

        def select_keys(keys: pa.RecordBatch) -> Iterator[pa.RecordBatch]:
            return _select_keys(settings, cursor, watched_read, schema, structure, keys)

        yield ConditionSnapshot(
            replace(snapshot, batches=watched_read.raising_busy_in(snapshot.batches)), select_keys
        )


def _select_keys(
    settings: ConnectionSettings,
    cursor: ReadingCursor,
    watched_read: WatchedRead,
    schema: TableSchema,
    structure: TableStructure,
    keys: pa.RecordBatch,
) -> Iterator[pa.RecordBatch]:
    """Yield keys of the table's rows, among them all of the given keys that exist."""
    names = keys.schema.names
    columns = tuple(column for column in structure.columns if column.name in names)
    key_structure = replace(structure, columns=columns, primary_key=tuple(names))
    with (
        watched_read.raising_busy(),
        translate_table_errors(settings, schema.name, key_structure.names),
    ):
        for at in range(0, keys.num_rows, _MOST_KEYS):
            where = point_condition(schema, keys.slice(at, _MOST_KEYS))
            yield from select_rows(cursor, key_structure, where=where)


def _estimate_by_explain(cursor: Cursor, table: TableName, condition: RowCondition) -> int:
    """Return the number of rows that EXPLAIN estimates. Raise `ConditionRefused` if the
    server refuses the condition."""
    try:
        cursor.execute(f"explain select * from {quoted_table(table)} where ({condition.text})")
        names = [str(column[0]).lower() for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    except pymysql.MySQLError as error:
        if meaning_of(number_of(error)) is not Meaning.REFUSED:
            raise
        message = explain(number_of(error), text_of(error), quotable_names(table, ()))
        raise ConditionRefused(
            f"{table}: the server refuses the condition: {message}", hint=HINT
        ) from error
    return sum(
        int(float(row.get("rows") or 0) * _selected_share(row.get("filtered"))) for row in rows
    )


def _selected_share(filtered: object) -> float:
    """Return the share of the examined rows that the condition selects; 1 on MariaDB,
    which does not estimate it."""
    return 1.0 if filtered is None else float(str(filtered)) / 100
