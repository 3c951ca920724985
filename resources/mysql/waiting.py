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
    r"(?:alter|create|drop|optimize|rename|repair|truncate)\b", re.IGNORECASE
)
"""Statements that want a table for themselves."""
_LOCKS_TABLES: Final = re.compile(r"lock\s+tables?\b", re.IGNORECASE)
_TO_WRITE: Final = re.compile(r"\bwrite\s*$", re.IGNORECASE)
"""Of one table in LOCK TABLES. READ, which our own reads lock a table with, is content beside who
reads."""

_UNTOLD: Final = frozenset({1044, 1049, 1142, 1146, 1227})
"""ER_DBACCESS_DENIED_ERROR, ER_BAD_DB_ERROR, ER_TABLEACCESS_DENIED_ERROR, ER_NO_SUCH_TABLE,
ER_SPECIFIC_ACCESS_DENIED_ERROR."""


def waiting_for(cursor: Cursor, table: TableName) -> bool:
    """Whether a statement waits to have the table for itself, as far as the account sees it."""
    locks = _locks(cursor, table)
    if locks:
        return any(status == "PENDING" and kind in _ALL_OF_IT for status, kind in locks)
    return sessions_wait(cursor, table)


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


def sessions_wait(cursor: Cursor, table: TableName) -> bool:
    """The same by the list of sessions alone."""
    cursor.execute("show full processlist")
    return any(
        wants(table, database=_text(row[3]), statement=_text(row[7]))
        for row in cursor.fetchall()
        if _text(row[6]).lower().startswith(_STATE)
    )


def wants(table: TableName, *, database: str, statement: str) -> bool:
    """Whether the statement needs the table for itself. `database`: the one its session uses."""
    begun = _COMMENTS.match(statement)
    bare = statement[begun.end() :] if begun else statement
    if _LOCKS_TABLES.match(bare):
        parts = [part for part in bare.split(",") if _TO_WRITE.search(part)]
    else:
        parts = [bare] if _TAKES_ALL.match(bare) else []
    return any(
        _mentions(part, table.name)
        and (database == table.database or _mentions(part, table.database))
        for part in parts
    )


def _mentions(statement: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", statement, re.IGNORECASE) is not None


def _text(value: object) -> str:
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    return "" if value is None else str(value)
