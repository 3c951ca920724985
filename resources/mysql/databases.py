"""Reads databases from information_schema, with their triggers and views.

A trigger is shown only to accounts with TRIGGER on its table, and the query of a view
only to accounts with SHOW VIEW and SELECT on it. For other accounts triggers are
missing without any error (MySQL manual, "The INFORMATION_SCHEMA TRIGGERS Table";
measured on MySQL 5.7 to 9.7 and MariaDB).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.code import read_code, read_view
from lockstep.pipeline.schema.context import SQL_MODES, ServerDialect, StatementContext
from lockstep.pipeline.schema.model import DatabaseCode, DatabaseSchema, TableAccess, Trigger, View
from lockstep.pipeline.values.server_errors import Meaning, meaning_of
from lockstep.pipeline.values.survey import has_privilege
from lockstep.pipeline.values.table import SYSTEM_DATABASES, TableName, quoted_table
from lockstep.resources.mysql.connection import Dialect, number_of, read_dialect
from lockstep.resources.mysql.schemas import with_utf8mb3
from lockstep.resources.mysql.visible_tables import account_grants

_MYSQL_DATABASE: Final = "mysql"
"""The system database in which managed services keep tables of their own."""

_DATABASES: Final = """
select schema_name, default_character_set_name, default_collation_name
  from information_schema.schemata order by schema_name
"""
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
 where table_schema = '{_MYSQL_DATABASE}' and table_type = 'BASE TABLE' order by table_name
"""
_NO_QUERY: Final = "the account may not see the view's query"


def read_databases(cursor: Cursor) -> tuple[DatabaseSchema, ...]:
    """Read every database that the account sees, with its triggers and views. Of the
    system databases only `mysql` is included, because managed services keep tables in
    it."""
    cursor.execute(_DATABASES)
    rows = [
        (name, with_utf8mb3(charset) or "", with_utf8mb3(collation) or "")
        for name, charset, collation in cursor.fetchall()
        if name.lower() not in SYSTEM_DATABASES or name == _MYSQL_DATABASE
    ]
    user_databases = [name for name, *_ in rows if name != _MYSQL_DATABASE]
    codes = _code_by_database(cursor, user_databases, read_dialect(cursor))
    return tuple(DatabaseSchema(*row, codes[row[0]]) for row in rows if row[0] in codes)


def _code_by_database(
    cursor: Cursor, databases: Collection[str], dialect: Dialect
) -> Mapping[str, DatabaseCode]:
    """Return the triggers and views of each of these databases, and those of the system
    database `mysql` if the account sees a table of it."""
    visible_databases = {*databases, _MYSQL_DATABASE}
    triggers, views = defaultdict[str, list[Trigger]](list), defaultdict[str, list[View]](list)
    for database, name, event_list, table_database, table, body, modes in _fetch_rows(
        cursor, _TRIGGERS
    ):
        if database not in visible_databases:
            continue
        code = read_code(body, _statement_context(dialect, database, modes), is_view_query=False)
        events: Any = tuple(word.strip() for word in str(event_list).upper().split(","))
        triggers[database].append(Trigger(name, TableName(table_database, table), events, code))
    for database, name, query in _fetch_rows(cursor, _VIEWS):
        if database not in visible_databases:  # `sys` alone has a hundred views
            continue
        context = _statement_context(dialect, database, "")
        if query:
            code = read_code(query, context, is_view_query=True)
        else:
            code = _code_by_show_create(cursor, TableName(database, name), context)
        views[database].append(View(name, code))
    grants = account_grants(cursor)
    codes = {
        name: DatabaseCode(
            tuple(triggers[name])
            if has_privilege(grants, "TRIGGER", TableName(name, ""))
            else None,
            tuple(views[name]),
        )
        for name in databases
    }
    if mysql_tables := tuple(str(name) for (name,) in _fetch_rows(cursor, _SYSTEM_TABLES)):
        # No server allows triggers on tables of this database.
        codes[_MYSQL_DATABASE] = DatabaseCode((), tuple(views[_MYSQL_DATABASE]), mysql_tables)
    return codes


def _code_by_show_create(cursor: Cursor, view: TableName, context: StatementContext) -> TableAccess:
    """Return the code of a view by SHOW CREATE VIEW, for a view whose query
    information_schema does not show. Older servers show it only to the view's
    definer."""
    try:
        cursor.execute(f"show create view {quoted_table(view)}")
    except pymysql.MySQLError as error:
        if meaning_of(number_of(error)) is Meaning.LOST:
            raise
        return TableAccess(reason=_NO_QUERY)
    return next(
        (read_view(row[1], context) for row in cursor.fetchall()), TableAccess(reason=_NO_QUERY)
    )


def _fetch_rows(cursor: Cursor, query: str) -> Iterable[tuple[Any, ...]]:
    cursor.execute(query)
    return cursor.fetchall()


def _statement_context(dialect: Dialect, database: str, modes: str) -> StatementContext:
    server_dialect = ServerDialect(version=dialect.version, flavour=dialect.flavour)
    bits = sum(SQL_MODES.get(word, 0) for word in str(modes or "").upper().split(","))
    return StatementContext(server_dialect, database, bits)
