"""Some tables as the server has them at this moment, and the end of its log behind the answer.

Belongs here: the session that is asked, and the lock that keeps a table as it is meanwhile. Does
not: what information_schema is asked (`schemas`), structures with marks on both sides
(`baseline`).

No question is in a snapshot: in REPEATABLE READ MySQL shows the structure of before an ALTER. None
waits longer than a few seconds for whoever alters a table: what could not be looked at is missing
from MariaDB's answer, and from that of MySQL before 8.0.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from pipeline.ports.source import CurrentSchemas
from pipeline.table import TableName
from resources.mysql.connection import number_of
from resources.mysql.schemas import read_schemas
from resources.mysql.select import quoted_table
from resources.mysql.watermarks import read_head, read_value

_BRIEFLY: Final = "set session lock_wait_timeout = 3"
_FRESH: Final = "set session transaction isolation level read committed"
"""Each question sees what is committed then, as outside of a transaction."""

_VIEW: Final = (
    "select 1 from information_schema.tables where table_schema = %s and table_name = %s "
    "and table_type in ('VIEW', 'SEQUENCE')"
)

_GONE: Final = frozenset({1049, 1146})
"""ER_BAD_DB_ERROR, ER_NO_SUCH_TABLE."""


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
    try:
        # All columns, so that an account which may read some of them gets an error.
        cursor.execute(f"select * from {quoted_table(table)} limit 0")
    except pymysql.MySQLError as error:
        if number_of(error) not in _GONE:
            raise
        return CurrentSchemas({}, read_head(cursor), _server(cursor))
    return read_current(cursor, [table])


def _server(cursor: Cursor) -> str:
    try:
        return read_value(cursor, "select @@global.server_uuid")
    except pymysql.err.OperationalError:  # MariaDB has none
        return f"server-id:{read_value(cursor, 'select @@global.server_id')}"
