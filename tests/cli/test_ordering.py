"""What people order about one table, and what they are told comes of it."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from lockstep.pipeline.model.table_state import OrderKind, StopPlace, TableOrder
from lockstep.pipeline.run.orders import OrderOutcome, OrderRequest, give_order, read_definition
from lockstep.pipeline.schema.context import ServerDialect
from lockstep.pipeline.schema.model import DatabaseSchema, ServerSchema, TableSchema
from lockstep.pipeline.values.errors import ConfigurationError, LedgerRefused, NothingMatches
from lockstep.pipeline.values.position import Coordinates
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower

ORDERS = TableName("shop", "orders")
SHOP = ServerSchema(
    databases={"shop": DatabaseSchema("shop", "latin1", "latin1_swedish_ci")},
    tables={ORDERS: TableSchema(ORDERS, ())},
)
STOPPED = StopPlace(3, Coordinates.parse("binlog.000002:400"))
MOMENT = datetime(2026, 11, 1, 6, tzinfo=UTC)


def order(kind: OrderKind, schema: TableSchema | None = None) -> TableOrder:
    return TableOrder(1, ORDERS, kind, "ann", "because", MOMENT, STOPPED, schema)


# -- a structure given by a person -------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        "create table shop.orders (id int primary key, v varchar(9))",
        "CREATE TABLE `orders` (\n  `id` int NOT NULL,\n  `v` varchar(9) DEFAULT NULL,\n"
        "  PRIMARY KEY (`id`)\n) ENGINE=InnoDB;\n",
    ],
)
def test_a_definition_is_read_against_the_database(text: str) -> None:
    """What it leaves open is the database's, and the table may be known already."""
    table = read_definition(text, ORDERS, SHOP, ServerDialect())
    assert table.name == ORDERS
    assert (table.charset, table.primary_key) == ("latin1", ("id",))
    assert [(column.name, column.charset) for column in table.columns] == [
        ("id", None),
        ("v", "latin1"),
    ]


@pytest.mark.parametrize(
    ("facts", "collation"),
    [
        (ServerDialect(50722), "utf8mb4_general_ci"),
        (ServerDialect(80015), "utf8mb4_0900_ai_ci"),
        (ServerDialect(90704), "utf8mb4_0900_ai_ci"),
        (ServerDialect(101118, "mariadb"), "utf8mb4_general_ci"),
    ],
    ids=lambda value: (
        f"{value.flavour}-{value.version}" if isinstance(value, ServerDialect) else ""
    ),
)
def test_collations_that_a_server_leaves_out_are_its_defaults(
    facts: ServerDialect, collation: str
) -> None:
    """SHOW CREATE TABLE names the collation only if it is not the character set's default. It
    leaves nothing out of a TIMESTAMP."""
    text = "create table orders (s varchar(9), t timestamp not null) charset=utf8mb4"
    table = read_definition(text, ORDERS, SHOP, facts)
    assert (table.collation, table.columns[0].collation) == (collation, collation)
    assert (table.columns[1].default, table.columns[1].on_update) == (None, False)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("create table shop.others (id int)", "it creates shop.others"),
        ("alter table shop.orders add x int", "not one CREATE TABLE"),
        ("create table shop.orders like shop.others", "not one CREATE TABLE"),
        ("create table orders (id int primary key", "not understood"),
        ("create table orders (id int); drop table orders", "not understood"),
        ("grant select on *.* to x", "not one CREATE TABLE"),
        ("", "not one CREATE TABLE"),
    ],
)
def test_anything_else_is_refused(text: str, why: str) -> None:
    """A sentence, and what to give instead."""
    with pytest.raises(ConfigurationError, match=why) as caught:
        read_definition(text, ORDERS, SHOP, ServerDialect())
    assert "show create table" in caught.value.hint


def test_names_are_compared_as_the_server_does() -> None:
    """With lower_case_table_names the case of a name says nothing."""
    text = "create table Shop.ORDERS (id int)"
    folding = replace(SHOP, lower_case_table_names=1)
    assert read_definition(text, ORDERS, folding, ServerDialect(lower_case_table_names=1)).name == (
        ORDERS
    )
    with pytest.raises(ConfigurationError):
        read_definition(text, ORDERS, SHOP, ServerDialect())


# -- orders ---------------------------------------------------------------------------------


@pytest.fixture
def follower(mysql: MySqlStand, database: str) -> Follower:
    """One table of one row, captured."""
    mysql.execute("create table orders (id int primary key)", database=database)
    found = Follower(server(mysql), [f"{database}.*"], start=str(head(mysql)))
    mysql.execute("insert into orders values (1)", database=database)
    found.capture()
    return found


def give(
    follower: Follower, kind: OrderKind, database: str, statement: str | None = None
) -> OrderOutcome:
    with follower.ledger.lock(SOURCE, "test", None) as lease:
        asked = OrderRequest(TableName(database, "orders"), "ann", "because", statement)
        return give_order(follower.ports(), lease, kind, asked)


def test_what_does_not_fit_is_refused_and_not_recorded(follower: Follower, database: str) -> None:
    """An active table cannot be resumed, a table that nobody knows not be paused."""
    with pytest.raises(LedgerRefused):
        give(follower, OrderKind.RESUME, database)
    with pytest.raises(ConfigurationError):
        give(follower, OrderKind.RESUME, database, "create table orders (")
    with pytest.raises(NothingMatches) as caught:
        give(follower, OrderKind.PAUSE, database.upper())
    assert f"{database}.orders" in caught.value.hint
    assert follower.ledger.open_orders(SOURCE) == []


def test_a_server_that_refuses_the_account_refuses_no_order(
    mysql: MySqlStand, follower: Follower, database: str
) -> None:
    """It is recorded, and what the log still has is left open."""
    give(follower, OrderKind.PAUSE, database)
    follower.server = server(mysql, password="another one")
    assert "or reads it from the source" in give(follower, OrderKind.RESUME, database).sentence
    assert len(follower.ledger.open_orders(SOURCE)) == 1
