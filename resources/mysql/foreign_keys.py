"""Foreign keys as the server has them, with what they do to the child's rows.

MariaDB shows the actions in information_schema to accounts with more than SELECT only;
SHOW CREATE TABLE shows them to whoever may see the table, and is asked where need be.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

import pymysql
from pymysql.cursors import Cursor

from pipeline.schema.model import ForeignKey
from pipeline.table import TableName
from resources.mysql.dialect import Dialect
from resources.mysql.scopes import Scope, ask
from resources.mysql.select import quoted_table

_COLUMNS: Final = """
select table_schema, table_name, constraint_name, column_name, referenced_table_schema,
       referenced_table_name, referenced_column_name
  from information_schema.key_column_usage
 where referenced_table_name is not null and {where}
 order by table_schema, table_name, constraint_name, ordinal_position
"""
_ACTIONS: Final = """
select constraint_schema, table_name, constraint_name, delete_rule, update_rule
  from information_schema.referential_constraints where {where}
"""
_ACTION: Final = r"(RESTRICT|CASCADE|SET NULL|NO ACTION|SET DEFAULT)"
_WRITTEN: Final = re.compile(
    r"CONSTRAINT `((?:[^`]|``)*)` FOREIGN KEY .*? REFERENCES .*?\)"
    rf"(?: ON DELETE {_ACTION})?(?: ON UPDATE {_ACTION})?,?$",
    re.MULTILINE,
)
_GONE: Final = frozenset({1049, 1051, 1109, 1146})
"""ER_BAD_DB_ERROR, ER_BAD_TABLE_ERROR, ER_UNKNOWN_TABLE, ER_NO_SUCH_TABLE."""

Actions = dict[tuple[TableName, str], tuple[str, str]]
"""ON DELETE and ON UPDATE, by table and constraint."""


def read_foreign_keys(
    cursor: Cursor, scopes: Sequence[Scope], dialect: Dialect
) -> dict[TableName, tuple[ForeignKey, ...]]:
    """Those of each table that has any, by name."""
    columns: dict[tuple[TableName, str], list[tuple[str, TableName, str]]] = {}
    for table, (name, column, database, parent, referenced) in ask(cursor, _COLUMNS, scopes):
        of_key = columns.setdefault((table, name), [])
        of_key.append((column, TableName(database, parent), referenced))
    if not columns:
        return {}
    actions: Actions = {
        (table, name): (on_delete, on_update)
        for table, (name, on_delete, on_update) in ask(
            cursor, _ACTIONS, scopes, schema="constraint_schema"
        )
    }
    _add_hidden(cursor, sorted({t for t, name in columns if (t, name) not in actions}), actions)
    none = "NO ACTION" if dialect.mysql_from(8, 0, 0) else "RESTRICT"
    found: dict[TableName, list[ForeignKey]] = {}
    for (table, name), parts in columns.items():
        own, (parent, *_), referenced = zip(*parts, strict=True)
        acts = actions.get((table, name), (none, none))
        found.setdefault(table, []).append(ForeignKey(name, own, parent, referenced, *acts))
    return {table: tuple(keys) for table, keys in found.items()}


def _add_hidden(cursor: Cursor, tables: Sequence[TableName], actions: Actions) -> None:
    """What SHOW CREATE TABLE says of the actions; nothing of a table that is gone."""
    for table in tables:
        try:
            cursor.execute(f"show create table {quoted_table(table)}")
        except pymysql.MySQLError as error:
            if error.args[0] not in _GONE:
                raise
            continue
        (_, text, *_) = cursor.fetchone() or ("", "")
        for name, on_delete, on_update in _WRITTEN.findall(text):
            bare = name.replace("``", "`")
            actions[table, bare] = (on_delete or "RESTRICT", on_update or "RESTRICT")
