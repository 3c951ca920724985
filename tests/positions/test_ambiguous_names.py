"""Statements whose names mean something else than a table: a view, or a temporary table of the
session. The history stays right, or the table is set aside by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from pipeline.table_state import TableCondition
from tests.fix_mysql import MySqlStand
from tests.positions.paused import Shop, open_shop

FORMATS = ("ROW", "MIXED", "STATEMENT")
Opens = Callable[[str], Shop]


@pytest.fixture
def opened(request: pytest.FixtureRequest) -> Iterator[Opens]:
    """Shops on servers whose logs do not name columns."""
    with ExitStack() as stack:

        def open_on(name: str) -> Shop:
            stand: MySqlStand = request.getfixturevalue(name)
            off = "NO_LOG" if name.startswith("mariadb") else "MINIMAL"
            stack.enter_context(stand.metadata(off))
            return open_shop(stand, stack.enter_context(stand.own_database()), ("a",))

        yield open_on


def in_format(shop: Shop, binlog_format: str, *statements: str) -> None:
    """In one session."""
    shop.do(f"set binlog_format = '{binlog_format}'", *statements)


VIEWED = (
    "create view v as select 1 id",
    "create table if not exists v (id int primary key, x int)",
    "create table if not exists v like a",
)


@pytest.mark.thin
@pytest.mark.parametrize("binlog_format", FORMATS)
@pytest.mark.parametrize("name", ["mysql", "mariadb", "mariadb11"])
def test_a_table_that_a_view_keeps_from_being_made(
    opened: Opens, name: str, binlog_format: str
) -> None:
    """MySQL logs the statement, and does not log that it changed the data dictionary."""
    shop = opened(name)
    in_format(shop, binlog_format, *VIEWED)
    assert shop.run().quarantined == ()
    shop.require_history()
    assert not shop.follower.mirror(f"{shop.name}.v")
    in_format(shop, binlog_format, "drop view v", "create table if not exists v (id int)")
    shop.do("insert into v values (4)")
    assert shop.run().quarantined == ()
    shop.require_whole("v")
    shop.require_history()


@pytest.mark.parametrize("name", ["mysql", "mysql80"])
def test_tables_that_are_made_where_there_was_none(opened: Opens, name: str) -> None:
    """Whatever their definition comes from, the statement says that it changed the dictionary."""
    shop = opened(name)
    shop.do(
        "create table if not exists plain (id int primary key)",
        "create table if not exists copied like a",
        "create table if not exists parted (id int primary key) partition by key () partitions 2",
        "create table if not exists older (id int primary key) engine = MyISAM",
        "create temporary table t (id int primary key)",
        "create table if not exists full like t",
        *(f"insert into {table} (id) values (1)" for table in ("plain", "copied", "parted")),
        "insert into full values (1)",
        "insert into older values (1)",
    )
    if name == "mysql":
        shop.do("create table if not exists chosen (id int primary key) as select 1 id")
    assert shop.run().quarantined == ()
    shop.require_history()
    for table in ("plain", "copied", "parted", "older", "full", *(["chosen"] * (name == "mysql"))):
        shop.require_whole(table)


TEMPORARY = "create temporary table {} (id int primary key, z int default 7)"


@pytest.mark.thin
@pytest.mark.parametrize("like", ["t", "a"])
@pytest.mark.parametrize("binlog_format", FORMATS)
@pytest.mark.parametrize(
    ("name", "made"),
    [
        ("mysql", "create"),
        ("mysql57", "create"),
        ("mariadb", "create"),
        ("mariadb", "create or replace"),
        ("mariadb11", "create or replace"),
    ],
)
def test_a_table_like_a_temporary_one(
    opened: Opens, name: str, made: str, binlog_format: str, like: str
) -> None:
    """Logged in full where rows are; elsewhere it is set aside by name, at its first rows at the
    latest. `a` is a table for everybody else."""
    shop = opened(name)
    if made != "create":
        shop.do("create table x (id int primary key)", "insert into x values (3)")
    in_format(shop, binlog_format, TEMPORARY.format(like), f"{made} table x like {like}")
    shop.do("insert into x (id) values (1)")
    shop.run()
    shop.require_whole("a")
    if shop.state("x").condition is TableCondition.ACTIVE:
        assert (
            binlog_format == "ROW"
            or (binlog_format, name) == ("MIXED", "mysql")
            or (binlog_format == "MIXED" and name == "mysql57")
        )
        shop.require_history()
    else:
        assert shop.state("x").condition is TableCondition.QUARANTINED
        shop.release("x")
        shop.run()
    assert shop.follower.mirror(f"{shop.name}.x") == shop.rows("x")


@pytest.mark.thin
@pytest.mark.parametrize("binlog_format", FORMATS)
@pytest.mark.parametrize("name", ["mysql57", "mariadb", "mariadb11"])
def test_a_temporary_table_that_is_renamed(opened: Opens, name: str, binlog_format: str) -> None:
    """MariaDB logs it as if it were the table for everybody, which is set aside by name when the
    server turns out to have it still. On MySQL it needs ALTER TABLE, which is marked."""
    shop = opened(name)
    how = "rename table a to b" if name.startswith("mariadb") else "alter table a rename to b"
    in_format(shop, binlog_format, TEMPORARY.format("a"), how)
    shop.do("create table other (id int primary key)", "insert into other values (1)")
    shop.run()
    shop.require_whole("other")
    if name == "mysql57" and binlog_format != "STATEMENT":
        shop.require_whole("a")
        shop.require_history()
        return
    assert shop.state("a").condition is TableCondition.QUARANTINED
    if name.startswith("mariadb"):
        assert (shop.state("a").reason or "").endswith("moved a temporary table of this name")
    shop.do("insert into a values (2, 2)")
    shop.release("a")
    shop.run()
    shop.do("insert into a values (3, 3)")
    shop.run()
    shop.require_whole("a", rereads=1)


@pytest.mark.parametrize("name", ["mariadb", "mariadb11"])
def test_a_table_that_is_renamed_and_made_again(opened: Opens, name: str) -> None:
    """It is another table, and no temporary one."""
    shop = opened(name)
    shop.do("rename table a to b", "create table a (id int primary key)")
    shop.do("insert into a values (8)")
    assert {one.table.name for one in shop.run().quarantined} <= {"b"}
    shop.run()
    assert shop.follower.mirror(f"{shop.name}.a") == [{"id": 8}]
    assert shop.follower.mirror(f"{shop.name}.b") == shop.rows("b")
