"""Statements whose names mean something else than a table: a view, or a temporary table of the
session. The history stays right, or the table is set aside by name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial

import pytest

from tests.chance import by_chance
from tests.fix_mysql import MySqlStand
from tests.positions.paused import Shop
from tests.positions.stories import Story, tell

FORMATS = ("ROW", "MIXED", "STATEMENT")
MADE = "create table if not exists v"
ROWS = ["{'id': 1, 'y': 2}"]
TEMPORARY = "create temporary table {} (id int primary key, z int default 7)"
SERVERS = ("mysql", "mysql57", "mariadb")
SERVERS_OF_THE_SOAK = ("mysql80", "mariadb11")


@pytest.mark.parametrize(
    ("nameless", "name"),
    [
        *((server, server) for server in SERVERS),
        *(pytest.param(*[server] * 2, marks=pytest.mark.soak) for server in SERVERS_OF_THE_SOAK),
    ],
    indirect=["nameless"],
)
def test_stories_of_names(nameless: MySqlStand, name: str) -> None:
    """In each format of the log that has such statements. A view shows the ids of a table, and has
    the name that tables take later."""
    tell(nameless, stories_on(name), ["a"], ["create view v as select id from a"])


def stories_on(name: str) -> Iterable[Story]:
    """Those of which a server can tell; some have two of the formats, as chance says."""
    if name.startswith("mariadb"):
        yield _a_table_that_is_renamed_and_made_again
        yield _a_table_that_a_query_replaces
    else:
        yield _a_table_that_no_view_hides_is_made
        yield _what_a_view_replaced_before_it_was_read_is_not_captured
    if name in ("mysql", "mysql80"):
        yield _a_log_that_tells_which_statement_made_the_table_is_believed
        yield partial(_tables_that_are_made_where_there_was_none, name)
    yield partial(_a_view_keeps_its_name, "(id int primary key, x int)", "ROW")
    yield partial(_a_view_keeps_its_name, "like a", "ROW")
    if name == "mysql80":
        return
    formats = FORMATS if name == "mysql" else by_chance().sample(FORMATS, 2)
    for format_ in formats:
        if name != "mysql57" and format_ != "ROW":
            yield partial(_a_view_keeps_its_name, "like a", format_)
        if name != "mysql":
            yield partial(_a_temporary_table_that_is_renamed, name, format_)
        for like in ("t", "a"):
            yield partial(_a_table_like_a_temporary_one, name, "create", format_, like)
            if name.startswith("mariadb"):
                made = "create or replace"
                yield partial(_a_table_like_a_temporary_one, name, made, format_, like)


def in_format(shop: Shop, binlog_format: str, *statements: str) -> None:
    """In one session."""
    shop.do(f"set binlog_format = '{binlog_format}'", *statements)


def tables(shop: Shop) -> set[str]:
    """Those that have a mirror, or ever had a state."""
    states = shop.follower.states()
    paths = [path.split("/") for path in shop.follower.lake.tables]
    return {table.name for table in states if table.database == shop.name} | {
        path[-1] for path in paths if path[-2] == shop.name
    }


def _a_view_keeps_its_name(definition: str, binlog_format: str, shop: Shop) -> Iterator[None]:
    """Before a table takes the name, after it was one, and while nobody runs; MySQL logs the
    statement, and not that it changed the dictionary. Rows that are written through the view are
    the other table's."""
    in_format(shop, binlog_format, f"{MADE} {definition}")
    shop.do("insert into v values (2)")
    yield
    assert shop.quarantined() == {}
    assert tables(shop) == {"a"}
    shop.require_whole("a")
    shop.require_history()
    shop.do("drop view v", f"{MADE} (id int primary key, y int)", "insert into v values (1, 2)")
    shop.do(f"{MADE} {definition}")
    yield
    assert shop.quarantined() == {}
    assert list(map(str, shop.follower.mirror(f"{shop.name}.v"))) == ROWS
    shop.require_history()
    shop.do("drop table v", "create view v as select id from a", f"{MADE} {definition}")
    yield
    assert shop.quarantined() == {}
    shop.require_history()


def _tables_that_are_made_where_there_was_none(name: str, shop: Shop) -> Iterator[None]:
    """Whatever their definition comes from, the statement says that it changed the dictionary."""
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
    tables = ["plain", "copied", "parted", "older", "full"]
    if name == "mysql":
        shop.do("create table if not exists chosen (id int primary key) as select 1 id")
        tables.append("chosen")
    yield
    assert shop.quarantined() == {}
    shop.require_history()
    for table in tables:
        shop.require_whole(table)


