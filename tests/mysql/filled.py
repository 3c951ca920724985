"""The cases of values as tables of a real server, and where its log tells of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pymysql.constants import CLIENT

from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName, TableStructure
from lockstep.resources.mysql.reader import reading_cursor
from lockstep.resources.mysql.select import select_rows
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import Rows, exact, head
from tests.mysql.reading import settings
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
def filled(stand: MySqlStand, flavour: str, cases: Sequence[ValueCase]) -> Iterator[Filled]:
    """Rows inserted twice, all updated, one of each two deleted; dropped at the end."""
    start, database, version = head(stand), stand.fresh_name(), stand.version
    tables = {
        TableName(database, f"t{number}"): case
        for number, case in enumerate(cases)
        if case.fits(flavour, version)
    }
    stand.execute(f"create database {database} character set utf8mb4")
    with _session(stand, database) as session:
        for table, case in tables.items():
            session(case.create(table.name), *_written(table.name, case))
    yield Filled(stand, flavour, database, start, tables)
    stand.execute(f"drop database {database}")


def filled_again(tables: Filled, cases: Sequence[ValueCase]) -> Filled:
    """The tables of these cases, emptied and filled once more."""
    names = {case.name for case in cases}
    chosen = {table: case for table, case in tables.cases.items() if case.name in names}
    with _session(tables.stand, tables.database) as session:
        session(*(f"delete from {table.name}" for table in chosen), "commit")
        start = head(tables.stand)
        for table, case in chosen.items():
            session(*_written(table.name, case))
    return Filled(tables.stand, tables.flavour, tables.database, start, chosen)


@contextmanager
def rows_read(stand: MySqlStand) -> Iterator[Callable[[TableStructure], list[pa.RecordBatch]]]:
    """Reads tables whole: as `MySqlServer.rows`, one after the other in one session."""
    with reading_cursor(settings(stand)) as cursor:
        yield lambda structure: list(select_rows(cursor, structure))


def images_by_select(batches: Sequence[pa.RecordBatch]) -> dict[str, Rows]:
    """What the log must have of a table of `filled`, made from its rows as they stand: each was
    inserted with a twin, got 1000 added to its `id`, and lost the twin."""
    rows = [row for batch in batches for row in batch.to_pylist()]
    rows.sort(key=lambda row: row["id"])
    both = [{**row, "id": row["id"] + twin} for row in rows for twin in (0, 1)]
    return {
        "insert": exact(both, moved=-1000),
        "update_preimage": exact(both, moved=-1000),
        "update_postimage": exact(both),
        "delete": exact(rows, moved=1),
    }


def one_of_each() -> list[ValueCase]:
    """Of those whose columns have one type, however long, the first case; and all others."""
    found: dict[tuple[str, tuple[str, ...]], ValueCase] = {}
    for case in value_cases():
        first, kind, *_ = case.columns.split()
        alike = kind.partition("(")[0] if first == "v0" else case.name
        found.setdefault((alike, case.servers), case)
    return list(found.values())


@contextmanager
def _session(stand: MySqlStand, database: str) -> Iterator[Callable[..., None]]:
    """Sends statements together; whoever writes commits."""
    several = {"client_flag": CLIENT.MULTI_STATEMENTS}
    with (
        stand.connect(database, autocommit=False, **several) as connection,
        connection.cursor() as cursor,
    ):

        def send(*statements: str) -> None:
            cursor.execute(";\n".join(statements))
            while cursor.nextset():
                pass

        send("set sql_mode = '', time_zone = '+00:00'")
        yield send


def _written(table: str, case: ValueCase) -> list[str]:
    moved = f"update {table} set id = id + 1000"
    return [*case.inserts(table), moved, f"delete from {table} where id % 2 = 1", "commit"]
