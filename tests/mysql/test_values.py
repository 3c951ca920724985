"""For each type: what the log gives is what SELECT gives, by paths that share no code.

The cases are files: tests/cases/values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pymysql
import pytest
from pymysql.cursors import Cursor

from pipeline.table import Column, TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import Logged, exact, head, logged, selected
from tests.mysql.value_cases import value_cases

CASES = value_cases()
SERVERS = {"mysql": "mysql", "mariadb": "mariadb", "mariadb11": "mariadb"}
"""Fixtures, and whose dialect of the log they speak."""


@dataclass(frozen=True, slots=True)
class Filled:
    """A server on which every case has its table, and what its log says of them."""

    stand: MySqlStand
    database: str
    logged: dict[TableName, Logged]
    errors: dict[int, pymysql.MySQLError]


@pytest.fixture(scope="module")
def filled(request: pytest.FixtureRequest) -> Iterator[Callable[[str], Filled]]:
    """By a server's name: its tables, made when they are first asked for."""
    made: dict[str, Filled] = {}

    def of(name: str) -> Filled:
        if name not in made:
            made[name] = _filled(request.getfixturevalue(name), SERVERS[name])
        return made[name]

    yield of
    for one in made.values():
        one.stand.execute(f"drop database {one.database}")


def _filled(stand: MySqlStand, flavour: str) -> Filled:
    """The tables of all cases: rows inserted twice, all updated, one of each two deleted."""
    start, database = head(stand), stand.fresh_name()
    stand.execute(f"create database {database} character set utf8mb4")
    with stand.connect(database, autocommit=False) as connection, connection.cursor() as cursor:
        cursor.execute("set sql_mode = '', time_zone = '+00:00'")
        errors = dict(_fill(connection, flavour))
    return Filled(stand, database, logged(stand, start, database, flavour), errors)


def _fill(
    connection: pymysql.Connection[Any], flavour: str
) -> Iterator[tuple[int, pymysql.MySQLError]]:
    with connection.cursor() as cursor:
        for number, case in enumerate(CASES):
            if flavour not in case.servers:
                continue
            table = f"t{number}"
            try:
                cursor.execute(case.create(table))
                for statement in case.inserts(table):
                    cursor.execute(statement)
                cursor.execute(f"update {table} set id = id + 1000")
                cursor.execute(f"delete from {table} where id % 2 = 1")
            except pymysql.MySQLError as error:
                yield number, error
            connection.commit()


@pytest.mark.parametrize(
    ("name", "number"),
    [
        pytest.param(name, number, id=f"{name}: {case.name}")
        for name, flavour in SERVERS.items()
        for number, case in enumerate(CASES)
        if flavour in case.servers
    ],
)
def test_the_log_says_what_select_says(
    filled: Callable[[str], Filled], name: str, number: int
) -> None:
    """Inserted, both images of an update, deleted, and the row as it stands are one value;
    the log's structure and information_schema's are one structure."""
    of = filled(name)
    if number in of.errors:
        raise of.errors[number]
    table = TableName(of.database, f"t{number}")
    structure, rows = selected(of.stand, table)
    both = [{**row, "id": row["id"] + twin} for row in rows for twin in (0, 1)]
    log = of.logged[table]
    assert exact(log.rows("update_postimage")) == exact(both)
    assert exact(log.rows("update_preimage")) == exact(both, moved=-1000)
    assert exact(log.rows("insert")) == exact(both, moved=-1000)
    assert exact(log.rows("delete")) == exact(rows, moved=1)
    assert len(rows) == len(CASES[number].rows)
    assert (log.structure, log.error) == (structure, None)


@pytest.mark.parametrize("name", SERVERS)
def test_nothing_is_null_by_mistake(filled: Callable[[str], Filled], name: str) -> None:
    """Only NULL and zero and partial dates are NULL, as the server counts them itself."""
    of = filled(name)
    with of.stand.connect(of.database) as connection, connection.cursor() as cursor:
        wrong = [
            CASES[int(table.name[1:])].name
            for table, log in of.logged.items()
            if not _nulls_agree(cursor, table, log)
        ]
    assert wrong == []


def _nulls_agree(cursor: Cursor, table: TableName, log: Logged) -> bool:
    assert log.structure is not None
    columns = log.structure.columns
    cursor.execute(f"select {', '.join(map(_count_of_nothing, columns))} from `{table.name}`")
    kept = [row for row in log.rows("update_postimage") if row["id"] % 2 == 0]
    found = [sum(row[column.name] is None for row in kept) for column in columns]
    return [tuple(found)] == list(cursor.fetchall())


def _count_of_nothing(column: Column) -> str:
    name = "`" + column.name.replace("`", "``") + "`"
    if column.type not in ("date", "datetime", "timestamp"):
        return f"sum({name} is null)"
    parts = f"year({name}) = 0 or month({name}) = 0 or day({name}) = 0"
    return f"sum({name} is null or {parts})"
