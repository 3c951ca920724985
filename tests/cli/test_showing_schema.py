"""A table's structure at every place that a person may name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from lockstep.commands.schema import schema_values
from lockstep.pipeline.model.json_values import to_json
from lockstep.pipeline.run.capture import capture
from lockstep.pipeline.run.context import RunPorts
from lockstep.pipeline.run.status.schema_history import (
    ShownSchema,
    show_schema,
    unknown_table_error,
)
from lockstep.pipeline.schema.history import Knowledge
from lockstep.pipeline.values.errors import NothingMatches, SchemaUnknownAt
from lockstep.pipeline.values.places import parse_place
from lockstep.pipeline.values.table import TableName
from tests.fix_mysql import MySqlStand
from tests.mysql.logged import head
from tests.mysql.reading import server
from tests.positions.follower import SOURCE, Follower


def nobody() -> RunPorts:
    raise AssertionError("the ledger answers")


@dataclass
class Shop:
    """A table that was altered in each of two runs; `places` and `sets`: behind each
    statement."""

    stand: MySqlStand
    database: str
    follower: Follower
    places: list[str]
    sets: list[str]

    @property
    def orders(self) -> TableName:
        return TableName(self.database, "orders")

    def altered(self, statement: str) -> None:
        self.stand.execute(statement, database=self.database)
        self.places.append(str(head(self.stand)))
        self.sets.append(str(self.stand.rows("select @@global.gtid_executed")[0][0]))

    def captured(self, run: str) -> None:
        with self.follower.ledger.lock(SOURCE, "test", run) as lease:
            capture(self.follower.ports(), lease)

    def shown(
        self,
        place: str | None = None,
        table: str = "orders",
        ports: Callable[[], RunPorts] = nobody,
    ) -> ShownSchema:
        at = parse_place(place) if place else None
        name = TableName(self.database, table)
        return show_schema(self.follower.ledger, SOURCE, name, at, ports)

    def columns(
        self, place: str | None = None, ports: Callable[[], RunPorts] = nobody
    ) -> list[str]:
        schema = self.shown(place, ports=ports).shown_version.version.schema
        return [] if schema is None else [column.name for column in schema.columns]


def made(mysql: MySqlStand, database: str) -> Shop:
    mysql.execute("create table orders (id int primary key, v int)", database=database)
    place = str(head(mysql))
    follower = Follower(server(mysql), [f"{database}.*"], start=place)
    found = Shop(mysql, database, follower, [], [])
    mysql.execute("insert into orders values (1, 1)", database=database)
    found.captured("before")
    found.altered("alter table orders add note varchar(9) default 'secret'")
    found.altered("alter table orders rename column v to amount, drop note")
    found.captured("first-run")
    found.altered("alter table orders modify amount bigint, comment = 'x'")
    found.altered("drop table orders")
    found.captured("second-run")
    return found


@pytest.fixture(scope="module")
def shop(mysql: MySqlStand) -> Iterator[Shop]:
    """For those who leave it as it is."""
    with mysql.own_database() as name:
        yield made(mysql, name)


@pytest.fixture
def own_shop(mysql: MySqlStand, database: str) -> Shop:
    """For those who alter more."""
    return made(mysql, database)


FIRST = ["id", "v"]
SECOND = ["id", "v", "note"]
THIRD = ["id", "amount"]


def test_a_place_is_answered_with_the_version_in_force(shop: Shop) -> None:
    """Behind a statement its version holds, one byte before it does not."""
    assert shop.columns(shop.places[0]) == SECOND
    file, _, offset = shop.places[0].partition(":")
    assert shop.columns(f"{file}:{int(offset) - 1}") == FIRST
    assert shop.columns(shop.places[1]) == THIRD
    assert shop.shown(shop.places[3]).shown_version.version.knowledge is Knowledge.DROPPED
    assert shop.shown().shown_version.version.knowledge is Knowledge.DROPPED


def test_transactions_and_runs_are_places_too(shop: Shop) -> None:
    """Behind every transaction of a set; where a run ended."""
    assert shop.columns(f"gtid:{shop.sets[0]}") == SECOND
    assert shop.columns(f"gtid:{shop.sets[2]}") == THIRD
    assert shop.columns("run:first") == THIRD
    assert shop.shown("run:first").shown_version.version.version == 3
    assert shop.shown("run:second-run").shown_version.version.knowledge is Knowledge.DROPPED


def test_a_moment_is_before_what_was_committed_then(shop: Shop) -> None:
    """The statement of that very moment has not happened."""
    committed = [
        version.statement.committed_at
        for version in shop.shown().versions
        if version.statement is not None
    ]
    assert None not in committed
    for moment, columns in zip(committed, (FIRST, SECOND, THIRD, THIRD), strict=True):
        assert moment is not None
        assert shop.columns(moment.isoformat()) == columns
    later = datetime.now(UTC) + timedelta(days=1)
    with pytest.raises(SchemaUnknownAt, match="was captured"):
        shop.columns(later.isoformat(), shop.follower.ports)
    with pytest.raises(SchemaUnknownAt, match="begins at"):
        shop.columns("2001-01-01T00:00:00Z")


def test_a_moment_behind_the_last_transaction(mysql: MySqlStand, own_shop: Shop) -> None:
    """The version in force, while the source is quiet; what was not read nobody knows."""
    mysql.execute("create table orders (id int primary key, w int)", database=own_shop.database)
    own_shop.captured("third-run")
    moment = datetime.now(UTC).isoformat()
    assert own_shop.columns(moment, own_shop.follower.ports) == ["id", "w"]
    mysql.execute("alter table orders add x int", database=own_shop.database)
    with pytest.raises(SchemaUnknownAt, match="was captured"):
        own_shop.columns(datetime.now(UTC).isoformat(), own_shop.follower.ports)


def test_earliest_asks_the_server(shop: Shop) -> None:
    """Its oldest file begins before the history does: nobody knows."""
    place = parse_place("earliest")
    with pytest.raises(SchemaUnknownAt):
        show_schema(shop.follower.ledger, SOURCE, shop.orders, place, shop.follower.ports)


def test_a_place_that_nobody_read_is_refused(shop: Shop) -> None:
    """Whether it is on the server or not."""
    with pytest.raises(SchemaUnknownAt, match="no batch captured"):
        shop.columns("binlog.999999:4")
    with pytest.raises(SchemaUnknownAt, match="captured by a run nobody"):
        shop.columns("run:nobody")


def test_every_version_says_what_it_changed(shop: Shop) -> None:
    """Columns by where they come from, then part for part; statements without literals."""
    versions = shop.shown().versions
    assert [version.changes for version in versions] == [
        (),
        ("column note: new",),
        ("column v: now amount", "column note: dropped"),
        ("column amount type: int, bigint",),
        (),
    ]
    told = to_json(schema_values(SOURCE, shop.shown(shop.places[0]), shop.places[0]))
    assert (told["version"], told["since"], told["place"]) == (2, shop.places[0], shop.places[0])
    assert told["columns"][2]["type"] == "varchar(9)"
    assert told["statement"]["text"].startswith("alter table orders add note")
    assert "secret" not in told["statement"]["text"]
    assert told["statement"]["effects"][0].startswith(f"{shop.orders}: ")
    assert [one["state"] for one in told["versions"]] == [*["known"] * 4, "dropped"]
    assert schema_values(SOURCE, shop.shown(), None)["columns"] is None


def test_a_statement_on_many_tables_is_told_for_one(own_shop: Shop) -> None:
    """Effects on the others are left out."""
    own_shop.altered("create table a (id int primary key)")
    own_shop.altered("create table b like a")
    own_shop.altered("rename table a to c, b to a")
    own_shop.captured("third-run")
    versions = reversed(own_shop.shown(table="a").versions)
    (newest, *_) = [version.statement for version in versions if version.statement is not None]
    name = TableName(own_shop.database, "a")
    assert newest.effects_on(name) == (
        f"{name}: is now called {own_shop.database}.c",
        f"{name}: was called {own_shop.database}.b",
    )


def test_an_unknown_table_is_answered_with_near_names(shop: Shop) -> None:
    """Also where the case is another; without any, with a command."""
    with pytest.raises(NothingMatches) as caught:
        shop.shown(table="Order")
    assert caught.value.hint.startswith(f"did you mean {shop.orders}")
    far = unknown_table_error(TableName("zzz", "yyy"), [shop.orders], "the history")
    assert "lockstep tables" in far.hint
