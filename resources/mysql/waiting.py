"""Who waits to alter a table: the server's metadata locks, or its list of sessions.

Belongs here: both questions and what their answers mean. Does not: what is done about it
(`watcher`).

Sources: MySQL manual, "The metadata_locks Table" (`performance_schema`, which an account with
SELECT on `*.*` reads); "SHOW PROCESSLIST", which shows other accounts' sessions to who has
PROCESS. Where neither tells, nobody is seen waiting.
"""

from __future__ import annotations

import re
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from pipeline.table import TableName

_LOCKS: Final = """
select lock_status, lock_type from performance_schema.metadata_locks
 where object_type = 'TABLE' and object_schema = %s and object_name = %s
"""
_ALL_OF_IT: Final = frozenset({"EXCLUSIVE", "SHARED_NO_READ_WRITE"})
_STATE: Final = "waiting for table metadata lock"
_COMMENTS: Final = re.compile(r"\s*(?:/\*.*?\*/\s*)*", re.DOTALL)
_TAKES_ALL: Final = re.compile(
    r"(?:alter|create|drop|lock|optimize|rename|repair|truncate)\b", re.IGNORECASE
)
"""Statements that want a table for themselves."""

_UNTOLD: Final = frozenset({1044, 1049, 1142, 1146, 1227})
"""ER_DBACCESS_DENIED_ERROR, ER_BAD_DB_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_NO_SUCH_TABLE,
ER_SPECIFIC_ACCESS_DENIED_ERROR."""


def waiting_for(cursor: Cursor, table: TableName, reader: int = 0) -> bool:
    """Whether a statement waits to have the table for itself, as far as the account sees it.
    `reader`: the session that reads for us, which may wait to lock the table against writers."""
    locks = _locks(cursor, table)
    if locks:
        return any(status == "PENDING" and kind in _ALL_OF_IT for status, kind in locks)
    return sessions_wait(cursor, table, reader)


def _locks(cursor: Cursor, table: TableName) -> list[tuple[str, str]]:
    """Those of whoever uses the table, who reads it for us among them; none at all where the
    server does not keep that table, or not for this account."""
    try:
        cursor.execute(_LOCKS, (table.database, table.name))
    except pymysql.MySQLError as error:
        if error.args[0] not in _UNTOLD:
            raise
        return []
    return [(_text(status), _text(kind)) for status, kind in cursor.fetchall()]


def sessions_wait(cursor: Cursor, table: TableName, reader: int) -> bool:
    """The same by the list of sessions alone."""
    cursor.execute("show full processlist")
    return any(
        _is_about(table, database=_text(row[3]), statement=_text(row[7]))
        for row in cursor.fetchall()
        if int(row[0]) != reader and _text(row[6]).lower().startswith(_STATE)
    )


def _is_about(table: TableName, *, database: str, statement: str) -> bool:
    """`database`: the one that the session uses."""
    begun = _COMMENTS.match(statement)
    if _TAKES_ALL.match(statement, begun.end() if begun else 0) is None:
        return False
    named = _mentions(statement, table.name)
    return named and (database == table.database or _mentions(statement, table.database))


def _mentions(statement: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", statement, re.IGNORECASE) is not None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
