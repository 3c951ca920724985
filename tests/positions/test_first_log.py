"""A log that is whole from the server's first statement on: what stands in it is all there is."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from demo.mysql_search import Program
from demo.mysqld import mysql_server
from lockstep.pipeline.model.table_state import TableCondition
from lockstep.pipeline.schema.context import StatementContext
from lockstep.pipeline.schema.statements.read import read_change
from lockstep.pipeline.values.errors import SchemaUnknownAt
from tests.fix_mysql import MySqlStand, killed_at_last
from tests.positions.follower import SOURCE, Follower
from tests.positions.servers import SMALL, Pair, fresh, make_account, purge
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
    "alter database shop character set latin1",
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


@pytest.fixture(scope="module")
def caseless(
    mysql_program: Program, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MySqlStand]:
    """A server that stores names in lower case. Its log has them as they were typed."""
    options = (*SMALL, "--lower-case-table-names=1")
    made = mysql_server(
        mysql_program, tmp_path_factory.mktemp("caseless"), os.environ, options=options
    )
    with killed_at_last(made) as running:
        stand = MySqlStand(running)
        make_account(stand)
        yield stand


def test_names_are_compared_as_the_server_does(caseless: MySqlStand) -> None:
    """`Shop.Orders` in a statement is the table shop.orders: before its ALTER, its structure is
    not today's."""
    swap = "alter table Shop.Orders change u v int, change v u int"
    row = "insert into Shop.Orders values (1, 10, 100)"
    made = "create database shop", "create table Shop.Orders (id int primary key, u int, v int)"
    fresh(caseless)
    with caseless.metadata("MINIMAL"):
        caseless.execute(*made, row, swap)
        follower = follow(caseless)
        assert follower.run().quarantined == ()
        assert follower.mirror("shop.orders") == [{"id": 1, "v": 10, "u": 100}]

        fresh(caseless)
        caseless.execute(*made)
        purge(caseless)
        caseless.execute(row, swap)
        with pytest.raises(SchemaUnknownAt, match=r"statements up to \S+ changed it"):
            follow(caseless).run()


def test_a_statement_that_is_not_understood_stops_the_table_that_it_means(
    caseless: MySqlStand, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However it spells its name."""

    def fewer(text: str, context: StatementContext) -> object:
        return read_change(text.replace("comment", "incomprehensible"), context)

    monkeypatch.setattr("lockstep.pipeline.schema.tracker.read_change", fewer)
    fresh(caseless)
    caseless.execute("create database shop", "create table shop.orders (id int primary key, v int)")
    follower = follow(caseless)
    follower.run()
    caseless.execute(
        "insert into shop.orders values (1, 1)",
        "alter table Shop.Orders add w int default 7, comment 'x'",
        "insert into shop.orders (id) values (2)",
    )
    [stopped] = follower.run().quarantined
    assert "incomprehensible" in stopped.reason


def reset(stand: MySqlStand) -> None:
    stand.execute("reset binary logs and gtids")
