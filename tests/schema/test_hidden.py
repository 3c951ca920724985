"""Nothing that changes rows or a structure hides in a statement: of every kind that servers log, it
is followed, or the tables that it may have changed are quarantined."""

from __future__ import annotations

import itertools
import zlib
from dataclasses import replace
from pathlib import Path
from typing import Final

import pymysql
import pytest
from pymysql.cursors import Cursor

from lockstep.pipeline.schema.statements.changes import (
    CreateTable,
    DropTables,
    Irrelevant,
    NotUnderstood,
    TruncateTable,
)
from lockstep.pipeline.schema.statements.read import PASSED, Passed, read_change
from lockstep.pipeline.values.errors import UnsupportedStatement
from lockstep.pipeline.values.policies import DroppedColumns, LakePolicies
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.schema.cases import Case, in_databases, read_cases
from tests.schema.reader import Reader
from tests.schema.schemas_made import MARIADB, MYSQL, named

STATEMENTS: Final = Path(__file__).parent / "hidden"
ASIDE: Final = "statements: aside: "
"""The name of a case whose tables are quarantined begins with this."""

_TABLE: Final = "(id int primary key, a int, b int, c varchar(20))"
_POLICIES: Final = LakePolicies(dropped_columns=DroppedColumns.DROP)


@pytest.mark.servers("newest", "8.0", "5.7")
def test_mysql(mysql: MySqlStand) -> None:
    """The lake has what MySQL has, except for tables that are quarantined. The log has no names of
    columns."""
    with mysql.metadata("MINIMAL"):
        assert _accepted(mysql, "mysql") > 100


def test_mariadb(mariadb: MySqlStand) -> None:
    """The lake has what MariaDB 10.11 has."""
    with mariadb.metadata("NO_LOG"):
        assert _accepted(mariadb, "mariadb") > 140


@pytest.mark.soak
def test_mariadb11(mariadb11: MySqlStand) -> None:
    """The lake has what MariaDB 11.4 has, whose log has the names of columns."""
    with mariadb11.metadata("FULL"):
        assert _accepted(mariadb11, "mariadb") > 140


def _accepted(stand: MySqlStand, flavour: str) -> int:
    """Run all cases, each in a database with the tables `t` and `u`; compare when all is over.
    Return how many statements the server accepted."""
    first = stand.fresh_name()
    names = (f"{first}_{number}x" for number in itertools.count(1))
    cases = in_databases(read_cases(STATEMENTS, flavour), names)
    for case in cases:
        tables = (f"create table {case.database}.{table} {_TABLE}" for table in "tu")
        stand.execute(f"create database {case.database}", *tables)
    reader = Reader(server(stand), [f"{first}_*.*"], policies_of_lake=_POLICIES)
    reader.run()
    for case in cases:
        _write(stand, case, 0)
    reader.run()
    accepted = 0
    for case in cases:
        accepted += _run(stand, case)
        _write(stand, case, 100)
    reader.run()
    assert reader.run().batch is None
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


# -- what is passed over ------------------------------------------------------------


@pytest.mark.parametrize("row", PASSED, ids=lambda row: row.words)
def test_a_statement_is_passed_over_by_all_its_words(row: Passed) -> None:
    """Its first word alone is not enough. Only a statement that holds code may have another after
    it."""
    for words in row.beginnings:
        text = " ".join(words)
        assert read_change(f"/* x */ {text.lower()} /*!50000 y */", MYSQL) == Irrelevant(text)
        behind = read_change(f"{text} x; truncate t", MARIADB)
        assert isinstance(behind, Irrelevant if row.code else NotUnderstood)
        if len(words) > 1:
            assert isinstance(read_change(f"{words[0]} update t set a = 1", MYSQL), NotUnderstood)


