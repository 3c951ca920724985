"""The check that an account may see and read whole tables, and the GRANT that is missing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.values.errors import LockstepError, TableError
from lockstep.pipeline.values.server_errors import Meaning, meaning_of
from lockstep.pipeline.values.survey import grant_statement, place, read_grants, shown_whole
from lockstep.pipeline.values.table import TableName
from lockstep.resources.mysql.connection import ConnectionSettings, connect, number_of
from lockstep.resources.mysql.select import quoted_table


def hidden_in_part(cursor: Cursor, tables: Sequence[TableName]) -> Iterator[TableName]:
    """Yield those of the tables of which the account sees only the columns that it was granted. It
    sees all of the tables.

    An account that has any privilege on a table as a whole sees all its columns and its definition;
    one that has privileges on columns alone is refused the definition (MySQL manual, "SHOW CREATE
    TABLE Statement", and measured on MySQL 5.7 to 9.7, MariaDB 10.11 and 11.4). The server is only
    asked about tables that the grants leave in doubt.
    """
    lines: list[str] = []
    with suppress(pymysql.MySQLError):  # under skip_grant_tables there are none to show
        cursor.execute("show grants")
        lines = [str(line) for row in cursor.fetchall() for line in row]
    whole = shown_whole(read_grants(tuple(lines)), tables)
    for table in tables:
        if table not in whole and _is_refused(cursor, table):
            yield table


def _is_refused(cursor: Cursor, table: TableName) -> bool:
    try:
        cursor.execute(f"show create table {quoted_table(table)}")
    except pymysql.MySQLError as error:
        meaning = meaning_of(number_of(error))
        if meaning is Meaning.LOST:
            raise
        return meaning is Meaning.PRIVILEGE
    cursor.fetchall()
    return False


def may_not_be_read(settings: ConnectionSettings, table: TableName, lacks: str) -> TableError:
    """Return the error for a table on which the account lacks a privilege; its hint is the GRANT to
    type."""
    return TableError(lacks, hint=grant_statement("SELECT", place(table), _account(settings)))


def _account(settings: ConnectionSettings) -> str:
    """Return CURRENT_USER(), whose host may be a pattern; the configured name if the server does
    not answer."""
    with suppress(LockstepError), connect(settings) as connection, connection.cursor() as cursor:
        cursor.execute("select current_user()")
        for (account,) in cursor.fetchall():
            return str(account)
    return f"{settings.user}@%"
