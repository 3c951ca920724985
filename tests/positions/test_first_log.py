"""A log that is whole from the server's first statement on: what stands in it is all there is."""

from __future__ import annotations

import pytest

from lockstep.pipeline.model.table_state import TableCondition
from tests.fix_mysql import MySqlStand
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import Pair, fresh
from tests.positions.shop import follow

MIGRATIONS = (
    "create database if not exists shop",
    "create table if not exists shop.versions (id int primary key, name varchar(20))",
    "insert into shop.versions values (1, 'first')",
    "drop table if exists shop.orders",
    "create table if not exists shop.orders (id int primary key, v int)",
    "insert into shop.orders values (1, 1), (2, 2)",
    "create table if not exists shop.versions (id int)",
    "alter table shop.orders add column w int default 5",
    "create or replace view shop.seen as select id from shop.orders",
)
"""What a migration tool types, on whatever it finds."""


def conditions(follower: Follower) -> dict[str, TableCondition]:
    states = follower.ledger.table_states(SOURCE).items()
    return {table.name: state.condition for table, state in states}


@pytest.mark.parametrize("servers", ["pair", "bare_pair", "mariadb_pair"])
def test_whatever_migration_tools_type_is_followed(
    request: pytest.FixtureRequest, servers: str
) -> None:
    """`IF [NOT] EXISTS` and its like leave no doubt: nothing was there before the log."""
    pair: Pair = request.getfixturevalue(servers)
    pair.a.execute(*MIGRATIONS)
    follower = follow(pair.a)
    assert follower.run().quarantined == ()
    assert follower.mirror("shop.versions") == [{"id": 1, "name": "first"}]
    assert follower.mirror("shop.orders") == [{"id": 1, "v": 1, "w": 5}, {"id": 2, "v": 2, "w": 5}]


def test_a_log_that_began_once_more_is_not_whole(pair: Pair) -> None:
    """A table that the log does not make, or a statement that needs one, tells that more was there:
    then `IF NOT EXISTS` says nothing of what it found."""
    pair.a.execute(*MIGRATIONS[:3], "create table shop.idle (id int primary key)")
    reset(pair.a)
    pair.a.execute(*MIGRATIONS[1:2], "insert into shop.versions values (2, 'second')")
    follower = follow(pair.a)
    follower.run()
    assert conditions(follower)["versions"] is TableCondition.STOPPED

    fresh(pair.a)
    pair.a.execute(*MIGRATIONS[:3])
    reset(pair.a)
    pair.a.execute("alter table shop.versions add column w int")
    pair.a.execute(*MIGRATIONS[1:2], "insert into shop.versions values (2, 'second', 3)")
    follower = follow(pair.a)
    follower.run()
    assert conditions(follower)["versions"] is TableCondition.STOPPED


def reset(stand: MySqlStand) -> None:
    stand.execute("reset binary logs and gtids")
