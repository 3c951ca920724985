"""Statements in the log instead of rows: what changes no captured table for certain is passed,
a captured table that one reaches is quarantined, and the source stops only where nobody can tell.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial

import pytest

from lockstep.pipeline.run.dump.log_reader import undetermined_error
from lockstep.pipeline.schema.code import Undetermined
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.effects import LoggedStatement
from lockstep.pipeline.values.errors import UnsupportedStatement
from lockstep.pipeline.values.position import Coordinates, LogFile
from lockstep.pipeline.values.table import TableName
from tests.chance import by_chance
from tests.fix_mysql import ACCOUNT, MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower
from tests.positions.paused import Shop
from tests.positions.servers import is_mariadb
from tests.positions.stories import Story, tell

TABLES = (
    "create table kept (id int primary key, v int)",
    "create table child (id int primary key, parent int, key (parent))",
    "create table parent (id int primary key, v int)",
    "create table beat (id int primary key, ts varchar(40))",
    "create table watched (id int primary key, v int)",
    "alter table child add constraint up foreign key (parent) references parent (id)"
    " on delete cascade",
    "create trigger seen after insert on watched for each row insert into kept values (new.id, 0)",
    "create view over_kept as select * from kept where id > 0",
    "create function own() returns int no sql return 1",
    "insert into parent values (1, 1), (2, 2)",
    "insert into child values (1, 1), (2, 2)",
    "insert into kept values (100, 1)",
    "insert into beat values (1, '')",
)
CAPTURED = ("kept", "child")
MAY_SEE = f"grant trigger, show view on * to {ACCOUNT}"
"""Of the database in use: what runs ask of triggers and views."""

CASES = {
    "a heartbeat": (("replace into beat values (1, now())",), set[str]()),
    "reads a captured one": (("insert into beat select id + 9, v from kept",), set[str]()),
    "a captured one": (("insert into kept values (1, 1)",), {"kept"}),
    "a cascade": (("delete from parent where id = 1",), {"child"}),
    "no cascade": (("insert into parent values (3, 3)",), set[str]()),
    "a trigger": (("insert into watched values (5, 5)",), {"kept"}),
    "another event than the trigger's": (("update watched set v = 1",), set[str]()),
    "an updatable view": (("insert into over_kept values (7, 7)",), {"kept"}),
    "an executable comment": (
        ("update beat /*!50000 , kept */ set /*!50000 kept.v = 9, */ beat.ts = 'x'",),
        {"kept"},
    ),
    "quotes": (
        ("set sql_mode = 'ansi_quotes'", 'insert into "beat" ("id") values (6)'),
        set[str](),
    ),
    "another database": (("use mysql", "delete from {}.beat"), set[str]()),
    "XA": (
        (
            *("xa start 'a'", "insert into beat values (9, '')", "xa end 'a'"),
            *("xa prepare 'a'", "xa commit 'a'"),
        ),
        set[str](),
    ),
    "XA of a captured one": (
        (
            *("xa start 'b'", "insert into kept values (9, 9)", "xa end 'b'"),
            *("xa prepare 'b'", "xa commit 'b'"),
        ),
        {"kept"},
    ),
    "beside a temporary table": (
        ("create temporary table here (id int)", "insert into beat values (8, '')"),
        set[str](),
    ),
}
"""By case, statements, and the captured tables that they reach."""


@pytest.fixture(
    params=[
        *("mysql", "mysql57", "mariadb"),
        pytest.param("mysql80", marks=pytest.mark.soak),
    ]
)
def stand(request: pytest.FixtureRequest) -> MySqlStand:
    found: MySqlStand = request.getfixturevalue(request.param)
    return found


@pytest.fixture
def name(stand: MySqlStand) -> Iterator[str]:
    with stand.own_database() as name:
        stand.execute(*TABLES, MAY_SEE, database=name)
        yield name


def put(shop: Shop, *statements: str) -> None:
    """In one session that logs statements."""
    shop.do("set binlog_format = statement", *(one.replace("{}", shop.name) for one in statements))


def changed(shop: Shop) -> set[str]:
    """Captured tables that are not as their mirrors are."""
    return {
        table
        for table in CAPTURED
        if [tuple(row.values()) for row in shop.follower.mirror(f"{shop.name}.{table}")]
        != shop.stand.rows(f"select * from {table} order by 1", shop.name)
    }


@pytest.mark.thin
def test_stories_of_what_statements_reach(stand: MySqlStand) -> None:
    """A captured table that one reaches is quarantined, and nothing else. All cases are tried on a
    MySQL of today, and some on the others."""
    cases = [*CASES.values()]
    if stand.version < (9,) or is_mariadb(stand):
        cases = by_chance().sample(cases, len(cases) // 2)
    stories: list[Story] = [partial(_is_quarantined, *case) for case in cases]
    stories.append(triggers_and_views_are_followed)
    # From before the databases: then the log says what triggers and views they ever had.
    tell(stand, stories, (), (*TABLES, MAY_SEE), CAPTURED, start=str(head(stand)))


def _is_quarantined(statements: tuple[str, ...], reached: set[str], shop: Shop) -> Iterator[None]:
    """What is passed has left the captured tables as they were."""
    put(shop, *statements)
    yield
    assert shop.quarantined().keys() == reached
    assert changed(shop) <= reached


def triggers_and_views_are_followed(shop: Shop) -> Iterator[None]:
    """What holds at a statement's place counts: triggers that came, went, or went with their table
    to another name, and views that are others now."""
    put(
        shop,
        "create trigger later after insert on beat for each row update kept set v = 0",
        "drop trigger seen",
        "insert into watched values (21, 1)",
        "rename table beat to beaten",
        "alter view over_kept as select * from watched",
    )
    yield
    assert shop.quarantined() == {}
    put(shop, "insert into over_kept values (22, 1)", "drop trigger later")
    yield
    assert shop.quarantined() == {}
    put(
        shop,
        "insert into beaten values (23, '')",
        "create trigger later after insert on beaten for each row update kept set v = 5",
        "insert into beaten values (24, '')",
    )
    yield
    assert shop.quarantined().keys() == {"kept"}
    assert changed(shop) <= {"kept"}
    databases = shop.follower.ledger.databases_at(SOURCE)
    schemas = [one.schema for one in databases if one.name == shop.name]
    found = [schema.code.triggers for schema in schemas if schema and schema.code]
    assert [[(one.name, one.table.name) for one in triggers or ()] for triggers in found] == [
        [("later", "beaten")]
    ]


# -- of a run as a whole -----------------------------------------------------------------------


def test_a_statement_without_a_table_has_a_hint_of_whole_sentences() -> None:
    """Only a statement whose table is known can be passed for good."""
    at, now = Coordinates(LogFile("binlog", 1), 4), datetime(2026, 1, 1, tzinfo=UTC)
    statement = LoggedStatement("load data", StatementContext(), at, at, "", now, now)
    hints = {
        target: undetermined_error(statement, Undetermined("it is not read", target)).hint
        for target in (None, TableName("", "beat"), TableName("shop", "beat"))
    }
    whole = "it was not recorded; let the statement's session log rows (binlog_format=ROW)"
    passed = ". If such statements change no captured table, pass them for good: "
    assert hints == {
        None: whole,
        TableName("", "beat"): whole,
        TableName("shop", "beat"): f'{whole}{passed}`passed_statements = ["shop.beat"]`',
    }


@pytest.mark.thin
def test_what_a_stored_function_reaches_nobody_can_tell(stand: MySqlStand, name: str) -> None:
    follower = Follower(server(stand), [f"{name}.{table}" for table in CAPTURED], "latest")
    follower.run()
    beat = "insert into beat values (5, own())"
    stand.execute("set binlog_format = statement", beat, database=name)
    with pytest.raises(UnsupportedStatement, match="it is not known"):
        follower.run()


@pytest.mark.thin
@pytest.mark.parametrize("end", ["drop trigger seen", "drop table watched"])
def test_what_went_before_a_first_run_is_not_known(stand: MySqlStand, name: str, end: str) -> None:
    """The server has no such trigger any more when its structures are read; at the statement's
    place it had."""
    place = str(head(stand))
    watched = "insert into watched values (31, 1)"
    stand.execute("set binlog_format = statement", watched, end, database=name)
    follower = Follower(server(stand), [f"{name}.kept"], place)
    with pytest.raises(UnsupportedStatement, match="it is not known"):
        follower.run()


@pytest.mark.thin
def test_the_triggers_of_a_dropped_database_are_not_known(stand: MySqlStand, name: str) -> None:
    """Those of a new database of its name are others."""
    other = f"{name}_2"
    created = (f"create database {other}", f"create table {other}.w (id int primary key)")
    insert = f"insert into {name}.kept values (new.id, 0)"
    stand.execute(
        *created,
        f"grant trigger, show view on {other}.* to {ACCOUNT}",
        f"create trigger {other}.seen after insert on {other}.w for each row {insert}",
    )
    try:
        place = str(head(stand))
        watched = f"insert into {other}.w values (31)"
        stand.execute("set binlog_format = statement", watched, f"drop database {other}", *created)
        follower = Follower(server(stand), [f"{name}.kept"], place)
        with pytest.raises(UnsupportedStatement, match="it is not known"):
            follower.run()
    finally:
        stand.execute(f"drop database {other}")


def test_a_database_of_which_no_trigger_is_seen(mysql: MySqlStand) -> None:
    """The account has no TRIGGER: what the statement reaches is not known, until a person says
    so."""
    with mysql.own_database() as name:
        mysql.execute(*TABLES, database=name)
        follower = Follower(server(mysql), [f"{name}.kept"], "latest")
        follower.run()
        beat = "insert into beat values (9, '')"
        mysql.execute("set binlog_format = statement", beat, database=name)
        with pytest.raises(UnsupportedStatement, match="lacks TRIGGER") as stopped:
            follower.run()
        assert f'passed_statements = ["{name}.beat"]' in stopped.value.hint
        follower.passes = (f"{name}.be%",)
        assert follower.run().passed_statements == 1


def test_names_in_other_character_sets(mysql: MySqlStand) -> None:
    """The second byte of a character may be a backslash there."""
    names = {"gbk": "\u8aa0", "sjis": "\u8868"}
    with mysql.own_database() as name:
        mysql.execute(f"grant trigger on `{name}`.* to {mysql.account}")
        for charset, odd in names.items():
            assert odd.encode(charset)[1:] == b"\\"
            mysql.execute(
                f"create table `{odd}` (id int primary key, v varchar(9)) charset utf8mb4",
                f"create table kept_{charset} (id int primary key)",
                database=name,
            )
        follower = Follower(server(mysql), [f"{name}.kept_*"], "latest")
        follower.run()
        for charset, odd in names.items():
            with mysql.connect(name, charset=charset) as connection, connection.cursor() as cursor:
                cursor.execute("set binlog_format = statement")
                cursor.execute(f"insert into `{odd}` values (1, '{odd}')")
                cursor.execute(f"insert into kept_{charset} values (1)")
        report = follower.run()
        assert report.passed_statements == len(names)
        assert {one.table.name for one in report.quarantined} == {f"kept_{one}" for one in names}


@pytest.mark.thin
def test_rows_of_a_merge_table_are_those_of_its_parts(stand: MySqlStand, name: str) -> None:
    """The log has them under its name; the parts' table maps stand beside it. Their rows of before
    are captured, and other tables go on."""
    stand.execute(
        *(f"create table {one} (id int primary key) engine myisam" for one in ("part1", "part2")),
        "create table every (id int primary key) engine merge union=(part1, part2)"
        " insert_method=last",
        database=name,
    )
    follower = Follower(server(stand), [f"{name}.part*", f"{name}.kept"], "latest")
    follower.run()
    stand.execute(
        "insert into part1 values (1)",
        "insert into part2 values (1)",
        "insert into kept values (7, 7)",
        "insert into every values (2)",
        "insert into kept values (8, 8)",
        database=name,
    )
    assert {one.table.name for one in follower.run().quarantined} == {"part1", "part2"}
    changes = follower.lake.tables[f"{SOURCE}/_changes/{name}/part2"][-1].rows
    assert [row["id"] for row in changes.to_pylist()] == [1]
    assert [row["id"] for row in follower.mirror(f"{name}.kept")] == [7, 8]