def _a_table_like_a_temporary_one(
    name: str, made: str, binlog_format: str, like: str, shop: Shop
) -> Iterator[None]:
    """Logged in full where rows are; elsewhere it is set aside by name, at its first rows at the
    latest. `a` is a table for everybody else."""
    if made != "create":
        shop.do("create table x (id int primary key)", "insert into x values (3)")
    in_format(shop, binlog_format, TEMPORARY.format(like), f"{made} table x like {like}")
    shop.do("insert into x (id) values (1)")
    yield
    shop.require_whole("a")
    if shop.state("x").is_complete:
        assert binlog_format == "ROW" or (binlog_format == "MIXED" and name in ("mysql", "mysql57"))
        shop.require_history()
    else:
        assert shop.state("x").has_stopped
        shop.resume("x")
        yield
    assert shop.follower.mirror(f"{shop.name}.x") == shop.rows("x")


def _a_temporary_table_that_is_renamed(name: str, binlog_format: str, shop: Shop) -> Iterator[None]:
    """MariaDB logs it as if it were the table for everybody, which is set aside by name when the
    server turns out to have it still. On MySQL it needs ALTER TABLE, which is marked."""
    how = "rename table a to b" if name.startswith("mariadb") else "alter table a rename to b"
    in_format(shop, binlog_format, TEMPORARY.format("a"), how)
    shop.do("create table other (id int primary key)", "insert into other values (1)")
    yield
    shop.require_whole("other")
    if name == "mysql57" and binlog_format != "STATEMENT":
        shop.require_whole("a")
        shop.require_history()
        return
    assert shop.state("a").has_stopped
    if name.startswith("mariadb"):
        assert (shop.state("a").reason or "").endswith("moved a temporary table of this name")
    shop.do("insert into a values (2, 2)")
    shop.resume("a")
    yield
    shop.do("insert into a values (3, 3)")
    yield
    shop.require_whole("a", rereads=1)


def _a_table_that_is_renamed_and_made_again(shop: Shop) -> Iterator[None]:
    """It is another table, and no temporary one."""
    shop.do("rename table a to b", "create table a (id int primary key)")
    shop.do("insert into a values (8)")
    yield
    assert {*shop.quarantined()} <= {"b"}
    yield
    assert shop.follower.mirror(f"{shop.name}.a") == [{"id": 8}]
    assert shop.follower.mirror(f"{shop.name}.b") == shop.rows("b")


def _a_table_that_a_query_replaces(shop: Shop) -> Iterator[None]:
    """The statement is logged inside a transaction, before its rows. Rows that were logged just
    before it are those of the table that it drops."""
    shop.do("create table q (id int primary key, v int)", "insert into q values (1, 1)")
    yield
    shop.do(
        "insert into q values (2, 2)",
        "update q set v = 3 where id = 1",
        "create or replace table q (id int primary key, v int) as select 4 id, 4 v",
    )
    yield
    shop.require_whole("q")
    shop.require_history()


def _a_log_that_tells_which_statement_made_the_table_is_believed(shop: Shop) -> Iterator[None]:
    """MySQL 8.0 and later log it with its transaction; by the run, the view is gone."""
    shop.do(
        f"{MADE} (id int primary key, x int)",
        "drop view v",
        f"{MADE} (id int primary key, y int)",
        "insert into v values (1, 2)",
    )
    yield
    assert shop.quarantined() == {}
    assert list(map(str, shop.follower.mirror(f"{shop.name}.v"))) == ROWS
    shop.require_history()


def _a_table_that_no_view_hides_is_made(shop: Shop) -> Iterator[None]:
    """In an engine whose statements have no transaction, too."""
    shop.do(
        "set default_storage_engine = myisam",
        "create table if not exists c (id int primary key, y int)",
        "insert into c values (1, 2)",
    )
    yield
    assert shop.quarantined() == {}
    assert list(map(str, shop.follower.mirror(f"{shop.name}.c"))) == ROWS


def _what_a_view_replaced_before_it_was_read_is_not_captured(shop: Shop) -> Iterator[None]:
    """Of a table that was made in MyISAM, and dropped for a view: nobody can tell it from one that
    was never made until its rows come, and then it is quarantined."""
    shop.do(
        "create table if not exists c (id int primary key) engine = myisam",
        "insert into c values (1)",
        "drop table c",
        "create view c as select id from a",
    )
    yield
    assert [*shop.quarantined()] == ["c"]
    assert "not in the history" in shop.quarantined()["c"].reason
    shop.require_history()
