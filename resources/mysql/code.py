"""Triggers and views as the server has them, and the base tables of its system database.

information_schema shows a trigger to accounts with TRIGGER on its table, and the query of a view to
those with SHOW VIEW and SELECT on it; whoever has less sees no trigger, and no word says so (MySQL
manual, "The INFORMATION_SCHEMA TRIGGERS Table"; tried on MySQL 5.7 to 9.7 and MariaDB).
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
_NO_QUERY: Final = "the account may not see its query"


def read_all_code(
    cursor: Cursor, databases: Iterable[str], dialect: Dialect
) -> Mapping[str, DatabaseCode]:
    """What each of the databases has, and the system's own where the account sees a table of it."""
    databases = list(databases)
    wanted = {*databases, SYSTEM}
    triggers, views = defaultdict[str, list[Trigger]](list), defaultdict[str, list[View]](list)
    for database, name, events, of, table, body, modes in _asked(cursor, _TRIGGERS):
        if database not in wanted:
            continue
        code = read_code(body, _context(dialect, database, modes), selects=False)
        told = tuple(word.strip() for word in str(events).upper().split(","))
        triggers[database].append(Trigger(name, TableName(of, table), told, code))
    for database, name, query in _asked(cursor, _VIEWS):
        if database not in wanted:  # `sys` has a hundred
            continue
        context = _context(dialect, database, "")
        if query:
            code = read_code(query, context, selects=True)
        else:
            code = _shown(cursor, TableName(database, name), context)
        views[database].append(View(name, code))
    cursor.execute("show grants")
    grants = read_grants(tuple(str(line) for row in cursor.fetchall() for line in row))
    found = {
        name: DatabaseCode(
            tuple(triggers[name]) if covers(grants, "TRIGGER", TableName(name, "")) else None,
            tuple(views[name]),
        )
        for name in databases
    }
    if system := tuple(str(name) for (name,) in _asked(cursor, _SYSTEM_TABLES)):
        # No server lets anybody make a trigger on a table of this database.
        found[SYSTEM] = DatabaseCode((), tuple(views[SYSTEM]), system)
    return found


def _shown(cursor: Cursor, view: TableName, context: StatementContext) -> RowCode:
    """A view whose query information_schema keeps from the account, as older servers do from all
    but its definer; SHOW CREATE VIEW may show it."""
    try:
        cursor.execute(f"show create view {quoted_table(view)}")
    except pymysql.MySQLError as error:
        if meaning_of(number_of(error)) is Meaning.LOST:
            raise
        return RowCode(reason=_NO_QUERY)
    return next(
        (read_view(row[1], context) for row in cursor.fetchall()), RowCode(reason=_NO_QUERY)
    )


def _asked(cursor: Cursor, question: str) -> Iterable[tuple[Any, ...]]:
    cursor.execute(question)
    return cursor.fetchall()


def _context(dialect: Dialect, database: str, modes: str) -> StatementContext:
    flavour = "mariadb" if dialect.mariadb else "mysql"
    facts = ServerDialect(version=dialect.version, flavour=flavour)
    bits = sum(SQL_MODES.get(word, 0) for word in str(modes or "").upper().split(","))
    return StatementContext(facts, database, bits)
