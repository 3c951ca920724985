"""The cases of values as tables of a real server, and where its log tells of them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pymysql
from pymysql.constants import CLIENT

from pipeline.position import Coordinates
from pipeline.table import TableName, TableStructure
from resources.mysql.server import MySqlServer
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import Rows, exact, head
from tests.mysql.value_cases import ValueCase, value_cases


@dataclass(frozen=True, slots=True)
class Filled:
    """`cases`: every table of `database` and what it is made of; the log from `start` has
    their rows."""

    stand: MySqlStand
    flavour: str
    database: str
    start: Coordinates
    cases: dict[TableName, ValueCase]


@contextmanager
def filled(stand: MySqlStand, flavour: str, cases: Sequence[ValueCase] = ()) -> Iterator[Filled]:
    """Rows inserted twice, all updated, one of each two deleted; dropped at the end.

    `cases`: all of them, unless told.
    """
    start, database = head(stand), stand.fresh_name()
    tables = {
        TableName(database, f"t{number}"): case
        for number, case in enumerate(cases or value_cases())
        if flavour in case.servers
    }
    stand.execute(f"create database {database} character set utf8mb4")
    several = {"client_flag": CLIENT.MULTI_STATEMENTS}
    with stand.connect(database, autocommit=False, **several) as connection:
        with connection.cursor() as cursor:
            cursor.execute("set sql_mode = '', time_zone = '+00:00'")
        for table, case in tables.items():
            _fill(connection, table.name, case)
    yield Filled(stand, flavour, database, start, tables)
    stand.execute(f"drop database {database}")


def images_by_select(source: MySqlServer, structure: TableStructure) -> dict[str, Rows]:
    """What the log must have of a table of `filled`, made from its rows as they stand: each was
    inserted with a twin, got 1000 added to its `id`, and lost the twin."""
    with source.rows(structure) as batches:
        rows = [row for batch in batches for row in batch.to_pylist()]
    rows.sort(key=lambda row: row["id"])
    both = [{**row, "id": row["id"] + twin} for row in rows for twin in (0, 1)]
    return {
        "insert": exact(both, moved=-1000),
        "update_preimage": exact(both, moved=-1000),
        "update_postimage": exact(both),
        "delete": exact(rows, moved=1),
    }


def outermost() -> list[ValueCase]:
    """Of cases that differ in a number alone, as widths do, the first and the last."""
    alike: dict[tuple[str, tuple[str, ...]], list[ValueCase]] = {}
    for case in value_cases():
        alike.setdefault((re.sub(r"\d+", "", case.name), case.servers), []).append(case)
    ends = [(cases[0], cases[-1]) for cases in alike.values()]
    return [case for pair in ends for case in dict.fromkeys(pair)]


def _fill(connection: pymysql.Connection[Any], table: str, case: ValueCase) -> None:
    with connection.cursor() as cursor:
        moved = f"update {table} set id = id + 1000"
        halved = f"delete from {table} where id % 2 = 1"
        statements = (case.create(table), *case.inserts(table), moved, halved, "commit")
        cursor.execute(";\n".join(statements))
        while cursor.nextset():
            pass