@pytest.mark.parametrize(
    "text",
    [
        "analyze update t set a = 1",
        "analyze format=json delete from t",
        "begin not atomic truncate t; end",
        "clone instance from a@b:3306 identified by 'c'",
        "commit and truncate t",
        "create or replace frobnicator view v as select 1",
        "drop prepare p",
        "execute immediate 'truncate t'",
        "import table from 't.sdi'",
        "load data infile 'x' into table t",
        "optimize t",
        "rollback",
        "savepoint a",
        "select f()",
        "set statement max_statement_time=1 for truncate t",
        "x: begin truncate t; end",
        "xa commit 'x'",
    ],
)
def test_what_is_on_no_list(text: str) -> None:
    """It may change any table."""
    found = read_change(text, MYSQL)
    assert isinstance(found, NotUnderstood)
    assert found.may_touch is None


# -- SET STATEMENT ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "table"),
    [
        ("max_statement_time=1 for truncate t", "t"),
        ("a=1 for truncate t", None),
        ("max_statement_time=if(1, (2), 3), `lock_wait_timeout` := 4 for truncate t", "t"),
        ("lock_wait_timeout=1 for set statement max_statement_time=1 for truncate t", "t"),
        ("lock_wait_timeout=1 for set statement a=1 for truncate t", None),
        ("sql_mode='' for truncate t", "t"),
        ("sql_mode=concat(@@sql_mode, ',ANSI') for truncate `t`", "t"),
    ],
)
def test_set_statement(text: str, table: str | None) -> None:
    """It is the statement inside, unless a variable may change what that does."""
    found = read_change(f"set statement {text}", MARIADB)
    if table is None:
        assert found == NotUnderstood("SET STATEMENT changes a for it", (named("t"),))
    else:
        assert found == (TruncateTable(named(table)),)


@pytest.mark.parametrize(
    ("text", "may_touch"),
    [
        ("alter table t add a real", (named("t"),)),
        ('alter table t add a varchar(9) default "a"', (named("t"),)),
        ("create table t (d date)", (named("t"),)),
        ('truncate "t"', None),
        ("alter table t comment 'a\\', rename to x, comment 'b'", None),
    ],
)
def test_set_statement_sql_mode(text: str, may_touch: tuple[TableName, ...] | None) -> None:
    """MariaDB parses the text by the session's own sql_mode, which the log does not tell: what
    may mean something else is not followed."""
    found = read_change(f"set statement sql_mode='ANSI_QUOTES' for {text}", MARIADB)
    assert isinstance(found, NotUnderstood)
    assert may_touch == found.may_touch


def test_set_statement_engine() -> None:
    """A table whose definition names no engine has the one that is set."""
    engines = []
    for text in ("(id int)", "(id int) engine=aria"):
        statement = f"set statement default_storage_engine=myisam for create table t {text}"
        found = read_change(statement, MARIADB)
        assert isinstance(found, tuple)
        assert isinstance(found[0], CreateTable)
        engines.append(found[0].options.engine)
    assert engines == ["MyISAM", "Aria"]


def test_set_statement_is_mariadbs() -> None:
    """MySQL has no such statement."""
    assert isinstance(read_change("set statement x = 1 for truncate t", MYSQL), NotUnderstood)


# -- names of temporary tables --------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "truncate t",
        "alter table t add a int",
        "create index i on t (a)",
        "rename table t to u",
        "repair table t",
        "create table t like u",
    ],
)
def test_a_temporary_table_may_be_meant(text: str) -> None:
    """An event with the flag for them is not followed, whatever table it names."""
    assert isinstance(read_change(text, MYSQL), tuple)
    found = read_change(text, replace(MYSQL, thread_specific=True))
    assert isinstance(found, NotUnderstood)
    assert named("t") in (found.may_touch or ())


def test_a_server_says_what_it_drops() -> None:
    """DROP TABLE and a definition that is written out mean no temporary table; nor does the mark
    that MariaDB leaves of each CREATE OR REPLACE."""
    context = replace(MARIADB, thread_specific=True)
    assert read_change("drop table t", context) == (DropTables((named("t"),)),)
    assert isinstance(read_change("create table t (id int)", context), tuple)
    assert isinstance(read_change("create or replace table t like u", context), tuple)
