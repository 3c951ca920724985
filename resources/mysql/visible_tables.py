"""Conditions for queries on information_schema about all or some tables, and the check
that the account may see and read whole tables.

The conditions have the names as literals, because MySQL before 8.0 and MariaDB open
every table that no literal name excludes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.values.errors import TableError
from lockstep.pipeline.values.server_errors import Meaning, meaning_of
from lockstep.pipeline.values.survey import Grant, grant_statement, read_grants, readable_tables
from lockstep.pipeline.values.table import SYSTEM_DATABASES, TableName, quoted_table
from lockstep.resources.mysql.connection import ConnectionSettings, account_of, number_of

TABLES_PER_QUERY: Final = 200
"""Largest number of tables that one query names."""


@dataclass(frozen=True, slots=True)
class Scope:
    """Some tables of one database; if `database` is None, all tables outside of the
    system databases."""

    database: str | None = None
    tables: tuple[str, ...] = ()

    def condition(self, schema: str, name: str) -> tuple[str, tuple[str, ...]]:
        """Return the SQL condition over these two columns, and its parameters."""
        if self.database is None:
            return f"{schema} not in ({_placeholders(SYSTEM_DATABASES)})", tuple(
                sorted(SYSTEM_DATABASES)
            )
        condition = f"{schema} = %s and {name} in ({_placeholders(self.tables)})"
        return condition, (self.database, *self.tables)


def _placeholders(values: Collection[str]) -> str:
    return ", ".join(["%s"] * len(values))


def scopes_of(names: Collection[TableName] | None) -> tuple[Scope, ...]:
    """Return scopes that together contain exactly these tables, or all tables for None.

    MariaDB treats literals as equal that differ only in case or accents, even if two
    tables have these names. Such names get a scope each.
    """
    if names is None:
        return (Scope(),)
    spelling_count = Counter(map(_folded, set(names)))
    scopes = []
    for database, names_of_database in groupby(sorted(set(names)), lambda name: name.database):
        ambiguous: list[str] = []
        distinct: list[str] = []
        for name in names_of_database:
            is_distinct = name.name.isascii() and spelling_count[_folded(name)] == 1
            (distinct if is_distinct else ambiguous).append(name.name)
        scopes += [
            Scope(database, tuple(distinct[first : first + TABLES_PER_QUERY]))
            for first in range(0, len(distinct), TABLES_PER_QUERY)
        ]
        scopes += [Scope(database, (name,)) for name in ambiguous]
    return tuple(scopes)


def _folded(name: TableName) -> tuple[str, str]:
    return name.database, name.name.lower()


def select_by_table(
    cursor: Cursor, query: str, scopes: Sequence[Scope], schema: str = "table_schema"
) -> Iterator[tuple[TableName, tuple[Any, ...]]]:
    """Yield each row's table, from its first two columns, and the rest of the row.
    `query` has `{where}` for the condition over the columns `schema` and table_name."""
    for scope in scopes:
        where, values = scope.condition(schema, "table_name")
        cursor.execute(query.format(where=where), values)
        for database, table, *rest in cursor.fetchall():
            yield TableName(database, table), tuple(rest)


def account_grants(cursor: Cursor) -> tuple[Grant, ...]:
    """Return the account's grants; none under skip_grant_tables, which refuses to show
    them."""
    lines: list[str] = []
    with suppress(pymysql.MySQLError):
        cursor.execute("show grants")
        lines = [str(line) for row in cursor.fetchall() for line in row]
    return read_grants(tuple(lines))


def partly_visible_tables(cursor: Cursor, tables: Sequence[TableName]) -> Iterator[TableName]:
    """Yield the tables of which the account sees only some columns, because its
    privileges are on these columns alone. `tables`: tables that the account sees at
    least in part.

    An account that has any privilege on a table as a whole sees all its columns and its
    definition; one that has privileges on columns alone is refused the definition
    (MySQL manual, "SHOW CREATE TABLE Statement", and measured on MySQL 5.7 to 9.7,
    MariaDB 10.11 and 11.4). The server is only asked about tables that the grants leave
    in doubt.
    """
    visible_whole = readable_tables(account_grants(cursor), tables)
    for table in tables:
        definition = f"show create table {quoted_table(table)}"
        if table not in visible_whole and is_privilege_missing(cursor, definition):
            yield table


def is_privilege_missing(cursor: Cursor, statement: str) -> bool:
    """Return whether the account lacks the privilege for a statement that reads. MySQL
    refuses it before it says whether the table exists."""
    try:
        cursor.execute(statement)
    except pymysql.MySQLError as error:
        meaning = meaning_of(number_of(error))
        if meaning is Meaning.LOST:
            raise
        return meaning is Meaning.PRIVILEGE
    cursor.fetchall()
    return False


def unreadable_table_error(
    settings: ConnectionSettings, table: TableName, sentence: str
) -> TableError:
    """Return the error for a table on which the account lacks a privilege; its hint is
    the GRANT to type."""
    return TableError(
        sentence, hint=grant_statement("SELECT", quoted_table(table), account_of(settings))
    )
