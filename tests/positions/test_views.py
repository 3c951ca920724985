"""CREATE TABLE IF NOT EXISTS of a name that a view has: it is logged, and makes no table."""

from __future__ import annotations

import pytest

from tests.fix_mysql import MySqlStand
from tests.positions.paused import Shop, open_shop

pytestmark = pytest.mark.servers("newest", "8.0", "5.7")

ROWS = ["{'id': 1, 'y': 2}"]


@pytest.fixture
def shop(mysql: MySqlStand, database: str) -> Shop:
    return open_shop(mysql, database, ["a"], "create view b as select id from a")


def tables(shop: Shop) -> set[str]:
    """Those that have a mirror, or ever had a state."""
    states = {table.name for table in shop.follower.ledger.table_states("shop")}
    paths = [path.split("/") for path in shop.follower.lake.tables]
    return states | {path[-1] for path in paths if path[-2] == shop.name}


@pytest.mark.parametrize("definition", ["(id int primary key, x int)", "like a"])
def test_a_view_keeps_its_name(shop: Shop, definition: str) -> None:
    """Before a table takes the name, after it was one, and while nobody runs; rows that are written
    through the view are the other table's."""
    made = "create table if not exists b"
    shop.do(f"{made} {definition}", "insert into b values (2)")
    assert shop.run().quarantined == ()
    assert tables(shop) == {"a"}
    shop.require_whole("a")
    shop.require_history()
    shop.do("drop view b", f"{made} (id int primary key, y int)", "insert into b values (1, 2)")
    shop.do(f"{made} {definition}")
    assert shop.run().quarantined == ()
    assert list(map(str, shop.follower.mirror(f"{shop.name}.b"))) == ROWS
    shop.require_history()
    shop.do("drop table b", "create view b as select id from a", f"{made} {definition}")
    assert shop.run().quarantined == ()
    shop.require_history()


@pytest.mark.since(8)
def test_a_log_that_tells_which_statement_made_the_table_is_believed(shop: Shop) -> None:
    """MySQL 8.0 and later log it with its transaction; by the run, the view is gone."""
    made = "create table if not exists b"
    shop.do(
        f"{made} (id int primary key, x int)",
        "drop view b",
        f"{made} (id int primary key, y int)",
        "insert into b values (1, 2)",
    )
    assert shop.run().quarantined == ()
    assert list(map(str, shop.follower.mirror(f"{shop.name}.b"))) == ROWS
    shop.require_history()


def test_a_table_that_no_view_hides_is_made(shop: Shop) -> None:
    """In an engine whose statements have no transaction, too."""
    shop.do(
        "set default_storage_engine = myisam",
        "create table if not exists c (id int primary key, y int)",
        "insert into c values (1, 2)",
    )
    assert shop.run().quarantined == ()
    assert list(map(str, shop.follower.mirror(f"{shop.name}.c"))) == ROWS


def test_what_a_view_replaced_before_it_was_read_is_not_captured(shop: Shop) -> None:
    """Of a table that was made in MyISAM, and dropped for a view: nobody can tell it from one that
    was never made until its rows come, and then it is quarantined."""
    shop.do(
        "create table if not exists c (id int primary key) engine = myisam",
        "insert into c values (1)",
        "drop table c",
        "create view c as select id from a",
    )
    (quarantined,) = shop.run().quarantined
    assert (quarantined.table.name, "not in the history" in quarantined.reason) == ("c", True)
    shop.require_history()
