"""A table in chunks: where the next one ends, and its rows between two marks.

Belongs here: the question for a bound, a chunk's read, estimates. Does not: conditions and
literals (`pipeline.snapshot.bounds`), the read itself (`reader`), how many rows (`pace`).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from pipeline.ports.source import TableSnapshot
from pipeline.schema.model import TableSchema
from pipeline.snapshot.bounds import Bound, Range, asked, bound_of, order, quoted, where
from pipeline.snapshot.giving_way import PIECE_SECONDS, patience
from pipeline.snapshot.keys import chunk_index, chunk_key, only_on_mysql
from pipeline.table import TableName
from resources.mysql.connection import ConnectionSettings
from resources.mysql.dialect import read_dialect
from resources.mysql.reader import reading, take
from resources.mysql.scopes import ask, scopes_of
from resources.mysql.select import quoted_table
from resources.mysql.taking import moved
from resources.mysql.watcher import watched

_ESTIMATES: Final = """
select table_schema, table_name, table_rows from information_schema.tables
 where table_rows is not null and {where}
"""
_FRESH: Final = "set session information_schema_stats_expiry = 0"
"""MySQL keeps what it told of a table for a day."""


def next_bound(cursor: Cursor, schema: TableSchema, after: Bound | None, rows: int) -> Bound | None:
    """The last of the `rows` rows behind `after`; None where no more than so many are left,
    or the table has no key that this server cuts it by. `cursor` is of a prepared session.

    The server reads as many entries of the key as the chunk has rows, about a microsecond each
    where they are in memory (0.09 s of 100,000 rows, whose reading takes 1.6 s). InnoDB keeps the
    rows in the primary key: they are in memory then when the chunk is read.
    """
    key = chunk_key(schema)
    if not key or (only_on_mysql(schema) and read_dialect(cursor).mariadb):
        return None
    if rows < 1:
        raise ValueError(f"a chunk of {rows} rows")
    _require_cut_by(schema, Range(after=after))
    cursor.execute(
        f"select {', '.join(asked(schema))} from {quoted_table(schema.name)} "
        f"{followed(schema)} where {where(Range(after=after))} "
        f"order by {order(key)} limit 2 offset {rows - 1}"
    )
    found = cursor.fetchall()
    return bound_of(schema, found[0]) if len(found) > 1 else None


@contextmanager
def open_chunk(
    settings: ConnectionSettings,
    schema: TableSchema,
    rows: Range,
    *,
    exact: bool = False,
    most_seconds: float = PIECE_SECONDS,
) -> Iterator[TableSnapshot]:
    """See `pipeline.ports.SourceServer.chunk`."""
    _require_cut_by(schema, rows)
    rule = patience(whole=rows.whole, most_seconds=most_seconds)
    condition = None if rows.whole else where(rows)
    with reading(settings) as cursor, watched(settings, cursor, schema.name, rule) as read:
        with read.excused():
            snapshot = take(
                settings,
                cursor,
                schema,
                exact=exact,
                where=condition,
                along=followed(schema),
                rows_alone=True,
            )
        yield replace(snapshot, batches=read.excusing(snapshot.batches))


def followed(schema: TableSchema) -> str:
    """The words that have a statement follow the key that the table is cut by; none for none."""
    index = chunk_index(schema)
    return "" if index is None else f"force index ({quoted(index.name)})"


def estimated_rows(cursor: Cursor, tables: Collection[TableName]) -> dict[TableName, int]:
    """See `pipeline.ports.SourceServer.estimated_rows`."""
    with suppress(pymysql.MySQLError):  # MariaDB has no such setting
        cursor.execute(_FRESH)
    wanted = frozenset(tables)
    found = ask(cursor, _ESTIMATES, scopes_of(wanted))
    return {table: int(rows) for table, (rows,) in found if table in wanted}


def _require_cut_by(schema: TableSchema, rows: Range) -> None:
    """`StructureMoved` where the bounds are those of another key."""
    key = chunk_key(schema)
    if rows.columns not in ((), key):
        by = ", ".join(key) or "nothing"
        raise moved(schema.name, f"it is cut by {by}, its chunk by {', '.join(rows.columns)}")
