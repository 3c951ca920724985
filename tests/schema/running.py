"""Runs statements on a real server and keeps what it has after each.

Belongs here: sessions, what is read behind a statement, rows written in between. What the
log says of it is `logged_items`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pymysql
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.model import ServerSchema, TableSchema
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.schema.cases import Case
from tests.schema.information_schema import SYSTEM, read_server
from tests.schema.made_rows import SESSION, delete_rows, insert_rows


@dataclass(frozen=True, slots=True)
class Ran:
    """A statement, and the tables after it. The log was at `begin` before it, at `end`
    behind it, and at `behind_rows` after rows were written."""

    case: str
    sent: str
    begin: Coordinates
    end: Coordinates
    behind_rows: Coordinates
    server: ServerSchema


def run(
    stand: MySqlStand,
    cases: Iterable[Case],
    *,
    mariadb: bool,
    refused: list[str],
    metadata: Sequence[str] = (),
) -> list[Ran]:
    """Every statement of every case, one session per case. Behind each, a row comes into each
    table that it changed, and goes: under these two settings of `binlog_row_metadata` in turn, if
    they are given, of which the server has the first."""
    found: list[Ran] = []
    settings = deque(metadata)
    with stand.connect() as watcher, watcher.cursor() as cursor:
        for statement in SESSION:
            cursor.execute(statement)
        for case in cases:
            if case.alone:
                _drop_all(cursor)
            found += _run_case(stand, case, cursor, mariadb, refused, settings)
            for name in _databases(found[-1].server):
                cursor.execute(f"drop database `{name}`")
    return found


def _run_case(
    stand: MySqlStand,
    case: Case,
    cursor: Cursor,
    mariadb: bool,
    refused: list[str],
    settings: deque[str],
) -> list[Ran]:
    found: list[Ran] = []
    begin = _head(cursor)
    after, written = ServerSchema(), dict[TableName, TableSchema]()
    steps = case.steps()
    statement = next(steps, None)
    with stand.connect() as connection, connection.cursor() as session:
        while statement is not None:
            try:
                session.execute(statement)
                session.fetchall()
            except pymysql.MySQLError as error:
                refused.append(f"{case.name}: {statement}: {error}")
            end = _head(cursor)
            behind = end
            if end != begin:
                after = read_server(cursor, mariadb=mariadb, like=case.like)
                changed = [t for n, t in after.tables.items() if written.get(n) != t]
                if changed:
                    _write_rows(cursor, changed, settings)
                    behind = _head(cursor)
                written = dict(after.tables)
            found.append(Ran(case.name, statement, begin, end, behind, after))
            begin = behind
            try:
                statement = steps.send(after)
            except StopIteration:
                statement = None
    return found


def _write_rows(cursor: Cursor, tables: Sequence[TableSchema], settings: deque[str]) -> None:
    insert_rows(cursor, tables)
    if settings:
        settings.rotate()
        cursor.execute(f"set global binlog_row_metadata = {settings[0]}")
    delete_rows(cursor, tables)


def _drop_all(cursor: Cursor) -> None:
    cursor.execute("show databases")
    for (name,) in cursor.fetchall():
        if name not in SYSTEM:
            cursor.execute(f"drop database `{name}`")


def _databases(schema: ServerSchema) -> list[str]:
    return [database.name for database in schema.databases.values()]


def _head(cursor: Cursor) -> Coordinates:
    cursor.execute("show binary logs")
    *_, row = cursor.fetchall()
    return Coordinates(LogFile.parse(row[0]), int(row[1]))
