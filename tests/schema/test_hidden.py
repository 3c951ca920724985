"""Nothing that changes rows or a structure hides in a statement: of every kind that servers log, it
is followed, or the tables that it may have changed are quarantined."""

from __future__ import annotations

import itertools
import zlib
from pathlib import Path
from typing import Final

import pymysql
import pytest
from pymysql.cursors import Cursor

from lockstep.pipeline.values.errors import UnsupportedStatement
from lockstep.pipeline.values.policies import DroppedColumns, LakePolicies
from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.schema.cases import Case, in_databases, read_cases
from tests.schema.reader import Reader

STATEMENTS: Final = Path(__file__).parent / "hidden"
ASIDE: Final = "statements: aside: "
"""The name of a case whose tables are quarantined begins with this."""

_TABLE: Final = "(id int primary key, a int, b int, c varchar(20))"
_POLICIES: Final = LakePolicies(dropped_columns=DroppedColumns.DROP)


@pytest.mark.servers("newest", "8.0", "5.7")
@pytest.mark.parametrize("share", [1 / 3, pytest.param(1, marks=pytest.mark.soak)])
def test_mysql(mysql: MySqlStand, share: float) -> None:
    """The lake has what MySQL has, except for tables that are quarantined. The log has no names of
    columns. Of the older servers a third of the cases, as chance has it."""
    share = 1 if mysql.version >= (9, 0) else share
    with mysql.metadata("MINIMAL"):
        # The third of the cases with the fewest accepted statements has 14 of them.
        assert _accepted(mysql, "mysql", share) > (100 if share == 1 else 12)


@pytest.mark.parametrize(
    ("fixture", "metadata"),
    [("mariadb", "NO_LOG"), pytest.param("mariadb11", "FULL", marks=pytest.mark.soak)],
)
def test_mariadb(request: pytest.FixtureRequest, fixture: str, metadata: str) -> None:
    """The lake has what MariaDB has: 10.11, and 11.4, whose log has the names of columns."""
    stand: MySqlStand = request.getfixturevalue(fixture)
    with stand.metadata(metadata):
        assert _accepted(stand, "mariadb") > 140


def _accepted(stand: MySqlStand, flavour: str, share: float = 1) -> int:
    """Run all cases, or a share of them that is drawn anew in each run, each in a database with the
    tables `t` and `u`; compare when all is over. Return how many statements the server accepted."""
    first = stand.fresh_name()
    names = (f"{first}_{number}x" for number in itertools.count(1))
    read = read_cases(STATEMENTS, flavour)
    cases = in_databases(by_chance().sample(read, round(share * len(read))), names)
    for case in cases:
        tables = (f"create table {case.database}.{table} {_TABLE}" for table in "tu")
        stand.execute(f"create database {case.database}", *tables)
    reader = Reader(server(stand), [f"{first}_*.*"], lake_policies=_POLICIES)
    reader.run()
    for case in cases:
        _write(stand, case, 0)
    reader.run()
    accepted = 0
    for case in cases:
        accepted += _run(stand, case)
        _write(stand, case, 100)
    reader.run()
    assert reader.run().batch_id is None
    aside = {table.database for table in reader.quarantined()}
    wrong = [told for told in reader.wrong() if told.partition(".")[0] not in aside]
    for case in cases:
        stand.execute(f"drop database {case.database}")
    assert wrong == []
    expected = [case.name for case in cases if case.name.startswith(ASIDE)]
    assert expected == [case.name for case in cases if case.database in aside]
    return accepted


def _run(stand: MySqlStand, case: Case) -> int:
    accepted = 0
    with stand.connect(case.database) as connection, connection.cursor() as cursor:
        for statement in case.statements:
            try:
                cursor.execute(statement)
                cursor.fetchall()
            except pymysql.MySQLError as error:
                print(f"{case.name}: {statement}: {error}")
            else:
                accepted += 1
    return accepted


def _write(stand: MySqlStand, case: Case, number: int) -> None:
    """Two rows into every table of a case."""
    with stand.connect(case.database) as connection, connection.cursor() as cursor:
        cursor.execute("show full tables where table_type = 'BASE TABLE'")
        for table, _ in cursor.fetchall():
            _insert(cursor, table, number + 1)
            _insert(cursor, table, number + 2)


def _insert(cursor: Cursor, table: str, number: int) -> None:
    """A row whose columns have values that tell them apart."""
    cursor.execute(f"show columns from `{table}`")
    values: dict[str, int | str] = {}
    for name, kind, *_ in cursor.fetchall():
        if "int" in kind:
            values[name] = number if name == "id" else number + zlib.crc32(name.encode()) % 1000
        elif "char" in kind:
            values[name] = f"{name}{number}"
    columns = ", ".join(f"`{name}`" for name in values)
    places = ", ".join("%s" for _ in values)
    cursor.execute(f"insert into `{table}` ({columns}) values ({places})", tuple(values.values()))


@pytest.mark.servers("8.0")
def test_a_comment_that_may_end_at_two_places(mysql: MySqlStand) -> None:
    """Older MySQL logs an executable comment that it skipped as a plain one, with the comments
    inside: the source stops at such a statement."""
    with mysql.own_database() as name:
        mysql.execute(f"create table {name}.t {_TABLE}")
        reader = Reader(server(mysql), [f"{name}.*"])
        reader.run()
        mysql.execute(f"/*!99999 /* a */ flush tables -- */ truncate {name}.t")
        with pytest.raises(UnsupportedStatement, match="may end at two places"):
            reader.run()
