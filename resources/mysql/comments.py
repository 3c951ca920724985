"""What people wrote about tables and columns, for other people to read.

Belongs here: asking for it. Does not: structures (`schemas`), which comments are no part of: two
tables that differ in them alone are built alike.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from pymysql.cursors import Cursor

from pipeline.table import TableName
from resources.mysql.scopes import ask, scopes_of

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
