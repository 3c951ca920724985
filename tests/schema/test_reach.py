"""A statement that is passed never changed a captured table: made at random, and run by servers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import pymysql
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st

from lockstep.pipeline.schema.code import ReachedTables, Verdict, reached_tables
from lockstep.pipeline.schema.context import ANSI_QUOTES, ServerDialect, StatementContext
from lockstep.pipeline.schema.model import ServerSchema
from lockstep.pipeline.schema.statements.row_changes import (
    BUILT_IN_FUNCTIONS,
    KEYWORDS,
    read_create_select,
    read_row_change,
)
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.reading import server
from tests.schema.random_row_changes import statements

CAPTURED = ("kept", "child")
MARIADB = StatementContext(replace(ServerDialect(), version=101_100, flavour="mariadb"), "shop")
_COLUMNS = "id int primary key, v int"
MADE = (
    f"create table kept ({_COLUMNS})",
    f"create table parent ({_COLUMNS}, key (v))",
    f"create table child ({_COLUMNS}, foreign key (id) references parent (id) on delete cascade"
    " on update cascade)",
    f"create table beat ({_COLUMNS})",
    f"create table watched ({_COLUMNS})",
    f"create table {{far}}.away ({_COLUMNS})",
    "create trigger seen after update on watched for each row update kept set v = 70",
    "create trigger {far}.seen before insert on {far}.away for each row"
    " begin if new.id > 5 then delete from {here}.watched; replace into {here}.beat"
    " select id, 5 from {here}.kept; end if; end",
    "create trigger gone after delete on watched for each row delete from kept where id = 1",
    "create view over_kept as select * from kept",
    "create view over_beat as select * from beat where id in (select id from kept)",
    "create function own() returns int deterministic begin update kept set v = 80; return 61; end",
    "create function {far}.own() returns int deterministic begin update {here}.kept set v = 90;"
    " return 61; end",
    *(f"insert into {name} values (1, 1), (2, 2)" for name in ("parent", "child", "kept", "beat")),
    "insert into watched values (1, 1), (2, 2)",
    "insert into {far}.away values (1, 1), (2, 2)",
)


@dataclass
class Server:
    """Two databases, all their structures, and a session that rolls back."""

    here: str
    far: str
    schema: ServerSchema
    facts: ServerDialect
    cursor: pymysql.cursors.Cursor

    def verdict(self, text: str, mode: int = 0) -> Verdict:
        change = read_row_change(text, StatementContext(self.facts, self.here, mode))
        captured = {TableName(self.here, name) for name in CAPTURED}
        return reached_tables(change, self.schema, captured.__contains__, lambda _: False)

    def changed(self, text: str) -> set[str]:
        """Captured tables that the statement changes."""
        before = self._rows()
        try:
            self.cursor.execute(text)
        except pymysql.MySQLError:
            return set()
        finally:
            after = self._rows()
            self.cursor.execute("rollback")
        return {name for name in CAPTURED if before[name] != after[name]}

    def _rows(self) -> dict[str, object]:
        found: dict[str, object] = {}
        for name in CAPTURED:
            self.cursor.execute(f"select * from {self.here}.{name} order by id")
            found[name] = self.cursor.fetchall()
        return found


@pytest.fixture(scope="module", params=["mysql_newest", "mysql80", "mysql57", "mariadb"])
def made(request: pytest.FixtureRequest) -> Iterator[Server]:
    stand: MySqlStand = request.getfixturevalue(request.param)
    with stand.own_database() as here, stand.own_database() as far:
        names = {"here": here, "far": far}
        stand.execute(*(one.format(**names) for one in MADE), database=here)
        for name in (here, far):
            stand.execute(f"grant trigger, show view on `{name}`.* to {stand.account}")
        baseline = server(stand).baseline()
        schema = ServerSchema()
        for database in baseline.databases:
            schema = schema.with_database(database)
        for table in baseline.tables:
            schema = schema.with_table(table)
        number = stand.version[0] * 10_000 + stand.version[1] * 100 + stand.version[2]
        flavour = "mariadb" if "mariadb" in request.param else "mysql"
        facts = replace(ServerDialect(), version=number, flavour=flavour)
        with stand.connect(here, autocommit=False) as connection, connection.cursor() as cursor:
            yield Server(here, far, schema, facts, cursor)


@given(quotes=st.booleans(), text=statements())
@settings(max_examples=150, deadline=None, suppress_health_check=[*HealthCheck])
def test_what_is_passed_changes_nothing(made: Server, quotes: bool, text: str) -> None:
    """And a captured table that is changed is among those that the statement is said to reach."""
    text = text.replace("here", made.here).replace("far", made.far)
    made.cursor.execute(f"set sql_mode = '{'ansi_quotes' if quotes else ''}'")
    changed = made.changed(text)
    verdict = made.verdict(text, ANSI_QUOTES if quotes else 0)
    event(f"{type(verdict).__name__}, changed {len(changed)}")
    match verdict:
        case ReachedTables(tables):
            assert changed <= {table.name for table in tables}


def test_no_word_before_a_parenthesis_calls_a_stored_function(made: Server) -> None:
    """What is taken for built in is built in, on every server; a keyword never calls anything."""
    called = []
    for word in sorted({*BUILT_IN_FUNCTIONS, *KEYWORDS}):
        made.cursor.execute(
            f"create function {made.here}.`{word}`() returns int no sql"
            " begin set @called = 1; return 1; end"
        )
        made.cursor.execute("set @called = 0")
        for arguments in ("", "1", "1, 2"):
            try:
                made.cursor.execute(f"select {word}({arguments})")
            except pymysql.MySQLError as error:
                if error.args[0] == 1305:
                    called.append(word)
        made.cursor.execute("select @called")
        ((now,),) = made.cursor.fetchall()
        called += [word] if int(now) else []
        made.cursor.execute(f"drop function {made.here}.`{word}`")
    assert called == []


READ = {
    "load data infile 'SQL_LOAD-1' into table `t` fields terminated by '\\t' (`id`)": (
        "INSERT t",
        "",
    ),
    "load data local infile 'x' replace into table far.t partition (p0) ignore 1 lines (id, @w)"
    " set v = (select max(v) from u)": ("DELETE t, INSERT t", "u"),
    "load xml low_priority infile 'x' ignore into table t rows identified by '<row>'": (
        "INSERT t",
        "",
    ),
    "insert into t table u": ("INSERT t", "u"),
    "insert into t partition (p0) select * from u partition (p0) x": ("INSERT t", "u"),
    "insert into t select * from lateral (select v from u) l": ("INSERT t", "u"),
    "insert into t select * from json_table('[1]', '$[*]' columns (a int path '$')) j": (
        "INSERT t",
        "",
    ),
    "insert into .t select a from (values row(1)) as w (a)": ("INSERT t", ""),
    "update low_priority ignore t set v = 1": ("UPDATE t", "t"),
    "delete history from t": ("DELETE t", ""),
}
"""Statements, and the tables that they change and read."""


@pytest.mark.parametrize("statement", READ)
def test_the_tables_of_a_statement(statement: str) -> None:
    """LOAD DATA as the log has it, and what a table, a partition or a function may stand for."""
    access = read_row_change(statement, StatementContext(ServerDialect(), "shop"))
    writes = ", ".join(
        f"{event} {table.name}" for table, events in access.writes for event in events
    )
    reads = ", ".join(table.name for table in access.reads)
    assert (access.reason, (writes, reads)) == (None, READ[statement])


@pytest.mark.parametrize(
    "statement",
    [
        "load data infile 'x' into table t set v = own()",
        "load data infile x into table t",
        "insert into t select * from own() f",
        "insert into t select count (v) from u",
        "insert into t values (next value for s)",
        "insert into t values (?)",
        "insert into t values (1))",
        "insert into a.b.c values (1)",
        "insert into t values (1) call p()",
        "select 1 on duplicate key update v = 2",
        "update t where v = 1",
        "delete from t, u where id = 1",
        "delete from t; delete from u",
        "set statement sql_mode = 'ansi_quotes' for insert into t values (1)",
        "handler t open",
    ],
)
def test_a_statement_that_may_change_any_table(statement: str) -> None:
    """What calls a stored function, draws from a sequence or cannot be read stops the run."""
    access = read_row_change(statement, MARIADB)
    assert access.reason is not None
    assert access.writes == ()


@pytest.mark.parametrize(
    "statement",
    [
        "update t use index for join (v) set v = 1",
        "update t for portion of p from '2001-01-01' to '2002-01-01' set v = 1",
        "delete from t for portion of p from '2001-01-01' to '2002-01-01'",
        "select v from t for system_time from '2001-01-01' to '2002-01-01'",
    ],
)
def test_what_follows_for_is_no_list_of_tables(statement: str) -> None:
    access = read_row_change(statement, MARIADB)
    tables = {*access.reads, *(table for table, _ in access.writes)}
    assert (access.reason, tables) == (None, {TableName("shop", "t")})


@pytest.mark.parametrize("change", ["update t {portion} set v = 2", "delete from t {portion}"])
def test_a_change_of_a_portion_of_a_period_has_every_event_that_its_triggers_get(
    mariadb: MySqlStand, change: str
) -> None:
    """MariaDB inserts what is left of the row before and after the portion."""
    statement = change.format(portion="for portion of p from '2001-01-01' to '2002-01-01'")
    with mariadb.own_database() as database:
        mariadb.execute(
            "create table got (event varchar(6))",
            "create table t (v int, a date, b date, period for p (a, b))",
            "insert into t values (1, '2000-01-01', '2005-01-01')",
            *(
                f"create trigger on_{event} before {event} on t for each row"
                f" insert into got values ('{event}')"
                for event in ("insert", "update", "delete")
            ),
            statement,
            database=database,
        )
        with mariadb.connect(database) as connection, connection.cursor() as cursor:
            cursor.execute("select distinct upper(event) from got")
            got = {event for (event,) in cursor.fetchall()}
        access = read_row_change(statement, replace(MARIADB, database=database))
    [(_, events)] = access.writes
    assert got <= {*events}


@pytest.mark.parametrize(
    ("statement", "reason"),
    [
        ("create table t as values (own())", "it calls own, which is not a built-in function"),
        ("create table t (a int) values (abs(1))", None),
    ],
)
def test_a_table_may_be_created_from_values(statement: str, reason: str | None) -> None:
    """MariaDB calls the functions in VALUES, which may change any table."""
    access = read_create_select(statement, MARIADB)
    assert access is not None
    assert access.reason == reason


@pytest.mark.parametrize("values", ["less than (5)", "in (1, 2)"])
def test_the_values_of_a_partition_are_no_query(values: str) -> None:
    text = f"create table t (a int) partition by list (a) (partition p values {values})"
    assert read_create_select(text, MARIADB) is None
