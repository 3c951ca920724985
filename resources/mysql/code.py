"""Triggers and views of a server, and the base tables of its system database.

information_schema shows a trigger only to accounts with TRIGGER on its table, and the query of a
view only to accounts with SHOW VIEW and SELECT on it. For other accounts triggers are missing
without any error (MySQL manual, "The INFORMATION_SCHEMA TRIGGERS Table"; measured on MySQL 5.7 to
9.7 and MariaDB).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from pipeline.grants import covers, read_grants
from pipeline.schema.code import read_code, read_view
from pipeline.schema.context import SQL_MODES, ServerDialect, StatementContext
from pipeline.schema.model import DatabaseCode, RowCode, Trigger, View
from pipeline.server_errors import Meaning, meaning_of
from pipeline.table import TableName
from resources.mysql.connection import number_of
from resources.mysql.dialect import Dialect
from resources.mysql.select import quoted_table

SYSTEM: Final = "mysql"
"""The system database in which managed services keep tables of their own."""

_TRIGGERS: Final = """
select trigger_schema, trigger_name, event_manipulation, event_object_schema, event_object_table,
       action_statement, sql_mode
  from information_schema.triggers order by trigger_schema, trigger_name
"""
_VIEWS: Final = """
select table_schema, table_name, view_definition from information_schema.views
 order by table_schema, table_name
"""
_SYSTEM_TABLES: Final = f"""
select table_name from information_schema.tables
 where table_schema = '{SYSTEM}' and table_type = 'BASE TABLE' order by table_name
"""
_NO_QUERY: Final = "the account may not see the view's query"


def read_all_code(
    cursor: Cursor, databases: Iterable[str], dialect: Dialect
) -> Mapping[str, DatabaseCode]:
    """Return the triggers and views of each database, and those of the system database if the
    account sees a table of it."""
    databases = list(databases)
    visible_databases = {*databases, SYSTEM}
    triggers, views = defaultdict[str, list[Trigger]](list), defaultdict[str, list[View]](list)
    for database, name, events, of, table, body, modes in _rows(cursor, _TRIGGERS):
        if database not in visible_databases:
            continue
        code = read_code(body, _context(dialect, database, modes), selects=False)
        event_names = tuple(word.strip() for word in str(events).upper().split(","))
        triggers[database].append(Trigger(name, TableName(of, table), event_names, code))
    for database, name, query in _rows(cursor, _VIEWS):
        if database not in visible_databases:  # the views of `sys` are a hundred
            continue
        context = _context(dialect, database, "")
        if query:
            code = read_code(query, context, selects=True)
        else:
            code = _shown_view(cursor, TableName(database, name), context)
        views[database].append(View(name, code))
    cursor.execute("show grants")
    grants = read_grants(tuple(str(line) for row in cursor.fetchall() for line in row))
    codes = {
        name: DatabaseCode(
            tuple(triggers[name]) if covers(grants, "TRIGGER", TableName(name, "")) else None,
            tuple(views[name]),
        )
        for name in databases
    }
    if system := tuple(str(name) for (name,) in _rows(cursor, _SYSTEM_TABLES)):
        # No server allows triggers on tables of this database.
        codes[SYSTEM] = DatabaseCode((), tuple(views[SYSTEM]), system)
    return codes


def _shown_view(cursor: Cursor, view: TableName, context: StatementContext) -> RowCode:
    """Return the code of a view whose query information_schema does not show to the account; older
    servers show it to its definer only. SHOW CREATE VIEW may show it."""
    try:
        cursor.execute(f"show create view {quoted_table(view)}")
    except pymysql.MySQLError as error:
        if meaning_of(number_of(error)) is Meaning.LOST:
            raise
        return RowCode(reason=_NO_QUERY)
    return next(
        (read_view(row[1], context) for row in cursor.fetchall()), RowCode(reason=_NO_QUERY)
    )


def _rows(cursor: Cursor, question: str) -> Iterable[tuple[Any, ...]]:
    cursor.execute(question)
    return cursor.fetchall()


def _context(dialect: Dialect, database: str, modes: str) -> StatementContext:
    flavour = "mariadb" if dialect.mariadb else "mysql"
    facts = ServerDialect(version=dialect.version, flavour=flavour)
    bits = sum(SQL_MODES.get(word, 0) for word in str(modes or "").upper().split(","))
    return StatementContext(facts, database, bits)
