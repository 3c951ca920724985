"""All structures of a server, between two places of its log.

Belongs here: the order of the questions. Does not: whether a statement stands between the
places, which the log tells whoever asked.
"""

from __future__ import annotations

from collections.abc import Collection

from pymysql.cursors import Cursor

from pipeline.ports.source import Baseline
from pipeline.table import TableName
from resources.mysql.defaults import with_values
from resources.mysql.dialect import read_dialect
from resources.mysql.schemas import read_databases, read_schemas
from resources.mysql.watermarks import high_mark, low_mark


def read_baseline(cursor: Cursor, names: Collection[TableName] | None = None) -> Baseline:
    """See `pipeline.ports.SourceServer.baseline`."""
    dialect = read_dialect(cursor)
    low = low_mark(cursor, dialect)
    databases = read_databases(cursor)
    tables = with_values(cursor, read_schemas(cursor, names))
    high = high_mark(cursor, dialect)
    return Baseline(tables, databases, low.at, high.at, low.executed, high.executed)
