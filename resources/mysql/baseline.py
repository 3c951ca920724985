"""All structures of a server, between two places of its log.

Belongs here: the order of the questions. Does not: whether a statement stands between the
places, which the log tells whoever asked.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from pipeline.ports.source import Baseline
from pipeline.table import TableName
from resources.mysql.connection import number_of
from resources.mysql.defaults import with_values
from resources.mysql.dialect import read_dialect
from resources.mysql.schemas import read_databases, read_whole_tables
from resources.mysql.select import quoted_table
from resources.mysql.watermarks import high_mark, low_mark

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
    try:
        cursor.execute(f"select 1 from {quoted_table(table)} limit 0")
    except pymysql.MySQLError as error:
        if number_of(error) not in _GONE:
            raise
