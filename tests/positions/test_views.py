"""CREATE TABLE IF NOT EXISTS of a name that a view has: it is logged, and makes no table."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fix_mysql import MySqlStand
from tests.positions.paused import Shop
from tests.positions.stories import stories_in, tell

ROWS = ["{'id': 1, 'y': 2}"]
MADE = "create table if not exists b"


@pytest.mark.servers("newest", "8.0", "5.7")
def test_stories_of_views(mysql: MySqlStand) -> None:
    """A view shows the ids of a table, and has the name that tables take later."""
    tell(mysql, stories_in(globals()), ["a"], ["create view b as select id from a"])


def tables(shop: Shop) -> set[str]:
    """Those that have a mirror, or ever had a state."""
    states = shop.follower.states()
    paths = [path.split("/") for path in shop.follower.lake.tables]
    return {table.name for table in states if table.database == shop.name} | {
        path[-1] for path in paths if path[-2] == shop.name
    }


def a_view_keeps_its_name(shop: Shop) -> Iterator[None]:
    """Before a table takes the name, after it was one, and while nobody runs; rows that are written
    through the view are the other table's."""
    yield from _keeps_its_name(shop, "(id int primary key, x int)")


def a_view_keeps_its_name_from_a_copy(shop: Shop) -> Iterator[None]:
    """The same, where the statement names another table."""
    yield from _keeps_its_name(shop, "like a")


def _keeps_its_name(shop: Shop, definition: str) -> Iterator[None]:
    shop.do(f"{MADE} {definition}", "insert into b values (2)")
    yield
    assert shop.quarantined() == {}
    assert tables(shop) == {"a"}
    shop.require_whole("a")
    shop.require_history()
    shop.do("drop view b", f"{MADE} (id int primary key, y int)", "insert into b values (1, 2)")
    shop.do(f"{MADE} {definition}")
    yield
    assert shop.quarantined() == {}
    assert list(map(str, shop.follower.mirror(f"{shop.name}.b"))) == ROWS
    shop.require_history()
    shop.do("drop table b", "create view b as select id from a", f"{MADE} {definition}")
    yield
    assert shop.quarantined() == {}
    shop.require_history()


def a_log_that_tells_which_statement_made_the_table_is_believed(shop: Shop) -> Iterator[None]:
    """MySQL 8.0 and later log it with its transaction; by the run, the view is gone."""
    if shop.stand.version < (8,):
        return
    shop.do(
        f"{MADE} (id int primary key, x int)",
        "drop view b",
        f"{MADE} (id int primary key, y int)",
        "insert into b values (1, 2)",
    )
    yield
    assert shop.quarantined() == {}
    assert list(map(str, shop.follower.mirror(f"{shop.name}.b"))) == ROWS
    shop.require_history()


def a_table_that_no_view_hides_is_made(shop: Shop) -> Iterator[None]:
    """In an engine whose statements have no transaction, too."""
    shop.do(
        "set default_storage_engine = myisam",
        "create table if not exists c (id int primary key, y int)",
        "insert into c values (1, 2)",
    )
    yield
    assert shop.quarantined() == {}
    assert list(map(str, shop.follower.mirror(f"{shop.name}.c"))) == ROWS


def what_a_view_replaced_before_it_was_read_is_not_captured(shop: Shop) -> Iterator[None]:
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
